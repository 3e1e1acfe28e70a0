package bound

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// Clairvoyant searches for the fewest jobs of one virtual cluster that wait inside its quota if all arrivals and durations are known from the start.
// It follows the rules of the simulator: a job starts if it fits in a place. If it doesn't fit, it preempts jobs of lower priorities or waits. The
// choices are the place and the victims. The search follows all choices, merges the histories that end in the same state, and keeps the smallest
// number of waiting jobs.
//
// Each job has to fit in one place, so it makes no difference which of the place's GPUs it gets.
type Clairvoyant struct {
	places []int
	quota  int
	jobs   []trace.Job
	now    int32
}

// NewClairvoyant returns a search. The jobs must be in order of arrival, and the places in order of size.
func NewClairvoyant(places []int, jobs []trace.Job) *Clairvoyant {
	c := &Clairvoyant{places: places, jobs: jobs}
	for _, p := range places {
		c.quota += p
	}
	return c
}

// history is the state after some choices, with the cost of these choices.
type history struct {
	running []running // in no order
	queue   []waiting // in order of priority, arrival and id
	cost    int
}

type running struct {
	job    int16
	place  int8
	waited bool
	end    int32
}

type waiting struct {
	job    int16
	waited bool
	left   int32
}

// Fewest returns the smallest number of jobs that wait inside the quota. ok is false if this number is larger than most.
func (c *Clairvoyant) Fewest(most int) (fewest int, ok bool) {
	open := map[string]history{"": {}}
	for i := range c.jobs {
		next := map[string]history{}
		for _, h := range open {
			for _, after := range c.until(h, int32(c.jobs[i].Arrival)) {
				for _, x := range c.arrive(after, int16(i)) {
					if x.cost <= most {
						c.keep(next, x.history)
					}
				}
			}
		}
		open = next
	}
	fewest = most + 1
	for _, h := range open {
		fewest = min(fewest, h.cost)
	}
	return fewest, fewest <= most
}

// Follow returns how many jobs wait inside the quota under the policy of a solved model. The policy depends only on the running and the waiting jobs.
// The places must be the same as the model's places.
func (c *Clairvoyant) Follow(s *Solver, value []float64) int {
	h := history{}
	choose := func(all []history) {
		least := math.Inf(1)
		var key string
		for _, x := range all {
			cost, k := float64(x.cost), c.key(&x)
			if i, ok := s.index[c.stateOf(s, &x)]; ok {
				cost += value[i]
			}
			if cost < least || cost == least && k < key {
				h, least, key = x, cost, k
			}
		}
	}
	for i := range c.jobs {
		at := int32(c.jobs[i].Arrival)
		for first := c.firstEnd(&h, at); first >= 0; first = c.firstEnd(&h, at) {
			choose(c.end(h, first))
		}
		var all []history
		for _, x := range c.arrive(h, int16(i)) {
			all = append(all, x.history)
		}
		choose(all)
	}
	return h.cost
}

// stateOf returns the model's state that corresponds to a history.
func (c *Clairvoyant) stateOf(s *Solver, h *history) state {
	var st state
	for _, r := range h.running {
		st.at[r.place][slices.Index(s.Sizes, c.jobs[r.job].GPUs())]++
	}
	for p := range s.Places {
		for i := p; i > 0 && s.Places[i-1] == s.Places[i] && less(st.at[i], st.at[i-1]); i-- {
			st.at[i], st.at[i-1] = st.at[i-1], st.at[i]
		}
	}
	for _, w := range h.queue {
		if k := slices.Index(s.Sizes, c.jobs[w.job].GPUs()); int(st.queue[k]) < s.Queue {
			st.queue[k]++
		}
	}
	return st
}

// keep adds a history to open. If open contains a history with the same state, keep keeps the history with the smaller cost.
func (c *Clairvoyant) keep(open map[string]history, h history) {
	key := c.key(&h)
	if old, ok := open[key]; !ok || h.cost < old.cost {
		open[key] = h
	}
}

// key returns a text that is equal for states that differ only in the names of equal places.
func (c *Clairvoyant) key(h *history) string {
	slices.SortFunc(h.running, func(a, b running) int { return cmp.Compare(a.job, b.job) })
	parts := make([]string, len(c.places))
	for p := range c.places {
		var b []byte
		for _, r := range h.running {
			if int(r.place) == p {
				b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(r.job)<<1|bit(r.waited)), uint32(r.end))
			}
		}
		parts[p] = string(b)
	}
	var out []byte
	for lo := 0; lo < len(parts); {
		hi := lo
		for hi < len(parts) && c.places[hi] == c.places[lo] {
			hi++
		}
		slices.Sort(parts[lo:hi])
		for ; lo < hi; lo++ {
			out = append(append(out, byte(len(parts[lo]))), parts[lo]...)
		}
	}
	for _, w := range h.queue {
		out = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(out, uint16(w.job)<<1|bit(w.waited)), uint32(w.left))
	}
	return string(out)
}

func bit(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}

// arrive adds a job to the queue and tries to start it.
func (c *Clairvoyant) arrive(h history, job int16) []tried {
	c.now = int32(c.jobs[job].Arrival)
	h = h.clone()
	h.enqueue(c, waiting{job: job, left: int32(c.jobs[job].Duration)})
	return c.try(h, job)
}

// until ends the jobs that finish by a time, and returns all histories that follow.
func (c *Clairvoyant) until(h history, time int32) []history {
	first := c.firstEnd(&h, time)
	if first < 0 {
		return []history{h}
	}
	var out []history
	for _, x := range c.end(h, first) {
		out = append(out, c.until(x, time)...)
	}
	return out
}

// firstEnd returns the index of the running job that finishes first by a time, or -1 if no job finishes by then.
func (c *Clairvoyant) firstEnd(h *history, time int32) int {
	first := -1
	for i, r := range h.running {
		if r.end <= time && (first < 0 || r.end < h.running[first].end || r.end == h.running[first].end && c.id(r.job) < c.id(h.running[first].job)) {
			first = i
		}
	}
	return first
}

// end ends a running job and then passes over the queue. It returns all histories that follow.
func (c *Clairvoyant) end(h history, i int) []history {
	c.now = h.running[i].end
	h = h.clone()
	h.running = slices.Delete(h.running, i, i+1)
	open := map[string]history{}
	c.pass(h, open)
	return slices.Collect(maps.Values(open))
}

func (c *Clairvoyant) id(job int16) int { return c.jobs[job].ID }

// class is the priority and the size of a job. If one job of a class can't start, no other job of the class can start.
type class struct{ priority, gpus int }

func (c *Clairvoyant) class(job int16) class {
	return class{c.jobs[job].Priority, c.jobs[job].GPUs()}
}

// pass tries to start each waiting job once, in order and in all possible ways. It adds the resulting histories to open.
func (c *Clairvoyant) pass(h history, open map[string]history) {
	type branch struct {
		history
		failed map[class]bool
	}
	branches := []branch{{h, map[class]bool{}}}
	for _, w := range slices.Clone(h.queue) {
		var next []branch
		for _, b := range branches {
			if b.failed[c.class(w.job)] {
				next = append(next, b)
				continue
			}
			for _, x := range c.try(b.history, w.job) {
				failed := b.failed
				if !x.started {
					failed = map[class]bool{c.class(w.job): true}
					for k := range b.failed {
						failed[k] = true
					}
				}
				next = append(next, branch{x.history, failed})
			}
		}
		branches = next
	}
	for _, b := range branches {
		c.keep(open, b.history)
	}
}

type tried struct {
	history
	started bool
}

// try starts a waiting job in all possible ways, and returns the resulting histories.
func (c *Clairvoyant) try(h history, job int16) []tried {
	gpus, priority := c.jobs[job].GPUs(), c.jobs[job].Priority
	var free [8]int
	inUse := 0
	copy(free[:], c.places)
	for _, r := range h.running {
		free[r.place] -= c.jobs[r.job].GPUs()
		if c.jobs[r.job].Priority >= priority {
			inUse += c.jobs[r.job].GPUs()
		}
	}
	var out []tried
	for p := range c.places {
		if free[p] >= gpus && !c.sameEmpty(free[:], p) {
			x := h.clone()
			x.start(c, job, int8(p))
			out = append(out, tried{x, true})
		}
	}
	if len(out) > 0 {
		return out
	}
	for p := range c.places {
		for _, victims := range c.victims(&h, int8(p), priority, gpus-free[p]) {
			x := h.clone()
			x.kill(c, victims)
			x.start(c, job, int8(p))
			out = append(out, tried{x, true})
		}
	}
	if len(out) > 0 {
		return out
	}
	x := h.clone()
	i := x.find(job)
	if inUse+gpus <= c.quota && !x.queue[i].waited {
		x.queue[i].waited = true
		x.cost++
	}
	return []tried{{x, false}}
}

// sameEmpty reports whether place p and the place before it are both empty and equally large, so that place p needn't be tried.
func (c *Clairvoyant) sameEmpty(free []int, p int) bool {
	return p > 0 && free[p] == c.places[p] && c.places[p-1] == c.places[p] && free[p-1] == free[p] //nolint:gosec // p > 0
}

// victims returns the sets of jobs with a lower priority in a place whose end frees enough GPUs. It leaves out sets from which a job can be removed.
func (c *Clairvoyant) victims(h *history, place int8, priority, missing int) [][]int16 {
	var lower []int16
	for _, r := range h.running {
		if r.place == place && c.jobs[r.job].Priority < priority {
			lower = append(lower, r.job)
		}
	}
	var out [][]int16
	for set := 1; set < 1<<len(lower); set++ {
		sum, least := 0, 1<<30
		var chosen []int16
		for i, job := range lower {
			if set>>i&1 == 1 {
				g := c.jobs[job].GPUs()
				sum, least, chosen = sum+g, min(least, g), append(chosen, job)
			}
		}
		if sum >= missing && sum-least < missing {
			out = append(out, chosen)
		}
	}
	return out
}

func (h history) clone() history {
	h.running, h.queue = append(make([]running, 0, len(h.running)+1), h.running...), append(make([]waiting, 0, len(h.queue)+1), h.queue...)
	return h
}

func (h *history) find(job int16) int {
	return slices.IndexFunc(h.queue, func(w waiting) bool { return w.job == job })
}

func (h *history) start(c *Clairvoyant, job int16, place int8) {
	i := h.find(job)
	w := h.queue[i]
	h.queue = slices.Delete(h.queue, i, i+1)
	h.running = append(h.running, running{job, place, w.waited, c.now + w.left})
}

func (h *history) kill(c *Clairvoyant, victims []int16) {
	for _, job := range victims {
		i := slices.IndexFunc(h.running, func(r running) bool { return r.job == job })
		r := h.running[i]
		h.running = slices.Delete(h.running, i, i+1)
		h.enqueue(c, waiting{job, r.waited, r.end - c.now})
	}
}

func (h *history) enqueue(c *Clairvoyant, w waiting) {
	i, _ := slices.BinarySearchFunc(h.queue, w, func(a, b waiting) int {
		x, y := c.jobs[a.job], c.jobs[b.job]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Arrival, y.Arrival), cmp.Compare(x.ID, y.ID))
	})
	h.queue = slices.Insert(h.queue, i, w)
}
