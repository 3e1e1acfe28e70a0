package config

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// kubernetes migrates the files kubernetes-configuration.yaml and k8s-role-definition.yaml of the older format.
func (m *migrator) kubernetes() {
	d, k := m.docs[KubernetesFile], &m.c.Kubernetes.Kubernetes
	at := func(key string) []any { return []any{"kubernetes", key} }
	m.dns(d, at("cluster-dns")...)
	if ip := d.text(at("load-balance-ip")...); ip != "" {
		k.LoadBalanceIP = ip
	}
	k.ServiceClusterIPRange = d.text(at("service-cluster-ip-range")...)
	switch r := d.text(at("docker-registry")...); {
	case r == "" || strings.HasSuffix(r, "gcr.io/google_containers"):
		m.drop(d, "that registry has no current release; the images are named "+defaultImages+" and come from the bundle", at("docker-registry")...)
	default:
		k.DockerRegistry = r
	}
	switch p := d.text(at("etcd-data-path")...); {
	case p == "" || path.Clean(p) == "/var/etcd" || path.Clean(p) == "/var/etcd/data":
		m.drop(d, "the default is "+defaultEtcdPath+" now; a current etcd can't read the old data", at("etcd-data-path")...)
	default:
		k.EtcdDataPath = p
		m.note(d, noteChanged, "kept; the folder must be empty, because a current etcd can't read the old data", at("etcd-data-path")...)
	}
	for _, key := range d.keys("kubernetes") {
		if strings.HasSuffix(key, "-version") {
			m.drop(d, "versions are the bundle's", at(key)...)
		}
	}
	m.drop(d, "etcd 3 is the only backend", at("storage-backend")...)
	m.drop(d, "the API is served with TLS and authentication on port 6443", at("api-servers-port")...)
	m.drop(d, "the API is served with TLS", at("api-servers-http-schema")...)
	m.drop(d, "control-plane pods always have requests", at("qos-switch")...)
	roles := m.docs[RolesFile]
	for _, key := range roles.keys() {
		m.drop(roles, "no program read this file; the new one says what the roles mean", key)
	}
}

func (m *migrator) dns(d *oldDoc, steps ...any) {
	var servers []string
	switch d.get(steps...).(type) {
	case []any:
		for i := range d.list(steps...) {
			servers = append(servers, d.text(append(slices.Clone(steps), i)...))
		}
	default:
		servers = strings.FieldsFunc(d.text(steps...), func(r rune) bool { return r == ',' || r == ' ' })
	}
	for _, s := range servers {
		if message, remedy := badDNSServer(s); message != "" {
			m.note(d, noteDropped, message+"; "+remedy, steps...)
			continue
		}
		m.c.Kubernetes.Kubernetes.ClusterDNS = append(m.c.Kubernetes.Kubernetes.ClusterDNS, s)
	}
}

// kubespray migrates the file config.yaml of OpenPAI 1.5 and later.
func (m *migrator) kubespray() {
	d, k := m.docs[oldConfigFile], &m.c.Kubernetes.Kubernetes
	way := layout.SSH{Username: d.text("user"), Password: secret.String(d.text("password")), KeyFile: d.text("ssh_key_file_path")}
	if way != (layout.SSH{}) {
		m.c.Layout.SSH = way
	}
	r := &m.c.Services.Cluster.DockerRegistry
	r.Tag, r.Domain, r.Namespace = d.text("docker_image_tag"), d.text("docker_registry_domain"), d.text("docker_registry_namespace")
	r.Username, r.Password = d.text("docker_registry_username"), secret.String(d.text("docker_registry_password"))
	if root := d.text("docker_data_root"); root != "" {
		m.containerData(d, root, "docker_data_root")
	}
	for _, key := range []string{"kube_image_repo", "gcr_image_repo"} {
		if repo := d.text(key); repo != "" && k.DockerRegistry == "" && badRegistry(repo) == "" {
			k.DockerRegistry = repo
		} else if repo != k.DockerRegistry {
			m.drop(d, "all images of Kubernetes come from one registry, kubernetes.docker-registry", key)
		}
	}
	if p := d.text("openpai_kube_network_plugin"); p != "" && p != defaultNetwork {
		m.note(d, noteChanged, "flannel is installed; for another write network-plugin: none and install it yourself", "openpai_kube_network_plugin")
	}
	m.extraVars(d)
	m.kubeletFlags(d)
	m.dockerCache(d)
	for key, reason := range kubesprayReasons() {
		m.drop(d, reason, key)
	}
}

func kubesprayReasons() map[string]string {
	bundle := "programs and images come from the bundle"
	docker := "containerd replaces Docker; set it under extra.containerd"
	check := "preflight checks this, and says how to repair it"
	return map[string]string{
		"enable_hived_scheduler": "the cell scheduler always runs; without virtual clusters it has one, default",
		"enable_marketplace":     marketplace,
		"qos-switch":             "services always have requests and limits",
		"docker_check":           check, "resource_check": check,
		"docker_config_file_path": docker, "docker_iptables_enabled": docker,
		"openpai_docker_insecure_registries": docker, "openpai_docker_registry_mirrors": docker,
		"quay_image_repo": bundle, "docker_image_repo": bundle, "etcd_image_repo": bundle, "pod_infra_image_repo": bundle,
		"kubeadm_download_url": bundle, "hyperkube_download_url": bundle,
		"host_daemon_port_start": "it was never applied", "host_daemon_port_end": "it was never applied",
	}
}

// extraVars migrates the variables of kubespray that have a corresponding field in paictl's configuration.
func (m *migrator) extraVars(d *oldDoc) {
	k := &m.c.Kubernetes.Kubernetes
	section := "openpai_kubespray_extra_var"
	for _, key := range d.keys(section) {
		target := map[string]*string{"kube_service_addresses": &k.ServiceClusterIPRange, "kube_pods_subnet": &k.PodCIDR, "cluster_name": &k.DNSDomain, "dns_domain": &k.DNSDomain}[key]
		switch {
		case target != nil:
			*target = d.text(section, key)
		case key == "upstream_dns_servers" || key == "nameservers":
			m.dns(d, section, key)
			d.take(section, key)
		default:
			m.drop(d, "a variable of kubespray; see extra in kubernetes-configuration.yaml for its successors", section, key)
		}
	}
}

func (m *migrator) kubeletFlags(d *oldDoc) {
	numbers := map[string]string{
		"max-pods": "maxPods", "image-gc-high-threshold": "imageGCHighThresholdPercent",
		"image-gc-low-threshold": "imageGCLowThresholdPercent", "serialize-image-pulls": "",
	}
	section := "kubelet_custom_flags"
	for _, flag := range d.keys(section) {
		field := numbers[strings.TrimLeft(flag, "-")]
		n, err := strconv.Atoi(d.text(section, flag))
		if field == "" || err != nil {
			m.drop(d, "a flag of an old kubelet; set the field of KubeletConfiguration under extra.kubelet", section, flag)
			continue
		}
		e := &m.c.Kubernetes.Kubernetes.Extra
		if e.Kubelet == nil {
			e.Kubelet = map[string]any{}
		}
		e.Kubelet[field] = n
		m.note(d, noteChanged, fmt.Sprintf("extra.kubelet.%s now", field), section, flag)
	}
}

// dockerCache moves the settings of the image cache to the section of the service docker-cache, as OpenPAI's generator did.
func (m *migrator) dockerCache(d *oldDoc) {
	names := map[string]string{
		"enable_docker_cache": "enabled", "docker_cache_storage_backend": "storage_backend",
		"docker_cache_azure_account_name": "azure_account_name", "docker_cache_azure_account_key": "azure_account_key",
		"docker_cache_azure_container_name": "azure_container_name", "docker_cache_fs_mount_path": "fs_mount_path",
		"docker_cache_remote_url": "remote_url", "docker_cache_htpasswd": "registry-htpasswd",
	}
	section := map[string]any{}
	for old, name := range names {
		if v := d.take(old); v != nil && v != "" {
			section[name] = v
		}
	}
	if len(section) > 0 {
		m.section("docker-cache", section)
	}
}

// section adds settings to the section of a service. It overrides only empty settings.
func (m *migrator) section(name string, settings map[string]any) {
	old, _ := m.sections()[name].(map[string]any)
	if old == nil {
		old = map[string]any{}
		m.sections()[name] = old
	}
	for k, v := range settings {
		if have, _ := old[k].(map[string]any); old[k] == nil || have != nil && len(have) == 0 {
			old[k] = v
		}
	}
}
