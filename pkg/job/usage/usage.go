// Package usage measures what the tasks of a job use.
// In: a job that runs. Out: CPU and memory as the kubelets measure them, the GPUs that the scheduler
// gave, and what these do as the agents of the machines measure it; nothing where no one measures, and why.
package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// parallel is how many kubelets are asked at once.
const parallel = 16

// Task is what one task uses.
type Task struct {
	Task string `json:"task"`
	Pod  string `json:"pod"`
	Node string `json:"node"`
	// CPU are cores and Memory bytes in use; nil where the kubelet doesn't say.
	CPU         *float64 `json:"cpu"`
	CPULimit    float64  `json:"cpuLimit,omitempty"`
	Memory      *int64   `json:"memoryBytes"`
	MemoryLimit int64    `json:"memoryLimitBytes,omitempty"`
	GPUs        int      `json:"gpus"`
	// GPUIndices are those of the node; empty where no scheduler gave them.
	GPUIndices []string `json:"gpuIndices"`
	// ShareOfGPUs are GPUs that no other task has while this one runs, which sees none: they go with its
	// processors and memory.
	ShareOfGPUs int `json:"shareOfGPUs,omitempty"`
	// GPUUtilization is the mean of its GPUs in percent, GPUMemory and GPUPower are their sums; nil where
	// nothing measures them.
	GPUUtilization *float64 `json:"gpuUtilization"`
	GPUMemory      *int64   `json:"gpuMemoryBytes"`
	GPUMemorySize  *int64   `json:"gpuMemorySizeBytes"`
	GPUPower       *float64 `json:"gpuPowerWatts"`
}

// summary is the part that is read of a kubelet's /stats/summary.
type summary struct {
	Pods []struct {
		Ref struct {
			UID string `json:"uid"`
		} `json:"podRef"`
		Containers []struct {
			Name string `json:"name"`
			CPU  struct {
				NanoCores *uint64 `json:"usageNanoCores"`
			} `json:"cpu"`
			Memory struct {
				WorkingSet *int64 `json:"workingSetBytes"`
			} `json:"memory"`
		} `json:"containers"`
	} `json:"pods"`
}

// cards measures the GPUs of tasks that have some. Where nothing measures a machine's they stay unknown.
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
			case apierrors.IsNotFound(err) || errors.Is(err, job.ErrNoController): // nothing measures them, or who could be asked isn't there
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
	_ = g.Wait() // each keeps its own error
	return problems
}

// add sums up what the GPUs of a task do.
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

// Of measures the tasks of a job that run, in the order of roles. problems are nodes that don't answer.
func Of(ctx context.Context, c *job.Client, j *job.Job) (list []Task, problems []error, err error) {
	targets, err := c.Targets(ctx, j)
	if err != nil {
		return nil, nil, err
	}
	nodes := map[string]*summary{}
	for _, t := range targets {
		nodes[t.Node] = nil
	}
	var mu sync.Mutex
	// The server's account may not: who may ask kubelets may run commands in all pods.
	unasked := false
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		g.Go(func() error {
			s, err := ask(asking, c, name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsForbidden(err):
				unasked = true
			case err != nil:
				problems = append(problems, fmt.Errorf("ask the kubelet of %s: %w", name, err))
			}
			nodes[name] = s
			return nil
		})
	}
	_ = g.Wait() // each keeps its own error
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if unasked {
		problems = append(problems, errors.New("processors and memory are not shown: only an operator's kubeconfig may ask the kubelets for them (nodes/proxy)"))
	}
	list = []Task{}
	for _, t := range targets {
		list = append(list, measure(t, nodes[t.Node]))
	}
	problems = append(problems, cards(ctx, c, list)...)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return list, problems, nil
}

func ask(ctx context.Context, c *job.Client, node string) (*summary, error) {
	body, err := c.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	s := &summary{}
	return s, json.Unmarshal(body, s)
}

func measure(t *job.Target, s *summary) Task {
	u := Task{Task: t.Task, Pod: t.Pod, Node: t.Node, GPUIndices: []string{}}
	pod := t.Kubernetes()
	for i := range pod.Spec.Containers {
		if k := &pod.Spec.Containers[i]; k.Name == t.Container {
			u.CPULimit, u.MemoryLimit = k.Resources.Limits.Cpu().AsApproximateFloat64(), k.Resources.Limits.Memory().Value()
			u.GPUs = devices(k)
		}
	}
	if text := pod.Annotations[annotation.IsolationKey]; text != "" {
		indices := strings.Split(text, ",")
		if annotation.SeesNoGPU(pod) {
			u.ShareOfGPUs = len(indices)
		} else {
			u.GPUs, u.GPUIndices = len(indices), indices
		}
	}
	if s == nil {
		return u
	}
	for _, p := range s.Pods {
		if p.Ref.UID != t.UID {
			continue
		}
		for _, k := range p.Containers {
			if k.Name == t.Container {
				u.Memory = k.Memory.WorkingSet
				if k.CPU.NanoCores != nil {
					n := float64(*k.CPU.NanoCores) / 1e9
					u.CPU = &n
				}
			}
		}
	}
	return u
}

// devices counts GPUs that the kubelet gave by itself, without our scheduler.
func devices(k *corev1.Container) int {
	n := int64(0)
	for name, q := range k.Resources.Limits {
		if strings.HasSuffix(string(name), "/gpu") {
			n += q.Value()
		}
	}
	return int(n)
}
