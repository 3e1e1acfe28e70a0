package job

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/rules"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

var update = flag.Bool("update", false, "write the golden files anew")

// situation describes the evidence about one cause that may keep a job from making progress.
type situation struct {
	f      *v1.Framework
	pods   []corev1.Pod
	queue  Queue
	change func(*evidence)
}

// withTasks gives the two tasks of a Framework a status. Their pods are train-worker-0 and train-worker-1.
func withTasks(states ...v1.State) func(*v1.Framework) {
	return func(f *v1.Framework) {
		for i, s := range states {
			f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses = append(f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, &v1.TaskStatus{
				Index: int32(i), State: s, StartTime: metav1.NewTime(noon.Add(-2 * time.Minute)), TransitionTime: metav1.NewTime(noon.Add(-2 * time.Minute)),
				AttemptStatus: v1.TaskAttemptStatus{PodName: v1.PodName(f.Name, "worker", int32(i)), StartTime: metav1.NewTime(noon.Add(-2 * time.Minute))},
			})
		}
	}
}

// taskPod returns a pod of the task with the index i.
func taskPod(i int, node string, phase corev1.PodPhase, change ...func(*corev1.Pod)) corev1.Pod {
	p := pod(node, phase)
	p.Name, p.UID = v1.PodName(v1.ObjectName("alice", "train"), "worker", int32(i)), "pod-uid"
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "registry.example/train:1"}}
	for _, c := range change {
		c(&p)
	}
	return p
}

func waitingFor(container, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := corev1.ContainerStatus{Name: container, Image: "registry.example/" + container + ":1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
		if container == "init" {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, s)
			return
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
	}
}

func runtimeVolume(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "pai-runtime", VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: "registry.example/pai-runtime:1"}}})
}

func unscheduledBecause(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message})
	}
}

func told(kind, reason, message string, ago time.Duration) func(*evidence) {
	return func(e *evidence) {
		e.events = append(e.events, api.Event{Type: kind, Reason: reason, Message: message, Time: noon.Add(-ago), Object: "Pod/" + e.pods[0].Name})
	}
}

// endedBy completes the attempt with an exit code of task 1 on gpu-2, which left a report.
func endedBy(code int32, phrase string, r *report.Report, attributes ...v1.CompletionTypeAttribute) func(*v1.Framework) {
	return func(f *v1.Framework) {
		withTasks(v1.Completed, v1.Completed)(f)
		index, node := int32(1), "gpu-2"
		run, end := metav1.NewTime(noon.Add(-4*time.Minute)), metav1.NewTime(noon.Add(-time.Minute))
		c := &v1.CompletionStatus{Code: code, Phrase: phrase, Type: v1.CompletionType{Name: v1.Failed, Attributes: attributes}, Diagnostics: "Pod failed: containers said nothing"}
		t := &f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1].AttemptStatus
		t.RunTime, t.CompletionTime, t.PodNodeName = &run, &end, &node
		t.CompletionStatus = &v1.TaskAttemptCompletionStatus{CompletionStatus: c, Pod: &v1.PodCompletionStatus{}}
		if r != nil {
			t.CompletionStatus.Pod.Containers = []v1.ContainerCompletionStatus{{Name: "app", Code: code, Message: string(report.Encode(*r))}}
		}
		f.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: c,
			Trigger: &v1.CompletionTrigger{Message: "FailedTaskCount 1 has reached MinFailedTaskCount 1 in the TaskRole", TaskRoleName: "worker", TaskIndex: &index}}
		f.Status.RunTime, f.Status.CompletionTime = &run, &end
	}
}

func (s situation) evidence() *evidence {
	j := Of(s.f)
	e := &evidence{Detail: liveDetail(j, s.pods, s.queue), now: noon, rules: rules.Builtin()}
	if s.change != nil {
		s.change(e)
	}
	return e
}

func situations() map[string]situation {
	unplaced := []corev1.Pod{taskPod(0, "", corev1.PodPending), taskPod(1, "", corev1.PodPending)}
	on := func(change ...func(*corev1.Pod)) []corev1.Pod {
		return []corev1.Pod{taskPod(0, "gpu-1", corev1.PodPending, change...)}
	}
	preparing := framework(withTasks(v1.AttemptPreparing, v1.AttemptPreparing))
	queue := NewQueue(&schedulerapi.Queue{Items: []schedulerapi.Queued{{VC: "vision", Group: "alice~train/default", Position: 5, PositionInVC: 3}}})
	absent := func(e *evidence) { e.controllerErr = noController("none of its pods is ready") }
	oom := &report.Report{ExitCode: 226, UserExitCode: 1, MatchedUserLog: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
		UserLog: []string{"epoch 3", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"}}
	lost := func(e *evidence) {
		e.nodes = map[string]*corev1.Node{"gpu-2": {ObjectMeta: metav1.ObjectMeta{Name: "gpu-2"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(noon.Add(-3 * time.Minute))}}}}}
	}
	running := framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Running: 2}), published, withTasks(v1.AttemptRunning, v1.AttemptRunning), func(f *v1.Framework) {
		at, node := metav1.NewTime(noon.Add(-90*time.Minute)), "gpu-2"
		f.Status.RunTime = &at
		f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1].AttemptStatus.PodNodeName = &node
	})
	delay := func(f *v1.Framework) {
		d := int64(240)
		f.Status.RetryPolicyStatus = v1.RetryPolicyStatus{TotalRetriedCount: 2, RetryDelaySec: &d}
		f.Status.AttemptStatus.ID = 2
	}
	return map[string]situation{
		"waiting: for other jobs": {f: framework(state(v1.AttemptCreationPending), func(f *v1.Framework) {
			f.Status.Message = "The job starts after bob/data."
		})},
		"failed: another job": {f: framework(state(v1.Completed), completed(-202), func(f *v1.Framework) {
			f.Status.AttemptStatus.CompletionStatus.Diagnostics = "A job that had to succeed first did not. The job was not started: it was to start after bob/data had succeeded, but that job was stopped."
		})},
		"waiting: cut off":                {f: preparing, change: func(e *evidence) { e.cutOff = true }},
		"waiting: no controller":          {f: framework(func(f *v1.Framework) { f.Status = nil }), change: absent},
		"waiting: the controller is slow": {f: framework(func(f *v1.Framework) { f.Status = nil })},
		"waiting: submitted just now": {f: framework(func(f *v1.Framework) {
			f.Status, f.CreationTimestamp = nil, metav1.NewTime(noon.Add(-time.Second))
		})},
		"waiting: quota of the namespace": {f: framework(state(v1.AttemptPreparing), func(f *v1.Framework) {
			f.Status.Message = `worker[0] can't be made: pods "x" is forbidden: exceeded quota: pai-jobs, requested: pods=1, used: pods=100, limited: pods=100`
		})},
		"waiting: pods are made":           {f: preparing},
		"waiting: nobody makes the pods":   {f: preparing, change: absent},
		"waiting: no scheduler":            {f: preparing, pods: unplaced, change: func(e *evidence) { e.schedulerErr = fmt.Errorf("%w: it isn't installed", vc.ErrNotRunning) }},
		"waiting: the scheduler is silent": {f: preparing, pods: unplaced},
		"waiting: no machine is free": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending,
			unscheduledBecause("0/3 nodes are available: 3 Insufficient cpu."))}},
		"waiting: no storage of that name": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending,
			unscheduledBecause(`0/3 nodes are available: persistentvolumeclaim "team" not found.`))}},
		"waiting: all machines are cordoned": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending,
			unscheduledBecause("0/3 nodes are available: 3 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }."))}},
		"queued": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			e.gang = &schedulerapi.Why{VC: "vision", Group: "alice~train/default", State: schedulerapi.Waiting, Since: noon.Add(-20 * time.Minute),
				Sentence: "The gang needs 16 GPUs of vision, and 4 are free; number 5 of 7 waiting gangs", Explanation: &cell.Explanation{GPUs: 16, Pods: 2, OwnedGPUs: 16, UsedGPUs: 12, FreeGPUs: 4,
					Missing: []cell.LevelCount{{CellType: "NODE", Count: 1}}, Holders: []cell.Holder{{VC: "vision", Gang: "bob~big/default", GPUs: 8}, {VC: "vision", Gang: "carol~small/default", GPUs: 4}},
					Smaller: &cell.Smaller{Pods: 1, GPUsPerPod: 4}}}
		}},
		"queued: behind a job without gangs": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			single := "pai-jobs/" + v1.ObjectName("bob", "sweep") + "-worker-"
			e.alone = map[string]string{v1.ObjectName("bob", "sweep"): "bob/sweep"}
			e.gang = &schedulerapi.Why{VC: "vision", Group: "alice~train/default", State: schedulerapi.Waiting, Since: noon.Add(-20 * time.Minute),
				Sentence: "The gang needs 16 GPUs of vision, and 4 are free", Explanation: &cell.Explanation{GPUs: 16, Pods: 2, OwnedGPUs: 16, UsedGPUs: 12, FreeGPUs: 4,
					Holders: []cell.Holder{{VC: "vision", Gang: "carol~big/default", GPUs: 10}, {VC: "vision", Gang: single + "0", GPUs: 1}, {VC: "vision", Gang: single + "1", GPUs: 1}}}}
		}},
		"queued: without GPUs": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			e.gang = &schedulerapi.Why{VC: "vision", Since: noon.Add(-time.Minute), Sentence: "Virtual cluster vision has 1 of 15 CPU cells free for jobs of priority 0, but the gang requests 4.",
				Asks: schedulerapi.Request{CPUCells: 4, MilliCPU: 4000, MemoryMB: 512}, Explanation: &cell.Explanation{Code: "NoCapacity", Pods: 4, CPUCells: 4, OwnedCPUCells: 15, UsedCPUCells: 14, FreeCPUCells: 1,
					Holders: []cell.Holder{{VC: "vision", Gang: "bob~prep/default", CPUCells: 14}}, Smaller: &cell.Smaller{Pods: 1, CPUCellsPerPod: 1}}}
		}},
		"queued: on a share of GPUs": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			e.gang = &schedulerapi.Why{VC: "vision", Since: noon.Add(-time.Minute), Sentence: "Virtual cluster vision has 4 of 16 GPUs free for jobs of priority 0, but the gang requests 5.",
				Asks:        schedulerapi.Request{ShareOfGPUs: 5, ShareReason: "vision owns no machine without GPUs", MilliCPU: 1000, MemoryMB: 2048},
				Explanation: &cell.Explanation{Code: "NoCapacity", Pods: 1, GPUs: 5, OwnedGPUs: 16, UsedGPUs: 12, FreeGPUs: 4}}
		}},
		"queued: its virtual cluster is deleted": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			e.gang = &schedulerapi.Why{VC: "vision", Since: noon.Add(-time.Minute), Sentence: "The virtual cluster vision doesn't exist; there are default; number 2 of 3 waiting gangs",
				Asks: schedulerapi.Request{GPUs: 16}, Pods: make([]schedulerapi.Pod, 2), Explanation: &cell.Explanation{Code: cell.NoVirtualCluster}}
		}},
		"queued: larger than the cluster": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			e.gang = &schedulerapi.Why{VC: "vision", Since: noon.Add(-time.Minute), Sentence: "The gang can never start: it requests 16 GPUs, but the cluster has 8 in one chain; request less.",
				Asks: schedulerapi.Request{GPUs: 16}, Explanation: &cell.Explanation{Code: cell.Unsatisfiable, GPUs: 16, Pods: 2, OwnedGPUs: 8, FreeGPUs: 8}}
		}},
		"queued: over the user's quota": {f: preparing, pods: unplaced, queue: queue, change: func(e *evidence) {
			e.gang = &schedulerapi.Why{VC: "vision", Since: noon.Add(-time.Minute), Sentence: "User alice holds 8 of the 8 GPUs that the quota of vision allows"}
		}},
		"queued: has its place": {f: preparing, pods: unplaced, queue: queue, change: ready()},
		"queued: no processors for CPU cells": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, unscheduledBecause("0/3 nodes are available: 3 Insufficient cpu."))}, queue: queue, change: ready(machines(), func(e *evidence) {
			e.gang.Asks, e.gang.Explanation = schedulerapi.Request{CPUCells: 2, MilliCPU: 2000}, &cell.Explanation{Code: "Ready", Pods: 2, CPUCells: 2, OwnedCPUCells: 15, FreeCPUCells: 15, Nodes: []string{"gpu-1"}}
		})},
		"queued: CPU cells or GPUs": {f: preparing, pods: unplaced, queue: queue, change: both("NoCapacity", func(e *evidence) {
			e.gang.Sentence = "Virtual cluster vision has 1 of 15 CPU cells free for jobs of priority 0, but the gang requests 2. 1 pod of 1 CPU cell would start now. Instead of CPU cells it may take 2 GPUs: Virtual cluster vision has 0 of 16 GPUs free for jobs of priority 0, but the gang requests 2."
			e.gang.Explanation.FreeCPUCells, e.gang.Explanation.UsedCPUCells, e.gang.Explanation.Smaller = 1, 14, &cell.Smaller{Pods: 1, CPUCellsPerPod: 1}
			e.gang.Explanation.Holders = []cell.Holder{{VC: "vision", Gang: "bob~prep/default", CPUCells: 14}}
		})},
		"queued: CPU cells are free, its storage is beside GPUs":          {f: preparing, pods: mounting(), queue: queue, change: both("Ready", machines(), dataOn("gpu-3"), have(onCPUs, onCPUs, onGPUs))},
		"queued: CPU cells are free, its storage is on both":              {f: preparing, pods: mounting(), queue: queue, change: both("Ready", machines(), dataOn("gpu-2", "gpu-3"), have(onCPUs, onCPUs, onGPUs))},
		"queued: CPU cells are free, its storage is beside reserved GPUs": {f: preparing, pods: mounting(), queue: queue, change: both("Ready", machines(), dataOn("gpu-3"), have(onCPUs, onCPUs, onGPUs), reserved)},
		"queued: GPUs are free, its storage is on CPU cells":              {f: preparing, pods: mounting(), queue: queue, change: ready(machines(), dataOn("gpu-3"), have(onGPUs, onGPUs, onCPUs))},
		"queued: the only machine with CPU cells is avoided": {f: framework(withTasks(v1.AttemptPreparing), func(f *v1.Framework) {
			f.Status.AvoidedNodes = []v1.AvoidedNode{{Name: "gpu-1", Failures: 2}}
		}), pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, avoiding("gpu-1"))}, queue: queue, change: both("Ready", machines(), have(onCPUs, onGPUs, onGPUs))},
		"queued: the only machine is avoided": {f: framework(withTasks(v1.AttemptPreparing), func(f *v1.Framework) {
			f.Status.AvoidedNodes = []v1.AvoidedNode{{Name: "gpu-1", Failures: 2}}
		}), pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, avoiding("gpu-1"))}, queue: queue, change: both("Ready", machines(), have(onCPUs, onGPUs, onGPUs), reserved)},
		"queued: a smaller one is no promise with a storage": {f: preparing, pods: mounting(), queue: queue, change: both("NoCapacity", machines(), dataOn("gpu-3"), have(onCPUs, onCPUs, onGPUs), func(e *evidence) {
			e.gang.Sentence = "Virtual cluster vision has 1 of 15 CPU cells free for jobs of priority 0, but the gang requests 2. 1 pod of 1 CPU cell would start now."
			e.gang.Explanation.Smaller = &cell.Smaller{Pods: 1, CPUCellsPerPod: 1}
		})},
		"queued: its storage lies elsewhere":     {f: preparing, pods: mounting(), queue: queue, change: ready(machines(), dataOn("gpu-3"), said(elsewhere))},
		"queued: its storage lies nowhere":       {f: preparing, pods: mounting(), queue: queue, change: ready(machines(), dataOn("gone"))},
		"queued: its storage lies on one of two": {f: preparing, pods: mounting(), queue: queue, change: ready(machines(), dataOn("gpu-2"))},
		"queued: another role has no storage": {f: preparing, pods: append(mounting(), taskPod(1, "", corev1.PodPending, func(p *corev1.Pod) {
			p.Labels = map[string]string{v1.LabelTaskRole: "other"}
		})), queue: queue, change: ready(machines(), dataOn("gpu-2"))},
		"queued: the machine is cordoned": {f: preparing, pods: unplaced, queue: queue, change: ready(machines(), taint(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}))},
		"queued: the machine is tainted":  {f: preparing, pods: unplaced, queue: queue, change: ready(machines(), taint(corev1.Taint{Key: "team", Value: "b", Effect: corev1.TaintEffectNoExecute}))},
		"queued: the machine is avoided": {f: framework(withTasks(v1.AttemptPreparing), func(f *v1.Framework) {
			f.Status.AvoidedNodes = []v1.AvoidedNode{{Name: "gpu-1", Failures: 2}, {Name: "gpu-2", Failures: 3}}
		}), pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, avoiding("gpu-1", "gpu-2"))}, queue: queue, change: ready(machines())},
		"queued: no label of workers": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"pai-worker": "true"}
		})}, queue: queue, change: ready(machines())},
		"queued: no processors": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, unscheduledBecause(
			"0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."))}, queue: queue, change: ready(machines())},
		"queued: by an event": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending)}, queue: queue, change: func(e *evidence) {
			ready(machines())(e)
			told("Warning", "FailedScheduling", "0/3 nodes are available: 3 Insufficient memory.", time.Minute)(e)
		}},
		"queued: Kubernetes repeats the scheduler of GPUs": {f: preparing, pods: []corev1.Pod{taskPod(0, "", corev1.PodPending, unscheduledBecause(
			"0/3 nodes are available: 1 Not enough GPUs are free: 8 are missing, 2 node(s) had untolerated taint {a: b}."))}, queue: queue, change: ready(machines(), func(e *evidence) {
			e.gang.Pods = []schedulerapi.Pod{{UID: "pod-uid", Reason: "Not enough GPUs are free: 8 are missing"}}
		})},
		"queued: no GPUs and a pinned storage": {f: preparing, pods: mounting(), queue: queue, change: ready(machines(), dataOn("gpu-3"), func(e *evidence) {
			e.gang.Sentence, e.gang.Explanation = "The gang needs 16 GPUs of vision, and 4 are free", &cell.Explanation{Code: "NoCapacity", GPUs: 16, Pods: 2, OwnedGPUs: 16, FreeGPUs: 4}
		})},
		"waiting: its storage is on a full machine": {f: preparing, pods: []corev1.Pod{mounting(unscheduledBecause(elsewhere))[0]}, change: func(e *evidence) {
			machines()(e)
			dataOn("gpu-3")(e)
		}},
		"starting": {f: preparing, pods: on(), change: told("Normal", "Pulling", `Pulling image "registry.example/train:1"`, time.Minute)},
		"starting: no such image": {f: preparing, pods: on(waitingFor("app", "ImagePullBackOff", `Back-off pulling image "registry.example/app:1"`)),
			change: told("Warning", "Failed", `Failed to pull image "registry.example/app:1": failed to resolve reference: registry.example/app:1: not found`, time.Minute)},
		"starting: a private image":        {f: preparing, pods: on(waitingFor("app", "ErrImagePull", "pull access denied, authorization failed: server message: insufficient_scope"))},
		"starting: the registry is far":    {f: preparing, pods: on(waitingFor("app", "ErrImagePull", `failed to pull and unpack image: failed to do request: Head "https://registry.example/v2/": dial tcp: lookup registry.example: no such host`))},
		"starting: no name of an image":    {f: preparing, pods: on(waitingFor("app", "InvalidImageName", "couldn't parse image name"))},
		"starting: the runtime's image":    {f: preparing, pods: on(waitingFor("init", "ImagePullBackOff", `Back-off pulling image: ErrImagePull: not found`))},
		"starting: the runtime's volume":   {f: preparing, pods: on(runtimeVolume, waitingFor("app", "ImagePullBackOff", `Back-off pulling image "registry.example/pai-runtime:1": ErrImagePull: not found`))},
		"starting: not the volume":         {f: preparing, pods: on(runtimeVolume, waitingFor("app", "ImagePullBackOff", `Back-off pulling image "registry.example/app:1": ErrImagePull: not found`))},
		"starting: no volumes of images":   {f: preparing, pods: on(runtimeVolume, waitingFor("app", "CreateContainerError", "ImageVolumeMountFailed: failed to mount image volume component"))},
		"starting: a Secret is missing":    {f: preparing, pods: on(), change: told("Warning", "FailedMount", `MountVolume.SetUp failed for volume "pai-spec" : secret "x-spec" not found`, time.Minute)},
		"starting: no program mounts it":   {f: preparing, pods: on(), change: told("Warning", "FailedMount", `MountVolume.SetUp failed for volume "team" : mount failed: bad option; for several filesystems you might need a /sbin/mount.<type> helper program.`, time.Minute)},
		"starting: an unknown file system": {f: preparing, pods: on(), change: told("Warning", "FailedMount", "MountVolume.SetUp failed for volume \"team\" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o hard,nfsvers=4.1,rsize=1048576,wsize=1048576,timeo=600,retrans=2 storage.example:/exports/team/with/a/long/path /var/lib/kubelet/pods/2a9bb6e6-2e5c-4d0f-9a0a-5b1a3a2f8c11/volumes/kubernetes.io~nfs/team\nOutput: mount: /var/lib/kubelet/pods/2a9bb6e6-2e5c-4d0f-9a0a-5b1a3a2f8c11/volumes/kubernetes.io~nfs/team: unknown filesystem type 'nfs'.", time.Minute)},
		"starting: the server refuses":     {f: preparing, pods: on(), change: told("Warning", "FailedMount", "MountVolume.SetUp failed for volume \"team\" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o hard,nfsvers=4.1,rsize=1048576,wsize=1048576,timeo=600,retrans=2 storage.example:/exports/team/with/a/long/path /var/lib/kubelet/pods/2a9bb6e6-2e5c-4d0f-9a0a-5b1a3a2f8c11/volumes/kubernetes.io~nfs/team\nOutput: mount.nfs: access denied by server while mounting storage.example:/exports/team/with/a/long/path", time.Minute)},
		"starting: no such export":         {f: preparing, pods: on(), change: told("Warning", "FailedMount", "MountVolume.SetUp failed for volume \"team\" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o hard,nfsvers=4.1,rsize=1048576,wsize=1048576,timeo=600,retrans=2 storage.example:/exports/team/with/a/long/path /var/lib/kubelet/pods/2a9bb6e6-2e5c-4d0f-9a0a-5b1a3a2f8c11/volumes/kubernetes.io~nfs/team\nOutput: mount.nfs: mounting storage.example:/exports/team/with/a/long/path failed, reason given by server: No such file or directory", time.Minute)},
		"starting: the server is far":      {f: preparing, pods: on(), change: told("Warning", "FailedMount", "MountVolume.SetUp failed for volume \"team\" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o hard,nfsvers=4.1,rsize=1048576,wsize=1048576,timeo=600,retrans=2 storage.example:/exports/team/with/a/long/path /var/lib/kubelet/pods/2a9bb6e6-2e5c-4d0f-9a0a-5b1a3a2f8c11/volumes/kubernetes.io~nfs/team\nOutput: mount.nfs: Connection timed out for storage.example:/exports/team/with/a/long/path on /var/lib/kubelet/pods/2a9bb6e6-2e5c-4d0f-9a0a-5b1a3a2f8c11/volumes/kubernetes.io~nfs/team", time.Minute)},
		"starting: no such folder":         {f: preparing, pods: on(), change: told("Warning", "FailedMount", `MountVolume.SetUp failed for volume "data" : hostPath type check failed: /mnt/data is not a directory`, time.Minute)},
		"starting: a Secret was missing": {f: preparing, pods: on(), change: func(e *evidence) {
			told("Normal", "Pulling", "", time.Second)(e)
			told("Warning", "FailedMount", "secret not found", time.Minute)(e)
		}},
		"starting: a variable of a Secret": {f: preparing, pods: on(waitingFor("app", "CreateContainerConfigError", `secret "token" not found`))},
		"barrier":                          {f: framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Running: 2}), withTasks(v1.AttemptRunning, v1.AttemptRunning))},
		"running":                          {f: running},
		"running: on a sick GPU": {f: running, pods: []corev1.Pod{taskPod(0, "gpu-1", corev1.PodRunning, holding("0,1")), taskPod(1, "gpu-2", corev1.PodRunning, holding("2,3"))},
			change: func(e *evidence) {
				e.nodes = map[string]*corev1.Node{"gpu-1": reporting("gpu-1", 2), "gpu-2": reporting("gpu-2", 3)}
			}},
		"running: a machine is lost":    {f: running, change: lost},
		"stopping":                      {f: framework(state(v1.AttemptRunning), stop, withTasks(v1.AttemptDeleting, v1.Completed))},
		"stopping: nobody does it":      {f: framework(state(v1.AttemptRunning), stop, withTasks(v1.AttemptRunning)), change: absent},
		"retry: evicted":                {f: framework(state(v1.AttemptCompleted), endedBy(-1000, "PodEvicted", nil, v1.Transient), delay)},
		"failed: out of GPU memory":     {f: framework(state(v1.Completed), endedBy(226, "ContainerCudaOOMKilled", oom, v1.Permanent))},
		"failed: a code without a rule": {f: framework(state(v1.Completed), endedBy(42, "ContainerUnrecognizedFailed", &report.Report{ExitCode: 42, UserExitCode: 42, UserLog: []string{"bye"}}))},
		"retry: a sick GPU": {f: framework(state(v1.AttemptCompleted), endedBy(116, "ContainerGpuFault", &report.Report{ExitCode: 116, UserExitCode: 1,
			GPUFault: "GPU 3 (GPU-1a2b): XID 79: it has fallen off the bus", UserLog: []string{"RuntimeError: CUDA error: unspecified launch failure"}}, v1.Transient), delay)},
		"failed: no task is to blame": {f: framework(state(v1.Completed), completed(-200))},
		"failed: above the maximum":   {f: framework(state(v1.Completed), completed(-200), tooLarge("ephemeral-storage", "200Gi", "300Gi"))},
		"failed: too many processors": {f: framework(state(v1.Completed), completed(-200), tooLarge("cpu", "8", "16"))},
		"failed: retries are used up": {f: framework(state(v1.Completed), endedBy(255, "PAIRuntimeUnknownFailed", &report.Report{ExitCode: 255, UserExitCode: 3}), func(f *v1.Framework) { f.Status.RetryPolicyStatus.TotalRetriedCount = 2 })},
		"succeeded":                   {f: framework(state(v1.Completed), endedBy(0, "Succeeded", nil))},
		"stopped":                     {f: framework(state(v1.Completed), endedBy(-210, "StopFrameworkRequested", nil), stop)},
		"stopped by a policy": {f: framework(state(v1.Completed), endedBy(-210, "StopFrameworkRequested", nil), stop, func(f *v1.Framework) {
			f.Status.AttemptStatus.CompletionStatus.Diagnostics = "The job was stopped. Its 8 GPUs are idle (policy idle-jobs)"
		})},
		"stopped before it ran": {f: framework(state(v1.Completed), completed(-210), stop)},
	}
}

// holding assigns GPUs of its machine to a pod.
func holding(indices string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, "hivedscheduler.microsoft.com/pod-leaf-cell-isolation", indices)
	}
}

// reporting returns a machine with four GPUs. The GPU with the index sick has fallen off the bus.
func reporting(name string, sick int) *corev1.Node {
	var told schedulerapi.NodeDevices
	for i := range 4 {
		told.Devices = append(told.Devices, schedulerapi.Device{Index: int32(i), Healthy: i != sick, Reason: map[bool]string{true: "XID 79: it has fallen off the bus"}[i == sick]})
	}
	text, _ := json.Marshal(told)
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{schedulerapi.DevicesAnnotation: string(text)}}}
}

// tooLarge returns the API server's error for a pod above the maximum of a LimitRange.
func tooLarge(resource, most, asked string) func(*v1.Framework) {
	return func(f *v1.Framework) {
		f.Status.AttemptStatus.CompletionStatus.Diagnostics = `pods "x-main-0" is forbidden: maximum ` + resource + " usage per Container is " + most + ", but limit is " + asked
	}
}

// elsewhere is kube-scheduler's message about a pod whose volume is on one machine.
const elsewhere = "0/3 nodes are available: 1 Insufficient memory, 2 node(s) had volume node affinity conflict."

// ready adds evidence that a gang could start on gpu-1 and gpu-2 according to the GPU scheduler.
func ready(more ...func(*evidence)) func(*evidence) {
	return func(e *evidence) {
		e.gang = &schedulerapi.Why{VC: "vision", Group: "alice~train/default", State: schedulerapi.Waiting, Since: noon.Add(-20 * time.Minute),
			Sentence: "The gang can start now on 2 nodes, gpu-1 first.", Explanation: &cell.Explanation{Code: "Ready", GPUs: 16, Pods: 2, OwnedGPUs: 16, FreeGPUs: 16, Nodes: []string{"gpu-1", "gpu-2"}}}
		for _, f := range more {
			f(e)
		}
	}
}

// both adds a gang that takes CPU cells, or else GPUs, which other jobs hold. The CPU cells are on gpu-1 if the code is Ready.
func both(code string, more ...func(*evidence)) func(*evidence) {
	return func(e *evidence) {
		e.gang = &schedulerapi.Why{VC: "vision", Group: "alice~train/default", State: schedulerapi.Waiting, Since: noon.Add(-20 * time.Minute),
			Sentence: "The gang can start now on node gpu-1.", Asks: schedulerapi.Request{CPUCells: 2, OrShareOfGPUs: 2, MilliCPU: 2000, MemoryMB: 512},
			Explanation: &cell.Explanation{Code: code, Pods: 2, CPUCells: 2, OwnedCPUCells: 15, FreeCPUCells: 15, Nodes: []string{"gpu-1"}},
			Alternative: &cell.Explanation{Code: "NoCapacity", Pods: 2, GPUs: 2, OwnedGPUs: 16, UsedGPUs: 16, Holders: []cell.Holder{{VC: "vision", Gang: "bob~prep/default", GPUs: 16}}}}
		for _, f := range more {
			f(e)
		}
	}
}

// reserved removes the gang's alternative of taking GPUs.
func reserved(e *evidence) { e.gang.Alternative, e.gang.Asks.OrShareOfGPUs = nil, 0 }

// have specifies the kinds of cells on gpu-1 and the machines that follow it.
func have(kinds ...kind) func(*evidence) {
	return func(e *evidence) {
		e.cells = map[string]kind{}
		for i, k := range kinds {
			e.cells[fmt.Sprintf("gpu-%d", i+1)] = k
		}
	}
}

// machines adds the machines gpu-1, gpu-2 and gpu-3.
func machines() func(*evidence) {
	return func(e *evidence) {
		e.nodes = map[string]*corev1.Node{}
		for _, name := range []string{"gpu-1", "gpu-2", "gpu-3"} {
			e.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		}
	}
}

func taint(t corev1.Taint) func(*evidence) {
	return func(e *evidence) {
		for _, n := range e.nodes {
			n.Spec.Taints = append(n.Spec.Taints, t)
		}
	}
}

// mounting returns a pod that mounts the storage data.
func mounting(change ...func(*corev1.Pod)) []corev1.Pod {
	return []corev1.Pod{taskPod(0, "", corev1.PodPending, append(change, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})...)}
}

func onHosts(op corev1.NodeSelectorOperator, names ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: op, Values: names}}}}}
}

// dataOn specifies the machines that have the storage data.
func dataOn(nodes ...string) func(*evidence) {
	return func(e *evidence) {
		e.volumes = map[string]*corev1.NodeSelector{"data": onHosts(corev1.NodeSelectorOpIn, nodes...)}
	}
}

func said(message string) func(*evidence) {
	return func(e *evidence) { unscheduledBecause(message)(&e.pods[0]) }
}

func avoiding(nodes ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: onHosts(corev1.NodeSelectorOpNotIn, nodes...)}}
	}
}

func TestASelectorMeansTheMachinesThatKubernetesTakesItFor(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"a": "5"}}}
	term := func(key string, op corev1.NodeSelectorOperator, values ...string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}}}
	}
	for _, fits := range []*corev1.NodeSelector{term("a", "In", "4", "5"), term("a", "NotIn", "4"), term("b", "NotIn", "4"), term("a", "Exists"), term("b", "DoesNotExist"), term("a", "Gt", "4"), term("a", "Lt", "6"),
		{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"gpu-1"}}}}}}} {
		assert.True(t, selects(fits, n), "%v", fits)
	}
	for _, other := range []*corev1.NodeSelector{{}, {NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}, term("a", "In", "4"), term("a", "NotIn", "5"), term("b", "In", "5"), term("b", "Exists"), term("a", "DoesNotExist"),
		term("a", "Gt", "5"), term("a", "Lt", "5"), term("b", "Gt", "1"), term("a", "Gt"), term("a", "Near", "5")} {
		assert.False(t, selects(other, n), "%v", other)
	}
}

func TestOneSentenceSaysWhy(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for name, s := range situations() {
		t.Run(name, func(t *testing.T) {
			w := s.evidence().explain()
			assert.Equal(t, "alice/train", w.Job)
			assert.True(t, strings.HasSuffix(w.Sentence, "."), "%q is no sentence", w.Sentence)
			assert.NotContains(t, w.Sentence, "..", w.Sentence)
			var b strings.Builder
			fmt.Fprintf(&b, "%s: %s\n", w.State, w.Sentence)
			for _, r := range w.Remedy {
				assert.NotEmpty(t, r)
				fmt.Fprintf(&b, "  -> %s\n", r)
			}
			for _, f := range w.Facts {
				fmt.Fprintf(&b, "%s: %s\n", f.What, strings.ReplaceAll(f.Text, localNoon(), "NOON"))
			}
			for _, l := range w.Log {
				fmt.Fprintf(&b, "| %s\n", l)
			}
			golden(t, strings.NewReplacer(": ", "-", " ", "-", "'", "").Replace(name), b.String())
		})
	}
}

// localNoon returns the time of the tests in the local format of this machine.
func localNoon() string { return noon.Local().Format(time.DateOnly) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "why", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestAnEndedJobIsExplainedFromTheHistory(t *testing.T) {
	index, code := int32(0), int32(226)
	started, end := noon.Add(-time.Hour), noon.Add(-time.Minute)
	c := &v1.CompletionStatus{Code: code, Phrase: "ContainerCudaOOMKilled", Type: v1.CompletionType{Name: v1.Failed, Attributes: []v1.CompletionTypeAttribute{v1.Permanent}}}
	d := &api.JobDetail{Job: api.Job{User: "alice", Name: "train", State: "failed", Code: &code, Phrase: c.Phrase, Submitted: started, Started: &started, Completed: &end},
		Attempts: []api.Attempt{{Completion: &v1.FrameworkAttemptCompletionStatus{CompletionStatus: c, Trigger: &v1.CompletionTrigger{TaskRoleName: "psserver", TaskIndex: &index}},
			Tasks: []api.TaskAttempt{{Role: "ps_server", RoleObject: "psserver", Node: "gpu-1", Run: &started, Completed: &end, Completion: &v1.TaskAttemptCompletionStatus{CompletionStatus: c}}}}}}
	w := (&evidence{Detail: archivedDetail(Past(d)), now: noon, rules: rules.Builtin()}).explain()
	assert.Equal(t, "ps_server[0] failed on gpu-1 after 59m: the program needs more memory of the GPU than there is (code 226).", w.Sentence)
	assert.NotEmpty(t, w.Remedy)

	d.State = "running"
	w = (&evidence{Detail: archivedDetail(Past(d)), now: noon, rules: rules.Builtin()}).explain()
	assert.Equal(t, "deleted", w.State)
	assert.Equal(t, "Its Framework was removed before the job had finished; only the history has it.", w.Sentence)

	d.State, d.Phrase, d.Code = api.Deleted, api.PhraseGone, nil
	w = (&evidence{Detail: archivedDetail(Past(d)), now: noon, rules: rules.Builtin()}).explain()
	assert.Equal(t, "deleted", w.State)
	assert.Equal(t, "Its Framework was removed without the job controller, before the job had finished: the result of its tasks is unknown.", w.Sentence)
	assert.Equal(t, []string{"write its job file, to run it again: paictl job clone alice/train"}, w.Remedy)
	assert.Equal(t, "found missing", w.Facts[0].What)
	assert.Contains(t, w.Facts[0].Text, "1m ago")
}

func TestErrorsOfAbsentServicesAreToldApart(t *testing.T) {
	assert.ErrorIs(t, noController("x"), ErrNoController)
	assert.False(t, IsNotFound(errors.New("x")))
}

func TestTheTimeInQueuesIsNoRunning(t *testing.T) {
	first, second := time.Unix(1_800_000_000, 0), time.Unix(1_800_000_500, 0)
	e := &evidence{Detail: &Detail{}}
	e.Started = &first
	assert.Equal(t, &first, e.runsSince())
	e.Attempts = []api.Attempt{{ID: 1, Run: &second}, {ID: 0, Run: &first}}
	assert.Equal(t, &second, e.runsSince())
}

func TestAJobThatIsTriedAgainSaysHowItEndedBefore(t *testing.T) {
	index, run, end := int32(1), noon.Add(-time.Hour), noon.Add(-10*time.Second)
	c := &v1.CompletionStatus{Code: -1003, Phrase: "PodPreemptedForCriticalPod", Type: v1.CompletionType{Name: v1.Failed, Attributes: []v1.CompletionTypeAttribute{v1.Transient}},
		Diagnostics: rules.Builtin().ByCode(-1003).Reason + " preempted for the gang bob~big of virtual cluster vision"}
	d := &Detail{Attempts: []api.Attempt{{ID: 1}, {ID: 0, Completed: &end,
		Completion: &v1.FrameworkAttemptCompletionStatus{CompletionStatus: c, Trigger: &v1.CompletionTrigger{TaskRoleName: "train", TaskIndex: &index}},
		Tasks:      []api.TaskAttempt{{Role: "train", RoleObject: "train", Index: 1, Node: "gpu-1", Run: &run, Completed: &end}}}}}
	w := &Why{}
	(&evidence{Detail: d, now: noon, rules: rules.Builtin()}).before(w)
	assert.Equal(t, []Fact{
		{"attempt 0", "train[1] failed on gpu-1 after 59m: it was preempted: a job with a guarantee, or a pod that its machine needs more, took its place (code -1003). That was 10s ago."},
		{"its message", "preempted for the gang bob~big of virtual cluster vision"}}, w.Facts)
	for diagnostics, want := range map[string]string{
		"Another attempt was requested.":                                       "Another attempt was requested. That was 10s ago.",
		"Another attempt was requested. GPU 3 of gpu-1 is broken (policy gpu)": "Another attempt was requested: GPU 3 of gpu-1 is broken (policy gpu). That was 10s ago.",
	} {
		w, again := &Why{}, *d
		again.Attempts = []api.Attempt{{ID: 1}, {ID: 0, Completed: &end, Completion: &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{Code: -240, Diagnostics: diagnostics}}}}
		(&evidence{Detail: &again, now: noon, rules: rules.Builtin()}).before(w)
		assert.Equal(t, []Fact{{"attempt 0", want}}, w.Facts)
	}
	first := &Why{}
	d.Attempts = d.Attempts[:1]
	(&evidence{Detail: d, now: noon, rules: rules.Builtin()}).before(first)
	assert.Empty(t, first.Facts)
}
