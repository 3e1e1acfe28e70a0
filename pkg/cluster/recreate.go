package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
)

const phaseReset = "reset"

// Loss lists the members and objects that are lost when a cluster is made again.
type Loss struct {
	// Members are the machines that belong to the cluster, by host name.
	Members []string `json:"members"`
	// API is up if the cluster could be asked for its objects, otherwise down.
	API string `json:"api"`
	// Objects counts the objects of the most telling kinds.
	Objects []KindCount `json:"objects,omitempty"`
}

// KindCount is how many objects of a kind a cluster has.
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

// Recreate removes all machines from their cluster, and makes a new one on them.
func Recreate(ctx context.Context, s *Spec, o Options) ([]Change, error) {
	r := newRun(s, o)
	defer r.close()
	changes, err := r.converge(ctx, "cluster recreate", phaseReset, func(ctx context.Context, w *world, nodes []*Node) (*world, []Change, error) {
		w, changes, err := r.resetAll(ctx, w, nodes)
		if err == nil {
			err = w.refuseRecovery()
		}
		return w, changes, err
	})
	if refused, is := errors.AsType[*PreflightError](err); is {
		refused.Reset = refused.Repaired
	}
	return changes, err
}

// WhatIsLost asks the machines for the loss that Recreate would cause. It changes nothing, and emits no events.
func WhatIsLost(ctx context.Context, s *Spec, o Options) (Loss, error) {
	o.DryRun, o.Sink = true, silent{}
	r := newRun(s, o)
	defer r.close()
	if err := r.connect(ctx, s.Nodes); err != nil {
		return Loss{}, err
	}
	w, err := r.survey(ctx, s.Nodes)
	if err != nil {
		return Loss{}, err
	}
	return r.loss(ctx, w)
}

type silent struct{}

func (silent) Emit(Event) {}

// loss asks the leader for the objects in the cluster.
func (r *run) loss(ctx context.Context, w *world) (Loss, error) {
	l := Loss{API: "down", Members: []string{}}
	for _, n := range r.spec.Nodes {
		if w.member(n) {
			l.Members = append(l.Members, n.Hostname)
		}
	}
	if !w.healthy(w.leader) {
		return l, nil
	}
	res, err := r.read(ctx, w.leader, phaseReset, "look", r.spec.selfAPI(w.leader)+`
for k in nodes namespaces pods secrets persistentvolumes frameworks.frameworkcontroller.microsoft.com; do
	n=$(self get "$k" -A -o name --request-timeout=30s 2>/dev/null | wc -l) || n=0
	printf 'count\t%s\t%s\n' "${k%%.*}" "$n"
done
`)
	if err != nil {
		return l, err
	}
	a, err := answer.Parse(res.Stdout)
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

// resetAll removes all machines from their cluster, and surveys them again. In a dry run it only
// reports what it would change, and returns the world as it would be.
func (r *run) resetAll(ctx context.Context, w *world, nodes []*Node) (*world, []Change, error) {
	if len(r.opts.Limit)+len(r.only) > 0 {
		return nil, nil, hint.Errorf("remove --limit and --phases", "recreate works only on the whole cluster")
	}
	for _, n := range r.spec.ControlPlane() {
		if w.facts[n.Hostname] == nil {
			return nil, nil, hint.Errorf("repair it, or remove it from layout.yaml if it is gone permanently",
				"%s of the control plane does not answer: it would continue as the old cluster", n.Hostname)
		}
	}
	behind, err := w.leftBehind()
	if err != nil {
		return nil, nil, err
	}
	w.findings = behind
	if findings := r.check(w, nodes); slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Severity == preflight.SeverityError && f.Check != "cluster" }) {
		return nil, nil, r.refuse(findings)
	}
	changes, machines := w.resets()
	if r.opts.DryRun {
		w.forgotten = true
		w.elect()
		r.decide(w)
		return w, changes, nil
	}
	errs := r.each(ctx, machines, r.reset)
	if err := r.setAsideAll(ctx, phaseReset, errs); err != nil {
		return nil, nil, err
	}
	for _, n := range r.spec.ControlPlane() {
		if errs[n] != nil {
			// A second cluster beside the remains of the first would be worse than no cluster.
			return nil, nil, fmt.Errorf("reset %s: %w", n.Hostname, errs[n])
		}
	}
	again, err := r.survey(ctx, r.reached(nodes))
	return again, changes, err
}

// resets returns the machines that belong to a cluster, or did, and the changes to make there.
func (w *world) resets() ([]Change, []*Node) {
	changes, nodes := []Change{}, []*Node(nil)
	for _, n := range w.want.Nodes {
		_, left := w.of(n, phaseJoin).Row("left")
		if w.member(n) || left || w.of(n, phaseJoin).Value("once") == "yes" {
			nodes = append(nodes, n)
			changes = append(changes, resetChange(n))
		}
	}
	return changes, nodes
}

func resetChange(n *Node) Change {
	return Change{Host: n.Hostname, Phase: phaseReset, Action: "run", Target: "kubeadm reset", Detail: "it leaves its cluster"}
}

// reset removes one machine from its cluster in any state of the cluster. It doesn't ask etcd's
// other members, since they are removed, too.
func (r *run) reset(ctx context.Context, n *Node) error {
	start := r.opts.Clock()
	r.emit(Event{Kind: EventPhaseStarted, Host: n.Hostname, Phase: phaseReset, Changes: 1})
	if _, err := r.script(ctx, n, phaseReset, "apply", kubeadmScript+"ALONE=1\n"+r.spec.clear()); err != nil {
		return err
	}
	c := resetChange(n)
	r.mu.Lock()
	r.changes[n.Hostname]++
	r.mu.Unlock()
	r.emit(Event{Kind: EventChanged, Host: n.Hostname, Phase: phaseReset, Change: &c})
	r.emit(Event{Kind: EventPhaseDone, Host: n.Hostname, Phase: phaseReset, Changes: 1, Elapsed: r.opts.Clock().Sub(start)})
	return nil
}
