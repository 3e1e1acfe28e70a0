package gangs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// kube-scheduler may reject the nodes of a gang for reasons outside this package, such as a missing volume or a used port.
// Before other gangs are evicted, kube-scheduler must confirm that the gang can run on these nodes. The cells are reserved
// until kube-scheduler responds.

// mostTrialPause is the longest pause between a gang's trials on two nodes.
const mostTrialPause = 10 * time.Second

// tryOut puts pods on trial: kube-scheduler checks whether the pods can run on the gang's nodes after the evictions. pods are
// the pods that kube-scheduler has to check now. could means that all pods are already known to fit.
func (s *state) tryOut(ready []*pod, at *cell.Placement) (pods []*corev1.Pod, could bool) {
	could = true
	left := map[int][]string{} // the nodes of the placement, by set
	for i := range at.Pods {
		left[at.Pods[i].Set] = append(left[at.Pods[i].Set], at.Pods[i].Node)
	}
	for _, p := range ready {
		node := "" // stays empty if there are more pods than places
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
		// No event is recorded, because the decision follows soon.
		p.state, p.reason = api.Waiting, "kube-scheduler is checking whether it can run on "+node+" before others end there"
		pods = append(pods, p.object)
	}
	return pods, could
}

// forgetTrial resets the trial of a pod, for example because its gang has lost its reservation. A later result of
// kube-scheduler's check is then ignored.
func (s *state) forgetTrial(p *pod) {
	if p.trial != "" {
		s.places.remove(p.uid)
	}
	p.trial, p.could = "", ""
}

// unanswered releases the reserved cells of a gang if kube-scheduler doesn't check one of its pods.
func (s *state) unanswered(p *pod) {
	g := p.gang
	s.log.Warn("reserved cells are released: kube-scheduler didn't check the pod", "pod", p.key, "node", p.trial)
	g.refusal = fmt.Sprintf("kube-scheduler didn't say within %s whether %s can run on %s", placeLimit, p.key, p.trial)
	g.calm = s.now().Add(placeLimit << min(g.refusals, 5))
	g.refusals++
	s.endTrial(g, g.refusal)
}

// tried applies the result of kube-scheduler's check of a pod.
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
	// Extend the other refusals, so that the gang tries all other nodes before it retries a refused node.
	for other, until := range p.gang.refused {
		if last := p.gang.refused[node]; until.Before(last) {
			p.gang.refused[other] = last
		}
	}
	// No pods have been evicted, so the gang may try another node soon. The pause prevents trials on all nodes at once. It ends
	// before the first node may be retried.
	p.gang.calm = s.now().Add(min(time.Second<<min(p.gang.refusals, 10), mostTrialPause, refused*5/6))
	s.endTrial(p.gang, cantRun(p, node, reason))
}

// endTrial releases the reserved cells of a gang, and sets its pods to Waiting.
func (s *state) endTrial(g *gang, reason string) {
	for _, p := range g.pods {
		if p.state == api.Waiting || p.state == api.Preempting {
			s.release(p)
			s.wait(p, reason)
		}
	}
}
