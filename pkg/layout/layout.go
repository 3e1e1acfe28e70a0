// Package layout describes the machines of a cluster: their hardware (SKUs), addresses, roles and labels, and turns the facts that discovery found
// on them into SKUs.
// In: layout.yaml, or outputs of the discovery script. Out: plain values; it depends only on secrets.
package layout

import (
	"slices"

	"github.com/openpai/paictl/pkg/secret"
)

// APIVersion of layout.yaml.
const APIVersion = "paictl.openpai.org/v1"

// Kind of layout.yaml.
const Kind = "Layout"

// Names of the built-in roles. k8s-role-definition.yaml defines them.
const (
	RoleMaster = "master"
	RoleWorker = "worker"
)

// Layout is layout.yaml.
type Layout struct {
	APIVersion  string         `yaml:"apiVersion" json:"apiVersion"`
	Kind        string         `yaml:"kind" json:"kind"`
	SSH         SSH            `yaml:"ssh" json:"ssh"`
	MachineSKU  map[string]SKU `yaml:"machine-sku" json:"machine-sku"`
	MachineList []Machine      `yaml:"machine-list" json:"machine-list"`
}

// SSH holds the settings for reaching machines. The Layout's SSH has the defaults for all machines; a
// machine's own values override them, field by field.
type SSH struct {
	Username   string        `yaml:"username,omitempty" json:"username,omitempty"`
	Password   secret.String `yaml:"password,omitempty" json:"password,omitempty"`
	KeyFile    string        `yaml:"keyfile-path,omitempty" json:"keyfile-path,omitempty"`
	SecretName string        `yaml:"secret-name,omitempty" json:"secret-name,omitempty"`
	Port       int           `yaml:"port,omitempty" json:"port,omitempty"` // 0 means 22
	JumpHost   string        `yaml:"jump-host,omitempty" json:"jump-host,omitempty"`
	KnownHosts string        `yaml:"known-hosts,omitempty" json:"known-hosts,omitempty"`
}

// SKU is a kind of machine: all machines with equal hardware share one.
type SKU struct {
	Mem string `yaml:"mem" json:"mem"` // Kubernetes quantity, such as 512Gi
	CPU CPU    `yaml:"cpu" json:"cpu"`
	GPU *GPU   `yaml:"gpu,omitempty" json:"gpu,omitempty"` // absent on CPU machines
	OS  string `yaml:"os" json:"os"`                       // such as ubuntu22.04
	// Arch is Go's name of the processor architecture: amd64 or arm64.
	Arch  string   `yaml:"arch,omitempty" json:"arch,omitempty"`
	Disks []Disk   `yaml:"disks,omitempty" json:"disks,omitempty"`
	RDMA  []string `yaml:"infiniband,omitempty" json:"infiniband,omitempty"` // device names, mlx5_0 …
	// Discovered is false if the values were not read from a machine but must be
	// filled in by hand (config generate --offline).
	Discovered bool `yaml:"discovered" json:"discovered"`
}

// CPU of a SKU.
type CPU struct {
	VCore int    `yaml:"vcore" json:"vcore"` // logical processors
	Model string `yaml:"model,omitempty" json:"model,omitempty"`
}

// GPU of a SKU.
type GPU struct {
	Type   string `yaml:"type" json:"type"` // model, such as NVIDIA-A100-SXM4-80GB
	Count  int    `yaml:"count" json:"count"`
	Driver string `yaml:"driver,omitempty" json:"driver,omitempty"`
	// Simulated GPUs exist only in NVML's mock (quick-start's gpu: simulate).
	Simulated bool `yaml:"simulated,omitempty" json:"simulated,omitempty"`
	// Parts is the number of parts into which each GPU is split for jobs, which then share its time; 0 or 1 if a job has it alone.
	Parts int `yaml:"parts,omitempty" json:"parts,omitempty"`
	// MIG is the profile of the instances into which the hardware splits each GPU for jobs, such as 1g.10gb; "" if it doesn't split them.
	MIG string `yaml:"mig,omitempty" json:"mig,omitempty"`
}

// Shares returns how many jobs can share one of the GPUs at a time. It ignores a profile that the card doesn't have, which is an error of the
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

// Leaves returns how many jobs of the smallest size can have GPUs of a machine at a time. The scheduler uses it as the
// number of GPUs.
func (g *GPU) Leaves() int { return g.Count * g.Shares() }

// Disk is a block device of a SKU.
type Disk struct {
	Name string `yaml:"name" json:"name"`
	Size string `yaml:"size" json:"size"`                     // Kubernetes quantity
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
	// GPUsForPods are indices of GPUs that are for ordinary pods, and not for jobs.
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

// GPUsForJobs returns the indices of the GPUs of a machine that are for jobs, ascending: all except the GPUs for ordinary pods.
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

// SSHFor returns the SSH settings of the machine: its own values, otherwise the layout's. A machine
// with its own key or password does not inherit the other one from the layout.
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

// Has reports whether a machine has this host name or address.
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
