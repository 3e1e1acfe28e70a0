package config

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/layout"
)

type machine = layout.Machine

func where(steps ...any) fieldPath { return steps }

func (k *checker) checkRoles() {
	r := k.roles
	for _, name := range sortedKeys(k.c.Roles.Roles) {
		role, p := k.c.Roles.Roles[name], where("k8s-role", name)
		if len(validation.IsDNS1123Label(name)) > 0 {
			r.fail(p, "role/name", fmt.Sprintf("%q is not a name for a role", name), "use a-z, 0-9 and -")
		}
		for i, component := range role.Components {
			if !slices.Contains(controlPlaneComponents(), component) {
				r.fail(p.With("component-list", i), "role/unknown-component", fmt.Sprintf("there is no component %q", component), "the components are etcd, apiserver, controller-manager and scheduler")
			}
			if slices.Index(role.Components, component) < i {
				r.fail(p.With("component-list", i), "role/duplicate-component", fmt.Sprintf("%s is listed twice", component), "remove one of the two")
			}
		}
		if missing := missingComponents(role); len(role.Components) > 0 && len(missing) > 0 {
			r.fail(p.With("component-list"), "role/partial-control-plane", fmt.Sprintf("%s is missing: a machine runs either the whole control plane or none of it", missing[0]), "list all of etcd, apiserver, controller-manager, scheduler; or remove the list")
		}
		checkLabelsAndTaints(r, p, role.Labels, role.Taints)
		if k.c.IsManaged() && len(role.Components) == 0 && !role.Workloads {
			r.warn(p, "role/idle", "machines with only this role run neither the control plane nor jobs", "set workloads: true, if jobs may run there")
		}
	}
}

func missingComponents(role Role) []string {
	var out []string
	for _, c := range controlPlaneComponents() {
		if !slices.Contains(role.Components, c) {
			out = append(out, c)
		}
	}
	return out
}

var (
	imageNamespace = regexp.MustCompile(`^[a-z0-9]+([._/-]+[a-z0-9]+)*$`)
	imageTag       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

func (k *checker) checkServices() {
	s, r := k.c.Services.Cluster, k.service
	p := where("cluster", "common")
	r.failIf(badClusterID(s.Common.ClusterID), p.With("cluster-id"), "services/cluster-id", "use letters, digits, - and _")
	message, remedy := k.c.BadDataFolder()
	r.failIf(message, p.With("data-path"), "services/data-path", remedy)
	d, p := s.DockerRegistry, where("cluster", "docker-registry")
	r.failIf(badRegistry(d.Domain), p.With("domain"), "services/registry-domain", "the default is "+defaultDomain)
	if !imageNamespace.MatchString(d.Namespace) {
		r.fail(p.With("namespace"), "services/registry-namespace", fmt.Sprintf("%q is not a project in a registry", d.Namespace), "use a-z, 0-9 and -")
	}
	if !imageTag.MatchString(d.Tag) {
		r.fail(p.With("docker-tag"), "services/docker-tag", fmt.Sprintf("%q is not a tag of an image", d.Tag), "write a release such as v1.0.0")
	} else if d.Tag == "latest" {
		r.warn(p.With("docker-tag"), "services/docker-tag", "latest can refer to a different image tomorrow", "write a release such as v1.0.0")
	}
	if d.Mirror != "" {
		r.failIf(badRegistry(d.Mirror), p.With("mirror"), "services/registry-mirror", "write registry[/path], such as registry.example.org:5000/mirror")
	}
	switch {
	case d.Username != "" && !d.Password.IsSet():
		r.fail(p.With("username"), "services/registry-login", "there is a username without a password", "write both, or neither")
	case d.Username == "" && d.Password.IsSet():
		r.fail(p.With("password"), "services/registry-login", "there is a password without a username", "write both, or neither")
	}
	if len(validation.IsDNS1123Subdomain(d.SecretName)) > 0 {
		r.fail(p.With("secret-name"), "services/registry-secret", fmt.Sprintf("%q is not a valid name for a Kubernetes secret", d.SecretName), "use a-z, 0-9 and -")
	}
}
