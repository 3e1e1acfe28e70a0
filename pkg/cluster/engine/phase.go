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

// Phase is one step that makes a node match the configuration. Detect and verify only read; diff is pure;
// apply makes exactly the changes that diff named, and can be repeated after an interruption at any point.
type Phase interface {
	// Name is the phase's name in --phases, events and the journal.
	Name() string
	// Traits returns how the phase takes part in operations.
	Traits() Traits
	// Applies reports whether the phase concerns the node.
	Applies(n *Node) bool
	// Detect returns shell code that prints the node's state, for answer.
	Detect(n *Node) (string, error)
	// Diff compares the node with the configuration. It has all nodes' facts.
	Diff(n *Node, w *World) ([]Change, error)
	Apply(ctx context.Context, r *Run, n *Node, cs []Change) error
	// Verify returns shell code that exits with status 0 once the node has the state that apply
	// promised, and otherwise prints the reason; it returns "" if apply itself has checked it.
	Verify(n *Node) string
	// Waits names the steps that must end before this phase's apply may begin. The plan has the
	// changes of the run and the state that it found.
	Waits(n *Node, pl *Plan) []Step
}

// Traits describe how a phase takes part in operations.
type Traits struct {
	// Upgrade is the part of an upgrade in which the phase runs; "" means that upgrades leave it out.
	Upgrade UpgradePart
	// ForOthers means that the leader makes changes for other machines, even if the run isn't about itself.
	ForOthers bool
	// Rejoins means that the phase makes a machine a member again that etcd doesn't know.
	Rejoins bool
	// Repairs means that changes of the phase can make a node Ready that isn't.
	Repairs bool
}

// UpgradePart is a part of an upgrade. All machines complete one step before the next begins.
type UpgradePart string

// Parts of an upgrade, in order.
const (
	UpgradeImages       UpgradePart = "images"
	UpgradeControlPlane UpgradePart = "control plane" // one machine after the other
	UpgradePrograms     UpgradePart = "programs"      // while a machine is out of service
	UpgradeAfter        UpgradePart = "after"         // doesn't disturb running programs
)

// Step is a phase on a node.
type Step struct {
	Host, Phase string
	// Must means that the step has to succeed; otherwise it only has to end.
	Must bool
	// Rolls means that the step makes the same change as the waiting one: if it fails, the waiting
	// machine is left unchanged. An earlier failure of that machine doesn't count.
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
	// Forgotten means that the machines don't count as members: in a dry run of making the cluster again.
	Forgotten bool
	// MayFound means that the phases of this run would make a cluster if none exists.
	MayFound bool
	// Whole means that the run takes all machines through all phases.
	Whole bool
	// Outside holds the machines outside of --limit that are members of a cluster; it is filled
	// only if this run would make one.
	Outside map[string]bool
	// Etcd is the view of the leader's etcd, or nil if the run didn't need it or etcd didn't answer.
	Etcd *EtcdView
	// Findings are the reasons not to work on the cluster at all.
	Findings []preflight.Finding

	nodesOnce sync.Once
	nodesRead map[string]corev1.Node
	nodesErr  error
}

// Concerns reports whether the run is about a node.
func (w *World) Concerns(n *Node) bool { return w.Limit == nil || w.Limit[n.Hostname] }

// Of returns a phase's answer on a node.
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

// ScriptError turns a script's failure into one line: its last line of output, and its lines about causes.
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
		// kubeadm reports the error in lines like these, and then how to get help.
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

// ApplyResources stages the uploads, and runs the script of the changes.
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

// Upload copies files to a node. Files of the bundle come from other machines if that is less work for this one.
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

// KubeadmConf is the file of kubeadm's documents on a master.
const KubeadmConf = paths.Kubeadm

// PhaseJoin is the phase that makes a machine a member.
const PhaseJoin = "join"

// Ticket holds the values that a machine needs to join. Machines share one until half of its life has expired.
type Ticket struct {
	Made           time.Time
	Issuer         string // the API server of the machine that made it
	Token          secret.String
	CaHash         string
	Barred         map[string]bool // machines that are excluded, since they were removed while they were off
	CertificateKey secret.String   // set only if further control plane machines join
	Encryption     secret.String   // the key file for secrets at rest, likewise
}

// PhaseApprover is the phase that approves certificates of kubelets.
const PhaseApprover = "approver"
