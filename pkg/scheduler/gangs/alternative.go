package gangs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// A gang of pods without GPUs prefers CPU cells. Its alternative is a share of GPUs. The gang uses the alternative if storage
// or a label excludes the machines with CPU cells, or if other gangs hold the CPU cells. All pods of the gang use the same
// request.

// alternative returns the alternative request of a pod. It returns nil if the pod has no alternative, or if the operator
// reserves the machines with GPUs.
func alternative(core *cell.Scheduler, p *pod) *cell.Request {
	if p.preferred == nil || p.preferred.Alternative == nil || core.ReservesGPUMachines() || core.WantsCPU(p.preferred.Alternative) {
		return nil
	}
	return p.preferred.Alternative
}

func (p *pod) use(alternative bool) {
	if p.request = p.preferred; alternative {
		p.request = p.preferred.Alternative
	}
}

func useAll(pods []*pod, alternative bool) {
	for _, p := range pods {
		p.use(alternative)
	}
}

// rejoin sets the request of pods without a place to the request of their gang's cells or reservation.
func (s *state) rejoin(g *gang, ready []*pod) {
	or := ready[0].preferred.Alternative
	if or == nil {
		return
	}
	has := s.core.RequestOf(g.vc, g.name)
	useAll(ready, has != nil && has.LeafType == or.LeafType && slices.Equal(has.Sets(), or.Sets()))
}

// requests returns the possible requests of a waiting pod, in order of preference.
func (s *state) requests(p *pod) []*cell.Request {
	if or := alternative(s.core, p); or != nil && s.core.RequestOf(p.gang.vc, p.gang.name) == nil {
		return []*cell.Request{p.preferred, or}
	}
	return []*cell.Request{p.request}
}

// searchBoth searches a place for the preferred request of a gang's pods, and then for the alternative. It preempts other gangs
// only if neither request fits on free cells. Package cell does the same for several types of GPUs.
func (s *state) searchBoth(ready []*pod, nodes cell.Nodes) cell.Decision {
	p := ready[0]
	first := s.search(p, nodes)
	if first.Result == cell.Bind || len(s.requests(p)) == 1 {
		return because(p, first)
	}
	useAll(ready, true)
	d, gpus := s.search(p, nodes), s.leavesOf(p)
	if d.Result == cell.Bind || d.Result == cell.Preempt && first.Result != cell.Preempt {
		return d
	}
	useAll(ready, false)
	switch {
	case first.Result == cell.Refuse && d.Result == cell.Wait:
		first = d
	case first.Result == d.Result && first.Reason != d.Reason && first.Result != cell.Preempt:
		first.Reason = fmt.Sprintf("%s; instead of CPU cells it may take %s: %s", first.Reason, plural.Of(gpus, "GPU"), d.Reason)
	}
	return because(p, first)
}

// useBound chooses the request of a bound pod by the pod's annotations. A pod on CPU cells has no IsolationKey.
func (s *state) useBound(p *pod) {
	devices := p.object.Annotations[annotation.IsolationKey]
	if p.preferred == nil || p.preferred.Alternative == nil || devices == "" {
		return
	}
	has := strings.Count(devices, ",") + 1
	p.use(has == cellsOf(p.preferred.Alternative) && (has != cellsOf(p.preferred) || s.core.WantsCPU(p.preferred)))
}

// cellsOf returns the number of cells per pod in the request's own set.
func cellsOf(r *cell.Request) int { return r.Sets()[r.Set].Cells }
