package gangs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// An outlook tests the gangs of a job that isn't submitted. It doesn't change the state.

const (
	// maxOutlook is the maximum size of a query in bytes. maxKinds is the maximum number of kinds of pods in a query.
	maxOutlook = 1 << 20
	maxKinds   = 1000
	// mostTried is the maximum number of gangs that a query tests. trialTime is how long a query tests additional gangs of a
	// kind, because other requests wait for the lock.
	mostTried = 256
	trialTime = 50 * time.Millisecond
	// fewKinds is the number of kinds that are always tested. More kinds are tested until kindsTime after trialTime.
	fewKinds  = 16
	kindsTime = 200 * time.Millisecond
	// trials is the maximum number of concurrent queries. Other queries wait for at most trialsWait. trialRest is the pause
	// between two queries, as a multiple of the last query's duration.
	trials     = 1
	trialsWait = 2 * time.Second
	trialRest  = 3
)

func (b *Store) serveOutlook(w http.ResponseWriter, r *http.Request) {
	if b.forward(w, r) {
		return
	}
	var q api.OutlookQuery
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOutlook)).Decode(&q); err != nil {
		writeError(w, badRequest("the question can't be read: %v", err))
		return
	}
	out, err := b.outlook(r.Context(), &q)
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// outlook returns the predictions for the gangs of a query.
func (b *Store) outlook(ctx context.Context, q *api.OutlookQuery) (out *api.Outlook, err error) {
	gangs, err := newGangs(q)
	if err != nil {
		return nil, err
	}
	end, err := takeTurn(ctx, b.trying, trialsWait)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	defer func() { time.AfterFunc(trialRest*time.Since(start), end) }()
	if !b.locked(func(s *state) { out, err = s.outlook(gangs, start.Add(trialTime)) }) {
		return nil, errNotLeading
	}
	if out == nil && err == nil {
		return nil, errBug
	}
	return out, err
}

// newGang is a hypothetical gang, with one pod of each kind. If count is set, it represents count gangs of one pod each.
type newGang struct {
	gang
	count int
}

func newGangs(q *api.OutlookQuery) ([]*newGang, error) {
	if n := len(q.Pods); n == 0 || n > maxKinds {
		return nil, badRequest("the question has %d kinds of pods; write 1 to %d", n, maxKinds)
	}
	var out []*newGang
	byKey := map[gangKey]*newGang{}
	for i := range q.Pods {
		p := &pod{key: fmt.Sprintf("pods[%d]", i), object: &q.Pods[i].Pod, state: api.Waiting}
		if err := p.read(); err != nil {
			return nil, badRequest("%s: %v", p.key, err)
		}
		if q.Pods[i].Count < 1 {
			return nil, badRequest("%s: count is %d; write 1 or more", p.key, q.Pods[i].Count)
		}
		key := gangKey{p.request.VirtualCluster, p.request.Gang}
		g := byKey[key]
		if g == nil {
			g = &newGang{gang: gang{gangKey: key}, count: 1}
			byKey[key] = g
			out = append(out, g)
		}
		if key.name == p.key { // the request has no name for the gang
			g.count = q.Pods[i].Count
		}
		p.gang, g.pods = &g.gang, append(g.pods, p)
	}
	return out, nil
}

// outlook tests each gang. Until the given time, it also tests additional gangs of a kind. If testing more than fewKinds gangs
// takes too long, it returns a bad request error.
func (s *state) outlook(gangs []*newGang, until time.Time) (*api.Outlook, error) {
	out := &api.Outlook{Gangs: make([]api.NewGang, len(gangs))}
	t := s.core.Trial()
	defer t.End()
	left := mostTried
	for i, g := range gangs {
		if i >= fewKinds && time.Now().After(until.Add(kindsTime)) {
			return nil, badRequest("the question has %d kinds of pods, of which %d took too long to try", len(gangs), i)
		}
		out.Gangs[i] = s.tryNew(t, g, &left, until)
	}
	s.placeNew(gangs, out.Gangs)
	return out, nil
}

// tryNew returns the prediction for a new gang, or for several equivalent gangs.
func (s *state) tryNew(t *cell.Trial, g *newGang, left *int, until time.Time) api.NewGang {
	requests, nodes := s.requests(g.pods[0]), s.nodesFor(&g.gang, g.pods)
	out := api.NewGang{VC: g.vc, Count: g.count}
	for _, set := range requests[0].Sets() {
		out.Pods += set.Count
	}
	if s.reservation != nil {
		if cause := s.reservation(s.wouldQueue(g)); cause != nil {
			out.Result, out.Reason = api.Waits, s.reservedFor(cause)
			return out
		}
	}
	if g.count == 1 {
		out.Largest = s.largest(t, requests[0], nodes, until)
	}
	tried, on := 0, map[string]bool{}
	for out.Starting == tried && tried < g.count {
		if tried > 0 && (*left <= 0 || !time.Now().Before(until)) {
			out.Tried = tried
			break
		}
		tried++
		*left--
		if names, starts := startNew(t, requests, tried, nodes); starts {
			out.Starting++
			for _, name := range names {
				on[name] = true
			}
		}
	}
	out.Nodes = slices.Sorted(maps.Keys(on))
	if out.Starting == tried {
		out.Result = api.Starts
		if out.Largest != nil {
			out.Largest.Pods = max(out.Largest.Pods, out.Pods) // the search for the largest gang isn't exhaustive
		}
		return out
	}
	s.explainNew(t, requests, nodes, &out)
	return out
}

// startNew tries to start the n-th of several equivalent gangs with each request, in order of preference.
func startNew(t *cell.Trial, requests []*cell.Request, n int, nodes cell.Nodes) (on []string, starts bool) {
	for _, r := range requests {
		if on, starts = t.Start(unused(r, n), nodes); starts {
			break
		}
	}
	return on, starts
}

// unused returns a copy of a request with an unused gang name, because a running job may use the gang's name.
func unused(r *cell.Request, n int) *cell.Request {
	one := *r
	one.Gang = fmt.Sprintf("%s (new %d)", r.Gang, n)
	return &one
}

// explainNew sets the reason why a gang doesn't start.
func (s *state) explainNew(t *cell.Trial, requests []*cell.Request, nodes cell.Nodes, out *api.NewGang) {
	var all []*cell.Explanation
	for _, r := range requests {
		e := t.Why(unused(r, 0), nodes)
		if out.Largest == nil {
			out.Largest = e.Smaller
		}
		e.Sentence = e.WithoutSmaller(e.Sentence)
		all = append(all, &e)
	}
	e, or := all[0], (*cell.Explanation)(nil)
	switch {
	case len(all) == 1:
	case refused(e):
		e = all[1]
	case !refused(all[1]):
		or = all[1]
	}
	if or != nil && or.Code == cell.Preemption && e.Code != cell.Preemption { // as in searchBoth
		e, or = or, nil
	}
	out.Code = e.Code
	switch {
	case refused(e):
		out.Result, out.Reason = api.Never, e.Sentence
	case e.Code == cell.Preemption:
		out.Result, out.Victims = api.Preempts, gangsOf(e.Victims)
	default:
		out.Result, out.Reason = api.Waits, reasonOf(e, or)
		if e.Code == cell.BadNodes {
			out.BadNodes = s.badNodes()
		}
	}
}

// gangsOf returns the number of gangs of the victims.
func gangsOf(victims []cell.Victim) int {
	gangs := map[gangKey]bool{}
	for _, v := range victims {
		gangs[gangKey{v.VC, v.Gang}] = true
	}
	return len(gangs)
}

// largest returns the largest gang of a request's shape that would start now. It returns nil if no such gang would start, if
// the shape has pods of several sizes, or if the search among large gangs exceeds until.
func (s *state) largest(t *cell.Trial, r *cell.Request, nodes cell.Nodes, until time.Time) *cell.Smaller {
	n := t.Largest(r, nodes, func() bool { return !time.Now().Before(until) })
	if n == 0 {
		return nil
	}
	set := r.Root.Pods[0]
	out := &cell.Smaller{Pods: n, GPUsPerPod: set.Cells * s.core.Leaves(set.CellType)}
	if s.core.WantsCPU(r) {
		out.GPUsPerPod, out.CPUCellsPerPod = 0, out.GPUsPerPod
	}
	return out
}

// wouldQueue converts a new gang for the queue.
func (s *state) wouldQueue(g *newGang) *queue.Gang {
	r := g.pods[0].request
	return &queue.Gang{VC: g.vc, Name: g.name, Priority: r.Priority, Since: s.now().UnixNano(), GPUs: s.leaves(r), Lasts: g.lasts(), CPU: s.core.WantsCPU(r)}
}

// placeNew sets the queue positions of the gangs that would wait.
func (s *state) placeNew(gangs []*newGang, out []api.NewGang) {
	var more []*queue.Gang
	index := map[*queue.Gang]int{}
	for i := range out {
		if g := &out[i]; g.Result == api.Waits || g.Result == api.Preempts {
			w := s.wouldQueue(gangs[i])
			more, index[w] = append(more, w), i
		}
	}
	if len(more) == 0 {
		return
	}
	place := map[string]int{}
	for _, w := range s.order(more...) {
		place[w.VC]++
		if i, is := index[w]; is {
			out[i].PositionInVC = place[w.VC]
			place[w.VC] += out[i].Count - out[i].Starting - 1 // equivalent gangs follow it in the queue
		}
	}
	for _, i := range index {
		out[i].QueueInVC = place[out[i].VC]
	}
}
