package machine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// maxNodes is the maximum length of the list. The nodes with the oldest failures are removed first.
const maxNodes = 100

// blame counts a failure of a node. Several tasks that fail at the same time are one incident, so a failure counts only if its attempt began
// after the node's last incident.
func (s *step) blame(node string, began time.Time) {
	nodes := slices.Clone(s.status.AvoidedNodes)
	i := slices.IndexFunc(nodes, func(n v1.AvoidedNode) bool { return n.Name == node })
	now := metav1.NewTime(s.Now)
	switch {
	case i < 0:
		nodes = append(nodes, v1.AvoidedNode{Name: node, Failures: 1, Last: now})
	case s.Now.Sub(nodes[i].Last.Time) >= s.Policy.AvoidFor:
		nodes[i].Failures, nodes[i].Last = 1, now // failures so long ago no longer count
	case !began.After(nodes[i].Last.Time):
		return
	default:
		nodes[i].Failures++
		nodes[i].Last = now
		if nodes[i].Failures == s.Policy.AvoidAfter {
			s.note(true, "NodeAvoided", "Node "+node+" failed this job again; new pods of the job avoid it.")
		}
	}
	if len(nodes) > maxNodes {
		oldest := 0
		for i := range nodes {
			if nodes[i].Last.Before(&nodes[oldest].Last) {
				oldest = i
			}
		}
		nodes = slices.Delete(nodes, oldest, oldest+1)
	}
	s.status.AvoidedNodes = nodes
}

// Avoided returns the names of the nodes that new pods of the job must avoid, in alphabetical order.
func Avoided(status *v1.FrameworkStatus, p Policy, now time.Time) []string {
	var out []string
	for _, n := range status.AvoidedNodes {
		if n.Failures >= p.AvoidAfter && now.Sub(n.Last.Time) < p.AvoidFor {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}
