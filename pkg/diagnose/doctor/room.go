package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// patience limits how long a job of the doctor waits for cells that other jobs occupy.
const patience = 15 * time.Second

// noVacancy returns a finding if a virtual cluster has no free cells for a job that is about to be submitted. It returns nil if cells are free or the
// scheduler can't be reached. In the latter case, the job itself shows the problem.
func (c *Cluster) noVacancy(ctx context.Context, t *trial) *Finding {
	all, err := c.Jobs.Scheduler.VirtualClusters(ctx)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(all.Items, func(v schedulerapi.VirtualCluster) bool { return v.Name == t.vc })
	if i < 0 {
		return nil
	}
	v := &all.Items[i]
	cpu := v.CPU != nil && v.CPU.Guaranteed > 0
	if v.Free > 0 || cpu && v.CPU.Free > 0 || v.Guaranteed == 0 && !cpu {
		return nil
	}
	free := freeOf(0, v.Guaranteed, "GPU")
	if cpu {
		free += " and " + freeOf(0, v.CPU.Guaranteed, "CPU cell")
	}
	f := noRoom(t, free)
	if v.Bad > 0 {
		f.Evidence = plural.Of(v.Bad, "GPU") + " of them can't be used"
	}
	return &f
}

// noRoom returns a finding about a job without room. A job without room isn't a fault of the cluster.
func noRoom(t *trial, free string) Finding {
	return warning(t.vc, "nothing is wrong: run the check again when jobs have finished (paictl job list)", "no room for a job of %s: %s", plural.Of(t.tasks(), "task"), free)
}

func freeOf(free, of int, unit string) string {
	return fmt.Sprintf("%s free of %d", plural.Of(free, unit), of)
}

// waiting records the time since which a job has been waiting for cells.
type waiting struct{ since time.Time }

// full returns a finding if the job has waited long enough for cells that other jobs occupy. Otherwise it returns nil.
func (w *waiting) full(ctx context.Context, c *Cluster, t *trial, d *job.Detail) *Finding {
	if p := job.Phase(d.State); p != job.Queued && p != job.Waiting {
		w.since = time.Time{}
		return nil
	}
	if w.since.IsZero() {
		w.since = c.Now()
	}
	if c.Now().Sub(w.since) < patience {
		return nil
	}
	queue, err := c.Jobs.Scheduler.Queue(ctx, schedulerapi.QueueQuery{VC: t.vc})
	if err != nil {
		return nil
	}
	for _, g := range queue.Items {
		if job.ObjectOfGroup(g.Group) != d.Framework {
			continue
		}
		why, err := c.Jobs.Scheduler.Why(ctx, t.vc, g.Group)
		if err != nil || why.Explanation == nil {
			continue
		}
		if f := t.crowded(why); f != nil {
			return f
		}
	}
	return nil
}

// crowded returns a finding if a gang of the job has no room. It returns nil if the job waits for another reason.
func (t *trial) crowded(why *schedulerapi.Why) *Finding {
	x := why.Explanation
	if x.Code == cell.Ready && slices.ContainsFunc(t.nodes, func(n string) bool { return !slices.Contains(x.Nodes, n) }) {
		// The scheduler's result doesn't consider the machines that the job requires.
		f := noRoom(t, "it is to run on "+strings.Join(t.nodes, " and ")+", and there is room on "+strings.Join(x.Nodes, " and ")+" alone")
		return &f
	}
	if !isFull(x.Code) {
		return nil
	}
	f := noRoom(t, freeFor(x)).seen(why.Sentence)
	if x.Code == cell.BadNodes {
		f.Remedy = "see which GPUs can't be used: paictl node gpu list --sick"
	}
	return &f
}

// isFull reports whether the code means that a gang waits for cells that are occupied or unusable.
func isFull(code string) bool {
	return slices.Contains([]string{cell.NoCapacity, cell.Fragmented, cell.BadNodes, cell.HeldBack, cell.QuotaUsed}, code)
}

func freeFor(x *cell.Explanation) string {
	if x.CPUCells > 0 {
		return freeOf(x.FreeCPUCells, x.OwnedCPUCells, "CPU cell")
	}
	return freeOf(x.FreeGPUs, x.OwnedGPUs, "GPU")
}

func (c *Cluster) tasksOn(ctx context.Context) (map[string]int, error) {
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for i := range pods {
		if p := &pods[i]; p.Namespace == c.Jobs.Namespace && p.Status.Phase == corev1.PodRunning {
			out[p.Spec.NodeName]++
		}
	}
	return out, nil
}
