package sandbox

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

type quickStart struct {
	Machines     []string   `yaml:"machines"`
	Username     string     `yaml:"ssh-username"`
	KeyFile      string     `yaml:"ssh-keyfile-path"`
	KnownHosts   string     `yaml:"ssh-known-hosts"`
	DNS          string     `yaml:"dns,omitempty"`
	PodCIDR      string     `yaml:"pod-cidr"`
	ServiceRange string     `yaml:"service-cluster-ip-range"`
	GPU          string     `yaml:"gpu"`
	Bundle       string     `yaml:"bundle,omitempty"`
	Services     *yaml.Node `yaml:"services,omitempty"`
	Extra        extraByKey `yaml:"extra"`
}

// extraByKey holds settings for parts of Kubernetes. These settings override the settings that paictl chooses.
type extraByKey map[string]map[string]any

// writeQuickStart writes a quick-start file that "paictl config generate" accepts without changes.
func (s *Sandbox) writeQuickStart() error {
	cg, err := machineCgroups()
	if err != nil {
		return err
	}
	if err := s.chooseClusterNetworks(); err != nil {
		return err
	}
	q := quickStart{Username: "root", KeyFile: s.KeyFile(), KnownHosts: s.KnownHosts(), PodCIDR: s.state.Pods.String(),
		ServiceRange: s.state.Services.String(), GPU: "none", Bundle: s.state.Bundle, Extra: nestedSettings(cg)}
	for _, h := range s.state.Hosts {
		q.Machines = append(q.Machines, h.Address.String())
	}
	if q.Services, err = s.bundledServices(); err != nil {
		return err
	}
	if dns := nameServers(); len(dns) > 0 {
		q.DNS = dns[0].String()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by \"paictl sandbox up\" for the hosts %s.\n"+
		"# Every \"up\" overwrites it: edit a copy.\n# Under services are the bundle's images, and sizes for small hosts.\n# The settings under extra are for hosts inside a machine; real machines don't need them.\n", strings.Join(s.Names(), ", "))
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(q); err != nil {
		return err
	}
	return writeFile(s.QuickStart(), b.Bytes(), 0o600)
}

func (s *Sandbox) chooseClusterNetworks() error {
	if s.state.Pods.IsValid() {
		return nil
	}
	taken, err := machinePrefixes()
	if err != nil {
		return err
	}
	taken = append(taken, s.state.Subnet)
	pods, ok1 := firstFree(netip.MustParsePrefix("10.144.0.0/16"), 100, taken)
	services, ok2 := firstFree(netip.MustParsePrefix("10.96.0.0/16"), 40, taken)
	if !ok1 || !ok2 {
		return fmt.Errorf("choose networks for pods and services: this machine uses all of 10.0.0.0/8")
	}
	s.state.Pods, s.state.Services = pods, services
	return s.save()
}

// nestedSettings returns settings for kubelet, kube-proxy and containerd on a host that shares this machine's kernel. /proc/sys, swap, disks and the
// conntrack table belong to the machine and not to the host.
func nestedSettings(cg cgroups) extraByKey {
	kubelet := map[string]any{
		"failSwapOn": false,
		// Other programs may fill the disk, because it belongs to the machine. The kubelet must not react by evicting pods, or by removing images that
		// couldn't be loaded again.
		"imageGCHighThresholdPercent": 100,
		"evictionHard": map[string]any{
			"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
	}
	if cg.isV1() {
		kubelet["failCgroupV1"] = false
		kubelet["cgroupDriver"] = "cgroupfs"
	}
	runtime := map[string]any{"disable_apparmor": true}
	if !mayRaisePriority() {
		runtime["restrict_oom_score_adj"] = true
	}
	return extraByKey{
		"kubelet":    kubelet,
		"kube-proxy": {"mode": "nftables", "conntrack": map[string]any{"maxPerCore": 0}},
		"containerd": {"plugins": map[string]any{"io.containerd.cri.v1.runtime": runtime}},
	}
}

// mayRaisePriority reports whether processes may lower their OOM score on this machine. This requires CAP_SYS_RESOURCE (bit 24 of the bounding
// set), which some virtual machines don't have.
func mayRaisePriority() bool {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			return err == nil && caps&(1<<24) != 0
		}
	}
	return false
}
