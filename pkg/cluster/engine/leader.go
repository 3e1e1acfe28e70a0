package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// The leader of a run is the control plane machine through which the run does the work for the whole cluster: join tickets, labels, the network's
// manifest. Any healthy member can be the leader, so no machine is special, and the order in layout.yaml doesn't matter.

// Member reports whether a machine answered that it belongs to a cluster that paictl made.
func (w *World) Member(n *Node) bool {
	return !w.Forgotten && w.Of(n, PhaseJoin).Value("member") == "yes"
}

// Members returns the control plane machines that are members, sorted by address.
func (w *World) Members() []*Node {
	return slices.DeleteFunc(w.Want.ControlPlane(), func(n *Node) bool { return !w.Member(n) })
}

// Healthy reports whether the API server of a control plane machine answered.
func (w *World) Healthy(n *Node) bool { return w.Cluster(n).Value("api") == "up" }

// Cluster returns the answer of a control plane machine's own API server, which all phases use.
func (w *World) Cluster(n *Node) answer.Answer { return w.Of(n, PhaseInit) }

// Founding reports whether this run makes a new cluster on the leader.
func (w *World) Founding() bool { return w.Leader != nil && !w.Member(w.Leader) }

// ControlPlane returns the control plane machines in the order in which they join and change their settings: the leader first, then the others by
// address.
func (w *World) ControlPlane() []*Node {
	out := []*Node{w.Leader}
	for _, n := range w.Want.ControlPlane() {
		if n != w.Leader {
			out = append(out, n)
		}
	}
	return out
}

// Elect chooses the leader. If no cluster exists, the leader is the machine on which the cluster will be made.
func (w *World) Elect() {
	members := w.Members()
	if len(members) == 0 {
		w.Leader = w.founder()
		w.settle("")
		return
	}
	// Machines with another CA belong to another cluster, which the checks report. The leader comes from the larger group.
	authorities := map[string]int{}
	for _, n := range members {
		authorities[w.Of(n, PhaseJoin).Value("ca")]++
	}
	w.Leader = slices.MinFunc(members, func(a, b *Node) int {
		return cmp.Or(
			cmp.Compare(authorities[w.Of(b, PhaseJoin).Value("ca")], authorities[w.Of(a, PhaseJoin).Value("ca")]),
			CompareBool(w.Healthy(b), w.Healthy(a)),
		)
	})
	w.settle(w.reachedAt())
}

// settle makes the decisions that depend on the cluster's state. reached is the address at which the members reach the API, or "".
func (w *World) settle(reached string) {
	d := *w.Want
	d.reached = reached
	d.SelfSigned, d.Unverified = w.certificates()
	w.Want = &d
}

// CompareBool orders false before true.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// reachedAt returns the HOST:PORT at which the members reach the API if it isn't the configured address yet: either the configuration names the
// address of a master that is about to join, or an upgrade is in progress, which doesn't move the address. Otherwise reachedAt returns "".
func (w *World) reachedAt() string {
	configured, _, _ := net.SplitHostPort(w.Want.ConfiguredEndpoint())
	now := strings.TrimPrefix(w.Of(w.Leader, PhaseJoin).Value("server"), "https://")
	if _, _, err := net.SplitHostPort(now); err != nil || now == w.Want.ConfiguredEndpoint() {
		return ""
	}
	if named := w.Want.Master(configured); w.Want.Upgrading || named != nil && w.Facts[named.Hostname] != nil && !w.Member(named) {
		return now
	}
	return ""
}

// founder returns the machine on which the cluster is made: a machine with an interrupted attempt, or else the machine with the lowest address.
func (w *World) founder() *Node {
	return slices.MinFunc(w.Want.ControlPlane(), func(a, b *Node) int {
		_, leftA := w.Of(a, PhaseJoin).Row("left")
		_, leftB := w.Of(b, PhaseJoin).Row("left")
		return cmp.Or(CompareBool(w.Concerns(b), w.Concerns(a)), CompareBool(leftB, leftA))
	})
}

// AgainstFounding returns findings that indicate an existing cluster, or a former one.
func (w *World) AgainstFounding() []preflight.Finding {
	var out []preflight.Finding
	for _, n := range w.Want.ControlPlane() {
		switch {
		case w.Facts[n.Hostname] == nil:
			out = append(out, preflight.Finding{
				Host: n.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
				Message: "the machine doesn't answer, and no other machine of the control plane is a member of a cluster: if a cluster exists, it is on this machine, and a second one must not be made",
				Remedy:  fmt.Sprintf("repair %s and run the same command again; only if it never was a member, remove it from layout.yaml", n.Hostname),
			})
		case w.Of(n, PhaseJoin).Value("once") == "yes":
			out = append(out, preflight.Finding{
				Host: n.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
				Message: lostMark,
				Remedy:  markAgain + "; to replace the cluster: paictl cluster recreate",
			})
		}
	}
	return append(out, w.orphans()...)
}

// orphans returns a finding if machines belong to a cluster, but no control plane machine does.
func (w *World) orphans() []preflight.Finding {
	var names []string
	for _, n := range w.Want.Nodes {
		if !n.ControlPlane && (w.Member(n) || w.Outside[n.Hostname]) {
			names = append(names, n.Hostname)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []preflight.Finding{{
		Host: names[0], Check: "control-plane", Severity: preflight.SeverityError,
		Message: fmt.Sprintf("%s of a cluster whose control plane is not on a master of layout.yaml", membersText(names)),
		Remedy:  "if another machine is its master, add it to layout.yaml; if the master's disk was lost and you no longer need the cluster: paictl cluster recreate",
	}}
}

func membersText(names []string) string {
	if len(names) == 1 {
		return "the machine is a member"
	}
	return fmt.Sprintf("the machine and %d others are members", len(names)-1)
}

// LookBeyond asks the machines outside of --limit whether they belong to a cluster, before a new cluster is made. It skips machines that don't
// answer.
func (r *Run) LookBeyond(ctx context.Context, w *World) error {
	var rest []*Node
	for _, n := range r.Spec.Nodes {
		if w.Facts[n.Hostname] == nil && !n.ControlPlane && !r.IsAside(n) {
			rest = append(rest, n)
		}
	}
	found := make(chan string, len(rest))
	r.Each(ctx, rest, func(ctx context.Context, n *Node) error {
		if err := r.Dial(ctx, n); err != nil {
			return err
		}
		res, err := r.Read(ctx, n, PhaseJoin, "member", DetectScript+"d_member\n")
		if err != nil {
			return err
		}
		if a, err := answer.Parse(res.Stdout); err == nil && a.Value("member") == "yes" {
			found <- n.Hostname
		}
		return nil
	})
	close(found)
	for name := range found {
		w.Outside[name] = true
	}
	return ctx.Err()
}

// FindLeader chooses the leader for a run without a survey: a control plane machine that is a member and whose API server answers, or else any
// member. It returns nil if no machine that answered is a member of a cluster. It never chooses a machine in without.
func (r *Run) FindLeader(ctx context.Context, without []*Node) (*Node, error) {
	machines := slices.DeleteFunc(r.Alive(r.Spec.ControlPlane()), func(n *Node) bool { return slices.Contains(without, n) })
	said := make(chan leaderAnswer, len(machines))
	errs := r.Each(ctx, machines, func(ctx context.Context, n *Node) error {
		res, err := r.Read(ctx, n, "leader", "look", r.Spec.SelfAPI(n)+`
[ -f "$S/member" ] && [ -f "$KUBECONFIG" ] || exit 0
if self get --raw /readyz --request-timeout=10s >/dev/null 2>&1; then echo ready; else echo member; fi
sed -n 's/^ *server: *//p' "$KUBECONFIG" | head -n 1
`)
		state, server, _ := strings.Cut(strings.TrimSpace(string(res.Stdout)), "\n")
		said <- leaderAnswer{n, strings.TrimPrefix(server, "https://"), state}
		return err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	close(said)
	states := map[*Node]string{}
	for a := range said {
		states[a.node] = a.state
		r.Servers[a.node] = a.server
	}
	for _, want := range []string{"ready", "member"} {
		for _, n := range machines {
			if states[n] == want {
				return n, nil
			}
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(errs), func(a, b *Node) int { return cmp.Compare(a.Hostname, b.Hostname) }) {
		return nil, errs[n]
	}
	return nil, nil
}

type leaderAnswer struct {
	node          *Node
	server, state string
}

// SelfAPI returns shell code with which a control plane machine queries its own API server: a load balancer in front of all API servers may be
// down, or forward to another one.
func (s *Spec) SelfAPI(n *Node) string {
	return fmt.Sprintf("\nself() { kubectl --server=%s \"$@\"; }\n",
		shell.Quote("https://"+s.OwnEndpoint(n)))
}

// certificates decides, once the leader is known, whether kubelets sign their own certificates instead of getting them from the cluster, and
// whether API servers don't verify these certificates. In a new cluster both are false. An existing cluster stays unchanged until a run on all
// machines and phases, which isn't an upgrade, changes it.
func (w *World) certificates() (selfSigned, unverified bool) {
	_, there := w.Cluster(w.Leader).Row("approver")
	verifies := slices.ContainsFunc(w.Members(), func(n *Node) bool { return w.Of(n, PhaseApprover).Value("verifies") == "yes" })
	moves := w.Whole && !w.Want.Upgrading
	switch {
	case w.Want.Config.Kubernetes.Kubernetes.Extra.Kubelet["serverTLSBootstrap"] == false: // the configuration asks for self-signed certificates
		return true, true
	case w.Founding():
		return false, false
	case !w.Healthy(w.Leader): // without an answer of the API, nothing else is known
		return !verifies, !verifies
	}
	// If API servers verify kubelets, the approver is missing by mistake or wasn't found in time, so the API servers keep verifying.
	selfSigned = !there && !verifies && !moves
	return selfSigned, !verifies && (selfSigned || !moves)
}
