package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// FreeCapacity is the part of a machine that pods don't request, in thousandths of a processor and in MiB.
type FreeCapacity struct {
	Machine            string
	MilliCPU, MemoryMB int64
}

// FreeCapacity returns the free part of each machine that runs jobs.
func (c *Client) FreeCapacity(ctx context.Context) ([]FreeCapacity, error) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the nodes: %w", err))
	}
	pods, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the pods of all machines: %w", err))
	}
	marked := slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Labels[labelWorker] == "true" })
	at := map[string]*FreeCapacity{}
	out := make([]FreeCapacity, 0, len(nodes.Items))
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if _, lost := notReady(n); lost || n.Spec.Unschedulable || marked && n.Labels[labelWorker] != "true" {
			continue
		}
		has := n.Status.Allocatable
		out = append(out, FreeCapacity{Machine: n.Name, MilliCPU: has.Cpu().MilliValue(), MemoryMB: has.Memory().Value() >> 20})
		at[n.Name] = &out[len(out)-1]
	}
	for i := range pods.Items {
		if room := at[pods.Items[i].Spec.NodeName]; room != nil {
			cpu, memory := requested(&pods.Items[i].Spec)
			room.MilliCPU, room.MemoryMB = room.MilliCPU-cpu, room.MemoryMB-memory
		}
	}
	return out, nil
}

// errNoQueue explains why no outlook for GPUs is known in a cluster without the GPU scheduler.
var errNoQueue = errors.New("this cluster has no scheduler for GPUs, and Kubernetes places them")

// CapacityOutlook returns the outlook of a job that the GPU scheduler doesn't place. The outlook depends on the free processors and memory of the
// machines. err explains why these aren't known.
func (p *Prepared) CapacityOutlook(rooms []FreeCapacity, err error, machines bool) *Outlook {
	if err != nil {
		return p.unknown(err)
	}
	if p.GPUs > 0 {
		return p.unknown(errNoQueue)
	}
	rooms = slices.Clone(rooms)
	o := &Outlook{Verdict: schedulerapi.Starts}
	var on []string
	for i := range p.Objects.Framework.Spec.TaskRoles {
		r := &p.Objects.Framework.Spec.TaskRoles[i]
		cpu, memory := requested(&r.Task.Pod.Spec)
		left := int64(r.TaskNumber)
		for k := range rooms {
			n := min(left, fits(rooms[k].MilliCPU, cpu), fits(rooms[k].MemoryMB, memory))
			if n <= 0 {
				continue
			}
			left -= n
			rooms[k].MilliCPU, rooms[k].MemoryMB = rooms[k].MilliCPU-n*cpu, rooms[k].MemoryMB-n*memory
			if !slices.Contains(on, rooms[k].Machine) {
				on = append(on, rooms[k].Machine)
			}
		}
		if left > 0 && o.Verdict == schedulerapi.Starts {
			o.Verdict = schedulerapi.Waits
			o.Reason = fmt.Sprintf("by the requests of the pods that run now, machines have no room for %s of %s", plural.Of(left, "task"), HostText(cpu, memory))
		}
	}
	if o.Verdict == schedulerapi.Starts {
		o.MachineCount = len(on)
		if machines {
			o.Machines = on
		}
	}
	p.complete(o)
	return o
}

// fits returns how many times size fits into room.
func fits(room, size int64) int64 {
	if size <= 0 {
		return math.MaxInt64
	}
	return max(room, 0) / size
}

// requested returns the processors and the memory that a pod's containers request. A limit counts as a request if a container has no request.
func requested(spec *corev1.PodSpec) (milliCPU, memoryMB int64) {
	for i := range spec.Containers {
		r := &spec.Containers[i].Resources
		of := func(name corev1.ResourceName) *resource.Quantity {
			q, has := r.Requests[name]
			if !has {
				q = r.Limits[name]
			}
			return &q
		}
		milliCPU += of(corev1.ResourceCPU).MilliValue()
		memoryMB += (of(corev1.ResourceMemory).Value() + 1<<20 - 1) >> 20
	}
	return milliCPU, memoryMB
}
