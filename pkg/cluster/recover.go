package cluster

import (
	"cmp"
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

// Recovery is what becomes of a cluster whose etcd has lost its quorum when one member goes on alone.
type Recovery struct {
	Member string `json:"member"`
	// Revision is how far the member's data goes, 0 where its etcd doesn't say.
	Revision int64            `json:"revision,omitempty"`
	Others   []RecoveryMember `json:"others"`
}

// RecoveryMember is another machine of the control plane.
type RecoveryMember struct {
	Host string `json:"host"`
	// State is "silent" where the machine doesn't answer, "empty" where it has no data of etcd, "data" where it has.
	State    string `json:"state"`
	Revision int64  `json:"revision,omitempty"`
}

func (v Recovery) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "etcd has lost its quorum. %s continues alone, with the data that it has", v.Member)
	if v.Revision > 0 {
		fmt.Fprintf(&b, " (up to revision %d)", v.Revision)
	}
	b.WriteString(". What it did not receive before is lost.\n")
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

// WhatRecovers asks the machines what Options.FromMember would do. It changes nothing, and emits no events.
func WhatRecovers(ctx context.Context, s *Spec, o Options) (Recovery, error) {
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
	return r.recovery(ctx, w)
}

// recovery refuses a recovery that must not begin, and says what it would do.
func (r *run) recovery(ctx context.Context, w *world) (Recovery, error) {
	out := Recovery{}
	if len(r.opts.Limit)+len(r.opts.Phases) > 0 {
		return out, hint.Errorf("remove --limit and --phases", "recover works only on the whole cluster")
	}
	n, err := r.spec.Node(r.opts.FromMember)
	if err != nil {
		return out, err
	}
	out.Member = n.Hostname
	switch {
	case !n.ControlPlane:
		return out, hint.Errorf("name a master", "%s is no machine of the control plane", n.Hostname)
	case w.facts[n.Hostname] == nil:
		return out, hint.Errorf("repair it, or name another master", "%s does not answer", n.Hostname)
	case w.recovering() == n:
		// It was interrupted: etcd is away, and no one else may have a quorum since.
		out.Others = r.otherMembers(ctx, w, n, nil)
		return out, nil
	case w.recovering() != nil:
		return out, hint.Errorf(recoverAgain+w.recovering().Hostname, "a recovery from %s was interrupted", w.recovering().Hostname)
	case !w.member(n):
		return out, hint.Errorf("name a master that is a member; without one: paictl cluster restore", "%s is no member of the cluster", n.Hostname)
	}
	views := map[*Node]*etcdStatus{}
	for _, m := range w.members() {
		v, err := r.etcdStatus(ctx, m)
		if err != nil {
			return out, err
		}
		if v.view != nil && v.view.quorum && v.view.has(m) {
			return out, hint.Errorf("masters that are missing join again by paictl cluster up; one that is gone for good: paictl cluster recover --dead",
				"etcd has a quorum, says %s: there is nothing to recover", m.Hostname)
		}
		views[m] = v
	}
	out.Revision = views[n].revision
	out.Others = r.otherMembers(ctx, w, n, views)
	if best := slices.MaxFunc(out.Others, func(a, b RecoveryMember) int { return cmp.Compare(a.Revision, b.Revision) }); len(out.Others) > 0 && best.Revision > out.Revision && !r.opts.Force {
		return out, hint.Errorf("name "+best.Host+"; to continue with less anyway: --force", "%s has more than %s: its data goes up to revision %d, that of %s up to %d",
			best.Host, n.Hostname, best.Revision, n.Hostname, out.Revision)
	}
	return out, nil
}

func (r *run) otherMembers(_ context.Context, w *world, n *Node, views map[*Node]*etcdStatus) []RecoveryMember {
	out := []RecoveryMember{}
	for _, m := range r.spec.ControlPlane() {
		if m == n {
			continue
		}
		o := RecoveryMember{Host: m.Hostname, State: "data"}
		switch v := views[m]; {
		case w.facts[m.Hostname] == nil:
			o.State = "silent"
		case !w.member(m):
			o.State = "empty"
		case v != nil:
			o.Revision = v.revision
		}
		out = append(out, o)
	}
	return out
}

// recovering returns the machine on which a recovery was interrupted, nil where there is none.
func (w *world) recovering() *Node {
	for _, n := range w.spec.ControlPlane() {
		if w.of(n, phaseInit).Value("recovering") == "yes" {
			return n
		}
	}
	return nil
}

// etcdStatus is what one member says of itself, also without a quorum.
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
		out.revision, _ = strconv.ParseInt(said.Header.Revision, 10, 64) // one that says none is taken for one that says nothing
	}
	return out, nil
}

// recoverEtcd makes a member of etcd the only one, and looks at the machines again. The others join by what follows.
func (r *run) recoverEtcd(ctx context.Context, w *world, nodes []*Node) (*world, []Change, error) {
	if _, err := r.recovery(ctx, w); err != nil {
		return nil, nil, err
	}
	n, err := r.spec.Node(r.opts.FromMember)
	if err != nil {
		return nil, nil, err
	}
	c := Change{Host: n.Hostname, Phase: phaseRecover, Action: "run", Target: recoverTarget, Detail: "it continues alone"}
	start := r.opts.Clock()
	r.emit(Event{Kind: EventPhaseStarted, Host: n.Hostname, Phase: phaseRecover, Changes: 1})
	body := selfAPI(r.spec, n) + etcdScript + recoverScript + fmt.Sprintf("ETCD_DIR=%s\nv_away\nv_force\nv_back\n", shell.Quote(strings.TrimSuffix(r.spec.etcdData(), "/")))
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
