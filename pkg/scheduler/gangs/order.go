package gangs

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// waiting returns the queue of waiting gangs. It reads the gangs in parts, and the state may change between parts. It counts
// the resources of virtual clusters last. A gang that ends during the count may count twice, but is never omitted. The
// estimated time at which GPUs become free is therefore never too late.
func (b *Store) waiting() (q queue.Queue, leading bool) {
	var gangs []*gang
	b.locked(func(s *state) { gangs = slices.Collect(maps.Values(s.gangs)) })
	var waiting []*queue.Gang
	inParts(b, gangs, func(s *state, g *gang) {
		if s.gangs[g.gangKey] == g {
			waiting = s.enqueue(&q, waiting, g)
		}
	})
	enter(&q, waiting)
	return q, b.locked(func(s *state) { s.running(&q) })
}

// enqueue appends a waiting gang to waiting. For a running gang, it records when the gang ends.
func (s *state) enqueue(q *queue.Queue, waiting []*queue.Gang, g *gang) []*queue.Gang {
	if g.waiting() > 0 {
		waiting = append(waiting, s.queued(g))
	}
	if at := g.endsBy(s.now()); at > 0 && g.downgraded.IsZero() && !s.core.WantsCPU(g.first().request) {
		p := g.first()
		q.EndsBy(&queue.Gang{VC: g.vc, Priority: p.request.Priority, GPUs: s.leavesOf(p)}, at)
	}
	return waiting
}

func enter(q *queue.Queue, waiting []*queue.Gang) {
	slices.SortFunc(waiting, queue.Before)
	for _, w := range waiting {
		q.Add(w)
	}
}

// running adds the resources of virtual clusters to a queue.
func (s *state) running(q *queue.Queue) {
	q.Reservations = queue.After(s.reserves, time.Nanosecond)
	used := s.core.Used()
	for i := range used {
		v := &used[i]
		q.Started(&queue.Gang{VC: v.Name, GPUs: v.UsedGuaranteed + v.CPU.Used})
		q.Started(&queue.Gang{VC: v.Name, Priority: cell.Opportunistic, GPUs: v.Opportunistic + v.CPU.Opportunistic})
		q.Free(v.Name, v.Guaranteed-v.UsedGuaranteed-v.Bad)
	}
}

// endsBy returns when the last running pod of a gang has to end, in nanoseconds. It returns 0 if no pod runs, or if a pod may
// run forever. For a pod that hasn't started, the time counts from now, so the result is never too late.
func (g *gang) endsBy(now time.Time) (at int64) {
	for _, p := range g.pods {
		if p.state != api.Binding && p.state != api.Bound {
			continue
		}
		most := lasts(p.object)
		if most == 0 {
			return 0
		}
		start := now
		if p.object.Status.StartTime != nil {
			start = p.object.Status.StartTime.Time
		}
		at = max(at, start.Add(most).UnixNano())
	}
	return at
}

// lasts returns the maximum run time of a gang in nanoseconds, or 0 if it is unknown.
func (g *gang) lasts() (most int64) {
	for _, p := range g.pods {
		of := lasts(p.object)
		if of == 0 {
			return 0
		}
		most = max(most, int64(of))
	}
	return most
}

// lasts returns the maximum run time of a pod including its grace period, or 0 if it is unknown.
func lasts(p *corev1.Pod) time.Duration {
	limit, grace := p.Spec.ActiveDeadlineSeconds, p.Spec.TerminationGracePeriodSeconds
	if limit == nil {
		return 0
	}
	out := time.Duration(*limit) * time.Second
	if grace != nil {
		out += time.Duration(*grace) * time.Second
	}
	return out
}

func (s *state) queued(g *gang) *queue.Gang {
	p := g.first()
	out := &queue.Gang{VC: g.vc, Name: g.name, Priority: p.request.Priority, Since: g.since().UnixNano(), GPUs: s.leavesOf(p), Lasts: g.lasts(), CPU: s.core.WantsCPU(p.request), Class: [2]string{p.class, p.limits}}
	if _, has := s.core.Brief(g.vc, g.name); has || s.paused(g.pods) != nil || len(g.refused) > 0 || !g.alike() || ownSize(p) > longAnnotations || s.incomplete(g, p, g.ready(p.class)) != "" {
		out.Class = g // the result for this gang doesn't apply to others
	}
	return out
}

func queueQuery(v url.Values) (q api.QueueQuery, err error) {
	q = api.QueueQuery{VC: v.Get("vc"), Prefixes: v["prefix"]}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 0 {
			return q, badRequest("limit %q is not 0 or a positive number", text)
		}
	}
	return q, nil
}

// listQueue returns the queue in the expected order of the gangs' starts. It skips gangs that the query doesn't select, and
// only counts the gangs beyond the limit.
func (s *state) listQueue(q api.QueueQuery) api.Queue {
	out := api.Queue{Items: []api.Queued{}}
	if !s.anyWaits(&q) {
		return out
	}
	inVC := map[string]int{}
	for i, w := range s.order() {
		inVC[w.VC]++
		if !q.Selects(w.VC, w.Name) {
			continue
		}
		if out.Total++; q.Limit > 0 && out.Total > q.Limit {
			continue
		}
		g := s.gangs[gangKey{w.VC, w.Name}]
		p := g.first()
		out.Items = append(out.Items, api.Queued{
			Position: i + 1, PositionInVC: inVC[g.vc], VC: g.vc, Group: g.name, State: p.state,
			Priority: p.request.Priority, Since: g.since(), Pods: g.waiting(), Request: s.asks(g),
			User: p.request.User, Reason: s.holding(g, p.reason), HoldsFree: s.reserving[g.gangKey],
		})
	}
	return out
}

// anyWaits reports whether a query selects a waiting gang. Otherwise the order needn't be computed.
func (s *state) anyWaits(q *api.QueueQuery) bool {
	for key, g := range s.gangs {
		if q.Selects(key.vc, key.name) && g.waiting() > 0 {
			return true
		}
	}
	return false
}

// holding returns a reason. If the scheduler holds free cells for the gang, holding adds that to the reason.
func (s *state) holding(g *gang, reason string) string {
	if !s.reserving[g.gangKey] {
		return reason
	}
	return fmt.Sprintf("%s; free cells of virtual cluster %s are reserved for it", strings.TrimSuffix(reason, "."), g.vc)
}

// shortly formats a duration without zero units, such as 24h.
func shortly(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// order returns the waiting gangs in the order of the queue. It keeps the lock, and sets only the fields of the gangs that
// affect the order. more are additional, hypothetical gangs.
func (s *state) order(more ...*queue.Gang) []*queue.Gang {
	var q queue.Queue
	waiting := more
	for _, g := range s.gangs {
		if g.waiting() > 0 {
			p := g.first()
			waiting = append(waiting, &queue.Gang{VC: g.vc, Name: g.name, Priority: p.request.Priority, Since: g.since().UnixNano(), GPUs: s.leavesOf(p)})
		}
	}
	enter(&q, waiting)
	s.running(&q)
	return q.Order()
}
