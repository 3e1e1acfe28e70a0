package cluster

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Phases of the command "node remove".
const (
	phaseDrain  = "drain"
	phaseMember = "etcd"
	phaseDelete = "delete"
)

// RemoveOptions configure RemoveNodes.
type RemoveOptions struct {
	// Force deletes pods even if a disruption budget or a missing owner forbids their eviction. It also removes nodes whose machines reject the
	// login.
	Force bool
	// DrainTimeout is the time limit for evicting the pods of a node; zero means 5 minutes.
	DrainTimeout time.Duration
	// Removed is called for each removed node while the run holds the cluster's lock. Calls aren't concurrent.
	Removed func(*engine.Node) error
}

// RemoveNodes removes the machines in Options.Limit from the cluster. It drains the nodes, removes masters from etcd, undoes paictl's changes on the
// machines, and deletes the nodes. It can also remove a machine that doesn't respond. Each step first checks whether it is already done. An
// interrupted run can therefore be repeated.
func RemoveNodes(ctx context.Context, s *engine.Spec, o engine.Options, ro RemoveOptions) error {
	r := engine.NewRun(s, o)
	defer r.Close()
	nodes, err := Removable(s, o.Limit)
	if err != nil {
		return err
	}
	if ro.DrainTimeout <= 0 {
		ro.DrainTimeout = 5 * time.Minute
	}
	u, err := newUndo(s, false)
	if err != nil {
		return err
	}
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "node remove", Hosts: hostnames(nodes),
		Phases: []string{phaseDrain, phaseMember, phaseDown, phaseDelete}})
	dead, err := reachForRemoval(ctx, r, nodes, ro.Force)
	if err != nil {
		return err
	}
	ctx, unlock, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if r.Leader, err = r.FindLeader(ctx, nodes); err != nil {
		return err
	}
	if err := cmp.Or(noLeader(r, nodes), keepsAddress(r, nodes)); err != nil {
		return err
	}
	m := &removal{Run: r, opts: ro, undo: u, dead: dead}
	if err := m.all(ctx, nodes); err != nil {
		return err
	}
	r.WarnAboutCopy(ctx)
	return r.Summary("node remove", nodes, nil)
}

// Removable returns the nodes with the given host names or addresses. It returns an error if the removal would leave no machine of the control
// plane.
func Removable(s *engine.Spec, names []string) ([]*engine.Node, error) {
	var nodes []*engine.Node
	for _, name := range names {
		n, err := s.Node(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("no machine to remove was named")
	}
	masters := s.ControlPlane()
	stay := slices.DeleteFunc(slices.Clone(masters), func(n *engine.Node) bool { return slices.Contains(nodes, n) })
	switch {
	case len(stay) == 0 && len(masters) == 1:
		return nil, hint.Errorf("to end the cluster: paictl cluster down", "%s is the only machine of the control plane: without it there is no cluster", masters[0].Hostname)
	case len(stay) == 0:
		return nil, hint.Errorf("to end the cluster: paictl cluster down", "these are all machines of the control plane: without them there is no cluster")
	}
	return nodes, nil
}

// keepsAddress returns an error if a machine to remove has the address at which other machines use the API.
func keepsAddress(r *engine.Run, nodes []*engine.Node) error {
	k := r.Spec.Config.Kubernetes.Kubernetes
	for _, n := range nodes {
		if n.ControlPlane && k.LoadBalanceIP == n.HostIP && len(r.Spec.ControlPlane()) > 1 {
			return hint.Errorf("take the line load-balance-ip out of kubernetes-configuration.yaml, then run the same command again: with several masters each machine finds one by itself",
				"load-balance-ip in kubernetes-configuration.yaml is the address of %s: without that machine no master would have this address", n.Hostname)
		}
		if host, _, err := net.SplitHostPort(r.Spec.ConfiguredEndpoint()); err == nil && n.ControlPlane && (host == n.HostIP || host == n.Hostname) {
			return hint.Errorf("set api-endpoint: local in kubernetes-configuration.yaml (or the address of a load balancer in front of all masters), run paictl cluster up, then remove this one",
				"api-endpoint in kubernetes-configuration.yaml is an address of %s", n.Hostname)
		}
		if n.ControlPlane && r.Servers[r.Leader] == r.Spec.OwnEndpoint(n) {
			return hint.Errorf("set api-endpoint: local in kubernetes-configuration.yaml (or the address of a load balancer in front of all masters), run paictl cluster up, then remove this one",
				"%s has the address at which all machines use the API (%s)", n.Hostname, n.HostIP)
		}
	}
	return nil
}

// noLeader returns an error if no member of the control plane responds, but a cluster may exist. If no cluster exists, the run only undoes paictl's
// changes on the machines.
func noLeader(r *engine.Run, nodes []*engine.Node) error {
	if r.Leader != nil {
		return nil
	}
	for _, n := range r.Spec.ControlPlane() {
		if !slices.Contains(nodes, n) && r.Host(n) == nil {
			return hint.Errorf("repair it: paictl cluster status shows what is wrong with it",
				"no machine of the control plane that answers is a member of the cluster, and %s does not answer", n.Hostname)
		}
	}
	return nil
}

// reachForRemoval dials the machines to remove and the control plane. It returns the machines to remove that can't be changed, with the reasons. It
// returns an error if no remaining machine of the control plane responds.
func reachForRemoval(ctx context.Context, r *engine.Run, nodes []*engine.Node, force bool) (map[*engine.Node]error, error) {
	all := r.Reached(nodes)
	dead := map[*engine.Node]error{}
	var findings []preflight.Finding
	errs := r.Each(ctx, all, r.Dial)
	leads := slices.ContainsFunc(all, func(n *engine.Node) bool {
		return n.ControlPlane && errs[n] == nil && !slices.Contains(nodes, n)
	})
	for _, n := range all {
		err := errs[n]
		gone := errors.Is(err, ssh.ErrUnreachable)
		switch {
		case err == nil:
		case engine.IsCancel(ctx, err):
			return nil, context.Canceled
		case slices.Contains(nodes, n) && (gone || force):
			dead[n] = err
		case !slices.Contains(nodes, n) && gone && leads:
			r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: "connect", Message: err.Error(), Hint: hint.Of(err)})
		default:
			findings = append(findings, preflight.Finding{Host: n.Hostname, Check: "connect", Severity: preflight.SeverityError, Message: err.Error(), Remedy: hint.Of(err)})
		}
	}
	if len(findings) > 0 {
		return nil, refuse(r, findings)
	}
	return dead, nil
}

// removedMachines is an admission policy. It rejects a machine that was off when it was removed, and that tries to join again.
//
//go:embed files/removed-machines.yaml
var removedMachines []byte

type removal struct {
	*engine.Run
	opts RemoveOptions
	undo *undo
	dead map[*engine.Node]error
	// cluster reports whether a cluster exists. If it is false, the run only undoes paictl's changes on the machines.
	cluster bool
}

// all removes nodes one after the other, so that etcd doesn't lose two members at the same time. It cordons all nodes first. Otherwise the pods of
// one node could move to another node that is about to be removed.
func (m *removal) all(ctx context.Context, nodes []*engine.Node) error {
	m.cluster = m.Leader != nil
	if m.cluster {
		if err := m.cordon(ctx, nodes); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := m.node(ctx, n); err != nil {
			if engine.IsCancel(ctx, err) {
				return context.Cause(ctx)
			}
			m.SetAside(n, m.phaseOf(err), err)
		}
	}
	return nil
}

type phaseError struct {
	phase string
	error
}

func (e *phaseError) Unwrap() error { return e.error }

func (m *removal) phaseOf(err error) string {
	if p, ok := errors.AsType[*phaseError](err); ok {
		return p.phase
	}
	return phaseDelete
}

func (m *removal) cordon(ctx context.Context, nodes []*engine.Node) error {
	body := ""
	for _, n := range nodes {
		body += fmt.Sprintf("self get node %[1]s >/dev/null 2>&1 && self cordon %[1]s >/dev/null\n", shell.Quote(n.Hostname))
	}
	_, err := onLeader(ctx, m.Run, "remove/cordon", body+":\n", time.Minute)
	return err
}

// onLeader runs a script that changes the cluster on the leader. It doesn't take the machine's lock, because the script may wait long for pods to
// terminate and doesn't change the machine.
func onLeader(ctx context.Context, r *engine.Run, what, body string, limit time.Duration) (answer.Answer, error) {
	return engine.Answer(r.Exec(ctx, r.Leader, ssh.Script{Name: what, Mutates: true, Timeout: limit,
		Body: engine.PreludeScript + r.Spec.SelfAPI(r.Leader) + phases.RemoveScript + body}))
}

func (m *removal) node(ctx context.Context, n *engine.Node) error {
	steps := []struct {
		phase string
		skip  bool
		do    func(context.Context, *engine.Node) ([]engine.Change, error)
	}{
		{phaseDrain, !m.cluster, m.drain},
		{phaseMember, !m.cluster || !n.ControlPlane, m.member},
		{phaseDown, m.dead[n] != nil, m.giveBack},
		{phaseDelete, !m.cluster, m.delete},
	}
	for _, s := range steps {
		if s.skip {
			m.Emit(engine.Event{Kind: engine.EventPhaseSkipped, Host: n.Hostname, Phase: s.phase})
			continue
		}
		if err := tell(ctx, m.Run, n, s.phase, s.do); err != nil {
			return &phaseError{s.phase, err}
		}
	}
	if err := m.dead[n]; err != nil {
		m.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: phaseDown, Message: fmt.Sprintf("the machine could not be reset (%v): Kubernetes, its containers and their data are still on it", err),
			Hint: "if it comes back, the cluster refuses it, and paictl cluster status says so; to take it back: paictl node add; before other use: reinstall it"})
	}
	if m.opts.Removed != nil {
		if err := m.opts.Removed(n); err != nil {
			return err
		}
	}
	m.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
	return nil
}

// tell runs do and emits events about the given phase, which isn't a phase of "cluster up".
func tell(ctx context.Context, r *engine.Run, n *engine.Node, phase string, do func(context.Context, *engine.Node) ([]engine.Change, error)) error {
	start := r.Opts.Clock()
	r.Emit(engine.Event{Kind: engine.EventPhaseStarted, Host: n.Hostname, Phase: phase})
	done, err := do(ctx, n)
	for i := range done {
		done[i].Host, done[i].Phase = n.Hostname, phase
		r.Emit(engine.Event{Kind: engine.EventChanged, Host: n.Hostname, Phase: phase, Change: &done[i]})
	}
	r.Mu.Lock()
	r.Changes[n.Hostname] += len(done)
	r.Mu.Unlock()
	if err != nil {
		if !engine.IsCancel(ctx, err) {
			r.Emit(engine.Event{Kind: engine.EventPhaseFailed, Host: n.Hostname, Phase: phase, Error: err.Error(), Hint: hint.Of(err)})
		}
		return err
	}
	r.Emit(engine.Event{Kind: engine.EventPhaseDone, Host: n.Hostname, Phase: phase, Changes: len(done), Elapsed: r.Opts.Clock().Sub(start)})
	return nil
}

// drain evicts the pods of a node. If the node's machine is dead, drain deletes the pods without waiting.
func (m *removal) drain(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	force := 0
	switch {
	case m.dead[n] != nil:
		force = 2
	case m.opts.Force:
		force = 1
	}
	return evict(ctx, m.Run, n, force, m.opts.DrainTimeout)
}

// evict cordons a node and evicts its pods. If force is 1, evict deletes the pods regardless of disruption budgets. If force is 2, evict also doesn't
// wait until the pods have terminated.
func evict(ctx context.Context, r *engine.Run, n *engine.Node, force int, limit time.Duration) ([]engine.Change, error) {
	a, err := onLeader(ctx, r, "remove/drain", fmt.Sprintf("NODE=%s FORCE=%d SECONDS_MAX=%d\nr_drain\n", shell.Quote(n.Hostname), force, int(limit.Seconds())), limit+2*time.Minute)
	if err != nil {
		return nil, err
	}
	if stuck, ok := a.Row("stuck"); ok {
		return nil, stuckError(n, limit, stuck, engine.Decoded(a.Value("pods")), engine.Decoded(a.Value("budgets")))
	}
	if _, absent := a.Row("absent"); absent {
		return nil, nil
	}
	return []engine.Change{{Action: "drain", Target: "node " + n.Hostname, Detail: a.Value("drained") + " pods"}}, nil
}

func (m *removal) member(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	a, err := onLeader(ctx, m.Run, "remove/etcd", fmt.Sprintf("NODE=%s ADDRESS=%s LEADER=%s\nr_member\n", shell.Quote(n.Hostname), shell.Quote(n.HostIP), shell.Quote(m.Leader.Hostname)), 2*time.Minute)
	if err != nil {
		return nil, err
	}
	if id := a.Value("removed"); id != "" {
		return []engine.Change{{Action: "delete", Target: "etcd member " + n.Hostname, Detail: id}}, nil
	}
	return nil, nil
}

func (m *removal) giveBack(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	found, err := m.undo.ask(ctx, m.Run, n)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return m.undo.run(ctx, m.Run, n)
}

func (m *removal) delete(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	body := fmt.Sprintf("NODE=%s\n", shell.Quote(n.Hostname))
	var done []engine.Change
	if m.dead[n] != nil { // this must come first, because otherwise the kubelet could register its node again
		body += engine.Heredoc("r_bar", removedMachines)
		done = append(done, engine.Change{Action: "refuse", Target: "credentials of " + n.Hostname, Detail: "until it is added again"})
	}
	if _, err := onLeader(ctx, m.Run, "remove/delete", body+"r_unknown\nr_delete\n", 2*time.Minute); err != nil {
		return nil, err
	}
	return append(done, engine.Change{Action: "delete", Target: "node " + n.Hostname}), nil
}
