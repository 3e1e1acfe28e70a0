package cell

import (
	"cmp"
	"slices"
	"strings"
)

// Policy defines when the gangs of a virtual cluster yield to other gangs, and when they preempt other gangs. See
// docs/adr/0023.
type Policy struct {
	// Name is the name in the configuration. About is a one-line description for users.
	Name, About string
	// spareFrom is the minimum size of a chain in leaves for which spares returns true. Gangs then prefer splitting idle nodes
	// to evicting gangs.
	spareFrom int
	// holdFrom is the minimum size of a chain in leaves for holding back opportunistic gangs. In such chains, up to holdMost
	// thousandths of the leaves stay idle for guaranteed gangs. If holdFrom is 0, gangs are never held back.
	holdFrom, holdMost int
	// byNumber minimizes the number of opportunistic gangs that are evicted, regardless of their size.
	byNumber bool
}

// DefaultPolicy is the policy of virtual clusters without a policy in the configuration.
const DefaultPolicy = "balanced"

// Policies lists all policies, default policy first.
var Policies = []Policy{
	{Name: DefaultPolicy, About: "short waits for all; keeps up to 2 % of the GPUs idle after preemptions, with 4,096 or more of one type", spareFrom: 1024, holdFrom: 4096, holdMost: 20},
	{Name: "fewer-kills", About: "fewer opportunistic jobs are preempted, but they wait longer; keeps up to 6 % idle, with 256 or more GPUs of one type", spareFrom: 256, holdFrom: 256, holdMost: 60, byNumber: true},
	{Name: "start-now", About: "opportunistic jobs start whenever there is room, but are preempted more often", spareFrom: 1024},
}

// PolicyNames returns the names of all policies, default policy first.
func PolicyNames() []string {
	names := make([]string, len(Policies))
	for i := range Policies {
		names[i] = Policies[i].Name
	}
	return names
}

// PolicyCompletions returns the names and descriptions of all policies for shell completion.
func PolicyCompletions() []string {
	lines := make([]string, len(Policies))
	for i := range Policies {
		lines[i] = Policies[i].Name + "\t" + Policies[i].About
	}
	return lines
}

// PolicyName returns name, or the name of the default policy if name is "".
func PolicyName(name string) string { return cmp.Or(name, DefaultPolicy) }

// policyIndex returns the index of a policy in Policies, or -1.
func policyIndex(name string) int {
	return slices.IndexFunc(Policies, func(p Policy) bool { return p.Name == PolicyName(name) })
}

func (v *validator) checkPolicy(name string, path []any) {
	if policyIndex(name) < 0 {
		v.fail(path, "the policies are "+strings.Join(PolicyNames(), ", "), "there is no policy %q", name)
	}
}

// spares reports whether gangs prefer splitting idle nodes to evicting gangs. If so, opportunistic gangs avoid nodes that
// virtual clusters use, and guaranteed gangs avoid nodes with opportunistic gangs. Otherwise idle nodes are kept for gangs of
// several nodes.
func (ch *chain) spares(p *Policy) bool { return len(ch.cells[0]) >= p.spareFrom }

// Holding back: if opportunistic gangs fill the last idle node, every new guaranteed gang has to evict some of them. They would
// start again only to be evicted again. Therefore a chain records, for each policy, how many leaves were preempted recently.
// Opportunistic gangs may split idle nodes only as long as about that number of leaves remains on idle nodes. Gangs that fit on
// one node may still use the idle leaves beside other gangs, or in cells that a virtual cluster holds.
//
// The recorded number decreases with each guaranteed gang that starts without preempting, and with each opportunistic gang that is
// held back. A gang therefore waits only as long as guaranteed gangs continue to preempt. A restart clears the record.

// pressure is the number of recently preempted leaves, in thousandths, by index in Policies. It is 0 for policies that don't
// hold gangs back in a chain of this size.
type pressure []int

const (
	// fadeByStart and fadeByAttempt are the fractions by which the pressure decreases, in thousandths.
	fadeByStart   = 1
	fadeByAttempt = 2
	milli         = 1000
)

// holdsBack reports whether an opportunistic gang must not use the idle nodes in these spots, because guaranteed gangs will
// probably need them. If so, it decreases the pressure.
func (s *Scheduler) holdsBack(ch *chain, policy int, spots []spot) bool {
	if !s.wanted(ch, policy, spots) {
		return false
	}
	ch.pressure.fade(policy, fadeByAttempt)
	return true
}

// wanted reports whether an opportunistic gang in these spots would split reserved idle nodes.
func (s *Scheduler) wanted(ch *chain, policy int, spots []spot) bool {
	if ch.pressure[policy] == 0 {
		return false
	}
	s.stamp++
	broken := 0
	for i := range spots {
		if n := ch.cells[ch.node][spots[i].node]; n.wasClean && n.seen != s.stamp {
			n.seen = s.stamp
			broken++
		}
	}
	return broken > 0 && (ch.clean-broken)*ch.leaves[ch.node] < ch.pressure[policy]/milli
}

// blockClean excludes idle nodes from the search. It returns the newly excluded nodes.
func (ch *chain) blockClean() []int32 {
	var out []int32
	for i, n := range ch.cells[ch.node] {
		if n.wasClean && !ch.view.nodes[i].blocked {
			ch.view.block(int32(i), true)
			out = append(out, int32(i))
		}
	}
	return out
}

func (p pressure) fade(policy, part int) { p[policy] -= min(p[policy], p[policy]*part/milli+1) }

// preempted records that a guaranteed gang has started. n is the number of leaves that opportunistic gangs have lost to this
// gang.
func (ch *chain) preempted(n int) {
	leaves := len(ch.cells[0])
	for i := range Policies {
		switch most := Policies[i].holdMost; {
		case most == 0 || leaves < Policies[i].holdFrom:
		case n == 0:
			ch.pressure.fade(i, fadeByStart)
		default:
			ch.pressure[i] = min(ch.pressure[i]+n*milli, leaves*most)
		}
	}
}
