package config

import (
	"cmp"

	"github.com/openpai/paictl/pkg/secret"
)

// services migrates the file services-configuration.yaml. It migrates the sections of services with a chart key by key. It doesn't change the
// sections of services that aren't in this release.
func (m *migrator) services() {
	d, s := m.docs[ServicesFile], &m.c.Services.Cluster
	s.Common.ClusterID = cmp.Or(d.text("cluster", "common", "cluster-id"), d.text("cluster", "cluster-id"), d.text("cluster", "clusterid"))
	if bad := badClusterID(s.Common.ClusterID); s.Common.ClusterID != "" && bad != "" {
		m.note(d, noteChanged, bad+"; it is "+nameOf(s.Common.ClusterID)+" now", "cluster", "common", "cluster-id")
		s.Common.ClusterID = nameOf(s.Common.ClusterID)
	}
	s.Common.DataPath = cmp.Or(d.text("cluster", "common", "data-path"), d.text("cluster", "data-path"))
	m.registry(d)
	for key, reason := range commonReasons() {
		m.drop(d, reason, "cluster", "common", key)
	}
	for _, name := range d.keys() {
		if name == "cluster" {
			continue
		}
		if reason := goneServices()[name]; reason != "" {
			m.drop(d, reason, name)
			continue
		}
		if name == oldScheduler {
			m.scheduler()
			continue
		}
		if migrate := migratedServices()[name]; migrate != nil {
			m.successor(name, migrate)
			continue
		}
		if settings, ok := d.take(name).(map[string]any); ok {
			earlier, _ := m.sections()[name].(map[string]any)
			m.sections()[name] = settings
			m.section(name, earlier)
		} else if v := d.get(name); v != nil {
			m.sections()[name] = v
		}
	}
}

func (m *migrator) registry(d *oldDoc) {
	r := &m.c.Services.Cluster.DockerRegistry
	at := func(key string) string { return d.text("cluster", "docker-registry", key) }
	r.Domain, r.Namespace, r.Tag = cmp.Or(at("domain"), r.Domain), cmp.Or(at("namespace"), r.Namespace), cmp.Or(at("tag"), at("docker-tag"), r.Tag)
	r.Username, r.SecretName = cmp.Or(at("username"), r.Username), at("secret-name")
	r.Password = cmp.Or(secret.String(at("password")), r.Password)
	if r.Domain == "public" {
		m.note(d, noteChanged, "the public registry is called "+defaultDomain, "cluster", "docker-registry", "domain")
		r.Domain = ""
	}
	if r.Tag != "" {
		where, steps := d, []any{"cluster", "docker-registry", "tag"}
		if d.get(steps...) == nil {
			where, steps = m.docs[oldConfigFile], []any{"docker_image_tag"}
		}
		m.note(where, noteChanged, "the services of this platform have their own releases; docker-tag is this paictl's", steps...)
		r.Tag = ""
	}
}

const marketplace = "templates of jobs take its place, and need no setting: \"paictl job template list\""

func commonReasons() map[string]string {
	return map[string]string{
		"cluster-type":           "k8s is the only kind",
		"job-history":            "job history is always kept",
		"qos-switch":             "services always have requests and limits",
		"k8s-rbac":               "RBAC is always on",
		"az-rdma":                "paictl publishes no RDMA devices: a device plugin that publishes rdma/hca makes infiniband in job files work",
		"deploy-in-aks":          "managed clusters are recognised automatically",
		"docker-data-root":       "containerd replaces Docker; logs are read where the kubelet keeps them",
		"marketplace":            marketplace,
		"prometheus-pushgateway": "a service like others",
		"dshuttle":               "no longer part of the platform",
	}
}

func goneServices() map[string]string {
	yarn := "YARN is no longer part of the platform"
	return map[string]string{
		"zookeeper": yarn, "hadoop-name-node": yarn, "hadoop-data-node": yarn, "hadoop-node-manager": yarn, "hadoop-jobhistory": yarn,
		"hadoop-batch-job": yarn, "yarn-frameworklauncher": yarn, "yarn-exporter": yarn, "hadoop-run": yarn,
		"drivers":       "no service installs GPU drivers: \"cluster up\" does, if kubernetes-configuration.yaml has gpu-driver: {policy: install}",
		"k8s-dashboard": "the old Kubernetes dashboard is no longer part of the platform",
		"dshuttle":      "no longer part of the platform",
	}
}
