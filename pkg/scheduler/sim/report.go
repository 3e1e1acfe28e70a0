package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Report is the result of a run. Times are in seconds. Shares are between 0 and 1.
type Report struct {
	GPUs int `json:"gpus"`
	Jobs int `json:"jobs"`
	// Span is the time of the last arrival. Without Drain, the run ends at this time.
	Span int `json:"spanSec"`
	// Utilisation and AvgQueueLength are averages over the last 70 % of the span.
	Utilisation float64 `json:"utilisation"`
	// UsefulUtilisation excludes repeated work and restarts.
	UsefulUtilisation      float64 `json:"usefulUtilisation"`
	AvgQueueLength         float64 `json:"avgQueueLength"`
	WaitingAtEnd           int     `json:"waitingAtEnd"`
	WaitingAtEndGuaranteed int     `json:"waitingAtEndGuaranteed"`
	Delay
	// Starts counts all starts of jobs, including starts after a kill.
	Starts          int      `json:"starts"`
	Finished        int      `json:"finishedJobs"`
	OptimalLocality Locality `json:"optimalLocality"`
	Sizes           []Size   `json:"bySize"`
	// PreemptedJobs counts killed gangs.
	PreemptedJobs int `json:"preemptedJobs"`
	// Completion is set if the run continued until all jobs had finished.
	Completion     *Completions `json:"completion,omitempty"`
	DowngradedJobs int          `json:"downgradedJobs"`
	// A guaranteed job waits within its quota if the virtual cluster owns enough cells for the job and for all its jobs that
	// the job can't preempt. The job then waits only because of the shape of the free cells.
	FailedAttemptsWithinQuota int `json:"failedAttemptsWithinQuota"`
	JobsThatWaitedWithinQuota int `json:"jobsThatWaitedWithinQuota"`
	// WaitedWithinQuotaByCode counts these jobs by code. The code is from the scheduler's explanation when a job first waited
	// within its quota.
	WaitedWithinQuotaByCode map[string]int `json:"waitedWithinQuotaByCode"`
	VirtualClusters         []VCReport     `json:"virtualClusters"`
	// Refused lists the jobs that can never start.
	Refused   []Refusal `json:"refusedJobs"`
	Decisions int       `json:"decisions"`
	Speed     *Speed    `json:"speed,omitempty"`
}

// Delay summarizes how long jobs waited for their first start.
type Delay struct {
	Mean float64 `json:"meanQueueDelaySec"`
	P50  int     `json:"p50QueueDelaySec"`
	P99  int     `json:"p99QueueDelaySec"`
}

// Completions summarizes how long jobs took from their arrival to their end.
type Completions struct {
	All           Completion `json:"all"`
	Guaranteed    Completion `json:"guaranteed"`
	Opportunistic Completion `json:"opportunistic"`
	// LostWork is the time for repeated work and restarts, as a share of the work of all jobs.
	LostWork float64 `json:"lostWork"`
}

// Completion summarizes how long jobs took from arrival to end. Slowdown is that time divided by the job's run time.
type Completion struct {
	Jobs     int    `json:"jobs"`
	Queue    Spread `json:"queueSec"`
	Time     Spread `json:"timeSec"`
	Slowdown Spread `json:"slowdown"`
}

// Spread holds the mean and the 99th percentile.
type Spread struct {
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`
}

func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return Spread{sum / float64(len(values)), percentile(values, 0.99)}
}

// Locality counts starts in a cell of the lowest level that is large enough for the job.
type Locality struct {
	All           Share `json:"all"`
	Guaranteed    Share `json:"guaranteed"`
	Opportunistic Share `json:"opportunistic"`
}

// Share counts starts and optimal starts.
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

// Size summarizes the placements of all jobs with the same number of GPUs.
type Size struct {
	GPUs int `json:"gpus"`
	Share
	// Levels counts starts by the lowest level with a cell that contains all GPUs of the job. It counts starts without such a
	// cell under CLUSTER.
	Levels map[string]int `json:"levels"`
}

// VCReport is the report for one virtual cluster.
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

// Refusal is a job that can never start.
type Refusal struct {
	Job    int    `json:"job"`
	Reason string `json:"reason"`
}

// delays holds the delays of jobs until their first start, by virtual cluster.
type delays struct{ guaranteed, opportunistic map[string][]int }

type counts struct {
	busy, pending     float64 // GPUs in use and waiting jobs, multiplied by seconds
	useless           float64 // the part of busy for lost work
	lost              int     // in GPU seconds
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

func (c *counts) delayed(j *job, seconds int) {
	by := c.delays.guaranteed
	if j.Priority < 0 {
		by = c.delays.opportunistic
	}
	by[j.VC] = append(by[j.VC], seconds)
}

func (r *run) report(c cell.Config) *Report {
	out := &Report{GPUs: r.topology.gpus, Jobs: len(r.jobs), Span: r.last, Starts: r.count.starts, Finished: r.count.finished,
		OptimalLocality: r.count.locality, DowngradedJobs: r.count.downgrades, FailedAttemptsWithinQuota: r.count.failedWithinQuota,
		WaitedWithinQuotaByCode: r.count.codes, Refused: append([]Refusal{}, r.count.refused...), Sizes: []Size{}, VirtualClusters: []VCReport{},
		Decisions: r.count.decisions, Speed: r.watch.speed()}
	if seconds := 0.7 * float64(r.last); seconds > 0 && r.topology.gpus > 0 {
		out.Utilisation = r.count.busy / seconds / float64(r.topology.gpus)
		out.UsefulUtilisation = (r.count.busy - r.count.useless - r.restarting()) / seconds / float64(r.topology.gpus)
		out.AvgQueueLength = r.count.pending / seconds
	}
	for _, s := range r.count.sizes {
		size := *s
		size.Levels = maps.Clone(s.Levels)
		out.Sizes = append(out.Sizes, size)
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
	for _, g := range r.queue.Order() {
		j := g.Data.(*job)
		at[j.VC].WaitingAtEnd++
		out.WaitingAtEnd++
		if j.Priority >= 0 {
			out.WaitingAtEndGuaranteed++
		}
	}
	return out
}

// restarting returns the GPU seconds that current restarts have used, within the reported time.
func (r *run) restarting() float64 {
	sum := 0.0
	for _, j := range r.jobs {
		if j.began < 0 {
			continue
		}
		if d := min(float64(j.began+j.starting), float64(r.now), float64(r.last)) - max(float64(j.began), 0.3*float64(r.last)); d > 0 {
			sum += d * float64(j.GPUs())
		}
	}
	return sum
}

// drained returns the report of a run that continued until all jobs had finished. Utilization, queue and placements are from
// then, the report at the last arrival.
func (r *run) drained(then, out *Report) *Report {
	out.WaitingAtEnd, out.WaitingAtEndGuaranteed = then.WaitingAtEnd, then.WaitingAtEndGuaranteed
	for i := range out.VirtualClusters {
		out.VirtualClusters[i].WaitingAtEnd = then.VirtualClusters[i].WaitingAtEnd
	}
	out.OptimalLocality, out.Sizes, out.Starts = then.OptimalLocality, then.Sizes, then.Starts
	var all, guaranteed, opportunistic took
	work := 0
	for _, j := range r.jobs {
		if j.finish < 0 {
			continue // the job could never start
		}
		work += j.Duration * j.GPUs()
		all.add(j)
		if j.Priority < 0 {
			opportunistic.add(j)
		} else {
			guaranteed.add(j)
		}
	}
	out.Completion = &Completions{All: all.sum(), Guaranteed: guaranteed.sum(), Opportunistic: opportunistic.sum(), LostWork: float64(r.count.lost) / float64(max(work, 1))}
	return out
}

// took collects the queueing times, completion times and slowdowns of jobs.
type took struct{ queue, time, slowdown []float64 }

func (t *took) add(j *job) {
	t.queue = append(t.queue, float64(j.first-j.Arrival))
	t.time = append(t.time, float64(j.finish-j.Arrival))
	t.slowdown = append(t.slowdown, float64(j.finish-j.Arrival)/float64(max(j.Duration, 1)))
}

func (t *took) sum() Completion {
	return Completion{Jobs: len(t.time), Queue: spread(t.queue), Time: spread(t.time), Slowdown: spread(t.slowdown)}
}

// delay summarizes delays in seconds. It sorts seconds.
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

// percentile returns the smallest value that is at least as large as a share p of all values. It returns 0 for no values. It
// sorts values.
func percentile[T cmp.Ordered](values []T, p float64) T {
	var none T
	if len(values) == 0 {
		return none
	}
	slices.Sort(values)
	return values[max(int(math.Ceil(p*float64(len(values))))-1, 0)]
}
