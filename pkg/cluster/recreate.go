package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
)

const phaseReset = "reset"

// Loss describes what is lost when a cluster is created again: its members and objects.
type Loss struct {
	// Loss lists the members and objects that are lost when a cluster is created again.
	Members []string `json:"members"`
	// API is "up" if the API server responded, and otherwise "down".
	API string `json:"api"`
	// Objects holds the number of objects of the most important kinds.
	Objects []KindCount `json:"objects,omitempty"`
}

// KindCount is the number of objects of a kind in a cluster.
type KindCount struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

func (l Loss) String() string {
	members := cmp.Or(strings.Join(l.Members, ", "), "none is a member of one")
	if l.API != "up" {
		return fmt.Sprintf("These machines leave their cluster: %s.\nIts API does not answer, so its objects can't be listed. All of them are deleted permanently.", members)
	}
	var counts []string
	for _, o := range l.Objects {
		counts = append(counts, fmt.Sprintf("%d %s", o.Count, o.Kind))
	}
	return fmt.Sprintf("These machines leave their cluster: %s.\nDeleted permanently, with etcd's data: %s, and all other objects.\n"+
		"All pods are stopped. The folders with the services' data stay on the machines.", members, strings.Join(counts, ", "))
}

// Recreate removes all machines from their cluster and creates a new cluster on them.
func Recreate(ctx context.Context, s *engine.Spec, o engine.Options) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	changes, err := converge(ctx, r, "cluster recreate", phaseReset, func(ctx context.Context, w *engine.World, nodes []*engine.Node) (*engine.World, []engine.Change, error) {
		w, changes, err := resetAll(ctx, r, w, nodes)
		if err == nil {
			err = refuseRecovery(w)
		}
		return w, changes, err
	})
	if refused, is := errors.AsType[*engine.PreflightError](err); is {
		refused.Reset = refused.Repaired
	}
	return changes, err
}

// PreviewRecreate reads from the machines which members and objects Recreate would delete. It changes nothing and emits no events.
func PreviewRecreate(ctx context.Context, s *engine.Spec, o engine.Options) (Loss, error) {
	o.DryRun, o.Sink = true, silent{}
	r := engine.NewRun(s, o)
	defer r.Close()
	if err := connect(ctx, r, s.Nodes); err != nil {
		return Loss{}, err
	}
	w, err := survey(ctx, r, s.Nodes)
	if err != nil {
		return Loss{}, err
	}
	return loss(ctx, r, w)
}

type silent struct{}

func (silent) Emit(engine.Event) {}

// loss returns the members of the cluster, and the numbers of objects that the leader's API server reports.
func loss(ctx context.Context, r *engine.Run, w *engine.World) (Loss, error) {
	l := Loss{API: "down", Members: []string{}}
	for _, n := range r.Spec.Nodes {
		if w.Member(n) {
			l.Members = append(l.Members, n.Hostname)
		}
	}
	if !w.Healthy(w.Leader) {
		return l, nil
	}
	a, err := engine.Answer(r.Read(ctx, w.Leader, phaseReset, "look", r.Spec.SelfAPI(w.Leader)+`
for k in nodes namespaces pods secrets persistentvolumes frameworks.frameworkcontroller.microsoft.com; do
	n=$(self get "$k" -A -o name --request-timeout=30s 2>/dev/null | wc -l) || n=0
	printf 'count\t%s\t%s\n' "${k%%.*}" "$n"
done
`))
	if err != nil {
		return l, err
	}
	l.API = "up"
	for _, f := range a.All("count") {
		if len(f) == 2 {
			n, _ := strconv.Atoi(strings.TrimSpace(f[1]))
			l.Objects = append(l.Objects, KindCount{Kind: strings.Replace(f[0], "frameworks", "jobs", 1), Count: n})
		}
	}
	return l, nil
}

// resetAll removes all machines from their cluster, and surveys the machines again. In a dry run, it only returns the changes and the resulting
// state.
func resetAll(ctx context.Context, r *engine.Run, w *engine.World, nodes []*engine.Node) (*engine.World, []engine.Change, error) {
	if len(r.Opts.Limit)+len(r.Only) > 0 {
		return nil, nil, hint.Errorf("remove --limit and --phases", "recreate works only on the whole cluster")
	}
	for _, n := range r.Spec.ControlPlane() {
		if w.Facts[n.Hostname] == nil {
			return nil, nil, hint.Errorf("repair it, or remove it from layout.yaml if it is gone permanently",
				"%s of the control plane does not answer: it would continue as the old cluster", n.Hostname)
		}
	}
	behind, err := w.UnlistedMasters()
	if err != nil {
		return nil, nil, err
	}
	w.Findings = behind
	if findings := phases.Check(r, w, nodes); slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Severity == preflight.SeverityError && f.Check != "cluster" }) {
		return nil, nil, refuse(r, findings)
	}
	changes, machines := resets(w)
	if r.Opts.DryRun {
		w.NoMembers = true
		w.Elect()
		decide(r, w)
		return w, changes, nil
	}
	errs := r.Each(ctx, machines, func(ctx context.Context, n *engine.Node) error { return reset(ctx, r, n) })
	if err := r.SetAsideAll(ctx, phaseReset, errs); err != nil {
		return nil, nil, err
	}
	for _, n := range r.Spec.ControlPlane() {
		if errs[n] != nil {
			// After an incomplete reset, "cluster up" would create a second cluster beside the remains of the old cluster.
			return nil, nil, fmt.Errorf("reset %s: %w", n.Hostname, errs[n])
		}
	}
	again, err := survey(ctx, r, r.Reached(nodes))
	return again, changes, err
}

// resets returns the machines that belong or once belonged to a cluster. It also returns the changes that remove these machines.
func resets(w *engine.World) ([]engine.Change, []*engine.Node) {
	changes, nodes := []engine.Change{}, []*engine.Node(nil)
	for _, n := range w.Want.Nodes {
		_, left := w.Of(n, engine.PhaseJoin).Row("left")
		if w.Member(n) || left || w.Of(n, engine.PhaseJoin).Value("once") == "yes" {
			nodes = append(nodes, n)
			changes = append(changes, resetChange(n))
		}
	}
	return changes, nodes
}

func resetChange(n *engine.Node) engine.Change {
	return engine.Change{Host: n.Hostname, Phase: phaseReset, Action: "run", Target: "kubeadm reset", Detail: "it leaves its cluster"}
}

// reset removes one machine from its cluster, in any state of the cluster. It doesn't contact the other members of etcd, because all members are
// removed.
func reset(ctx context.Context, r *engine.Run, n *engine.Node) error {
	start := r.Opts.Clock()
	r.Emit(engine.Event{Kind: engine.EventPhaseStarted, Host: n.Hostname, Phase: phaseReset, Changes: 1})
	if _, err := r.Script(ctx, n, phaseReset, "apply", phases.KubeadmScript+"ALONE=1\n"+phases.Clear(r.Spec)); err != nil {
		return err
	}
	c := resetChange(n)
	r.Mu.Lock()
	r.Changes[n.Hostname]++
	r.Mu.Unlock()
	r.Emit(engine.Event{Kind: engine.EventChanged, Host: n.Hostname, Phase: phaseReset, Change: &c})
	r.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: n.Hostname, Phase: phaseReset, Changes: 1, Elapsed: r.Opts.Clock().Sub(start)})
	return nil
}
