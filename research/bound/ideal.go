package bound

import (
	"cmp"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// Share is the part of a cluster that a virtual cluster owns, in whole nodes and single quads.
type Share struct {
	Name         string
	Nodes, Quads int
}

// Occupied counts the GPUs that guaranteed jobs hold at some time, and the nodes that contain these GPUs.
type Occupied struct{ GPUs, Nodes int }

// Ideal replays a trace for a scheduler that moves, stops and resumes opportunistic jobs at any moment without a cost. Jobs of a node or more run on
// idle nodes, the largest job first. Smaller jobs can use any of the remaining idle GPUs. If Steady is set, only moves have no cost: jobs start in order of
// arrival as soon as they fit, and run until they finish or until guaranteed jobs take their nodes, from the youngest job first.
//
// The guaranteed jobs either keep the placement of another scheduler, or are placed ideally, too: the jobs of each virtual cluster use its share in
// order of priority, and occupy as few nodes as possible at every moment. The guarantee demands that virtual clusters use separate nodes; only quads
// share nodes.
type Ideal struct {
	Nodes  int
	Shares []Share
	// Taken, if set, contains the GPUs and nodes that guaranteed jobs hold after each arrival.
	Taken []Occupied
	// Steady means that an opportunistic job runs without interruption until it finishes, or until guaranteed jobs take its nodes.
	Steady  bool
	started int
}

const (
	nodeGPUs = 8
	quadGPUs = 4
)

type idealJob struct {
	trace.Job
	left int
	runs bool
	// since is the order of the starts of opportunistic jobs.
	since int
}

// Utilisation returns the share of all GPUs that are in use, over the time from 30 % of the last arrival to the last arrival, as in the simulator's
// report.
func (d *Ideal) Utilisation(jobs []trace.Job) float64 {
	var open []*idealJob
	last := jobs[len(jobs)-1].Arrival
	from, now, busy := 0.3*float64(last), 0, 0.0
	for i, j := range jobs {
		for now < j.Arrival {
			used := d.choose(i-1, open)
			to := j.Arrival
			for _, x := range open {
				if x.runs {
					to = min(to, now+x.left)
				}
			}
			busy += max(0, float64(to)-max(float64(now), from)) * float64(used)
			for _, x := range open {
				if x.runs {
					x.left -= to - now
				}
			}
			open = slices.DeleteFunc(open, func(x *idealJob) bool { return x.left <= 0 })
			now = to
		}
		if j.Priority < 0 || d.Taken == nil {
			open = append(open, &idealJob{Job: j, left: j.Duration})
		}
	}
	return busy / (float64(last) - from) / float64(d.Nodes*nodeGPUs)
}

// choose selects the jobs that run after an arrival, and returns the number of GPUs in use.
func (d *Ideal) choose(arrival int, open []*idealJob) int {
	var held Occupied
	switch {
	case d.Taken == nil:
		held = d.guaranteed(open)
	case arrival >= 0:
		held = d.Taken[arrival]
	}
	r := room{d.Nodes - held.Nodes, held.Nodes*nodeGPUs - held.GPUs}
	used := held.GPUs
	var order []*idealJob
	for _, j := range open {
		if j.Priority < 0 {
			order = append(order, j)
		}
	}
	slices.SortStableFunc(order, func(a, b *idealJob) int {
		if d.Steady {
			return cmp.Or(compareBool(b.runs, a.runs), cmp.Compare(a.since, b.since))
		}
		return cmp.Compare(b.GPUs(), a.GPUs())
	})
	for _, j := range order {
		if ran := j.runs; r.take(j.GPUs()) {
			j.runs, used = true, used+j.GPUs()
			if !ran {
				d.started++
				j.since = d.started
			}
		} else {
			j.runs, j.since = false, 0
		}
	}
	return used
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// room counts the idle nodes that guaranteed jobs leave, and the other idle GPUs on nodes with guaranteed jobs or small jobs. Small jobs can always
// be moved together.
type room struct{ nodes, pieces int }

func (r *room) take(gpus int) bool {
	switch {
	case gpus >= nodeGPUs && gpus <= r.nodes*nodeGPUs:
		r.nodes -= gpus / nodeGPUs
	case gpus < nodeGPUs && gpus <= r.pieces:
		r.pieces -= gpus
	case gpus < nodeGPUs && r.nodes > 0:
		r.nodes, r.pieces = r.nodes-1, r.pieces+nodeGPUs-gpus
	default:
		return false
	}
	return true
}

// guaranteed selects the guaranteed jobs that run, and returns the GPUs and nodes that these jobs hold.
func (d *Ideal) guaranteed(open []*idealJob) Occupied {
	var held Occupied
	quads := 0
	for _, v := range d.Shares {
		used := runs(open, v)
		held.GPUs += used
		held.Nodes += used / nodeGPUs
		switch rest := used % nodeGPUs; {
		case rest > quadGPUs*v.Quads:
			held.Nodes++
		case rest > 0:
			quads++
		}
	}
	held.Nodes += (quads + 1) / 2
	return held
}

// runs selects the jobs of one virtual cluster that run, by priority and then in order of arrival. It returns the number of GPUs that these jobs use.
func runs(open []*idealJob, v Share) int {
	var own []*idealJob
	for _, j := range open {
		if j.VC == v.Name && j.Priority >= 0 {
			own = append(own, j)
		}
	}
	slices.SortStableFunc(own, func(a, b *idealJob) int { return cmp.Compare(b.Priority, a.Priority) })
	used := 0
	for _, j := range own {
		j.runs = used+j.GPUs() <= v.Nodes*nodeGPUs+v.Quads*quadGPUs
		if j.runs {
			used += j.GPUs()
		}
	}
	return used
}
