// Package config reads, checks, generates and explains a cluster's configuration: the quick-start file and the four generated files.
// In: YAML files. Out: typed values with defaults filled in, or findings that name file, line, field and remedy.
package config

import (
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// APIVersion is the version in the configuration files.
const APIVersion = layout.APIVersion

// Names of the four files in a configuration folder.
const (
	LayoutFile     = "layout.yaml"
	KubernetesFile = "kubernetes-configuration.yaml"
	RolesFile      = "k8s-role-definition.yaml"
	ServicesFile   = "services-configuration.yaml"
)

// Cluster is the content of a whole configuration folder, with defaults filled in.
type Cluster struct {
	Dir        string
	Layout     layout.Layout
	Kubernetes Kubernetes
	Roles      Roles
	Services   Services

	// docs contains the files as they were read, with positions for findings. It is nil if the configuration was generated.
	docs map[string]*strictyaml.Document
	// quick is the quick-start file from which the configuration was generated, or nil.
	quick *QuickStart
}

// Kubernetes is the content of kubernetes-configuration.yaml.
type Kubernetes struct {
	APIVersion string         `yaml:"apiVersion" json:"apiVersion"`
	Kind       string         `yaml:"kind" json:"kind"` // KubernetesConfiguration
	Kubernetes KubernetesSpec `yaml:"kubernetes" json:"kubernetes"`
}

// KubernetesSpec is the section "kubernetes". A key has the name of the original's key if it has the same meaning.
type KubernetesSpec struct {
	// Managed reports whether paictl has installed Kubernetes and maintains it. nil means yes.
	Managed *bool `yaml:"managed,omitempty" json:"managed,omitempty"`
	// Version is the version of Kubernetes, such as "v1.36.3". It must be the version in the bundle.
	Version string `yaml:"version" json:"version"`
	// ClusterName is the clusterName of kubeadm, and the name of the cluster in the kubeconfig.
	ClusterName string `yaml:"cluster-name" json:"cluster-name"`
	// ClusterDNS are the DNS servers of the machines. CoreDNS forwards queries to these servers.
	ClusterDNS            []string `yaml:"cluster-dns" json:"cluster-dns"`
	ServiceClusterIPRange string   `yaml:"service-cluster-ip-range" json:"service-cluster-ip-range"`
	PodCIDR               string   `yaml:"pod-cidr" json:"pod-cidr"`
	DNSDomain             string   `yaml:"dns-domain" json:"dns-domain"` // cluster.local
	// LoadBalanceIP is the address of the API for all nodes: the address of a single master or of a load balancer. It may be empty. The default
	// of APIServerPort is 6443.
	LoadBalanceIP string `yaml:"load-balance-ip,omitempty" json:"load-balance-ip,omitempty"`
	APIServerPort int    `yaml:"api-servers-port" json:"api-servers-port"`
	// APIEndpoint is APIEndpointLocal, or HOST[:PORT] of a load balancer. If it is empty, the endpoint is LoadBalanceIP if that is not the
	// address of a master. Otherwise the endpoint is local if there are several masters, and the address of the master if there is only one.
	APIEndpoint string `yaml:"api-endpoint,omitempty" json:"api-endpoint,omitempty"`
	// APIVIP is a virtual address for users and programs outside of the cluster. One of the masters holds this address. The machines of the
	// cluster reach the API at the endpoint instead.
	APIVIP string `yaml:"api-vip,omitempty" json:"api-vip,omitempty"`
	// APIServerCertSANs are additional names and addresses in the certificate of the API server.
	APIServerCertSANs []string `yaml:"api-server-cert-sans,omitempty" json:"api-server-cert-sans,omitempty"`
	EtcdDataPath      string   `yaml:"etcd-data-path" json:"etcd-data-path"` // /var/lib/etcd
	// DockerRegistry is the registry in the names of Kubernetes images. The images of the bundle are imported under these names, so that nothing
	// is pulled.
	DockerRegistry string `yaml:"docker-registry" json:"docker-registry"`
	// NetworkPlugin is flannel, none if the operator installs another plugin, or the path of a manifest to apply. The path is absolute, or
	// relative to the folder of the file.
	NetworkPlugin string `yaml:"network-plugin" json:"network-plugin"`
	// MetadataAddress is MetadataClosed or MetadataOpen. The default is MetadataClosed.
	MetadataAddress string `yaml:"metadata-address,omitempty" json:"metadata-address,omitempty"`
	// Bundle is the folder of the bundle. The path is absolute, or relative to the folder of the file.
	Bundle string `yaml:"bundle,omitempty" json:"bundle,omitempty"`
	// Proxy is the proxy that machines use for addresses outside of the cluster.
	Proxy Proxy `yaml:"proxy,omitempty" json:"proxy,omitzero"`
	// GPUDriver determines how paictl handles NVIDIA's driver.
	GPUDriver GPUDriver `yaml:"gpu-driver,omitempty" json:"gpu-driver,omitzero"`
	Extra     Extra     `yaml:"extra,omitempty" json:"extra,omitempty"`
}

// APIEndpointLocal means that each machine reaches the API at a local address, which leads to any master that is ready.
const (
	APIEndpointLocal = "local"
	LocalAPIPort     = 6444
)

// PeerPort is the TCP port where machines copy files from each other during a run of paictl.
const PeerPort = 6445

// Values of MetadataAddress. They determine whether pods can reach the metadata service of the cloud.
const (
	MetadataClosed = "closed"
	MetadataOpen   = "open"
)

// Proxy holds the proxies that containerd and apt on the machines use; no other program uses them. The whole URLs are secrets, because they may
// contain a password.
type Proxy struct {
	HTTP  secret.String `yaml:"http,omitempty" json:"http,omitempty"`
	HTTPS secret.String `yaml:"https,omitempty" json:"https,omitempty"`
	// NoProxy lists hosts that are reached without the proxy, in addition to the addresses and names of the cluster.
	NoProxy []string `yaml:"no-proxy,omitempty" json:"no-proxy,omitempty"`
}

// GPUDriver determines how paictl handles NVIDIA's driver. Empty fields have the defaults.
type GPUDriver struct {
	// Policy is GPUDriverKeep, GPUDriverInstall or GPUDriverNone. The default is GPUDriverKeep.
	Policy string `yaml:"policy,omitempty" json:"policy,omitempty"`
	// Version is a branch such as "535", or a release such as "535.261.03". If it is empty, the newest version that the source has for the GPUs
	// is installed. With the policy keep, it is the oldest accepted version.
	Version string `yaml:"version,omitempty" json:"version,omitempty"`
	// Module selects one of NVIDIA's two kernel modules: GPUModuleAuto, GPUModuleOpen or GPUModuleClosed.
	Module string `yaml:"module,omitempty" json:"module,omitempty"`
	// Source determines where the packages come from: GPUSourceDistribution, GPUSourceNVIDIA or GPUSourceBundle.
	Source string `yaml:"source,omitempty" json:"source,omitempty"`
}

// Policies for NVIDIA's driver.
const (
	GPUDriverKeep    = "keep"
	GPUDriverInstall = "install"
	GPUDriverNone    = "none"
)

// NVIDIA's two kernel modules: the open one, whose source code is published, and the closed one.
const (
	GPUModuleAuto   = "auto"
	GPUModuleOpen   = "open"
	GPUModuleClosed = "closed"
)

// Sources of the driver's packages: the distribution of the machine, NVIDIA's repository, or the bundle. The bundle contains packages after
// "paictl bundle add-driver".
const (
	GPUSourceDistribution = "distribution"
	GPUSourceNVIDIA       = "nvidia"
	GPUSourceBundle       = "bundle"
)

// Extra holds settings for other programs. They override the settings that paictl writes for these programs.
type Extra struct {
	Kubelet    map[string]any `yaml:"kubelet,omitempty" json:"kubelet,omitempty"`       // KubeletConfiguration
	KubeProxy  map[string]any `yaml:"kube-proxy,omitempty" json:"kube-proxy,omitempty"` // KubeProxyConfiguration
	Containerd map[string]any `yaml:"containerd,omitempty" json:"containerd,omitempty"` // config.toml, version 3
	Kubeadm    map[string]any `yaml:"kubeadm,omitempty" json:"kubeadm,omitempty"`       // ClusterConfiguration
	// KubeadmIgnorePreflight holds the names of kubeadm's checks whose errors are ignored.
	KubeadmIgnorePreflight []string `yaml:"kubeadm-ignore-preflight-errors,omitempty" json:"kubeadm-ignore-preflight-errors,omitempty"`
	// Sysctl holds additional kernel settings for all machines.
	Sysctl map[string]string `yaml:"sysctl,omitempty" json:"sysctl,omitempty"`
}

// Roles is the content of k8s-role-definition.yaml.
type Roles struct {
	APIVersion string          `yaml:"apiVersion" json:"apiVersion"`
	Kind       string          `yaml:"kind" json:"kind"` // RoleDefinition
	Roles      map[string]Role `yaml:"k8s-role" json:"k8s-role"`
}

// Role describes how machines with this role are used.
type Role struct {
	Description string `yaml:"description,omitempty" json:"description,omitempty"`
	// Components are the components of the control plane that run on the machine: etcd, apiserver, controller-manager and scheduler, or none of
	// them.
	Components []string          `yaml:"component-list,omitempty" json:"component-list,omitempty"`
	Labels     map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
	Taints     []string          `yaml:"taints,omitempty" json:"taints,omitempty"` // key[=value]:Effect
	// Workloads means that ordinary pods may run on machines with this role. If a machine has such a role, the taints of its other roles don't
	// apply.
	Workloads bool `yaml:"workloads" json:"workloads"`
}

// Services is the content of services-configuration.yaml. Sections other than cluster are kept unchanged, because the charts of the services
// define them.
type Services struct {
	APIVersion string          `yaml:"apiVersion" json:"apiVersion"`
	Kind       string          `yaml:"kind" json:"kind"` // ServicesConfiguration
	Cluster    ServicesCluster `yaml:"cluster" json:"cluster"`
	// Sections are the settings of services, by the name of the service.
	Sections map[string]any `yaml:",inline" json:"sections,omitempty"`
}

// ServicesCluster is the section "cluster".
type ServicesCluster struct {
	Common         Common         `yaml:"common" json:"common"`
	DockerRegistry DockerRegistry `yaml:"docker-registry" json:"docker-registry"`
}

// Common is the section "cluster.common".
type Common struct {
	ClusterID string `yaml:"cluster-id" json:"cluster-id"`
	DataPath  string `yaml:"data-path" json:"data-path"` // on the machines, /datastorage
}

// DockerRegistry is the section "cluster.docker-registry", which determines where the images of services come from.
type DockerRegistry struct {
	Domain    string `yaml:"domain" json:"domain"`
	Namespace string `yaml:"namespace" json:"namespace"`
	Tag       string `yaml:"docker-tag" json:"docker-tag"`
	// Mirror is a registry that contains upstream images under their names, for example quay.io/prometheus/prometheus as
	// MIRROR/prometheus/prometheus. It may contain a path.
	Mirror     string        `yaml:"mirror,omitempty" json:"mirror,omitempty"`
	Username   string        `yaml:"username,omitempty" json:"username,omitempty"`
	Password   secret.String `yaml:"password,omitempty" json:"password,omitempty"`
	SecretName string        `yaml:"secret-name,omitempty" json:"secret-name,omitempty"`
}

// Source returns the text of one of the four files exactly as it was read. It returns nil for a generated configuration.
func (c *Cluster) Source(file string) []byte {
	if c.quick != nil {
		return nil
	}
	return c.docs[file].Text()
}

// WithServices returns a copy of a configuration with another text for services-configuration.yaml. c must have been read from files.
func (c *Cluster) WithServices(text []byte) (*Cluster, error) {
	data := map[string][]byte{}
	for name, doc := range c.docs {
		data[name] = doc.Text()
	}
	data[ServicesFile] = text
	return Parse(c.Dir, data)
}

// IsManaged reports whether paictl installs, changes and removes Kubernetes. If it returns false, another tool has installed the cluster.
func (c *Cluster) IsManaged() bool {
	m := c.Kubernetes.Kubernetes.Managed
	return m == nil || *m
}

// LabelsOf returns the node labels of a machine. The labels of the machine override the labels of its roles.
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

// TaintsOf returns the node taints of a machine: the taints of its roles, followed by the taints of the machine. If one of the roles runs
// ordinary pods, the taints of the roles are omitted.
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

// IsControlPlane reports whether a machine runs the control plane. Such a machine has a role with components.
func (c *Cluster) IsControlPlane(m layout.Machine) bool {
	for _, r := range m.Roles {
		if len(c.Roles.Roles[r].Components) > 0 {
			return true
		}
	}
	return false
}

// ControlPlane returns the machines of the control plane, in the order of the layout. The first of these machines initializes the cluster.
func (c *Cluster) ControlPlane() []layout.Machine {
	var out []layout.Machine
	for _, m := range c.Layout.MachineList {
		if c.IsControlPlane(m) {
			out = append(out, m)
		}
	}
	return out
}
