package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
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

// Recovery describes the effect of a recovery, in which one member of etcd continues alone because etcd has no quorum. Revisions are revisions of
// etcd.
type Recovery struct {
	Member string `json:"member"`
	// Revision is the last revision in the member's data, or 0 if etcd doesn't report it.
	Revision int64            `json:"revision,omitempty"`
	Others   []RecoveryMember `json:"others"`
}

// RecoveryMember is another machine of the control plane.
type RecoveryMember struct {
	Host string `json:"host"`
	// State is "silent" if the machine doesn't respond, "empty" if the machine has no etcd data, and otherwise "data".
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

// RecoverOptions configure Recover.
type RecoverOptions struct {
	// FromMember is the machine whose etcd continues alone.
	FromMember string
	// Force allows a recovery from a member whose data is older than that of another member. It also allows a recovery while etcd may have a quorum.
	Force bool
	// Fix allows preflight to execute the safe repairs.
	Fix bool
}

// Recover makes the etcd of one machine continue alone. It then runs the phases of Up, in which the other members join that etcd.
func Recover(ctx context.Context, s *engine.Spec, o engine.Options, ro RecoverOptions) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	r.MayFix = ro.Fix
	return converge(ctx, r, "cluster recover", phaseRecover, func(ctx context.Context, w *engine.World, nodes []*engine.Node) (*engine.World, []engine.Change, error) {
		if err := refuseRestore(r, w); err != nil {
			return nil, nil, err
		}
		return recoverEtcd(ctx, r, w, nodes, ro)
	})
}

// PreviewRecover reads from the machines which effect Recover would have. It changes nothing and emits no events.
func PreviewRecover(ctx context.Context, s *engine.Spec, o engine.Options, ro RecoverOptions) (Recovery, error) {
	o.DryRun, o.Sink = true, silent{}
	r := engine.NewRun(s, o)
	defer r.Close()
	if err := connect(ctx, r, s.ControlPlane()); err != nil {
		return Recovery{}, err
	}
	w, err := survey(ctx, r, s.ControlPlane())
	if err != nil {
		return Recovery{}, err
	}
	return recovery(ctx, r, w, ro)
}

// recovery returns the effect of a recovery, or an error if the recovery must not begin.
func recovery(ctx context.Context, r *engine.Run, w *engine.World, ro RecoverOptions) (Recovery, error) {
	out := Recovery{}
	if len(r.Opts.Limit)+len(r.Only) > 0 {
		return out, hint.Errorf("remove --limit and --phases", "recover works only on the whole cluster")
	}
	n, err := r.Spec.Node(ro.FromMember)
	if err != nil {
		return out, err
	}
	out.Member = n.Hostname
	begun := recovering(w)
	switch {
	case !n.ControlPlane:
		return out, hint.Errorf("name a master", "%s is not a machine of the control plane", n.Hostname)
	case w.Facts[n.Hostname] == nil:
		return out, hint.Errorf("repair it, or name another master", "%s does not answer", n.Hostname)
	case begun != nil && begun != n:
		return out, hint.Errorf(recoverAgain+begun.Hostname+"; or take it back: the same with --undo", "a recovery from %s was interrupted", begun.Hostname)
	case begun == nil && !w.Member(n):
		return out, hint.Errorf("name a master that is a member; without one: paictl cluster restore", "%s is not a member of the cluster", n.Hostname)
	}
	views := map[*engine.Node]*etcdStatus{}
	have := 0
	for _, m := range r.Spec.ControlPlane() {
		if w.Facts[m.Hostname] == nil {
			continue
		}
		if w.Member(m) || w.Unmarked(m) {
			have++
		}
		if m == begun {
			continue
		}
		v, err := askEtcd(ctx, r, m)
		if err != nil {
			return out, err
		}
		if v.view != nil && v.view.Quorum && v.view.Has(m) {
			return out, hasQuorum(w, m, begun)
		}
		views[m] = v
	}
	out.Others = otherMembers(r, w, n, views)
	if views[n] != nil {
		out.Revision = views[n].revision
	}
	// Members with data may just be starting. Until etcd has a quorum, it doesn't respond to requests.
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

// hasQuorum returns an error if m reports that etcd has a quorum, because a recovery isn't needed then.
func hasQuorum(w *engine.World, m, begun *engine.Node) error {
	switch {
	case begun == nil:
		return hint.Errorf("masters that are missing join again by paictl cluster up; one that is permanently gone: paictl cluster recover --dead",
			"etcd has a quorum, says %s: there is nothing to recover", m.Hostname)
	case w.Of(begun, engine.PhaseInit).Value("forced") == "yes":
		return hint.Errorf(fmt.Sprintf("decide which one stays: to keep that of %s: %s%s --undo; to keep that of %s: switch %s off first", m.Hostname, recoverAgain, begun.Hostname, begun.Hostname, m.Hostname),
			"there are two clusters: %s says that etcd has a quorum, and %s was made to continue alone", m.Hostname, begun.Hostname)
	}
	return hint.Errorf("take the recovery back: paictl cluster recover --from-member "+begun.Hostname+" --undo",
		"etcd has a quorum again, says %s: there is nothing to recover", m.Hostname)
}

// otherMembers returns the other masters of the layout, and members of etcd that aren't in the layout.
func otherMembers(r *engine.Run, w *engine.World, n *engine.Node, views map[*engine.Node]*etcdStatus) []RecoveryMember {
	out := []RecoveryMember{}
	for _, m := range r.Spec.ControlPlane() {
		if m == n {
			continue
		}
		o := RecoveryMember{Host: m.Hostname, State: "data"}
		switch v := views[m]; {
		case w.Facts[m.Hostname] == nil:
			o.State = "silent"
		case !w.Member(m) && !w.Unmarked(m):
			o.State = "empty"
		case v != nil:
			o.Revision = v.revision
		}
		out = append(out, o)
	}
	if v := views[n]; v != nil && v.view != nil {
		for _, m := range v.view.Members {
			if !m.Learner && !slices.ContainsFunc(r.Spec.Nodes, m.Is) {
				out = append(out, RecoveryMember{Host: m.String(), State: "silent"})
			}
		}
	}
	return out
}

// recovering returns the machine on which a recovery was interrupted, or nil.
func recovering(w *engine.World) *engine.Node {
	for _, n := range w.Want.ControlPlane() {
		if w.Of(n, engine.PhaseInit).Value("recovering") == "yes" {
			return n
		}
	}
	return nil
}

func refuseRecovery(w *engine.World) error {
	n := recovering(w)
	if n == nil {
		return nil
	}
	return hint.Errorf(recoverAgain+n.Hostname, "a recovery of etcd from %s was interrupted", n.Hostname)
}

// etcdStatus is an etcd member's own status. A member reports it even without a quorum.
type etcdStatus struct {
	view     *engine.EtcdView
	revision int64
}

func askEtcd(ctx context.Context, r *engine.Run, n *engine.Node) (*etcdStatus, error) {
	a, err := engine.Answer(r.Read(ctx, n, phaseRecover, "look", engine.EtcdScript+"e_look\n"))
	if err != nil {
		return nil, err
	}
	out := &etcdStatus{view: engine.ReadMembers(a)}
	var said struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if json.Unmarshal(engine.Decoded(a.Value("etcdstatus")), &said) == nil {
		out.revision, _ = strconv.ParseInt(said.Header.Revision, 10, 64) // a missing revision counts like a missing response
	}
	return out, nil
}

// recoverEtcd makes one machine the only member of etcd. It then reads the state of the machines again.
func recoverEtcd(ctx context.Context, r *engine.Run, w *engine.World, nodes []*engine.Node, ro RecoverOptions) (*engine.World, []engine.Change, error) {
	if _, err := recovery(ctx, r, w, ro); err != nil {
		return nil, nil, err
	}
	n, err := r.Spec.Node(ro.FromMember)
	if err != nil {
		return nil, nil, err
	}
	c := engine.Change{Host: n.Hostname, Phase: phaseRecover, Action: "run", Target: recoverTarget, Detail: "it continues alone"}
	start := r.Opts.Clock()
	r.Emit(engine.Event{Kind: engine.EventPhaseStarted, Host: n.Hostname, Phase: phaseRecover, Changes: 1})
	body := r.Spec.SelfAPI(n) + engine.EtcdScript + recoverScript + etcdFolder(r.Spec) + fmt.Sprintf("v_check\nv_away %s\nv_force\nv_back\n", shell.Quote(n.HostIP))
	if _, err := r.Script(ctx, n, phaseRecover, "apply", body); err != nil {
		return nil, nil, fmt.Errorf("recover etcd on %s: %w", n.Hostname, err)
	}
	r.Mu.Lock()
	r.Changes[n.Hostname]++
	r.Mu.Unlock()
	r.Emit(engine.Event{Kind: engine.EventChanged, Host: n.Hostname, Phase: phaseRecover, Change: &c})
	r.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: n.Hostname, Phase: phaseRecover, Changes: 1, Elapsed: r.Opts.Clock().Sub(start)})
	again, err := survey(ctx, r, r.Reached(nodes))
	return again, []engine.Change{c}, err
}

func etcdFolder(s *engine.Spec) string {
	return fmt.Sprintf("ETCD_DIR=%s\n", shell.Quote(strings.TrimSuffix(phases.EtcdData(s), "/")))
}

// UndoRecovery undoes a recovery that was interrupted or has failed. It restores the data of the member and the manifest of its etcd.
func UndoRecovery(ctx context.Context, s *engine.Spec, o engine.Options, from string) error {
	r := engine.NewRun(s, o)
	defer r.Close()
	n, err := s.Node(from)
	if err != nil {
		return err
	}
	r.Started = o.Clock()
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster recover --undo", Hosts: []string{n.Hostname}, Phases: []string{phaseRecover}})
	if err := connect(ctx, r, s.ControlPlane()); err != nil {
		return err
	}
	held, unlock, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	w, err := survey(held, r, s.ControlPlane())
	if err != nil {
		return err
	}
	if recovering(w) != n {
		return hint.Errorf("see the state of the masters: paictl cluster status", "no recovery from %s was interrupted", n.Hostname)
	}
	err = tell(held, r, n, phaseRecover, func(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
		_, err := r.Script(ctx, n, phaseRecover, "undo", recoverScript+etcdFolder(s)+"v_undo\n")
		return []engine.Change{{Action: "restore", Target: "etcd's data and manifest", Detail: "as they were before the recovery"}}, err
	})
	if err != nil {
		return err
	}
	r.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
	return nil
}
