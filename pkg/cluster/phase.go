package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// phase is one step that makes a node match the configuration. Detect and verify only read; diff is pure;
// apply makes exactly the changes that diff named, and can be repeated after an interruption at any point.
type phase interface {
	// name is the phase's name in --phases, events and the journal.
	name() string
	// traits returns how the phase takes part in operations.
	traits() traits
	// applies reports whether the phase concerns the node.
	applies(n *Node) bool
	// detect returns shell code that prints the node's state, for answer.
	detect(n *Node) (string, error)
	// diff compares the node with the configuration. It has all nodes' facts.
	diff(n *Node, w *world) ([]Change, error)
	apply(ctx context.Context, r *run, n *Node, cs []Change) error
	// verify returns shell code that exits with status 0 once the node has the state that apply
	// promised, and otherwise prints the reason; it returns "" if apply itself has checked it.
	verify(n *Node) string
	// waits names the steps that must end before this phase's apply may begin. The plan has the
	// changes of the run and the state that it found.
	waits(n *Node, pl *plan) []step
}

// traits say how a phase takes part in operations.
type traits struct {
	// upgrade is the part of an upgrade in which the phase runs; "" means that upgrades leave it out.
	upgrade upgradePart
	// forOthers means that the leader makes changes for other machines, even if the run isn't about itself.
	forOthers bool
	// rejoins means that the phase makes a machine a member again that etcd doesn't know.
	rejoins bool
	// repairs means that changes of the phase can make a node Ready that isn't.
	repairs bool
}

// upgradePart is a part of an upgrade. All machines complete one before the next begins.
type upgradePart string

const (
	upgradeImages       upgradePart = "images"
	upgradeControlPlane upgradePart = "control plane" // one machine after the other
	upgradePrograms     upgradePart = "programs"      // while a machine is out of service
	upgradeAfter        upgradePart = "after"         // doesn't disturb running programs
)

// in returns the phases of "cluster up" that run in a part of an upgrade.
func (d *desired) in(part upgradePart) []phase {
	return slices.DeleteFunc(upPhases(d), func(p phase) bool { return p.traits().upgrade != part })
}

// phaseNames returns their names.
func phaseNames(part upgradePart) []string {
	var out []string
	for _, p := range (&Spec{}).fresh().in(part) {
		out = append(out, p.name())
	}
	return out
}

// step is a phase on a node.
type step struct {
	host, phase string
	// must means that the step has to succeed; otherwise it only has to end.
	must bool
	// rolls means that the step makes the same change as the waiting one: if it fails, the waiting
	// machine is left unchanged. An earlier failure of that machine doesn't count.
	rolls bool
}

// world holds the state that detection found on all nodes.
type world struct {
	want  *desired
	facts map[string]*facts // by host name
	// limit holds the host names of --limit; nil means all.
	limit map[string]bool
	// leader is the control plane machine through which cluster-wide work is done.
	leader *Node
	// forgotten means that the machines don't count as members: in a dry run of making the cluster again.
	forgotten bool
	// mayFound means that the phases of this run would make a cluster if none exists.
	mayFound bool
	// whole means that the run takes all machines through all phases.
	whole bool
	// outside holds the machines outside of --limit that are members of a cluster; it is filled
	// only if this run would make one.
	outside map[string]bool
	// etcd is the view of the leader's etcd, or nil if the run didn't need it or etcd didn't answer.
	etcd *etcdView
	// findings are the reasons not to work on the cluster at all.
	findings []preflight.Finding

	nodesOnce sync.Once
	nodesRead map[string]corev1.Node
	nodesErr  error
}

// concerns reports whether the run is about a node.
func (w *world) concerns(n *Node) bool { return w.limit == nil || w.limit[n.Hostname] }

// of returns a phase's answer on a node.
func (w *world) of(n *Node, phase string) answer.Answer {
	f := w.facts[n.Hostname]
	if f == nil {
		return answer.Answer{}
	}
	return f.sections[phase]
}

// upPhases returns the phases of "cluster up", in order.
func upPhases(d *desired) []phase {
	return []phase{
		&base{want: d}, &nvidiaDriver{want: d}, &containerd{want: d}, &images{want: d}, &approver{want: d}, &kubelet{want: d},
		&apiProxy{want: d}, &initialise{want: d}, &network{want: d}, &join{want: d}, &labels{want: d}, &apiVIP{want: d},
	}
}

// PhaseNames returns the phases of "cluster up" in order, including preflight.
func PhaseNames() []string {
	out := []string{"preflight"}
	for _, p := range upPhases((&Spec{}).fresh()) {
		out = append(out, p.name())
	}
	return out
}

// CheckPhases returns an error if a name isn't a phase of "cluster up".
func CheckPhases(names []string) error {
	all := PhaseNames()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return hint.Errorf("the phases are: "+strings.Join(all, ", "), "there is no phase %q", name)
		}
	}
	return nil
}

// script runs a mutating script of a phase on a node.
func (r *run) script(ctx context.Context, n *Node, phase, what, body string) (ssh.Result, error) {
	return r.exec(ctx, n, ssh.Script{
		Name: phase + "/" + what, Mutates: true, Timeout: r.opts.StepTimeout,
		Body: applyProgram(r.id, phase, body),
	})
}

// read runs a read-only script on a node.
func (r *run) read(ctx context.Context, n *Node, phase, what, body string) (ssh.Result, error) {
	return r.exec(ctx, n, ssh.Script{
		Name: phase + "/" + what, Timeout: r.opts.StepTimeout, Body: preludeScript + body,
	})
}

func (r *run) exec(ctx context.Context, n *Node, s ssh.Script) (ssh.Result, error) {
	h := r.host(n)
	if h == nil {
		return ssh.Result{}, fmt.Errorf("%s: not connected", n.Hostname)
	}
	res, err := h.Run(ctx, s)
	if err != nil {
		return res, err
	}
	if res.ExitCode != 0 {
		return res, scriptError(n, s.Name, res)
	}
	return res, nil
}

// scriptError turns a script's failure into one line: its last line of output, and its lines about causes.
func scriptError(n *Node, name string, res ssh.Result) error {
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
	remedy := fmt.Sprintf("the completed steps are in %s/journal on the host; remove the cause, then run the same command again", stateDir)
	if i := strings.Index(last, " -> "); i > 0 {
		last, remedy = last[:i], last[i+len(" -> "):]
	}
	said := strings.Join(append([]string{strings.TrimSpace(last)}, causes...), "; ")
	return hint.Errorf(remedy, "%s on %s: exit status %d: %s", name, n.Hostname, res.ExitCode, said)
}

// applyResources stages the uploads, and runs the script of the changes.
func (r *run) applyResources(ctx context.Context, n *Node, phase string, res resources, cs []Change) error {
	if err := r.stage(ctx, n, phase, res.uploads(cs)); err != nil {
		return err
	}
	_, err := r.script(ctx, n, phase, "apply", res.script(cs))
	return err
}

// stage uploads artifacts to the paths that p_artifact expects.
func (r *run) stage(ctx context.Context, n *Node, phase string, as []artifact) error {
	files := make([]ssh.File, 0, len(as))
	for _, a := range as {
		files = append(files, r.uploadFile(staged(a.src), a.src))
	}
	return r.upload(ctx, n, phase, files)
}

// upload copies files to a node. Files of the bundle come from other machines if that is less work for this one.
func (r *run) upload(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if r.peers != nil {
		return r.peers.bring(ctx, n, phase, files)
	}
	return r.send(ctx, n, phase, files)
}

// send copies files to a node from this machine.
func (r *run) send(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if len(files) == 0 {
		return nil
	}
	var told int64
	res, err := r.host(n).Upload(ctx, files, func(sent, total int64) {
		// A hundred steps are enough for any progress bar; one per chunk would be thousands of lines.
		if sent < total && sent-told < total/100 {
			return
		}
		told = sent
		r.emit(Event{Kind: EventProgress, Host: n.Hostname, Phase: phase, Message: "upload", Done: sent, Total: total})
	})
	r.sent.Add(res.Bytes)
	return err
}

// lastLine returns the last line of a script's output.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
