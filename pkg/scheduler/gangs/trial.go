package gangs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// kube-scheduler may reject the nodes of a gang for reasons that this package doesn't know, such as a missing volume or a used port.
// So before other gangs are evicted, kube-scheduler must confirm that the gang can run there. Until kube-scheduler responds, the
// cells are reserved.

// mostTrialPause is the longest pause between trials of a gang on two nodes.
const mostTrialPause = 10 * time.Second

// tryOut asks kube-scheduler whether pods can run on the gang's nodes after others have ended. pods are the pods to check now; could
// reports that all of them fit.
func (s *state) tryOut(ready []*pod, at *cell.Placement) (pods []*corev1.Pod, could bool) {
	could = true
	left := map[int][]string{} // nodes by set
	for i := range at.Pods {
		left[at.Pods[i].Set] = append(left[at.Pods[i].Set], at.Pods[i].Node)
	}
	for _, p := range ready {
		node := "" // if there are more pods than the gang has places
		if nodes := left[p.request.Set]; len(nodes) > 0 {
			node, left[p.request.Set] = nodes[0], nodes[1:]
		}
		if p.could == node {
			continue
		}
		could = false
		if p.trial == node {
			continue
		}
		p.trial, p.could, p.assumed = node, "", s.now()
		s.places.set(p.uid, node, true)
		// There is no event, because the decision follows soon.
		p.state, p.reason = api.Waiting, "kube-scheduler is checking whether it can run on "+node+" before others end there"
		pods = append(pods, p.object)
	}
	return pods, could
}

// forgetTrial resets a pod whose gang has lost its reservation. The result of kube-scheduler's check no longer applies.
func (s *state) forgetTrial(p *pod) {
	if p.trial != "" {
		s.places.remove(p.uid)
	}
	p.trial, p.could = "", ""
}

// unanswered releases the cells that a gang has reserved if kube-scheduler doesn't check one of its pods, so that others can use them.
func (s *state) unanswered(p *pod) {
	g := p.gang
	s.log.Warn("reserved cells are released: kube-scheduler didn't check the pod", "pod", p.key, "node", p.trial)
	g.refusal = fmt.Sprintf("kube-scheduler didn't say within %s whether %s can run on %s", placeLimit, p.key, p.trial)
	g.calm = s.now().Add(placeLimit << min(g.refusals, 5))
	g.refusals++
	s.endTrial(g, g.refusal)
}

// tried applies the result of kube-scheduler's check.
func (s *state) tried(p *pod, could bool, reason string) {
	node := p.trial
	s.places.remove(p.uid)
	p.trial, p.gang.searched = "", 0
	if could {
		p.could = node
		s.comes(p, node)
		return
	}
	refused := s.avoid(p, node, reason)
	// Try the gang on all other nodes before it is retried on a node that refused it.
	for other, until := range p.gang.refused {
		if last := p.gang.refused[node]; until.Before(last) {
			p.gang.refused[other] = last
		}
	}
	// No pods have been evicted for it, so it tries another node soon. The pause keeps it from trying all nodes at once,
	// and ends before the first node may be retried.
	p.gang.calm = s.now().Add(min(time.Second<<min(p.gang.refusals, 10), mostTrialPause, refused*5/6))
	s.endTrial(p.gang, cantRun(p, node, reason))
}

// endTrial releases the cells that a gang has reserved.
func (s *state) endTrial(g *gang, reason string) {
	for _, p := range g.pods {
		if p.state == api.Waiting || p.state == api.Preempting {
			s.release(p)
			s.wait(p, reason)
		}
	}
}
