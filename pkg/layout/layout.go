// Package layout describes the machines of a cluster by their hardware (SKUs), addresses, roles and labels. The package converts the facts of the
// machines to SKUs. In: layout.yaml, or outputs of the discovery script. Out: plain values; it depends only on secrets.
package layout

import (
	"slices"

	"github.com/openpai/paictl/pkg/secret"
)

// APIVersion is the value of apiVersion in layout.yaml.
const APIVersion = "paictl.openpai.org/v1"

// Kind is the value of kind in layout.yaml.
const Kind = "Layout"

// RoleMaster and RoleWorker are the names of the built-in roles. k8s-role-definition.yaml defines the roles.
const (
	RoleMaster = "master"
	RoleWorker = "worker"
)

// Layout is the content of layout.yaml.
type Layout struct {
	APIVersion  string         `yaml:"apiVersion" json:"apiVersion"`
	Kind        string         `yaml:"kind" json:"kind"`
	SSH         SSH            `yaml:"ssh" json:"ssh"`
	MachineSKU  map[string]SKU `yaml:"machine-sku" json:"machine-sku"`
	MachineList []Machine      `yaml:"machine-list" json:"machine-list"`
}

// SSH holds the settings of SSH connections to machines. Layout.SSH holds the defaults for all machines. Each field of Machine.SSH overrides the
// default.
type SSH struct {
	Username   string        `yaml:"username,omitempty" json:"username,omitempty"`
	Password   secret.String `yaml:"password,omitempty" json:"password,omitempty"`
	KeyFile    string        `yaml:"keyfile-path,omitempty" json:"keyfile-path,omitempty"`
	SecretName string        `yaml:"secret-name,omitempty" json:"secret-name,omitempty"`
	Port       int           `yaml:"port,omitempty" json:"port,omitempty"` // 0 means 22
	JumpHost   string        `yaml:"jump-host,omitempty" json:"jump-host,omitempty"`
	KnownHosts string        `yaml:"known-hosts,omitempty" json:"known-hosts,omitempty"`
}

// SKU is a kind of machine. All machines with equal hardware share a SKU.
type SKU struct {
	Mem string `yaml:"mem" json:"mem"` // a Kubernetes quantity, such as 512Gi
	CPU CPU    `yaml:"cpu" json:"cpu"`
	GPU *GPU   `yaml:"gpu,omitempty" json:"gpu,omitempty"` // nil on machines without GPUs
	OS  string `yaml:"os" json:"os"`                       // such as ubuntu22.04
	// Arch is Go's name of the processor architecture: amd64 or arm64.
	Arch  string   `yaml:"arch,omitempty" json:"arch,omitempty"`
	Disks []Disk   `yaml:"disks,omitempty" json:"disks,omitempty"`
	RDMA  []string `yaml:"infiniband,omitempty" json:"infiniband,omitempty"` // device names, mlx5_0 …
	// Discovered is false if an operator must fill in the values, because "config generate --offline" reads no machines.
	Discovered bool `yaml:"discovered" json:"discovered"`
}

// CPU describes the processors of each machine of a SKU.
type CPU struct {
	VCore int    `yaml:"vcore" json:"vcore"` // logical processors
	Model string `yaml:"model,omitempty" json:"model,omitempty"`
}

// GPU describes the GPUs of each machine of a SKU.
type GPU struct {
	Type   string `yaml:"type" json:"type"` // model, such as NVIDIA-A100-SXM4-80GB
	Count  int    `yaml:"count" json:"count"`
	Driver string `yaml:"driver,omitempty" json:"driver,omitempty"`
	// Simulated means that the GPUs exist only in NVML's mock (quick-start's gpu: simulate).
	Simulated bool `yaml:"simulated,omitempty" json:"simulated,omitempty"`
	// Parts is the number of jobs that share a GPU by taking turns. Parts is 0 or 1 if each job uses a whole GPU.
	Parts int `yaml:"parts,omitempty" json:"parts,omitempty"`
	// MIG is the profile of the hardware instances into which each GPU is split, such as 1g.10gb. MIG is empty if the hardware doesn't split the GPUs.
	MIG string `yaml:"mig,omitempty" json:"mig,omitempty"`
}

// Shares returns how many jobs can share a GPU at the same time. Shares returns 1 if the card doesn't support the profile, which is an error in the
// configuration.
func (g *GPU) Shares() int {
	if g.MIG != "" {
		n, err := MIGInstances(g.Type, g.MIG)
		if err != nil {
			return 1
		}
		return n
	}
	return max(g.Parts, 1)
}

// Leaves returns how many jobs of the smallest size the GPUs of a machine can run at the same time. The scheduler treats each share of a GPU as one
// GPU.
func (g *GPU) Leaves() int { return g.Count * g.Shares() }

// Disk is a block device of each machine of a SKU.
type Disk struct {
	Name string `yaml:"name" json:"name"`
	Size string `yaml:"size" json:"size"`                     // a Kubernetes quantity
	Kind string `yaml:"kind,omitempty" json:"kind,omitempty"` // ssd, hdd, nvme
}

// Machine is one entry of machine-list.
type Machine struct {
	Hostname string            `yaml:"hostname" json:"hostname"` // also the Kubernetes node name
	HostIP   string            `yaml:"hostip" json:"hostip"`
	SKU      string            `yaml:"machine-type" json:"machine-type"`
	Roles    []string          `yaml:"roles" json:"roles"`
	Labels   map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
	Taints   []string          `yaml:"taints,omitempty" json:"taints,omitempty"` // key[=value]:Effect
	SSH      *SSH              `yaml:"ssh,omitempty" json:"ssh,omitempty"`
	// GPUsForPods are the indices of the GPUs that only ordinary pods use, and jobs don't.
	GPUsForPods []int `yaml:"gpus-for-pods,omitempty" json:"gpus-for-pods,omitempty"`
}

// HasRole reports whether the machine has the role.
func (m Machine) HasRole(role string) bool {
	for _, r := range m.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// GPUsForJobs returns the indices of a machine's GPUs that are reserved for jobs, in ascending order. GPUsForJobs leaves out the GPUs in GPUsForPods.
func (l *Layout) GPUsForJobs(m Machine) []int {
	var out []int
	if gpu := l.MachineSKU[m.SKU].GPU; gpu != nil {
		for i := range gpu.Count {
			if !slices.Contains(m.GPUsForPods, i) {
				out = append(out, i)
			}
		}
	}
	return out
}

// SSHFor returns the SSH settings of the machine. The layout's settings fill the machine's empty fields. If a machine sets a key or a password, the
// key and the password of the layout aren't used.
func (l *Layout) SSHFor(m Machine) SSH {
	s := l.SSH
	if m.SSH == nil {
		return s
	}
	o := *m.SSH
	if o.Password.IsSet() || o.KeyFile != "" {
		s.Password, s.KeyFile, s.SecretName = o.Password, o.KeyFile, o.SecretName
	}
	if o.Username != "" {
		s.Username = o.Username
	}
	if o.Port != 0 {
		s.Port = o.Port
	}
	if o.JumpHost != "" {
		s.JumpHost = o.JumpHost
	}
	if o.KnownHosts != "" {
		s.KnownHosts = o.KnownHosts
	}
	return s
}

// Has reports whether a machine of the layout has the given host name or address.
func (l *Layout) Has(name string) bool {
	return slices.ContainsFunc(l.MachineList, func(m Machine) bool { return m.Hostname == name || m.HostIP == name })
}

// WithRole returns the machines that have the role, in the layout's order.
func (l *Layout) WithRole(role string) []Machine {
	var out []Machine
	for _, m := range l.MachineList {
		if m.HasRole(role) {
			out = append(out, m)
		}
	}
	return out
}
