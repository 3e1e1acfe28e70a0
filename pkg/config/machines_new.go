package config

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// NewMachines holds the user's arguments that describe the machines to add.
type NewMachines struct {
	// Hosts contains IPv4 addresses, NAME=ADDRESS, or names that DNS resolves.
	Hosts []string
	// File is the path of a file with a machine-list. Its entries have the fields of layout.yaml or of OpenPAI's layout.
	File    string
	User    string
	Port    int
	KeyFile string
	Roles   []string
	SKU     string // "auto" or "" to detect it on the machine
}

// Machines returns the machines as entries of a layout. The entries don't contain facts from the machines.
func (n NewMachines) Machines() ([]layout.Machine, error) {
	var out []layout.Machine
	for _, h := range n.Hosts {
		m, err := n.machine(h)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if n.File == "" {
		return out, nil
	}
	more, err := n.fromFile()
	return append(out, more...), err
}

func (n NewMachines) machine(host string) (layout.Machine, error) {
	name, address, named := strings.Cut(host, "=")
	if !named {
		name, address = "", host
	}
	if a, err := netip.ParseAddr(address); err != nil || !a.Is4() {
		if err == nil || named {
			return layout.Machine{}, hint.Errorf("write HOST as 10.0.0.14 or worker-4=10.0.0.14", "%q is not an IPv4 address", address)
		}
		ips, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", address)
		if err != nil || len(ips) == 0 {
			return layout.Machine{}, hint.Errorf("write HOST as 10.0.0.14 or worker-4=10.0.0.14", "%q is neither an IPv4 address nor a name in DNS", address)
		}
		name, address = address, ips[0].Unmap().String()
	}
	return n.with(layout.Machine{Hostname: name, HostIP: address})
}

// with sets empty fields of the entry to the values of the flags.
func (n NewMachines) with(m layout.Machine) (layout.Machine, error) {
	if len(m.Roles) == 0 {
		m.Roles = n.Roles
	}
	if m.SKU == "" && n.SKU != "auto" {
		m.SKU = n.SKU
	}
	s := layout.SSH{}
	if m.SSH != nil {
		s = *m.SSH
	}
	if s.Username == "" {
		s.Username = n.User
	}
	if s.Port == 0 {
		s.Port = n.Port
	}
	if s.KeyFile == "" && n.KeyFile != "" {
		abs, err := filepath.Abs(resolvePath("", n.KeyFile))
		if err != nil {
			return m, err
		}
		s.KeyFile = abs
	}
	if s != (layout.SSH{}) {
		m.SSH = &s
	}
	return m, nil
}

type machineFile struct {
	MachineList []machineEntry `yaml:"machine-list"`
}

type machineEntry struct {
	Hostname string            `yaml:"hostname"`
	HostIP   string            `yaml:"hostip"`
	SKU      string            `yaml:"machine-type"`
	Roles    []string          `yaml:"roles"`
	Labels   map[string]string `yaml:"labels"`
	Taints   []string          `yaml:"taints"`
	SSH      *layout.SSH       `yaml:"ssh"`
	ForPods  []int             `yaml:"gpus-for-pods"`

	// Fields of OpenPAI. Fields without an effect in OpenPAI are accepted and ignored.
	Username string        `yaml:"username"`
	Password secret.String `yaml:"password"`
	KeyFile  string        `yaml:"keyfile-path"`
	Port     int           `yaml:"sshport"`
	Role     string        `yaml:"k8s-role"`
	Nodename string        `yaml:"nodename"`
	EtcdID   string        `yaml:"etcdid"`
	Worker   string        `yaml:"pai-worker"`
	Master   string        `yaml:"pai-master"`
	Dash     string        `yaml:"dashboard"`
	ZkID     string        `yaml:"zkid"`
}

func (n NewMachines) fromFile() ([]layout.Machine, error) {
	data, err := os.ReadFile(n.File)
	if err != nil {
		return nil, fmt.Errorf("read the machines to add: %w", err)
	}
	var f machineFile
	if _, found := strictyaml.Decode(n.File, data, &f); found.Err() != nil {
		return nil, found.Err()
	}
	if len(f.MachineList) == 0 {
		return nil, hint.Errorf("list them below machine-list, each with at least hostip", "%s has no machines", n.File)
	}
	var out []layout.Machine
	for i, e := range f.MachineList {
		if message := badIPv4(e.HostIP); message != "" {
			return nil, hint.Errorf("write the machine's IPv4 address", "%s: machine-list[%d].hostip: %s", n.File, i, message)
		}
		m, err := n.with(e.machine())
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (e machineEntry) machine() layout.Machine {
	m := layout.Machine{Hostname: e.Hostname, HostIP: e.HostIP, SKU: e.SKU, Roles: e.Roles, Labels: e.Labels, Taints: e.Taints, SSH: e.SSH, GPUsForPods: e.ForPods}
	if old := (layout.SSH{Username: e.Username, Password: e.Password, KeyFile: e.KeyFile, Port: e.Port}); m.SSH == nil && old != (layout.SSH{}) {
		m.SSH = &old
	}
	if len(m.Roles) == 0 && (e.Role == layout.RoleMaster || e.Role == layout.RoleWorker) {
		m.Roles = []string{e.Role}
	}
	return m
}
