package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
)

// Phase is one step that makes a node match the configuration. Detect and Verify only read, and Diff is pure. Apply makes exactly the changes
// that Diff returned, and can be repeated after an interruption at any point.
type Phase interface {
	// Name is the phase's name in --phases, events and the journal.
	Name() string
	// Traits returns how the phase takes part in operations.
	Traits() Traits
	// Applies reports whether the phase concerns the node.
	Applies(n *Node) bool
	// Detect returns shell code that prints the node's state in the form that the package answer parses.
	Detect(n *Node) (string, error)
	// Diff compares the node with the configuration. It can use the facts of all nodes.
	Diff(n *Node, w *World) ([]Change, error)
	Apply(ctx context.Context, r *Run, n *Node, cs []Change) error
	// Verify returns shell code that exits with status 0 once the node has the state that Apply promised, and otherwise prints the reason. It
	// returns "" if Apply itself has checked the state.
	Verify(n *Node) string
	// Waits returns the steps that must end before this phase's Apply may begin. The plan holds the run's changes and the state that the run
	// found.
	Waits(n *Node, pl *Plan) []Step
}

// Traits describe how a phase takes part in operations.
type Traits struct {
	// Upgrade is the part of an upgrade in which the phase runs; "" means that upgrades leave it out.
	Upgrade UpgradePart
	// ForOthers means that the leader makes changes for other machines, even if --limit doesn't select the leader.
	ForOthers bool
	// Rejoins means that the phase adds a machine to the cluster again if etcd doesn't know it.
	Rejoins bool
	// Repairs means that the phase's changes can make a node Ready.
	Repairs bool
}

// UpgradePart is a part of an upgrade. All machines complete one part before the next part begins.
type UpgradePart string

// Parts of an upgrade, in order.
const (
	UpgradeImages       UpgradePart = "images"
	UpgradeControlPlane UpgradePart = "control plane" // one machine after the other
	UpgradePrograms     UpgradePart = "programs"      // while a machine is out of service
	UpgradeAfter        UpgradePart = "after"         // doesn't disturb running programs
)

// Step is one phase on one node.
type Step struct {
	Host, Phase string
	// Must means that the step has to succeed; otherwise it only has to end.
	Must bool
	// Rolls means that the step makes the same change as the waiting step: if it fails, the waiting machine is left unchanged. A machine that
	// failed in an earlier phase doesn't hold others back.
	Rolls bool
}

// World holds the state that detection found on all nodes.
type World struct {
	Want  *Desired
	Facts map[string]*Facts // by host name
	// Limit holds the host names of --limit; nil means all.
	Limit map[string]bool
	// Leader is the control plane machine through which cluster-wide work is done.
	Leader *Node
	// Forgotten means that no machine counts as a member, for a dry run that would make the cluster again.
	Forgotten bool
	// MayFound means that the phases of this run would make a cluster if none exists.
	MayFound bool
	// Whole means that the run covers all machines and all phases.
	Whole bool
	// Outside holds the machines outside of --limit that are members of a cluster; it is filled
	// only if this run would make one.
	Outside map[string]bool
	// Etcd is the leader's view of etcd, or nil if the run didn't need it or etcd didn't answer.
	Etcd *EtcdView
	// Findings are the reasons for which the run must not work on the cluster at all.
	Findings []preflight.Finding

	nodesOnce sync.Once
	nodesRead map[string]corev1.Node
	nodesErr  error
}

// Concerns reports whether the run covers a node.
func (w *World) Concerns(n *Node) bool { return w.Limit == nil || w.Limit[n.Hostname] }

// Of returns a node's answer for a phase.
func (w *World) Of(n *Node, phase string) answer.Answer {
	f := w.Facts[n.Hostname]
	if f == nil {
		return answer.Answer{}
	}
	return f.Sections[phase]
}

// Script runs a mutating script of a phase on a node.
func (r *Run) Script(ctx context.Context, n *Node, phase, what, body string) (ssh.Result, error) {
	return r.Exec(ctx, n, ssh.Script{
		Name: phase + "/" + what, Mutates: true, Timeout: r.Opts.StepTimeout,
		Body: ApplyProgram(r.Id, phase, body),
	})
}

// Read runs a read-only script on a node.
func (r *Run) Read(ctx context.Context, n *Node, phase, what, body string) (ssh.Result, error) {
	return r.Exec(ctx, n, ssh.Script{
		Name: phase + "/" + what, Timeout: r.Opts.StepTimeout, Body: PreludeScript + body,
	})
}

// Answer parses the result of Script, Read or Exec.
func Answer(res ssh.Result, err error) (answer.Answer, error) {
	if err != nil {
		return answer.Answer{}, err
	}
	return answer.Parse(res.Stdout)
}

// Exec runs a script on a node, and turns its failure into an error.
func (r *Run) Exec(ctx context.Context, n *Node, s ssh.Script) (ssh.Result, error) {
	h := r.Host(n)
	if h == nil {
		return ssh.Result{}, fmt.Errorf("%s: not connected", n.Hostname)
	}
	res, err := h.Run(ctx, s)
	if err != nil {
		return res, err
	}
	if res.ExitCode != 0 {
		return res, ScriptError(n, s.Name, res)
	}
	return res, nil
}

// ScriptError returns an error with one line: the last line of the script's output, and its lines about causes.
func ScriptError(n *Node, name string, res ssh.Result) error {
	var causes []string
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(res.Stderr)), "\n"), func(l string) bool {
		cause, ok := strings.CutPrefix(l, "cause: ")
		if ok {
			causes = append(causes, cause)
		}
		return ok
	})
	last := ""
	if len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	for _, l := range lines {
		// kubeadm prints the error in lines like these, and then prints how to get help.
		if strings.Contains(l, "[ERROR ") || strings.HasPrefix(l, "error:") || strings.HasPrefix(l, "error execution phase") {
			last = l
			break
		}
	}
	if last == "" {
		last = "no message"
	}
	remedy := fmt.Sprintf("the completed steps are in %s/journal on the host; remove the cause, then run the same command again", StateDir)
	if i := strings.Index(last, " -> "); i > 0 {
		last, remedy = last[:i], last[i+len(" -> "):]
	}
	said := strings.Join(append([]string{strings.TrimSpace(last)}, causes...), "; ")
	return hint.Errorf(remedy, "%s on %s: exit status %d: %s", name, n.Hostname, res.ExitCode, said)
}

// ApplyResources uploads artifacts to the staging folder, and runs the script of the changes.
func (r *Run) ApplyResources(ctx context.Context, n *Node, phase string, res Resources, cs []Change) error {
	if err := r.Stage(ctx, n, phase, res.Uploads(cs)); err != nil {
		return err
	}
	_, err := r.Script(ctx, n, phase, "apply", res.Script(cs))
	return err
}

// Stage uploads artifacts to the paths that p_artifact expects.
func (r *Run) Stage(ctx context.Context, n *Node, phase string, as []Artifact) error {
	files := make([]ssh.File, 0, len(as))
	for _, a := range as {
		files = append(files, r.UploadFile(Staged(a.Src), a.Src))
	}
	return r.Upload(ctx, n, phase, files)
}

// Upload copies files to a node. Other machines send the bundle's files if that reduces the work of this machine.
func (r *Run) Upload(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if r.peers != nil {
		return r.peers.bring(ctx, n, phase, files)
	}
	return r.send(ctx, n, phase, files)
}

// send copies files to a node from this machine.
func (r *Run) send(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if len(files) == 0 {
		return nil
	}
	var told int64
	res, err := r.Host(n).Upload(ctx, files, func(sent, total int64) {
		// A hundred steps are enough for any progress bar; one per chunk would be thousands of lines.
		if sent < total && sent-told < total/100 {
			return
		}
		told = sent
		r.Emit(Event{Kind: EventProgress, Host: n.Hostname, Phase: phase, Message: "upload", Done: sent, Total: total})
	})
	r.Sent.Add(res.Bytes)
	return err
}

// LastLine returns the last line of a script's output.
func LastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// PhaseInit is the phase that founds the cluster, and changes the settings of its control plane.
const PhaseInit = "init"

// KubeadmConf is the path of kubeadm's configuration on a master.
const KubeadmConf = paths.Kubeadm

// PhaseJoin is the phase that makes a machine a member.
const PhaseJoin = "join"

// Ticket holds the values that a machine needs to join. Machines share a ticket until half of its lifetime has passed.
type Ticket struct {
	Made           time.Time
	Issuer         string // the API server of the machine that made the ticket
	Token          secret.String
	CaHash         string
	Barred         map[string]bool // machines that are excluded, since they were removed while they were off
	CertificateKey secret.String   // set only if further control plane machines join
	Encryption     secret.String   // the key file for secrets at rest, also only then
}

// PhaseApprover is the phase that approves certificates of kubelets.
const PhaseApprover = "approver"
