package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Report is how a run went. Times are in seconds; shares are from 0 to 1.
type Report struct {
	GPUs int `json:"gpus"`
	Jobs int `json:"jobs"`
	// Span is the time of the last arrival, with which the run ended.
	Span int `json:"spanSec"`
	// Utilisation and AvgQueueLength are taken over the last 70 % of the span.
	Utilisation            float64 `json:"utilisation"`
	AvgQueueLength         float64 `json:"avgQueueLength"`
	WaitingAtEnd           int     `json:"waitingAtEnd"`
	WaitingAtEndGuaranteed int     `json:"waitingAtEndGuaranteed"`
	Delay
	// Starts counts those after a kill too.
	Starts          int      `json:"starts"`
	Finished        int      `json:"finishedJobs"`
	OptimalLocality Locality `json:"optimalLocality"`
	Sizes           []Size   `json:"bySize"`
	// PreemptedJobs counts killed gangs.
	PreemptedJobs  int `json:"preemptedJobs"`
	DowngradedJobs int `json:"downgradedJobs"`
	// A guaranteed job waits within its quota if it and those of its virtual cluster that it can't
	// preempt fit into what the virtual cluster owns: the shape of free cells keeps it waiting.
	FailedAttemptsWithinQuota int `json:"failedAttemptsWithinQuota"`
	JobsThatWaitedWithinQuota int `json:"jobsThatWaitedWithinQuota"`
	// WaitedWithinQuotaByCode has the scheduler's explanation of each such job's first wait.
	WaitedWithinQuotaByCode map[string]int `json:"waitedWithinQuotaByCode"`
	VirtualClusters         []VCReport     `json:"virtualClusters"`
	// Refused are jobs that could never start.
	Refused   []Refusal `json:"refusedJobs"`
	Decisions int       `json:"decisions"`
	Speed     *Speed    `json:"speed,omitempty"`
}

// Delay is how long jobs waited for their first start.
type Delay struct {
	Mean float64 `json:"meanQueueDelaySec"`
	P50  int     `json:"p50QueueDelaySec"`
	P99  int     `json:"p99QueueDelaySec"`
}

// Locality says how many starts got the lowest level that could hold their GPUs.
type Locality struct {
	All           Share `json:"all"`
	Guaranteed    Share `json:"guaranteed"`
	Opportunistic Share `json:"opportunistic"`
}

// Share is a part of a number of starts.
type Share struct {
	Starts  int     `json:"starts"`
	Optimal int     `json:"optimal"`
	Share   float64 `json:"share"`
}

func (s *Share) add(optimal bool) {
	s.Starts++
	if optimal {
		s.Optimal++
	}
	s.Share = float64(s.Optimal) / float64(s.Starts)
}

// Size is where jobs of one size were placed.
type Size struct {
	GPUs int `json:"gpus"`
	Share
	// Levels counts starts by the lowest level of which one cell holds all GPUs, CLUSTER if none does.
	Levels map[string]int `json:"levels"`
}

// VCReport is how it went for one virtual cluster.
type VCReport struct {
	Name string `json:"name"`
	GPUs int    `json:"gpus"`
	Jobs int    `json:"jobs"`
	Delay
	Guaranteed                Delay `json:"guaranteed"`
	Opportunistic             Delay `json:"opportunistic"`
	WaitingAtEnd              int   `json:"waitingAtEnd"`
	PreemptedJobs             int   `json:"preemptedJobs"`
	JobsThatWaitedWithinQuota int   `json:"jobsThatWaitedWithinQuota"`
}

// Refusal is a job that could never start.
type Refusal struct {
	Job    int    `json:"job"`
	Reason string `json:"reason"`
}

// delays are the delays of jobs that started, by virtual cluster.
type delays struct{ guaranteed, opportunistic map[string][]int }

// counts are what a run counts on its way.
type counts struct {
	busy, pending     float64 // GPUs and jobs, times seconds
	decisions         int
	starts, finished  int
	downgrades        int
	failedWithinQuota int
	killed, waited    map[string]int // by virtual cluster
	codes             map[string]int
	delays            delays
	locality          Locality
	sizes             map[int]*Size
	refused           []Refusal
}

func newCounts() counts {
	return counts{killed: map[string]int{}, waited: map[string]int{}, codes: map[string]int{}, sizes: map[int]*Size{},
		delays: delays{map[string][]int{}, map[string][]int{}}}
}

// started counts where a job was placed.
func (c *counts) started(t *topology, j *job, at *cell.Placement) {
	c.starts++
	is, best := t.common(at.Pods)
	c.locality.All.add(is == best)
	if j.Priority < 0 {
		c.locality.Opportunistic.add(is == best)
	} else {
		c.locality.Guaranteed.add(is == best)
	}
	s := c.sizes[j.GPUs()]
	if s == nil {
		s = &Size{GPUs: j.GPUs(), Levels: map[string]int{}}
		c.sizes[j.GPUs()] = s
	}
	s.add(is == best)
	s.Levels[is]++
}

// delayed counts how long a job waited for its first start.
func (c *counts) delayed(j *job, seconds int) {
	by := c.delays.guaranteed
	if j.Priority < 0 {
		by = c.delays.opportunistic
	}
	by[j.VC] = append(by[j.VC], seconds)
}

// report sums up.
func (r *run) report(c cell.Config) *Report {
	out := &Report{GPUs: r.topology.gpus, Jobs: len(r.jobs), Span: r.last, Starts: r.count.starts, Finished: r.count.finished,
		OptimalLocality: r.count.locality, DowngradedJobs: r.count.downgrades, FailedAttemptsWithinQuota: r.count.failedWithinQuota,
		WaitedWithinQuotaByCode: r.count.codes, Refused: append([]Refusal{}, r.count.refused...), Sizes: []Size{}, VirtualClusters: []VCReport{},
		Decisions: r.count.decisions, Speed: r.watch.speed()}
	if seconds := 0.7 * float64(r.last); seconds > 0 && r.topology.gpus > 0 {
		out.Utilisation = r.count.busy / seconds / float64(r.topology.gpus)
		out.AvgQueueLength = r.count.pending / seconds
	}
	for _, s := range r.count.sizes {
		out.Sizes = append(out.Sizes, *s)
	}
	slices.SortFunc(out.Sizes, func(a, b Size) int { return cmp.Compare(a.GPUs, b.GPUs) })
	var all []int
	for _, v := range c.VirtualClusters {
		g, o := r.count.delays.guaranteed[v.Name], r.count.delays.opportunistic[v.Name]
		both := slices.Concat(g, o)
		all = append(all, both...)
		out.PreemptedJobs += r.count.killed[v.Name]
		out.JobsThatWaitedWithinQuota += r.count.waited[v.Name]
		out.VirtualClusters = append(out.VirtualClusters, VCReport{Name: v.Name, GPUs: r.quota[v.Name], Delay: delay(both), Guaranteed: delay(g),
			Opportunistic: delay(o), PreemptedJobs: r.count.killed[v.Name], JobsThatWaitedWithinQuota: r.count.waited[v.Name]})
	}
	out.Delay = delay(all)
	at := map[string]*VCReport{}
	for i := range out.VirtualClusters {
		at[out.VirtualClusters[i].Name] = &out.VirtualClusters[i]
	}
	for _, j := range r.jobs {
		at[j.VC].Jobs++
	}
	for _, j := range r.queue {
		at[j.VC].WaitingAtEnd++
		out.WaitingAtEnd++
		if j.Priority >= 0 {
			out.WaitingAtEndGuaranteed++
		}
	}
	return out
}

// delay sums up delays, which it sorts.
func delay(seconds []int) Delay {
	if len(seconds) == 0 {
		return Delay{}
	}
	sum := 0.0
	for _, s := range seconds {
		sum += float64(s)
	}
	return Delay{sum / float64(len(seconds)), percentile(seconds, 0.5), percentile(seconds, 0.99)}
}

// percentile returns the smallest value that a share p of all values doesn't exceed; 0 of none. It
// sorts the values.
func percentile[T cmp.Ordered](values []T, p float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	slices.Sort(values)
	return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
}
