package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
)

// cards fills in the measurements of GPUs for the tasks that have GPUs. If the GPUs of a machine can't be measured, the fields stay nil, and
// problems contains the error.
func cards(ctx context.Context, c *job.Client, list []Task) (problems []error) {
	nodes := map[string]bool{}
	for i := range list {
		if list[i].GPUs > 0 {
			nodes[list[i].Node] = true
		}
	}
	var mu sync.Mutex
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		g.Go(func() error {
			all, err := c.History.GPUs(asking, node)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err) || errors.Is(err, job.ErrNoController): // there are no measurements, or the job controller doesn't answer
			case err != nil:
				problems = append(problems, fmt.Errorf("ask for the utilization of the GPUs of %s: %w", node, err))
			}
			for i := range list {
				if list[i].Node == node {
					list[i].add(c.Namespace, all)
				}
			}
			return nil
		})
	}
	_ = g.Wait() // each goroutine keeps its own error
	return problems
}

// add sums up the utilization, power and memory of a task's GPUs.
func (t *Task) add(namespace string, all []api.GPU) {
	n, busy := 0.0, 0.0
	for i := range all {
		g := &all[i]
		if g.Pod != t.Pod || g.Namespace != namespace {
			continue
		}
		if g.Utilization != nil {
			n, busy = n+1, busy+*g.Utilization
			mean := busy / n
			t.GPUUtilization = &mean
		}
		if g.PowerWatts != nil {
			t.GPUPower = plus(t.GPUPower, *g.PowerWatts)
		}
		if g.MemoryUsedMiB != nil {
			t.GPUMemory = plus(t.GPUMemory, int64(*g.MemoryUsedMiB)<<20)
			if g.MemoryFreeMiB != nil {
				t.GPUMemorySize = plus(t.GPUMemorySize, int64(*g.MemoryUsedMiB+*g.MemoryFreeMiB)<<20)
			}
		}
	}
}

func plus[T int64 | float64](sum *T, more T) *T {
	if sum != nil {
		more += *sum
	}
	return &more
}
