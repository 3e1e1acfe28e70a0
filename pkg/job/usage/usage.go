// Package usage measures the resources that the tasks of a job use.
// In: a job that runs. Out: CPU and memory, as measured by log-manager or the kubelet of each machine; the assigned GPUs and their utilization,
// as measured by the agents of the machines; and the reasons for missing measurements.
package usage

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// parallel is how many machines are queried at the same time. A query usually takes about a second, and few resources.
const parallel = 64

// Task is the resource usage of one task.
type Task struct {
	Task string `json:"task"`
	Pod  string `json:"pod"`
	Node string `json:"node"`
	// CPU is the number of processor cores in use, and Memory the number of bytes in use. They are nil if they aren't measured.
	CPU         *float64 `json:"cpu"`
	CPULimit    float64  `json:"cpuLimit,omitempty"`
	Memory      *int64   `json:"memoryBytes"`
	MemoryLimit int64    `json:"memoryLimitBytes,omitempty"`
	GPUs        int      `json:"gpus"`
	// GPUIndices are the indices of the task's GPUs on the machine. It is empty if the scheduler didn't assign any GPUs.
	GPUIndices []string `json:"gpuIndices"`
	// ShareOfGPUs is how many GPUs other tasks can't use while this task runs, although it doesn't see these GPUs. The reason is that the task
	// uses the processors and memory that belong to them.
	ShareOfGPUs int `json:"shareOfGPUs,omitempty"`
	// GPUUtilization is the mean over the task's GPUs in percent. GPUMemory, GPUMemorySize and GPUPower are sums over these GPUs. They are nil if
	// they aren't measured.
	GPUUtilization *float64 `json:"gpuUtilization"`
	GPUMemory      *int64   `json:"gpuMemoryBytes"`
	GPUMemorySize  *int64   `json:"gpuMemorySizeBytes"`
	GPUPower       *float64 `json:"gpuPowerWatts"`
}

// Of measures the running tasks of a job. The list is in the order of the job's roles. problems contains an error for each machine that doesn't
// respond.
func Of(ctx context.Context, c *job.Client, j *job.Job) (list []Task, problems []error, err error) {
	targets, err := c.Targets(ctx, j)
	if err != nil {
		return nil, nil, err
	}
	measured, problems := processors(ctx, c, targets)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	list = []Task{}
	for _, t := range targets {
		list = append(list, measure(t, measured[t.UID]))
	}
	problems = append(problems, cards(ctx, c, list)...)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return list, problems, nil
}

func measure(t *job.Target, m use) Task {
	u := Task{Task: t.Task, Pod: t.Pod, Node: t.Node, CPU: m.cpu, Memory: m.memory, GPUIndices: []string{}}
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
	return u
}

// devices returns how many GPUs the container got from the kubelet alone, without the platform's scheduler.
func devices(k *corev1.Container) int {
	n := int64(0)
	for name, q := range k.Resources.Limits {
		if strings.HasSuffix(string(name), "/gpu") {
			n += q.Value()
		}
	}
	return int(n)
}
