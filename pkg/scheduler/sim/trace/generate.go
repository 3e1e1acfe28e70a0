package trace

import (
	"fmt"
	"math"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Load is the load of a generated trace: the GPU time that arriving jobs request per second, as a share of all GPUs.
const Load = 0.90

// size is the size of a generated cluster and trace.
type size struct{ gpus, vcs, jobs int }

var known = []size{{64, 4, 4000}, {512, 4, 6000}, {2048, 8, 10000}, {8192, 8, 20000}, {65536, 8, 20000}}

// Sizes returns the numbers of GPUs that Generate supports, in ascending order.
func Sizes() []int {
	var out []int
	for _, s := range known {
		out = append(out, s.gpus)
	}
	return out
}

// Trace is a cluster and the jobs that arrive in it.
type Trace struct {
	// Config is the cluster's configuration. YAML is the same configuration in HiveD's format.
	Config cell.Config
	YAML   []byte
	Jobs   []Job
}

// Generate returns a trace for a cluster with a number of GPUs from Sizes. A different seed gives different jobs for the same
// cluster.
func Generate(gpus int, seed uint64) (*Trace, error) {
	i := slices.IndexFunc(known, func(s size) bool { return s.gpus == gpus })
	if i < 0 {
		return nil, fmt.Errorf("there is no trace of %d GPUs: the sizes are %v", gpus, Sizes())
	}
	s := known[i]
	c := newCluster(s)
	r := &random{uint64(20200000+gpus) + seed*1000003}
	return &Trace{Config: c.config(), YAML: c.yaml(), Jobs: makeJobs(r, c, s.jobs)}, nil
}

// jobSizes are the sizes of jobs in GPUs. jobShare is the share of jobs of each size.
var (
	jobSizes = []int{1, 2, 4, 8, 16, 32, 64}
	jobShare = []float64{0.40, 0.14, 0.14, 0.18, 0.07, 0.045, 0.025}
)

// makeJobs generates the arrivals after the jobs, because the arrival rate depends on the work of all jobs.
func makeJobs(r *random, c cluster, n int) []Job {
	jobs := make([]Job, n)
	work := 0.0
	for i := range jobs {
		v := c.draw(int(r.uniform() * float64(c.gpus)))
		j := &jobs[i]
		j.ID, j.VC, j.Priority = i, v.name, drawPriority(r.uniform())
		// An opportunistic job may use a quarter of the cluster. A guaranteed job may use half of the whole nodes that its
		// virtual cluster owns.
		limit := c.gpus / 4
		if j.Priority >= 0 {
			limit = max(4, (v.racks*c.rackNodes+v.nodes)*gpusPerNode/2)
		}
		want := drawSize(r.uniform(), limit)
		j.Pods, j.GPUsPerPod = 1, want
		if want > gpusPerNode {
			j.Pods, j.GPUsPerPod = want/gpusPerNode, gpusPerNode
		}
		seconds := 1800 * math.Exp(r.normal())
		j.Duration = int(math.Max(60, math.Min(21600, seconds)))
		work += float64(want * j.Duration)
	}
	rate := Load * float64(c.gpus) / (work / float64(n)) // jobs per second
	at := 0.0
	for i := range jobs {
		at += -math.Log(1-r.uniform()) / rate
		jobs[i].Arrival = int(at)
	}
	return jobs
}

// drawPriority returns opportunistic for 30 % of the jobs. For the other jobs, it returns 0, 10 and 100 in 60, 30 and 10 % of
// the cases.
func drawPriority(p float64) int {
	switch {
	case p < 0.30:
		return cell.Opportunistic
	case p < 0.30+0.42:
		return 0
	case p < 0.30+0.42+0.21:
		return 10
	default:
		return 100
	}
}

// drawSize returns a random job size. It halves the size until the size is within the limit.
func drawSize(p float64, limit int) int {
	gpus := jobSizes[len(jobSizes)-1]
	for i, share := range jobShare {
		if p < share {
			gpus = jobSizes[i]
			break
		}
		p -= share
	}
	for gpus > limit {
		gpus /= 2
	}
	return gpus
}
