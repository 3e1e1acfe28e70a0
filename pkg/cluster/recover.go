package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

//go:embed scripts/recover.sh
var recoverScript string

const (
	phaseRecover  = "recover"
	recoverAgain  = "finish it first: paictl cluster recover --from-member "
	recoverTarget = "etcd --force-new-cluster"
)

// Recovery describes the effect on a cluster without a quorum of etcd if one member continues alone. Revisions are etcd's.
type Recovery struct {
	Member string `json:"member"`
	// Revision is the last revision of the member's data, or 0 if its etcd doesn't report it.
	Revision int64            `json:"revision,omitempty"`
	Others   []RecoveryMember `json:"others"`
}

// RecoveryMember is another machine of the control plane.
type RecoveryMember struct {
	Host string `json:"host"`
	// State is "silent" if the machine doesn't answer, "empty" if it has no data of etcd, and otherwise "data".
	State    string `json:"state"`
	Revision int64  `json:"revision,omitempty"`
}

func (v Recovery) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "etcd has lost its quorum. %s continues alone, with the data that it has", v.Member)
	if v.Revision > 0 {
		fmt.Fprintf(&b, " (up to revision %d)", v.Revision)
	}
	b.WriteString(". Changes that it did not receive before are lost.\n")
	for _, o := range v.Others {
		switch o.State {
		case "silent":
			fmt.Fprintf(&b, "%s does not answer. Switch it off: if it still runs with others, there would be two clusters.\n", o.Host)
		case "empty":
			fmt.Fprintf(&b, "%s has no data of etcd; it joins again.\n", o.Host)
		default:
			known := ""
			if o.Revision > 0 {
				known = fmt.Sprintf(" (up to revision %d)", o.Revision)
			}
			fmt.Fprintf(&b, "%s joins again, and its own data%s is deleted.\n", o.Host, known)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// RecoverOptions are the options of Recover.
type RecoverOptions struct {
	// FromMember is the machine whose etcd continues alone.
	FromMember string
	// Force accepts a member with less data than another, and one without which etcd could have a quorum.
	Force bool
	// Fix lets preflight make the safe repairs.
	Fix bool
}

// Recover makes the etcd of one machine continue alone, and then takes all machines through the phases of Up: the others join it.
func Recover(ctx context.Context, s *Spec, o Options, ro RecoverOptions) ([]Change, error) {
	r := newRun(s, o)
	defer r.close()
	r.mayFix = ro.Fix
	return r.converge(ctx, "cluster recover", phaseRecover, func(ctx context.Context, w *world, nodes []*Node) (*world, []Change, error) {
		if err := r.refuseRestore(w); err != nil {
			return nil, nil, err
		}
		return r.recoverEtcd(ctx, w, nodes, ro)
	})
}

// WhatRecovers asks the machines for the effect of Recover. It changes nothing, and emits no events.
func WhatRecovers(ctx context.Context, s *Spec, o Options, ro RecoverOptions) (Recovery, error) {
	o.DryRun, o.Sink = true, silent{}
	r := newRun(s, o)
	defer r.close()
	if err := r.connect(ctx, s.ControlPlane()); err != nil {
		return Recovery{}, err
	}
	w, err := r.survey(ctx, s.ControlPlane())
	if err != nil {
		return Recovery{}, err
	}
	return r.recovery(ctx, w, ro)
}

// recovery refuses a recovery that must not begin, and otherwise returns its effect.
func (r *run) recovery(ctx context.Context, w *world, ro RecoverOptions) (Recovery, error) {
	out := Recovery{}
	if len(r.opts.Limit)+len(r.only) > 0 {
		return out, hint.Errorf("remove --limit and --phases", "recover works only on the whole cluster")
	}
	n, err := r.spec.Node(ro.FromMember)
	if err != nil {
		return out, err
	}
	out.Member = n.Hostname
	begun := w.recovering()
	switch {
	case !n.ControlPlane:
		return out, hint.Errorf("name a master", "%s is not a machine of the control plane", n.Hostname)
	case w.facts[n.Hostname] == nil:
		return out, hint.Errorf("repair it, or name another master", "%s does not answer", n.Hostname)
	case begun != nil && begun != n:
		return out, hint.Errorf(recoverAgain+begun.Hostname+"; or take it back: the same with --undo", "a recovery from %s was interrupted", begun.Hostname)
	case begun == nil && !w.member(n):
		return out, hint.Errorf("name a master that is a member; without one: paictl cluster restore", "%s is not a member of the cluster", n.Hostname)
	}
	views := map[*Node]*etcdStatus{}
	have := 0
	for _, m := range r.spec.ControlPlane() {
		if w.facts[m.Hostname] == nil {
			continue
		}
		if w.member(m) || w.unmarked(m) {
			have++
		}
		if m == begun {
			continue
		}
		v, err := r.etcdStatus(ctx, m)
		if err != nil {
			return out, err
		}
		if v.view != nil && v.view.quorum && v.view.has(m) {
			return out, r.hasQuorum(w, m, begun)
		}
		views[m] = v
	}
	out.Others = r.otherMembers(w, n, views)
	if views[n] != nil {
		out.Revision = views[n].revision
	}
	// Members with their data may just be starting: without a quorum etcd answers no requests at first.
	if voters := len(out.Others) + 1; begun == nil && 2*have > voters && !ro.Force {
		return out, hint.Errorf("see why etcd doesn't run on them (journalctl -u kubelet, /var/log/pods), or wait if they have just started; only if it can never run again: --force",
			"%d of %d masters have their data: etcd can have a quorum", have, voters)
	}
	for _, o := range out.Others {
		if o.Revision > out.Revision && begun == nil && !ro.Force {
			return out, hint.Errorf("name "+o.Host+"; to continue with less anyway: --force", "%s has more than %s: its data goes up to revision %d, that of %s up to %d",
				o.Host, n.Hostname, o.Revision, n.Hostname, out.Revision)
		}
	}
	return out, nil
}

// hasQuorum returns the reason not to recover: m reports that etcd has a quorum.
func (r *run) hasQuorum(w *world, m, begun *Node) error {
	switch {
	case begun == nil:
		return hint.Errorf("masters that are missing join again by paictl cluster up; one that is permanently gone: paictl cluster recover --dead",
			"etcd has a quorum, says %s: there is nothing to recover", m.Hostname)
	case w.of(begun, phaseInit).Value("forced") == "yes":
		return hint.Errorf(fmt.Sprintf("decide which one stays: to keep that of %s: %s%s --undo; to keep that of %s: switch %s off first", m.Hostname, recoverAgain, begun.Hostname, begun.Hostname, m.Hostname),
			"there are two clusters: %s says that etcd has a quorum, and %s was made to continue alone", m.Hostname, begun.Hostname)
	}
	return hint.Errorf("take the recovery back: paictl cluster recover --from-member "+begun.Hostname+" --undo",
		"etcd has a quorum again, says %s: there is nothing to recover", m.Hostname)
}

// otherMembers returns the other masters of the layout, and members of etcd that aren't in it.
func (r *run) otherMembers(w *world, n *Node, views map[*Node]*etcdStatus) []RecoveryMember {
	out := []RecoveryMember{}
	for _, m := range r.spec.ControlPlane() {
		if m == n {
			continue
		}
		o := RecoveryMember{Host: m.Hostname, State: "data"}
		switch v := views[m]; {
		case w.facts[m.Hostname] == nil:
			o.State = "silent"
		case !w.member(m) && !w.unmarked(m):
			o.State = "empty"
		case v != nil:
			o.Revision = v.revision
		}
		out = append(out, o)
	}
	if v := views[n]; v != nil && v.view != nil {
		for _, m := range v.view.members {
			if !m.Learner && !slices.ContainsFunc(r.spec.Nodes, m.is) {
				out = append(out, RecoveryMember{Host: m.String(), State: "silent"})
			}
		}
	}
	return out
}

// recovering returns the machine on which a recovery was interrupted, or nil.
func (w *world) recovering() *Node {
	for _, n := range w.want.ControlPlane() {
		if w.of(n, phaseInit).Value("recovering") == "yes" {
			return n
		}
	}
	return nil
}

// refuseRecovery refuses a run if a recovery was interrupted.
func (w *world) refuseRecovery() error {
	n := w.recovering()
	if n == nil {
		return nil
	}
	return hint.Errorf(recoverAgain+n.Hostname, "a recovery of etcd from %s was interrupted", n.Hostname)
}

// etcdStatus is a member's report on itself, which it gives even without a quorum.
type etcdStatus struct {
	view     *etcdView
	revision int64
}

func (r *run) etcdStatus(ctx context.Context, n *Node) (*etcdStatus, error) {
	res, err := r.read(ctx, n, phaseRecover, "look", etcdScript+"e_look\n")
	if err != nil {
		return nil, err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return nil, err
	}
	out := &etcdStatus{view: readMembers(a)}
	var said struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if json.Unmarshal(decoded(a.Value("etcdstatus")), &said) == nil {
		out.revision, _ = strconv.ParseInt(said.Header.Revision, 10, 64) // a missing revision counts like a missing answer
	}
	return out, nil
}

// recoverEtcd makes a member of etcd the only one, and reads the machines' state again. The others join in the next phases.
func (r *run) recoverEtcd(ctx context.Context, w *world, nodes []*Node, ro RecoverOptions) (*world, []Change, error) {
	if _, err := r.recovery(ctx, w, ro); err != nil {
		return nil, nil, err
	}
	n, err := r.spec.Node(ro.FromMember)
	if err != nil {
		return nil, nil, err
	}
	c := Change{Host: n.Hostname, Phase: phaseRecover, Action: "run", Target: recoverTarget, Detail: "it continues alone"}
	start := r.opts.Clock()
	r.emit(Event{Kind: EventPhaseStarted, Host: n.Hostname, Phase: phaseRecover, Changes: 1})
	body := r.spec.selfAPI(n) + etcdScript + recoverScript + r.spec.etcdFolder() + fmt.Sprintf("v_check\nv_away %s\nv_force\nv_back\n", shell.Quote(n.HostIP))
	if _, err := r.script(ctx, n, phaseRecover, "apply", body); err != nil {
		return nil, nil, fmt.Errorf("recover etcd on %s: %w", n.Hostname, err)
	}
	r.mu.Lock()
	r.changes[n.Hostname]++
	r.mu.Unlock()
	r.emit(Event{Kind: EventChanged, Host: n.Hostname, Phase: phaseRecover, Change: &c})
	r.emit(Event{Kind: EventPhaseDone, Host: n.Hostname, Phase: phaseRecover, Changes: 1, Elapsed: r.opts.Clock().Sub(start)})
	again, err := r.survey(ctx, r.reached(nodes))
	return again, []Change{c}, err
}

func (s *Spec) etcdFolder() string {
	return fmt.Sprintf("ETCD_DIR=%s\n", shell.Quote(strings.TrimSuffix(s.etcdData(), "/")))
}

// UndoRecovery undoes a recovery from a member that was interrupted or failed: it restores the member's data and its etcd.
func UndoRecovery(ctx context.Context, s *Spec, o Options, from string) error {
	r := newRun(s, o)
	defer r.close()
	n, err := s.Node(from)
	if err != nil {
		return err
	}
	r.started = o.Clock()
	r.emit(Event{Kind: EventRunStarted, Message: "cluster recover --undo", Hosts: []string{n.Hostname}, Phases: []string{phaseRecover}})
	if err := r.connect(ctx, s.ControlPlane()); err != nil {
		return err
	}
	held, unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	w, err := r.survey(held, s.ControlPlane())
	if err != nil {
		return err
	}
	if w.recovering() != n {
		return hint.Errorf("see the state of the masters: paictl cluster status", "no recovery from %s was interrupted", n.Hostname)
	}
	err = r.tell(held, n, phaseRecover, func(ctx context.Context, n *Node) ([]Change, error) {
		_, err := r.script(ctx, n, phaseRecover, "undo", recoverScript+s.etcdFolder()+"v_undo\n")
		return []Change{{Action: "restore", Target: "etcd's data and manifest", Detail: "as they were before the recovery"}}, err
	})
	if err != nil {
		return err
	}
	r.emit(Event{Kind: EventHostDone, Host: n.Hostname})
	return nil
}
