package bound

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Model is a single virtual cluster. Jobs arrive at random (Poisson) and last for an exponential time with the same mean for all sizes. The running
// jobs alone therefore determine the future, and a policy doesn't need a memory.
type Model struct {
	// Places are the numbers of GPUs of the cells that the virtual cluster owns, in ascending order. Each job runs in one place.
	Places []int
	// Sizes are the numbers of GPUs that jobs request. Shares are the frequencies of these sizes.
	Sizes  []int
	Shares []float64
	// Load is the requested GPU time as a fraction of the GPU time that the virtual cluster has.
	Load float64
	// Queue is how many jobs of each size can wait. Further jobs are lost, so a shorter queue means a lower load.
	Queue int
}

// GPUs returns the number of GPUs that the virtual cluster owns.
func (m Model) GPUs() int {
	all := 0
	for _, n := range m.Places {
		all += n
	}
	return all
}

// Rate returns the mean number of arrivals during the mean run time of a job.
func (m Model) Rate() float64 {
	mean := 0.0
	for i, size := range m.Sizes {
		mean += float64(size) * m.Shares[i]
	}
	return m.Load * float64(m.GPUs()) / mean
}

const (
	maxPlaces = 4
	maxSizes  = 4
)

// content counts jobs by size.
type content [maxSizes]int8

// state holds the running jobs of each place, and the waiting jobs. Places of equal capacity are interchangeable, so their contents are sorted. A
// job that fits doesn't wait.
type state struct {
	at    [maxPlaces]content
	queue content
}

// event is something that may happen in a state. It holds the states that a policy can then choose from.
type event struct {
	rate float64
	// counts means that a job finds no place although enough GPUs are free in total.
	counts bool
	to     []int32
}

// Solver holds the states of a model and the transitions between these states.
type Solver struct {
	Model
	states []state
	index  map[state]int32
	events [][]event
}

// NewSolver returns a Solver with all states of a model. It fails if the model is invalid or too large.
func NewSolver(m Model) (*Solver, error) {
	if len(m.Places) > maxPlaces || len(m.Sizes) > maxSizes || len(m.Sizes) != len(m.Shares) || !slices.IsSorted(m.Places) {
		return nil, fmt.Errorf("a model has up to %d places in order of size, and up to %d sizes of jobs, each with its share", maxPlaces, maxSizes)
	}
	s := &Solver{Model: m, index: map[state]int32{}}
	s.add(state{})
	for i := 0; i < len(s.states); i++ {
		s.events = append(s.events, s.eventsOf(s.states[i]))
	}
	return s, nil
}

// States returns the number of states.
func (s *Solver) States() int { return len(s.states) }

func (s *Solver) add(st state) int32 {
	i, ok := s.index[st]
	if !ok {
		i = int32(len(s.states))
		s.index[st] = i
		s.states = append(s.states, st)
	}
	return i
}

func (s *Solver) gpus(c content) int {
	n := 0
	for k, size := range s.Sizes {
		n += size * int(c[k])
	}
	return n
}

func (s *Solver) used(st state) int {
	n := 0
	for _, c := range st.at {
		n += s.gpus(c)
	}
	return n
}

// change returns the state after the number of jobs of size k in a place changes by the given number.
func (s *Solver) change(st state, place, k int, by int8) state {
	at := &st.at
	at[place][k] += by
	for i := place; i > 0 && s.Places[i-1] == s.Places[i] && less(at[i], at[i-1]); i-- {
		at[i], at[i-1] = at[i-1], at[i]
	}
	for i := place; i+1 < len(s.Places) && s.Places[i+1] == s.Places[i] && less(at[i+1], at[i]); i++ {
		at[i], at[i+1] = at[i+1], at[i]
	}
	return st
}

func less(a, b content) bool { return slices.Compare(a[:], b[:]) < 0 }

// eventsOf returns the arrivals and ends that can happen in a state.
func (s *Solver) eventsOf(st state) []event {
	var out []event
	for k, share := range s.Shares {
		e := event{rate: share * s.Rate(), to: s.starts(st, k)}
		if len(e.to) == 0 {
			e.counts = s.used(st)+s.Sizes[k] <= s.GPUs()
			next := st
			if int(next.queue[k]) < s.Queue {
				next.queue[k]++
			}
			e.to = []int32{s.add(next)}
		}
		out = append(out, e)
	}
	for p := range s.Places {
		for k := range s.Sizes {
			if n := st.at[p][k]; n > 0 {
				e := event{rate: float64(n)}
				s.settle(s.change(st, p, k, -1), &e.to)
				out = append(out, e)
			}
		}
	}
	return out
}

// starts returns the states that can follow when a job of size k starts: one for each place in which it fits.
func (s *Solver) starts(st state, k int) []int32 {
	var out []int32
	for p, room := range s.Places {
		if s.gpus(st.at[p])+s.Sizes[k] <= room {
			if to := s.add(s.change(st, p, k, 1)); !slices.Contains(out, to) {
				out = append(out, to)
			}
		}
	}
	return out
}

// settle starts waiting jobs that fit, in all orders and places, and adds the resulting states to out.
func (s *Solver) settle(st state, out *[]int32) {
	settled := true
	for k, size := range s.Sizes {
		if st.queue[k] == 0 {
			continue
		}
		for p, room := range s.Places {
			if s.gpus(st.at[p])+size <= room {
				settled = false
				next := s.change(st, p, k, 1)
				next.queue[k]--
				s.settle(next, out)
			}
		}
	}
	if settled {
		if to := s.add(st); !slices.Contains(*out, to) {
			*out = append(*out, to)
		}
	}
}

// Policy orders the states that it can choose from. It chooses the state with the lowest value.
type Policy func(s *Solver, st state) int

// FullestFirst uses as many GPUs as possible, and starts a job in the place that then has the least room left.
func FullestFirst(s *Solver, st state) int { return -s.used(st)<<16 - s.squares(st) }

// EmptiestFirst uses as many GPUs as possible, and starts a job in the place that then has the most room left.
func EmptiestFirst(s *Solver, st state) int { return -s.used(st)<<16 + s.squares(st) }

// squares returns a number that grows as the free GPUs are concentrated in fewer places.
func (s *Solver) squares(st state) int {
	sum := 0
	for p, n := range s.Places {
		room := n - s.gpus(st.at[p])
		sum += room * room
	}
	return sum
}

// Goal is the quantity that a policy shall minimize.
type Goal int

const (
	// Waits is the share of jobs that find no place at their arrival although enough GPUs are free in total.
	Waits Goal = iota
	// Nodes is the mean number of places with a running job, in units of 8 GPUs. A smaller place counts in proportion to its size.
	Nodes
)

// held returns the number of nodes with a running job. A place smaller than a node counts in proportion to its size.
func (s *Solver) held(st state) float64 {
	n := 0
	for p, size := range s.Places {
		if st.at[p] != (content{}) {
			n += size
		}
	}
	return float64(n) / nodeGPUs
}

// Solve returns the figure of the goal for policy p, or for the best policy if p is nil. The result is exact to the given precision. value orders the
// states: the best policy chooses the state with the lowest value.
func (s *Solver) Solve(g Goal, p Policy, precision float64) (figure float64, value []float64) {
	if p != nil {
		s = s.bound(p)
	}
	clock := s.Rate() + float64(s.GPUs())
	unit := clock // the unit of the figure, in ticks
	perWait, perTick := 1.0, make([]float64, len(s.states))
	if g == Waits {
		unit = clock / s.Rate()
	} else {
		perWait = 0
		for i, st := range s.states {
			perTick[i] = s.held(st) / clock
		}
	}
	value = make([]float64, len(s.states))
	next := make([]float64, len(s.states))
	for {
		// The figure is between the smallest and the largest change (Odoni 1969).
		low, high := math.Inf(1), math.Inf(-1)
		for i, events := range s.events {
			sum, stay := perTick[i]*clock, clock
			for k := range events {
				e := &events[k]
				least := value[e.to[0]]
				for _, to := range e.to[1:] {
					least = min(least, value[to])
				}
				if e.counts {
					least += perWait
				}
				sum += e.rate * least
				stay -= e.rate
			}
			next[i] = (sum + stay*value[i]) / clock
			d := next[i] - value[i]
			low, high = min(low, d), max(high, d)
		}
		base := next[0]
		for i := range next {
			next[i] -= base
		}
		value, next = next, value
		if (high-low)*unit < precision {
			return (low + high) / 2 * unit, value
		}
	}
}

// bound returns a copy of the solver without the choices that p doesn't make.
func (s *Solver) bound(p Policy) *Solver {
	out := *s
	out.events = make([][]event, len(s.events))
	for i, events := range s.events {
		out.events[i] = slices.Clone(events)
		for k := range events {
			to := slices.MinFunc(events[k].to, func(a, b int32) int {
				return cmp.Compare(p(s, s.states[a]), p(s, s.states[b]))
			})
			out.events[i][k].to = []int32{to}
		}
	}
	return &out
}
