package cell

import (
	"fmt"
	"strconv"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// quotaDecision returns the decision for a request that exceeds a quota. It rejects a request that exceeds the quota even if no
// other gang uses the quota.
func (s *Scheduler) quotaDecision(v *vc, r *Request, reason string) Decision {
	n := s.leavesOf(r)
	user, group := v.quota.ofUser(r.User), v.quota.ofGroup(r.UserGroup)
	if user > 0 && n > user || r.UserGroup != "" && group > 0 && n > group {
		return Decision{Result: Refuse, Reason: "the gang can never start: " + reason + "; request less, or use priority -1"}
	}
	return Decision{Result: Wait, Reason: reason}
}

// noPlace explains why a request gets no place. It rejects a request that has no place even in an idle, healthy cluster.
func (s *Scheduler) noPlace(r *Request, targets []target, suggested Nodes) Decision {
	if !s.couldFitAny(targets) {
		return Decision{Result: Refuse, Reason: s.impossible(r, targets)}
	}
	bad, held := false, false
	for _, t := range targets {
		bad = bad || t.chain.bad > 0
		held = held || t.space == nil && t.chain.pressure[t.policy] > 0 && t.shape.total <= t.chain.view.free
	}
	switch {
	case held:
		return Decision{Result: Wait, Reason: waitReason(r, targets) + ", or opportunistic gangs are delayed for a while"}
	case suggested != nil:
		return Decision{Result: Wait, Reason: waitReason(r, targets) + ", or only on nodes that Kubernetes doesn't suggest"}
	case bad:
		return Decision{Result: Wait, Reason: waitReason(r, targets) + ", or only with bad nodes"}
	}
	return Decision{Result: Wait, Reason: waitReason(r, targets)}
}

func waitReason(r *Request, targets []target) string {
	free, want := 0, 0
	for _, t := range targets {
		free, want = max(free, t.freeAt(r.Priority)), t.shape.total
	}
	where := "the cluster"
	if r.Priority >= MinGuaranteed {
		where = "virtual cluster " + r.VirtualCluster
	}
	if free < want {
		return "insufficient capacity: " + where + " has " + strconv.Itoa(free) + " " + unitOf(targets) + "s for priority " + strconv.Itoa(r.Priority) + ", the gang requests " + strconv.Itoa(want)
	}
	return "insufficient capacity: no free cells of " + where + " fit the gang (free: " + plural.Of(free, unitOf(targets)) + ", requested: " + strconv.Itoa(want) + ")"
}

// impossible explains why a request has no place even in an idle, healthy cluster.
func (s *Scheduler) impossible(r *Request, targets []target) string {
	most, want := 0, 0
	for _, t := range targets {
		most, want = max(most, t.size()), t.shape.total
	}
	where := "the cluster"
	switch {
	case r.PinnedCell != "":
		where = "the pinned cell " + r.PinnedCell
	case r.Priority >= MinGuaranteed:
		where = "virtual cluster " + r.VirtualCluster
	}
	if want > most {
		return fmt.Sprintf("the gang can never start: it requests %d %ss, but %s has %d in one chain; request less", want, unitOf(targets), where, most)
	}
	return fmt.Sprintf("the gang can never start: %s has no cells that fit its shape even when idle (%s); request smaller pods or another cell type", where, shapeText(r, unitOf(targets)))
}
