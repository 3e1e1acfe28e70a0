// Package config reads, checks, generates and explains a cluster's configuration: the quick-start file and the four generated files.
// In: YAML files. Out: typed values with defaults filled in, or findings that name file, line, field and remedy.
package config

import (
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// APIVersion of the files that this package owns.
const APIVersion = layout.APIVersion

// Names of the four files in a configuration folder.
const (
	LayoutFile     = "layout.yaml"
	KubernetesFile = "kubernetes-configuration.yaml"
	RolesFile      = "k8s-role-definition.yaml"
	ServicesFile   = "services-configuration.yaml"
)

// Cluster is a whole configuration folder, decoded, including defaults.
type Cluster struct {
	Dir        string
	Layout     layout.Layout
	Kubernetes Kubernetes
	Roles      Roles
	Services   Services

	// docs are the files as they were read, for the positions of findings; nil if the configuration
	// was generated.
	docs map[string]*strictyaml.Document
	// quick is the quick-start file that the configuration was generated from, or nil.
	quick *QuickStart
}

// Kubernetes is kubernetes-configuration.yaml.
type Kubernetes struct {
	APIVersion string         `yaml:"apiVersion" json:"apiVersion"`
	Kind       string         `yaml:"kind" json:"kind"` // KubernetesConfiguration
	Kubernetes KubernetesSpec `yaml:"kubernetes" json:"kubernetes"`
}

// KubernetesSpec is the section "kubernetes". The keys are the original's if their
// meaning is the same.
type KubernetesSpec struct {
	// Managed reports whether paictl installed Kubernetes and maintains it; absent means yes.
	Managed *bool `yaml:"managed,omitempty" json:"managed,omitempty"`
	// Version of Kubernetes, "v1.36.3". It must be the bundle's.
	Version string `yaml:"version" json:"version"`
	// ClusterName is kubeadm's clusterName and the kubeconfig's entry.
	ClusterName string `yaml:"cluster-name" json:"cluster-name"`
	// ClusterDNS are the machines' DNS servers; CoreDNS forwards queries to these servers.
	ClusterDNS            []string `yaml:"cluster-dns" json:"cluster-dns"`
	ServiceClusterIPRange string   `yaml:"service-cluster-ip-range" json:"service-cluster-ip-range"`
	PodCIDR               string   `yaml:"pod-cidr" json:"pod-cidr"`
	DNSDomain             string   `yaml:"dns-domain" json:"dns-domain"` // cluster.local
	// LoadBalanceIP is the address of the API for all nodes: the master's if there is only one, a load balancer's, or empty.
	// APIServerPort is 6443.
	LoadBalanceIP string `yaml:"load-balance-ip,omitempty" json:"load-balance-ip,omitempty"`
	APIServerPort int    `yaml:"api-servers-port" json:"api-servers-port"`
	// APIEndpoint is APIEndpointLocal, or HOST[:PORT] of a load balancer. If it is empty, the endpoint is LoadBalanceIP if that isn't a master's
	// address, local if there are several masters, and otherwise the master's address.
	APIEndpoint string `yaml:"api-endpoint,omitempty" json:"api-endpoint,omitempty"`
	// APIVIP is a virtual address for people and programs outside of the cluster, which one of the masters holds. Machines still use their own
	// endpoint.
	APIVIP string `yaml:"api-vip,omitempty" json:"api-vip,omitempty"`
	// APIServerCertSANs are further names and addresses in the API server's certificate.
	APIServerCertSANs []string `yaml:"api-server-cert-sans,omitempty" json:"api-server-cert-sans,omitempty"`
	EtcdDataPath      string   `yaml:"etcd-data-path" json:"etcd-data-path"` // /var/lib/etcd
	// DockerRegistry is the source of Kubernetes images. The bundle's images are imported under that name, so that nothing is pulled.
	DockerRegistry string `yaml:"docker-registry" json:"docker-registry"`
	// NetworkPlugin is flannel, or none if the operator installs another plugin, or the path of a
	// manifest to apply, relative to the file's folder or absolute.
	NetworkPlugin string `yaml:"network-plugin" json:"network-plugin"`
	// MetadataAddress is MetadataClosed, the default, or MetadataOpen.
	MetadataAddress string `yaml:"metadata-address,omitempty" json:"metadata-address,omitempty"`
	// Bundle is the folder with the artifacts, relative to the file's folder or absolute.
	Bundle string `yaml:"bundle,omitempty" json:"bundle,omitempty"`
	// Proxy is the proxy that machines use for addresses outside of the cluster.
	Proxy Proxy `yaml:"proxy,omitempty" json:"proxy,omitzero"`
	// GPUDriver is NVIDIA's driver on machines with its GPUs.
	GPUDriver GPUDriver `yaml:"gpu-driver,omitempty" json:"gpu-driver,omitzero"`
	Extra     Extra     `yaml:"extra,omitempty" json:"extra,omitempty"`
}

// APIEndpointLocal means that each machine has a local address that leads to the API of any master that is ready.
const (
	APIEndpointLocal = "local"
	LocalAPIPort     = 6444
)

// PeerPort is the TCP port that machines use to copy files from each other during a run of paictl.
const PeerPort = 6445

// Whether pods reach the cloud's metadata service.
const (
	MetadataClosed = "closed"
	MetadataOpen   = "open"
)

// Proxy is used only by containerd and apt on the machines. The URLs may contain a password, so
// whole URLs are secrets.
type Proxy struct {
	HTTP  secret.String `yaml:"http,omitempty" json:"http,omitempty"`
	HTTPS secret.String `yaml:"https,omitempty" json:"https,omitempty"`
	// NoProxy lists the hosts that are reached directly, in addition to the cluster's own addresses and names.
	NoProxy []string `yaml:"no-proxy,omitempty" json:"no-proxy,omitempty"`
}

// GPUDriver specifies how paictl handles NVIDIA's driver. Empty fields have the defaults.
type GPUDriver struct {
	// Policy is GPUDriverKeep, the default, GPUDriverInstall or GPUDriverNone.
	Policy string `yaml:"policy,omitempty" json:"policy,omitempty"`
	// Version is a branch, "535", or one release of it, "535.261.03"; empty is the newest that the
	// source has for the machine's GPUs. If the policy is keep, it is the oldest accepted version.
	Version string `yaml:"version,omitempty" json:"version,omitempty"`
	// Module selects one of NVIDIA's two kernel modules: GPUModuleAuto, GPUModuleOpen, GPUModuleClosed.
	Module string `yaml:"module,omitempty" json:"module,omitempty"`
	// Source is the source of the packages: GPUSourceDistribution, GPUSourceNVIDIA or
	// GPUSourceBundle.
	Source string `yaml:"source,omitempty" json:"source,omitempty"`
}

// Policies for NVIDIA's driver.
const (
	GPUDriverKeep    = "keep"
	GPUDriverInstall = "install"
	GPUDriverNone    = "none"
)

// NVIDIA's two kernel modules: open (with published sources) and closed.
const (
	GPUModuleAuto   = "auto"
	GPUModuleOpen   = "open"
	GPUModuleClosed = "closed"
)

// Sources of the driver's packages: the machine's distribution,
// NVIDIA's own repository, or the bundle, after "paictl bundle add-driver".
const (
	GPUSourceDistribution = "distribution"
	GPUSourceNVIDIA       = "nvidia"
	GPUSourceBundle       = "bundle"
)

// Extra are settings that are passed through, merged over the settings that paictl writes.
type Extra struct {
	Kubelet    map[string]any `yaml:"kubelet,omitempty" json:"kubelet,omitempty"`       // KubeletConfiguration
	KubeProxy  map[string]any `yaml:"kube-proxy,omitempty" json:"kube-proxy,omitempty"` // KubeProxyConfiguration
	Containerd map[string]any `yaml:"containerd,omitempty" json:"containerd,omitempty"` // config.toml, version 3
	Kubeadm    map[string]any `yaml:"kubeadm,omitempty" json:"kubeadm,omitempty"`       // ClusterConfiguration
	// KubeadmIgnorePreflight are names of kubeadm's own checks to ignore.
	KubeadmIgnorePreflight []string `yaml:"kubeadm-ignore-preflight-errors,omitempty" json:"kubeadm-ignore-preflight-errors,omitempty"`
	// Sysctl are further kernel settings for all machines.
	Sysctl map[string]string `yaml:"sysctl,omitempty" json:"sysctl,omitempty"`
}

// Roles is k8s-role-definition.yaml.
type Roles struct {
	APIVersion string          `yaml:"apiVersion" json:"apiVersion"`
	Kind       string          `yaml:"kind" json:"kind"` // RoleDefinition
	Roles      map[string]Role `yaml:"k8s-role" json:"k8s-role"`
}

// Role describes the effects of a role on a machine.
type Role struct {
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	// Components of the control plane that run on the machine: etcd, apiserver,
	// controller-manager, scheduler (all four or none).
	Components []string          `yaml:"component-list,omitempty" json:"component-list,omitempty"`
	Labels     map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
	Taints     []string          `yaml:"taints,omitempty" json:"taints,omitempty"` // key[=value]:Effect
	// Workloads indicates that ordinary pods may run on machines of this role. Taints of a
	// role do not apply to a machine that also has a role with workloads.
	Workloads bool `yaml:"workloads" json:"workloads"`
}

// Services is services-configuration.yaml. Sections other than cluster are kept unchanged; the
// charts of the services define them.
type Services struct {
	APIVersion string          `yaml:"apiVersion" json:"apiVersion"`
	Kind       string          `yaml:"kind" json:"kind"` // ServicesConfiguration
	Cluster    ServicesCluster `yaml:"cluster" json:"cluster"`
	// Sections are the services' own settings, by service name.
	Sections map[string]any `yaml:",inline" json:"sections,omitempty"`
}

// ServicesCluster is the section "cluster".
type ServicesCluster struct {
	Common         Common         `yaml:"common" json:"common"`
	DockerRegistry DockerRegistry `yaml:"docker-registry" json:"docker-registry"`
}

// Common is cluster.common.
type Common struct {
	ClusterID string `yaml:"cluster-id" json:"cluster-id"`
	DataPath  string `yaml:"data-path" json:"data-path"` // on the machines, /datastorage
}

// DockerRegistry is cluster.docker-registry: the source of the services' images.
type DockerRegistry struct {
	Domain    string `yaml:"domain" json:"domain"`
	Namespace string `yaml:"namespace" json:"namespace"`
	Tag       string `yaml:"docker-tag" json:"docker-tag"`
	// Mirror is a registry, with or without a path, that has upstream images under
	// their own names: quay.io/prometheus/prometheus as MIRROR/prometheus/prometheus.
	Mirror     string        `yaml:"mirror,omitempty" json:"mirror,omitempty"`
	Username   string        `yaml:"username,omitempty" json:"username,omitempty"`
	Password   secret.String `yaml:"password,omitempty" json:"password,omitempty"`
	SecretName string        `yaml:"secret-name,omitempty" json:"secret-name,omitempty"`
}

// Source returns one of the four files exactly as it was read. It returns nil if the configuration was generated, or comes from a quick-start file.
func (c *Cluster) Source(file string) []byte {
	if c.quick != nil {
		return nil
	}
	return c.docs[file].Text()
}

// WithServices returns a copy of a configuration that was read, with another text of services-configuration.yaml.
func (c *Cluster) WithServices(text []byte) (*Cluster, error) {
	data := map[string][]byte{}
	for name, doc := range c.docs {
		data[name] = doc.Text()
	}
	data[ServicesFile] = text
	return Parse(c.Dir, data)
}

// IsManaged reports whether paictl installs, changes and removes Kubernetes. If it doesn't, the
// cluster existed before.
func (c *Cluster) IsManaged() bool {
	m := c.Kubernetes.Kubernetes.Managed
	return m == nil || *m
}

// LabelsOf returns the node labels of a machine: first the labels of its roles, then its own labels.
func (c *Cluster) LabelsOf(m layout.Machine) map[string]string {
	out := map[string]string{}
	for _, r := range m.Roles {
		for k, v := range c.Roles.Roles[r].Labels {
			out[k] = v
		}
	}
	for k, v := range m.Labels {
		out[k] = v
	}
	return out
}

// TaintsOf returns the node taints of a machine: first the taints of its roles, unless one of the roles runs ordinary pods, then its own taints.
func (c *Cluster) TaintsOf(m layout.Machine) []string {
	var out []string
	if !c.runsWorkloads(m) {
		for _, r := range m.Roles {
			out = append(out, c.Roles.Roles[r].Taints...)
		}
	}
	return append(out, m.Taints...)
}

func (c *Cluster) runsWorkloads(m layout.Machine) bool {
	for _, r := range m.Roles {
		if c.Roles.Roles[r].Workloads {
			return true
		}
	}
	return false
}

// IsControlPlane reports whether a machine runs the control plane: one of its roles has
// components.
func (c *Cluster) IsControlPlane(m layout.Machine) bool {
	for _, r := range m.Roles {
		if len(c.Roles.Roles[r].Components) > 0 {
			return true
		}
	}
	return false
}

// ControlPlane returns the machines that run the control plane, in the layout's order. The cluster
// is initialised on the first one.
func (c *Cluster) ControlPlane() []layout.Machine {
	var out []layout.Machine
	for _, m := range c.Layout.MachineList {
		if c.IsControlPlane(m) {
			out = append(out, m)
		}
	}
	return out
}
