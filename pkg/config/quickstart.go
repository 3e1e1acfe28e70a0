package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// Findings are mistakes and doubtful settings in configuration files.
type Findings = strictyaml.Findings

// Finding is one of the Findings.
type Finding = strictyaml.Finding

// QuickStart is the content of quick-start.yaml: the few settings that paictl can't detect. OpenPAI's file also contains the fields of the first
// group.
type QuickStart struct {
	Machines              []QuickMachine `yaml:"machines" json:"machines"`
	SSHUsername           string         `yaml:"ssh-username" json:"ssh-username,omitempty"`
	SSHPassword           secret.String  `yaml:"ssh-password" json:"ssh-password,omitempty"`
	SSHKeyFile            string         `yaml:"ssh-keyfile-path" json:"ssh-keyfile-path,omitempty"`
	SSHSecretName         string         `yaml:"ssh-secret-name" json:"ssh-secret-name,omitempty"`
	SSHPort               int            `yaml:"ssh-port" json:"ssh-port,omitempty"`
	DNS                   TextList       `yaml:"dns" json:"dns,omitempty"`
	ServiceClusterIPRange string         `yaml:"service-cluster-ip-range" json:"service-cluster-ip-range,omitempty"`

	SSHJumpHost   string   `yaml:"ssh-jump-host" json:"ssh-jump-host,omitempty"`
	SSHKnownHosts string   `yaml:"ssh-known-hosts" json:"ssh-known-hosts,omitempty"`
	Masters       TextList `yaml:"masters" json:"masters,omitempty"` // addresses or host names of machines
	LoadBalanceIP string   `yaml:"load-balance-ip" json:"load-balance-ip,omitempty"`
	PodCIDR       string   `yaml:"pod-cidr" json:"pod-cidr,omitempty"`
	Bundle        string   `yaml:"bundle" json:"bundle,omitempty"`
	GPU           string   `yaml:"gpu" json:"gpu,omitempty"`                     // auto, none, simulate
	SimulatedGPU  string   `yaml:"simulated-gpu" json:"simulated-gpu,omitempty"` // 8xA100
	ClusterID     string   `yaml:"cluster-id" json:"cluster-id,omitempty"`
	ClusterName   string   `yaml:"cluster-name" json:"cluster-name,omitempty"`
	Proxy         Proxy    `yaml:"proxy" json:"proxy"`
	Extra         Extra    `yaml:"extra" json:"extra"`
	// Services are sections of services-configuration.yaml, by the name of the service.
	Services map[string]map[string]any `yaml:"services" json:"services,omitempty"`

	doc *strictyaml.Document
	dir string // folder of the file, where relative paths start
}

// QuickMachine is an entry of the list machines: an IP address, or a map with settings that differ from the common settings.
type QuickMachine struct {
	HostIP        string            `yaml:"hostip" json:"hostip"`
	Hostname      string            `yaml:"hostname" json:"hostname,omitempty"`
	Roles         TextList          `yaml:"roles" json:"roles,omitempty"`
	Labels        map[string]string `yaml:"labels" json:"labels,omitempty"`
	Taints        TextList          `yaml:"taints" json:"taints,omitempty"`
	SSHUsername   string            `yaml:"ssh-username" json:"ssh-username,omitempty"`
	SSHPassword   secret.String     `yaml:"ssh-password" json:"ssh-password,omitempty"`
	SSHKeyFile    string            `yaml:"ssh-keyfile-path" json:"ssh-keyfile-path,omitempty"`
	SSHSecretName string            `yaml:"ssh-secret-name" json:"ssh-secret-name,omitempty"`
	SSHPort       int               `yaml:"ssh-port" json:"ssh-port,omitempty"`
	SSHJumpHost   string            `yaml:"ssh-jump-host" json:"ssh-jump-host,omitempty"`
	SSHKnownHosts string            `yaml:"ssh-known-hosts" json:"ssh-known-hosts,omitempty"`

	plain bool // written as only an address
}

// DecodeNode decodes an address or a map.
func (m *QuickMachine) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	switch n.Kind {
	case yaml.ScalarNode:
		m.plain = true
		d.Value(n, path, &m.HostIP)
	case yaml.MappingNode:
		var f quickMachineFields
		d.Value(n, path, &f)
		*m = QuickMachine(f)
	default:
		d.Report(n, path, "yaml/type", "expected an IP address or a map with hostip",
			"write - 10.0.0.1, or - hostip: 10.0.0.1 with further fields below it")
	}
}

type quickMachineFields QuickMachine

// KeyHints maps keys that users write by mistake to hints with the correct keys.
func (quickMachineFields) KeyHints() map[string]string {
	return map[string]string{
		"ip": `did you mean "hostip"?`, "address": `did you mean "hostip"?`, "host": `did you mean "hostip"?`,
		"name": `did you mean "hostname"?`, "role": `did you mean "roles"?`,
		"user": `did you mean "ssh-username"?`, "username": `did you mean "ssh-username"?`, "ssh-user": `did you mean "ssh-username"?`,
		"password": `did you mean "ssh-password"?`, "port": `did you mean "ssh-port"?`, "sshport": `did you mean "ssh-port"?`,
		"key": `did you mean "ssh-keyfile-path"?`, "keyfile-path": `did you mean "ssh-keyfile-path"?`, "ssh-key": `did you mean "ssh-keyfile-path"?`,
		"machine-type":  "the machine type (SKU) is found by asking the machine; set it in layout.yaml afterwards",
		"gpus-for-pods": "set it in layout.yaml afterwards, which says which GPUs the machine has",
	}
}

// KeyHints maps keys that users write by mistake to hints with the correct keys.
func (QuickStart) KeyHints() map[string]string {
	return map[string]string{
		"user": `did you mean "ssh-username"?`, "username": `did you mean "ssh-username"?`, "ssh-user": `did you mean "ssh-username"?`,
		"password": `did you mean "ssh-password"?`, "port": `did you mean "ssh-port"?`, "sshport": `did you mean "ssh-port"?`,
		"key": `did you mean "ssh-keyfile-path"?`, "keyfile-path": `did you mean "ssh-keyfile-path"?`, "ssh-key": `did you mean "ssh-keyfile-path"?`,
		"jump-host": `did you mean "ssh-jump-host"?`, "known-hosts": `did you mean "ssh-known-hosts"?`,
		"master": `did you mean "masters"?`, "hosts": `did you mean "machines"?`, "nodes": `did you mean "machines"?`,
		"workers":     `remove it: every machine that is not in "masters" is a worker`,
		"machine-sku": "this is a layout.yaml, not a quick-start file; use it with -p FOLDER",
		"service":     `did you mean "services"?`, "services-configuration": `did you mean "services"?`,
		"cluster-dns": `did you mean "dns"?`, "pod-network-cidr": `did you mean "pod-cidr"?`,
	}
}

// TextList is a list of strings. A YAML string is decoded as a list with one entry.
type TextList []string

// DecodeNode decodes a string or a list of strings.
func (l *TextList) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	if n.Kind == yaml.ScalarNode {
		if n.ShortTag() != "!!null" {
			*l = TextList{n.Value}
		}
		return
	}
	var texts []string
	d.Value(n, path, &texts)
	*l = texts
}

// QuickStartSchema is the name of the quick-start file in SchemaNames.
const QuickStartSchema = "quick-start.yaml"

// GPU modes of a quick-start file.
const (
	GPUAuto     = "auto"     // the machines' GPUs
	GPUNone     = "none"     // use no GPU, even if machines have some
	GPUSimulate = "simulate" // simulate GPUs, to try the platform without a GPU
)

// LoadQuickStart reads and checks a quick-start file. Findings may be warnings only; see Findings.Err.
func LoadQuickStart(path string) (*QuickStart, Findings, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, hint.Wrap(fmt.Errorf("read the quick-start file: %w", err),
			"make one with: paictl config example minimal > quick-start.yaml")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the quick-start file: %w", err)
	}
	q, findings := ParseQuickStart(path, data)
	return q, findings, nil
}

// ParseQuickStart decodes and checks the text of a quick-start file. The argument file is the path for findings. Relative paths in the text begin
// in the folder of this file.
func ParseQuickStart(file string, data []byte) (*QuickStart, Findings) {
	q := &QuickStart{dir: filepath.Dir(file)}
	doc, findings := strictyaml.Decode(file, data, q)
	q.doc = doc
	if len(findings) > 0 {
		return q, findings
	}
	findings = q.check()
	findings.Sort()
	return q, findings
}

// sshOf returns the SSH settings of a machine that differ from the common settings, or nil if all settings are equal. The function path converts a
// path in the quick-start file to a path in the generated layout.
func (m QuickMachine) sshOf(path func(string) string) *layout.SSH {
	s := layout.SSH{
		Username: m.SSHUsername, Password: m.SSHPassword, KeyFile: path(m.SSHKeyFile), SecretName: m.SSHSecretName,
		Port: m.SSHPort, JumpHost: m.SSHJumpHost, KnownHosts: path(m.SSHKnownHosts),
	}
	if s == (layout.SSH{}) {
		return nil
	}
	return &s
}
