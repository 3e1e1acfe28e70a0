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

// Phase is one step that makes a node match the configuration. Detect and Verify only read, and Diff has no side effects. Apply makes exactly the
// changes that Diff has returned. It can be repeated after an interruption at any point.
type Phase interface {
	// Name returns the name of the phase in --phases, events and the journal.
	Name() string
	// Traits returns the properties of the phase.
	Traits() Traits
	// Applies reports whether the phase concerns the node.
	Applies(n *Node) bool
	// Detect returns shell code that prints the node's state in the format of the package answer.
	Detect(n *Node) (string, error)
	// Diff compares the node with the configuration, and returns the necessary changes. It can use the facts of all nodes.
	Diff(n *Node, w *World) ([]Change, error)
	Apply(ctx context.Context, r *Run, n *Node, cs []Change) error
	// Verify returns shell code that exits with status 0 if the node is in the state that Apply should produce, and otherwise prints the reason. It
	// returns "" if Apply itself has checked the state.
	Verify(n *Node) string
	// Waits returns the steps that must end before Apply may begin. pl holds the changes of the run and the state that the run found.
	Waits(n *Node, pl *Plan) []Step
}

// Traits describes properties of a phase.
type Traits struct {
	// Upgrade is the part of an upgrade that contains the phase; "" means that upgrades skip the phase.
	Upgrade UpgradePart
	// ForOthers means that the leader makes changes for other machines in this phase, even if --limit doesn't include the leader.
	ForOthers bool
	// Rejoins means that the phase joins a machine again that isn't a member of etcd.
	Rejoins bool
	// Repairs means that the phase's changes can make a node Ready.
	Repairs bool
}

// UpgradePart is a part of an upgrade. All machines complete one part before the next part begins.
type UpgradePart string

// The parts of an upgrade, in the order in which they run.
const (
	UpgradeImages       UpgradePart = "images"
	UpgradeControlPlane UpgradePart = "control plane" // one machine after the other
	UpgradePrograms     UpgradePart = "programs"      // while a machine is out of service
	UpgradeAfter        UpgradePart = "after"         // doesn't disturb running programs
)

// Step is one phase on one node that another step waits for.
type Step struct {
	Host, Phase string
	// Must means that the step has to succeed. Otherwise the waiting step also runs after a failure of this step.
	Must bool
	// Rolls means that the step makes the same change as the waiting step. If the change fails, the waiting machine stays unchanged. Failures in
	// earlier phases don't have this effect.
	Rolls bool
}

// World holds the state of all nodes after detection.
type World struct {
	Want  *Desired
	Facts map[string]*Facts // by host name
	// Limit is the set of host names of --limit; nil means all.
	Limit map[string]bool
	// Leader is the control plane machine on which the run executes work for the whole cluster.
	Leader *Node
	// NoMembers means that no machine counts as a member. A dry run of "cluster recreate" sets this field.
	NoMembers bool
	// MayFound means that this run includes the phases that create a cluster.
	MayFound bool
	// Whole means that the run covers all machines and all phases.
	Whole bool
	// Outside is the set of members of a cluster outside of --limit. It is empty unless this run would create a cluster.
	Outside map[string]bool
	// Etcd is the leader's view of etcd. It is nil if the run didn't need it or if etcd didn't respond.
	Etcd *EtcdView
	// Findings lists the reasons why the run must not change the cluster.
	Findings []preflight.Finding

	nodesOnce sync.Once
	nodesRead map[string]corev1.Node
	nodesErr  error
}

// Concerns reports whether the run covers a node.
func (w *World) Concerns(n *Node) bool { return w.Limit == nil || w.Limit[n.Hostname] }

// Of returns the output of a node's detect script for a phase. It is empty if the node didn't respond.
func (w *World) Of(n *Node, phase string) answer.Answer {
	f := w.Facts[n.Hostname]
	if f == nil {
		return answer.Answer{}
	}
	return f.Sections[phase]
}

// Script runs a script of a phase that may change the node.
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

// Answer parses the output of Script, Read or Exec.
func Answer(res ssh.Result, err error) (answer.Answer, error) {
	if err != nil {
		return answer.Answer{}, err
	}
	return answer.Parse(res.Stdout)
}

// Exec runs a script on a node, and returns an error if the exit status isn't 0.
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

// ScriptError returns a one-line error for a failed script. The error contains the last line of stderr and the causes that the script printed.
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
		// kubeadm prints its error in such a line, followed by a help text.
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

// ApplyResources uploads the required artifacts to the staging folder. It then runs the script that makes the changes.
func (r *Run) ApplyResources(ctx context.Context, n *Node, phase string, res Resources, cs []Change) error {
	if err := r.Stage(ctx, n, phase, res.Uploads(cs)); err != nil {
		return err
	}
	_, err := r.Script(ctx, n, phase, "apply", res.Script(cs))
	return err
}

// Stage uploads artifacts to the paths where the script function p_artifact expects them.
func (r *Run) Stage(ctx context.Context, n *Node, phase string, as []Artifact) error {
	files := make([]ssh.File, 0, len(as))
	for _, a := range as {
		files = append(files, r.UploadFile(Staged(a.Src), a.Src))
	}
	return r.Upload(ctx, n, phase, files)
}

// Upload copies files to a node. If enough machines take part, other machines send files of the bundle.
func (r *Run) Upload(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if r.peers != nil {
		return r.peers.bring(ctx, n, phase, files)
	}
	return r.send(ctx, n, phase, files)
}

// send copies files to a node from the operator's machine.
func (r *Run) send(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if len(files) == 0 {
		return nil
	}
	var told int64
	res, err := r.Host(n).Upload(ctx, files, func(sent, total int64) {
		// Emit at most a hundred events, enough for a progress bar. One event per chunk would result in thousands of lines.
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

// PhaseInit is the name of the phase that creates the cluster and changes the settings of its control plane.
const PhaseInit = "init"

// KubeadmConf is the path of kubeadm's configuration on a master.
const KubeadmConf = paths.Kubeadm

// PhaseJoin is the name of the phase that makes a machine a member of the cluster.
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

// PhaseApprover is the name of the phase that installs the approver for the kubelets' certificates.
const PhaseApprover = "approver"
