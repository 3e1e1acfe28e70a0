package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/version"
)

// Values of the field "kind". The value for layout.yaml is in pkg/layout.
const (
	KindKubernetes = "KubernetesConfiguration"
	KindRoles      = "RoleDefinition"
	KindServices   = "ServicesConfiguration"
)

// Default values. The service range and the data path are OpenPAI's defaults. The pod range is flannel's usual range.
const (
	defaultServiceRange   = "10.254.0.0/16"
	defaultPodCIDR        = "10.244.0.0/16"
	defaultDNSDomain      = "cluster.local"
	defaultAPIPort        = 6443
	defaultEtcdPath       = "/var/lib/etcd"
	defaultImages         = "registry.k8s.io"
	defaultNetwork        = "flannel"
	defaultClusterID      = "pai"
	defaultDataPath       = "/datastorage"
	defaultDomain         = "docker.io"
	defaultNamespace      = "openpai"
	defaultRegistrySecret = "pai-secret"
)

func controlPlaneComponents() []string {
	return []string{"etcd", "apiserver", "controller-manager", "scheduler"}
}

// DefaultRoles returns the content of k8s-role-definition.yaml in a generated configuration.
func DefaultRoles() Roles {
	return Roles{APIVersion: APIVersion, Kind: KindRoles, Roles: map[string]Role{
		layout.RoleMaster: {
			Description: "runs the control plane and, with that, the platform's own services",
			Components:  controlPlaneComponents(),
			Labels:      map[string]string{"pai-master": "true"},
			Taints:      []string{"node-role.kubernetes.io/control-plane:NoSchedule"},
		},
		layout.RoleWorker: {
			Description: "runs jobs",
			Labels:      map[string]string{"pai-worker": "true"},
			Workloads:   true,
		},
	}}
}

func (c *Cluster) fillDefaults() {
	c.Layout.APIVersion = cmp.Or(c.Layout.APIVersion, APIVersion)
	c.Layout.Kind = cmp.Or(c.Layout.Kind, layout.Kind)
	if c.Roles.Roles == nil {
		c.Roles.Roles = DefaultRoles().Roles
	}
	c.Roles.APIVersion = cmp.Or(c.Roles.APIVersion, APIVersion)
	c.Roles.Kind = cmp.Or(c.Roles.Kind, KindRoles)
	c.Kubernetes.APIVersion = cmp.Or(c.Kubernetes.APIVersion, APIVersion)
	c.Kubernetes.Kind = cmp.Or(c.Kubernetes.Kind, KindKubernetes)
	c.fillKubernetes()
	c.fillServices()
}

func (c *Cluster) fillKubernetes() {
	s := &c.Services
	k := &c.Kubernetes.Kubernetes
	if !c.IsManaged() {
		// In an existing cluster, unknown settings stay empty, because users would mistake a guess for a fact.
		k.ClusterName = cmp.Or(k.ClusterName, nameOf(s.Cluster.Common.ClusterID))
		k.DNSDomain = cmp.Or(k.DNSDomain, defaultDNSDomain)
		return
	}
	k.Version = cmp.Or(k.Version, version.Kubernetes)
	k.ClusterName = cmp.Or(k.ClusterName, nameOf(s.Cluster.Common.ClusterID))
	k.ServiceClusterIPRange = cmp.Or(k.ServiceClusterIPRange, defaultServiceRange)
	k.PodCIDR = cmp.Or(k.PodCIDR, defaultPodCIDR)
	k.DNSDomain = cmp.Or(k.DNSDomain, defaultDNSDomain)
	k.APIServerPort = cmp.Or(k.APIServerPort, defaultAPIPort)
	k.EtcdDataPath = cmp.Or(k.EtcdDataPath, defaultEtcdPath)
	k.DockerRegistry = cmp.Or(k.DockerRegistry, defaultImages)
	k.NetworkPlugin = cmp.Or(k.NetworkPlugin, defaultNetwork)
	masters := c.ControlPlane()
	if k.LoadBalanceIP == "" && len(masters) > 1 {
		k.APIEndpoint = cmp.Or(k.APIEndpoint, APIEndpointLocal)
	}
	if k.LoadBalanceIP == "" && len(masters) == 1 {
		k.LoadBalanceIP = masters[0].HostIP
	}
}

func (c *Cluster) fillServices() {
	s := &c.Services
	s.APIVersion = cmp.Or(s.APIVersion, APIVersion)
	s.Kind = cmp.Or(s.Kind, KindServices)
	s.Cluster.Common.ClusterID = cmp.Or(s.Cluster.Common.ClusterID, defaultClusterID)
	s.Cluster.Common.DataPath = cmp.Or(s.Cluster.Common.DataPath, defaultDataPath)
	r := &s.Cluster.DockerRegistry
	r.Domain = cmp.Or(r.Domain, defaultDomain)
	r.Namespace = cmp.Or(r.Namespace, defaultNamespace)
	r.Tag = cmp.Or(r.Tag, version.Tag())
	r.SecretName = cmp.Or(r.SecretName, defaultRegistrySecret)
}

func nameOf(id string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(id)), "-")
	if name == "" || len(name) > 63 {
		return defaultClusterID
	}
	return name
}

var clusterID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)

func badClusterID(id string) string {
	if !clusterID.MatchString(id) {
		return "the cluster id has other characters than letters, digits, - and _, or more than 63"
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinKeys[V any](m map[string]V) string { return strings.Join(sortedKeys(m), ", ") }
