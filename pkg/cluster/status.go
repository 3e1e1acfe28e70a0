package cluster

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

//go:embed scripts/status.sh
var statusScript string

// Status is the state of a cluster, as its machines and its API server report it.
type Status struct {
	Cluster    string `json:"cluster"`
	ClusterID  string `json:"clusterId"`
	Endpoint   string `json:"endpoint"`
	Kubernetes string `json:"kubernetes"` // the configured version
	// API is "up", "down", "absent" if no machine has a control plane yet, or "unknown" if no machine of the control plane could be queried.
	API        string            `json:"api"`
	APIMessage string            `json:"apiMessage,omitempty"`
	Lock       *LockOwner        `json:"lock,omitempty"`
	Machines   []MachineStatus   `json:"machines"`
	Components []ComponentStatus `json:"components"`
	// VIP is the API's virtual address, or nil if none is configured.
	VIP *VIPStatus `json:"vip,omitempty"`
	// Knocks lists the attempts of removed machines to join again.
	Knocks []Knock `json:"knocks,omitempty"`
	// Certificates are sorted by expiry, the earliest first.
	Certificates []checks.Certificate `json:"certificates"`
	// Renewal describes whether expiring certificates are renewed automatically.
	Renewal Renewal `json:"renewal"`
	// Pending is the number of changes that "cluster up" would make, or nil if the changes weren't counted.
	Pending *int `json:"pendingChanges,omitempty"`
}

// LockOwner is the user and the process that hold the cluster's lock.
type LockOwner struct {
	Owner string `json:"owner"` // user@host, pid
	Since string `json:"since"` // RFC 3339
}

// States of a machine.
const (
	StateReady       = "Ready"
	StateNotReady    = "NotReady"
	StateUnreachable = "Unreachable" // by SSH
	StateOutside     = "Outside"     // not, or no longer, in the cluster
	StateUnlisted    = "Unlisted"    // a node of the cluster that is not in layout.yaml
	StateUnknown     = "Unknown"     // the API didn't respond
)

// MachineStatus is the state of a machine of the layout, or of a node that the layout doesn't list.
type MachineStatus struct {
	Host    string   `json:"host"`
	Address string   `json:"address"`
	Roles   []string `json:"roles"`
	SKU     string   `json:"sku"`
	State   string   `json:"state"`
	// Message is the reason why the machine isn't ready, isn't reachable or can't start pods.
	Message string `json:"message,omitempty"`
	// Hint is the remedy for the problem in Message.
	Hint     string `json:"hint,omitempty"`
	Cordoned bool   `json:"cordoned,omitempty"`
	// CordonedBy is the person, operator or policy that has cordoned the machine. CordonReason is the reason for the cordon. Both fields are empty if
	// the node's annotations contain no reason.
	CordonedBy   string `json:"cordonedBy,omitempty"`
	CordonReason string `json:"cordonReason,omitempty"`
	// Pressure lists the conditions of the node that are true and should be false, such as DiskPressure.
	Pressure   []string       `json:"pressure,omitempty"`
	Kubelet    *ProgramStatus `json:"kubelet,omitempty"`
	Containerd *ProgramStatus `json:"containerd,omitempty"`
	Kernel     string         `json:"kernel,omitempty"`
}

// VIPStatus describes the API's virtual address. Holder is the node that holds the address's lease. Holder is "" if the lease has no holder or the
// API didn't respond.
type VIPStatus struct {
	Address string `json:"address"`
	Holder  string `json:"holder"`
	// Answers reports whether the API responds at the virtual address. If possible, a master that isn't the holder tests the address.
	Answers bool `json:"answers"`
}

// ProgramStatus is the state of a program on a machine.
type ProgramStatus struct {
	Version string `json:"version,omitempty"`
	State   string `json:"state"` // systemd's: active, inactive, failed, absent …
}

// ComponentStatus is the state of a part of Kubernetes, either a static pod or a workload on many machines.
type ComponentStatus struct {
	Name     string `json:"name"`
	Host     string `json:"host,omitempty"`
	Ready    int    `json:"ready"`
	Desired  int    `json:"desired"`
	Restarts int    `json:"restarts,omitempty"`
	Message  string `json:"message,omitempty"`
}

// Renewal describes whether certificates are renewed automatically. Off lists the machines without automatic renewal.
type Renewal struct {
	Kubelet      bool     `json:"kubelet"`
	ControlPlane bool     `json:"controlPlane"`
	Off          []string `json:"off,omitempty"`
}

// GetStatus queries every machine once and changes nothing. The result includes machines that don't respond. GetStatus also names these machines in a
// *PartialError.
func GetStatus(ctx context.Context, s *engine.Spec, o engine.Options) (*Status, error) {
	return getStatus(ctx, s, o, false)
}

// ListMachines returns the same machines as GetStatus, but reads much less from each machine.
func ListMachines(ctx context.Context, s *engine.Spec, o engine.Options) ([]MachineStatus, error) {
	st, err := getStatus(ctx, s, o, true)
	if st == nil {
		return nil, err
	}
	return st.Machines, err
}

func getStatus(ctx context.Context, s *engine.Spec, o engine.Options, brief bool) (*Status, error) {
	o.DryRun = true
	r := engine.NewRun(s, o)
	defer r.Close()
	nodes, err := r.Selected()
	if err != nil {
		return nil, err
	}
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster status", Hosts: hostnames(nodes), Phases: []string{"status"}})
	answers, errs := askStatus(ctx, r, r.Reached(nodes), brief)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	st := newStatus(s, nodes, answers, errs, o.Clock())
	var failed []engine.Failed
	for _, n := range nodes {
		if err := errs[n]; err != nil {
			failed = append(failed, engine.Failed{Host: n.Hostname, Phase: "status", Error: err.Error(), Hint: hint.Of(err)})
		}
	}
	if len(failed) > 0 {
		return st, &engine.PartialError{Failed: failed, Hosts: len(nodes), Retry: r.Retry(failed, len(nodes))}
	}
	return st, nil
}

func askStatus(ctx context.Context, r *engine.Run, nodes []*engine.Node, brief bool) (map[*engine.Node]answer.Answer, map[*engine.Node]error) {
	var mu sync.Mutex
	answers := map[*engine.Node]answer.Answer{}
	errs := r.Each(ctx, nodes, func(ctx context.Context, n *engine.Node) error {
		if err := r.Dial(ctx, n); err != nil {
			return err
		}
		res, err := r.Exec(ctx, n, ssh.Script{Name: "status", Timeout: r.Opts.StepTimeout, Body: engine.PreludeScript + statusScript + statusCall(r.Spec, n, brief)})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers[n], err = answer.Parse(res.Stdout)
		return err
	})
	return answers, errs
}

// statusCall returns the shell command that prints a machine's status. If brief is set, the output contains only the values that MachineStatus needs.
func statusCall(s *engine.Spec, n *engine.Node, brief bool) string {
	number := map[bool]int{true: 1}
	k := s.Config.Kubernetes.Kubernetes
	return fmt.Sprintf("CONTROL_PLANE=%d BRIEF=%d SELF=%s PORT=%d VIP=%s\nstatus\n", number[n.ControlPlane], number[brief], shell.Quote(n.HostIP), k.APIServerPort, shell.Quote(k.APIVIP))
}

func newStatus(s *engine.Spec, nodes []*engine.Node, answers map[*engine.Node]answer.Answer, errs map[*engine.Node]error, now time.Time) *Status {
	k := s.Config.Kubernetes.Kubernetes
	st := &Status{
		Cluster: k.ClusterName, ClusterID: s.Config.Services.Cluster.Common.ClusterID,
		Kubernetes: k.Version, API: "absent",
		Machines: []MachineStatus{}, Components: []ComponentStatus{}, Certificates: []checks.Certificate{},
	}
	asked, api := st.chooseAPI(s, answers, errs)
	for _, n := range s.ControlPlane() {
		if f, ok := answers[n].Row("lock"); ok && len(f) >= 2 && st.Lock == nil {
			st.Lock = &LockOwner{Owner: f[0], Since: f[1]}
		}
	}
	st.Endpoint = reachedBy(s.Fresh(), asked, api.Value("server"))
	if k.APIVIP != "" {
		holder := phases.VIPHolder(api)
		st.VIP = &VIPStatus{Address: k.APIVIP, Holder: holder, Answers: phases.VIPReachable(s, holder, func(n *engine.Node) answer.Answer { return answers[n] })}
		if st.VIP.Answers {
			st.Endpoint = "https://" + s.AtPort(k.APIVIP)
		}
	}
	st.addComponents(api)
	st.Renewal = Renewal{Kubelet: true, ControlPlane: true}
	for _, n := range nodes {
		st.Machines = append(st.Machines, machineStatus(n, answers[n], errs[n], api, st.API))
		if errs[n] != nil {
			continue
		}
		for _, f := range answers[n].All("cert") {
			if len(f) == 2 {
				st.Certificates = append(st.Certificates, checks.ReadCertificate(n.Hostname, f[0], pemOf(f[1]), now))
			}
		}
		st.addRenewal(n, answers[n])
	}
	st.addKnocks(s, answers, now)
	if len(nodes) == len(s.Nodes) { // --limit excludes unlisted nodes
		st.addUnlisted(s, api)
	}
	slices.SortStableFunc(st.Certificates, func(a, b checks.Certificate) int { return a.Expires.Compare(b.Expires) })
	return st
}

// pemOf returns the PEM text of a certificate in the script's output. The field contains the base64 of PEM text or of DER data.
func pemOf(field string) []byte {
	data := engine.Decoded(field)
	if len(data) == 0 || bytes.HasPrefix(data, []byte("-----BEGIN")) {
		return data
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
}

// chooseAPI sets st.API. It returns the first master whose API server is up, with that master's output. If no API server is up, it returns the first
// master and no output.
func (st *Status) chooseAPI(s *engine.Spec, answers map[*engine.Node]answer.Answer, errs map[*engine.Node]error) (*engine.Node, answer.Answer) {
	for _, n := range s.ControlPlane() {
		if err := errs[n]; err != nil && st.API == "absent" {
			st.API, st.APIMessage = "unknown", err.Error()
		}
		f, ok := answers[n].Row("api")
		if !ok || len(f) < 1 {
			continue
		}
		if f[0] == "up" {
			st.API, st.APIMessage = "up", ""
			return n, answers[n]
		}
		st.API, st.APIMessage = "down", ""
		if len(f) > 1 {
			st.APIMessage = f[1]
		}
	}
	return s.ControlPlane()[0], answer.Answer{}
}

func machineStatus(n *engine.Node, a answer.Answer, err error, api answer.Answer, apiState string) MachineStatus {
	m := MachineStatus{Host: n.Hostname, Address: n.HostIP, Roles: n.Roles, SKU: n.SKU, Kernel: a.Value("kernel")}
	m.Kubelet, m.Containerd = programStatus(a, "kubelet"), programStatus(a, "containerd")
	node, known := api.Row("node", n.Hostname)
	for len(node) < 10 {
		node = append(node, "")
	}
	m.Kubelet.known(engine.Unquoted(node[1]))
	m.Containerd.known("v" + strings.TrimPrefix(strings.TrimPrefix(engine.Unquoted(node[8]), "containerd://"), "v"))
	m.readCordon(node[0], node[9])
	ready := m.readConditions(node[2])
	switch {
	case err != nil:
		m.State, m.Message, m.Hint = StateUnreachable, err.Error(), hint.Of(err)
		if !errors.Is(err, ssh.ErrUnreachable) {
			m.State = StateUnknown
		}
	case known && ready == "True":
		m.State = StateReady
		if _, bridge := phases.PodNetwork(a); phases.Differs(bridge, node[4]) {
			m.Message = fmt.Sprintf("no pod starts: cni0 has %s, the node's subnet is %s; cluster up repairs it", bridge, node[4])
		} else {
			m.Message = strings.ReplaceAll(strings.Join(engine.UnquotedAll(node[7]), "\n"), "\n", "; ") // each of its GPUs is on its own line
		}
	case known:
		m.State, m.Message = StateNotReady, cmp.Or(engine.Unquoted(node[3]), node[3])
	case apiState == "up" || a.Value("member") != "yes":
		m.State, m.Message, m.Hint = StateOutside, "not in the cluster", "paictl cluster up adds it to the cluster"
		if apiState == "up" {
			m.Hint += "; paictl node remove HOST removes it from the layout"
		}
	case apiState == "unknown":
		m.State, m.Message = StateUnknown, "the control plane could not be queried"
	default:
		m.State, m.Message = StateUnknown, "the API server does not answer"
	}
	return m
}

// readCordon sets the fields about the cordon of a machine. A kubelet can change its node's annotations, so readCordon makes the texts safe for
// terminals.
func (m *MachineStatus) readCordon(state, mark string) {
	m.Cordoned = state == "cordoned"
	if read := actionsv1.ReadMark(map[string]string{actionsv1.MarkAnnotation: engine.Unquoted(mark)}); read != nil && m.Cordoned {
		m.CordonedBy, m.CordonReason = terminal.Line(read.By.Text()), terminal.Line(read.Reason)
	}
}

// readConditions sets the pressures of a node, and returns the status of its condition Ready.
func (m *MachineStatus) readConditions(list string) (ready string) {
	for _, c := range strings.Split(list, ";") {
		kind, state, _ := strings.Cut(c, "=")
		kind, state = strings.Trim(kind, `"`), strings.Trim(state, `"`)
		switch {
		case kind == "Ready":
			ready = state
		case state == "True":
			if _, bad := checks.Condition(kind); bad {
				m.Pressure = append(m.Pressure, kind)
			}
		}
	}
	return ready
}

// addUnlisted adds nodes that aren't in the layout. A user has joined such a node without paictl or has removed it from layout.yaml. paictl doesn't
// change these nodes.
func (st *Status) addUnlisted(s *engine.Spec, api answer.Answer) {
	var out []MachineStatus
	for _, f := range api.All("node") {
		if len(f) == 0 || slices.ContainsFunc(s.Nodes, func(n *engine.Node) bool { return n.Hostname == f[0] }) {
			continue
		}
		for len(f) < 11 {
			f = append(f, "")
		}
		m := MachineStatus{Host: f[0], Address: nodeAddress(f[6]), Roles: []string{}, State: StateUnlisted}
		m.readCordon(f[1], f[10])
		role := ""
		if f[7] == "control-plane" {
			m.Roles, role = []string{layout.RoleMaster}, " --role "+layout.RoleMaster
		}
		m.Message = "not in layout.yaml"
		if m.readConditions(f[3]) != "True" {
			m.Message += ", and not Ready"
		}
		m.Hint = fmt.Sprintf("to keep it, where paictl has joined it: paictl node add %s=%s%s; to remove it: list it in layout.yaml, then run paictl node remove %s",
			m.Host, cmp.Or(m.Address, "ADDRESS"), role, m.Host)
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b MachineStatus) int { return cmp.Compare(a.Host, b.Host) })
	st.Machines = append(st.Machines, out...)
}

// nodeAddress returns the first IPv4 address in a node's list of addresses. The layout contains only IPv4 addresses. Kubelets write the list, so the
// list may contain any text.
func nodeAddress(list string) string {
	for _, quoted := range strings.Split(list, ";") {
		if ip, err := netip.ParseAddr(engine.Unquoted(quoted)); err == nil && ip.Is4() {
			return ip.String()
		}
	}
	return ""
}

func programStatus(a answer.Answer, name string) *ProgramStatus {
	f, ok := a.Row(name)
	if !ok || len(f) < 2 || f[0] == "" && f[1] != "active" {
		return nil
	}
	return &ProgramStatus{Version: f[0], State: f[1]}
}

// known sets the version to the version in the API if the machine didn't report a version.
func (p *ProgramStatus) known(version string) {
	if p != nil && p.Version == "-" {
		p.Version = strings.TrimSuffix(version, "v") // the API doesn't have the version
	}
}

func (st *Status) addComponents(api answer.Answer) {
	for _, f := range api.All("pod") {
		for len(f) < 4 {
			f = append(f, "")
		}
		c := ComponentStatus{Name: f[0], Host: f[1], Desired: 1}
		c.Restarts, _ = strconv.Atoi(f[3])
		if f[2] == "ready" {
			c.Ready = 1
		} else {
			c.Message = strings.TrimSpace(f[2])
		}
		st.Components = append(st.Components, c)
	}
	for _, f := range api.All("workload") {
		if len(f) < 3 {
			continue
		}
		c := ComponentStatus{Name: f[0]}
		c.Ready, _ = strconv.Atoi(f[1])
		c.Desired, _ = strconv.Atoi(f[2])
		st.Components = append(st.Components, c)
	}
}

func (st *Status) addRenewal(n *engine.Node, a answer.Answer) {
	if a.Value("member") != "yes" {
		return
	}
	off := false
	if a.Value("renewal", "kubelet") != "on" {
		st.Renewal.Kubelet, off = false, true
	}
	if n.ControlPlane && a.Value("renewal", "control-plane") != "on" {
		st.Renewal.ControlPlane, off = false, true
	}
	if off {
		st.Renewal.Off = append(st.Renewal.Off, n.Hostname)
	}
}

// Knock is an attempt of a removed machine to join again. Such a machine was off when it was removed.
type Knock struct {
	Host string `json:"host"`
	// Last is the time of the machine's last attempt.
	Last time.Time `json:"last"`
}

// knockedFor is how long a machine is listed after its last attempt.
const knockedFor = 24 * time.Hour

func (st *Status) addKnocks(s *engine.Spec, answers map[*engine.Node]answer.Answer, now time.Time) {
	last := map[string]time.Time{}
	for _, a := range answers {
		for _, row := range a.All("knock") {
			if len(row) < 2 {
				continue
			}
			at, err := time.Parse(time.RFC3339, row[1])
			if err == nil && now.Sub(at) < knockedFor && at.After(last[row[0]]) {
				last[row[0]] = at
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(last)) {
		if !slices.ContainsFunc(s.Nodes, func(n *engine.Node) bool { return n.Hostname == host }) { // it is in the layout again
			st.Knocks = append(st.Knocks, Knock{Host: host, Last: last[host]})
		}
	}
}
