package cluster

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

// The leader of a run is the machine of the control plane through which the run does the work for
// the whole cluster: tickets to join, labels, the network's manifest. Any healthy member can be the
// leader, so no machine is special, and the order of layout.yaml doesn't matter.

// member reports whether a machine answered that it belongs to a cluster that paictl made.
func (w *world) member(n *Node) bool {
	return !w.forgotten && w.of(n, phaseJoin).Value("member") == "yes"
}

// members returns the control plane machines that are members, by address.
func (w *world) members() []*Node {
	return slices.DeleteFunc(w.want.ControlPlane(), func(n *Node) bool { return !w.member(n) })
}

// healthy reports whether the API server of a control plane machine answered.
func (w *world) healthy(n *Node) bool { return w.cluster(n).Value("api") == "up" }

// cluster returns the answer of a control plane machine's own API server. All phases share it.
func (w *world) cluster(n *Node) answer.Answer { return w.of(n, phaseInit) }

// founding reports whether this run makes the cluster, on the leader.
func (w *world) founding() bool { return w.leader != nil && !w.member(w.leader) }

// controlPlane returns the control plane machines, the leader first, the others by address. They
// join and change their settings in this order.
func (w *world) controlPlane() []*Node {
	out := []*Node{w.leader}
	for _, n := range w.want.ControlPlane() {
		if n != w.leader {
			out = append(out, n)
		}
	}
	return out
}

// elect chooses the leader. Without a cluster, that is the machine on which the cluster will be made.
func (w *world) elect() {
	members := w.members()
	if len(members) == 0 {
		w.leader = w.founder()
		w.settle("")
		return
	}
	// Machines with another authority belong to another cluster, which the checks report; the
	// larger group leads.
	authorities := map[string]int{}
	for _, n := range members {
		authorities[w.of(n, phaseJoin).Value("ca")]++
	}
	w.leader = slices.MinFunc(members, func(a, b *Node) int {
		return cmp.Or(
			cmp.Compare(authorities[w.of(b, phaseJoin).Value("ca")], authorities[w.of(a, phaseJoin).Value("ca")]),
			compareBool(w.healthy(b), w.healthy(a)),
		)
	})
	w.settle(w.reachedAt())
}

// settle makes the decisions that depend on the state in which the run finds the cluster, which the members reach at an address.
func (w *world) settle(reached string) {
	d := *w.want
	d.reached = reached
	d.selfSigned, d.unverified = w.certificates()
	w.want = &d
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// reachedAt returns the API's address for the members as HOST:PORT if it isn't the configured one yet: either the configuration names
// the address of a master which is about to join, or an upgrade is under way, which doesn't move the address. Otherwise it returns "".
func (w *world) reachedAt() string {
	configured, _, _ := net.SplitHostPort(w.want.configuredEndpoint())
	now := strings.TrimPrefix(w.of(w.leader, phaseJoin).Value("server"), "https://")
	if _, _, err := net.SplitHostPort(now); err != nil || now == w.want.configuredEndpoint() {
		return ""
	}
	if named := w.want.master(configured); w.want.upgrading || named != nil && w.facts[named.Hostname] != nil && !w.member(named) {
		return now
	}
	return ""
}

// founder returns the machine on which the cluster is made: one with an interrupted attempt, or the
// one with the lowest address.
func (w *world) founder() *Node {
	return slices.MinFunc(w.want.ControlPlane(), func(a, b *Node) int {
		_, leftA := w.of(a, phaseJoin).Row("left")
		_, leftB := w.of(b, phaseJoin).Row("left")
		return cmp.Or(compareBool(w.concerns(b), w.concerns(a)), compareBool(leftB, leftA))
	})
}

// againstFounding returns the signs of a cluster that exists already, or did.
func (w *world) againstFounding() []preflight.Finding {
	var out []preflight.Finding
	for _, n := range w.want.ControlPlane() {
		switch {
		case w.facts[n.Hostname] == nil:
			out = append(out, preflight.Finding{
				Host: n.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
				Message: "the machine doesn't answer, and no other machine of the control plane is a member of a cluster: if a cluster exists, it is on this machine, and a second one must not be made",
				Remedy:  fmt.Sprintf("repair %s and run the same command again; only if it never was a member, remove it from layout.yaml", n.Hostname),
			})
		case w.of(n, phaseJoin).Value("once") == "yes":
			out = append(out, preflight.Finding{
				Host: n.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
				Message: lostMark,
				Remedy:  markAgain + "; to replace the cluster: paictl cluster recreate",
			})
		}
	}
	return append(out, w.orphans()...)
}

// orphans finds machines that belong to a cluster without any control plane machine.
func (w *world) orphans() []preflight.Finding {
	var names []string
	for _, n := range w.want.Nodes {
		if !n.ControlPlane && (w.member(n) || w.outside[n.Hostname]) {
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

// lookBeyond asks the machines outside of --limit whether they belong to a cluster, before one is
// made. It skips those that don't answer.
func (r *run) lookBeyond(ctx context.Context, w *world) error {
	var rest []*Node
	for _, n := range r.spec.Nodes {
		if w.facts[n.Hostname] == nil && !n.ControlPlane && !r.isAside(n) {
			rest = append(rest, n)
		}
	}
	found := make(chan string, len(rest))
	r.each(ctx, rest, func(ctx context.Context, n *Node) error {
		if err := r.dial(ctx, n); err != nil {
			return err
		}
		res, err := r.read(ctx, n, phaseJoin, "member", detectScript+"d_member\n")
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
		w.outside[name] = true
	}
	return ctx.Err()
}

// findLeader chooses the leader for a run without a survey: a control plane machine that is a
// member and whose API server answers, or otherwise any member. It returns nil if no machine that
// answered is a member of a cluster. It doesn't choose machines in without.
func (r *run) findLeader(ctx context.Context, without []*Node) (*Node, error) {
	machines := slices.DeleteFunc(r.alive(r.spec.ControlPlane()), func(n *Node) bool { return slices.Contains(without, n) })
	said := make(chan leaderAnswer, len(machines))
	errs := r.each(ctx, machines, func(ctx context.Context, n *Node) error {
		res, err := r.read(ctx, n, "leader", "look", r.spec.selfAPI(n)+`
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
		r.servers[a.node] = a.server
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

// selfAPI returns shell code with which a control plane machine asks its own API server: a load
// balancer in front of all may be down, or lead to another one.
func (s *Spec) selfAPI(n *Node) string {
	return fmt.Sprintf("\nself() { kubectl --server=%s \"$@\"; }\n",
		shell.Quote("https://"+s.ownEndpoint(n)))
}
