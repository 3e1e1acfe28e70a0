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

// The leader of a run is the control plane machine on which the run executes work for the whole cluster, such as join tickets and labels. Any healthy
// member can be the leader, and the order in layout.yaml doesn't matter.

// Member reports whether a machine belongs to a cluster that paictl has created, according to the machine's own state.
func (w *World) Member(n *Node) bool {
	return !w.NoMembers && w.Of(n, PhaseJoin).Value("member") == "yes"
}

// Members returns the control plane machines that are members of a cluster, sorted by address.
func (w *World) Members() []*Node {
	return slices.DeleteFunc(w.Want.ControlPlane(), func(n *Node) bool { return !w.Member(n) })
}

// Healthy reports whether the API server of a control plane machine responded.
func (w *World) Healthy(n *Node) bool { return w.Cluster(n).Value("api") == "up" }

// Cluster returns the response of a control plane machine's own API server.
func (w *World) Cluster(n *Node) answer.Answer { return w.Of(n, PhaseInit) }

// Founding reports whether this run creates a new cluster on the leader.
func (w *World) Founding() bool { return w.Leader != nil && !w.Member(w.Leader) }

// ControlPlane returns the control plane machines in the order in which they join and change their settings. The leader comes first, and the others
// follow by address.
func (w *World) ControlPlane() []*Node {
	out := []*Node{w.Leader}
	for _, n := range w.Want.ControlPlane() {
		if n != w.Leader {
			out = append(out, n)
		}
	}
	return out
}

// Elect chooses the leader. If no cluster exists, the leader is the machine that creates the cluster.
func (w *World) Elect() {
	members := w.Members()
	if len(members) == 0 {
		w.Leader = w.founder()
		w.settle("")
		return
	}
	// Machines with another CA belong to another cluster. The checks report such machines. The leader is from the larger group.
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

// settle makes the decisions that depend on the cluster's state. The argument reached is the address at which the members reach the API, or "" for
// the configured address.
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

// reachedAt returns the HOST:PORT at which the members currently reach the API if the run must keep this address, otherwise "". The run must keep the
// address during an upgrade, and if the configured address belongs to a master that is about to join.
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

// founder returns the machine that creates the cluster. It prefers machines that the run covers, then machines with the remains of an interrupted
// attempt, then the lowest address.
func (w *World) founder() *Node {
	return slices.MinFunc(w.Want.ControlPlane(), func(a, b *Node) int {
		_, leftA := w.Of(a, PhaseJoin).Row("left")
		_, leftB := w.Of(b, PhaseJoin).Row("left")
		return cmp.Or(CompareBool(w.Concerns(b), w.Concerns(a)), CompareBool(leftB, leftA))
	})
}

// AgainstFounding returns findings if a cluster may exist or may have existed. In that case, the run must not create a new cluster.
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

// orphans returns a finding if machines belong to a cluster whose control plane isn't in the layout.
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

// CheckBeyondLimit determines whether machines outside of --limit belong to a cluster, before a new cluster is created. It skips machines that don't
// respond.
func (r *Run) CheckBeyondLimit(ctx context.Context, w *World) error {
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

// FindLeader chooses the leader for a run without a survey. It prefers a member whose API server responds. It never chooses a machine in the list
// without. It returns nil if no member of a cluster responded.
func (r *Run) FindLeader(ctx context.Context, without []*Node) (*Node, error) {
	machines := slices.DeleteFunc(r.Working(r.Spec.ControlPlane()), func(n *Node) bool { return slices.Contains(without, n) })
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

// SelfAPI returns a shell function that queries the API server of a control plane machine on the machine itself. At the shared address, a load
// balancer may be down, or may forward to another API server.
func (s *Spec) SelfAPI(n *Node) string {
	return fmt.Sprintf("\nself() { kubectl --server=%s \"$@\"; }\n",
		shell.Quote("https://"+s.OwnEndpoint(n)))
}

// certificates decides whether kubelets sign their own certificates, and whether API servers leave these certificates unverified. The leader must be
// known. Both results are true if the configuration requests self-signed certificates. Otherwise both are false in a new cluster. An existing cluster
// keeps self-signed certificates until a run on all machines and phases that isn't an upgrade.
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
	// API servers that verify kubelets continue to do so. In this case, the approver was deleted by mistake or wasn't found in time.
	selfSigned = !there && !verifies && !moves
	return selfSigned, !verifies && (selfSigned || !moves)
}
