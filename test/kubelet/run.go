package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// run is a pod, from its binding to its end.
type run struct {
	k      *Kubelet
	pod    *corev1.Pod
	ip     string
	folder string // has its volumes
	log    *log   // the log of its container
	begun  atomic.Bool
	began  metav1.Time
	over   chan struct{} // closed when its containers have ended

	deleting bool // under the kubelet's lock

	ctx     context.Context // ends when the test ends or the pod no longer exists
	kill    context.CancelFunc
	stopped context.Context // ends when the pod is to be deleted
	stop    context.CancelFunc
}

func (k *Kubelet) newRun(p *corev1.Pod) *run {
	r := &run{k: k, pod: p, folder: filepath.Join(k.folder, string(p.UID)), log: newLog(), over: make(chan struct{})}
	r.ctx, r.kill = context.WithCancel(k.ctx)
	r.stopped, r.stop = context.WithCancel(r.ctx)
	return r
}

// live runs the containers of the pod, and reports their end. If the kubelet can't run the pod, the pod fails, and so does the test.
func (r *run) live() {
	defer close(r.over)
	defer r.log.close()
	err := r.containers()
	if err == nil || r.stopped.Err() != nil {
		return
	}
	r.k.check(r.pod, err)
	text := err.Error()
	err = r.report(func(s *corev1.PodStatus) { s.Phase, s.Reason, s.Message = corev1.PodFailed, "KubeletError", text })
	r.k.check(r.pod, err)
}

// end stops the containers of a pod that is being deleted, and completes the deletion.
func (r *run) end() {
	r.stop()
	<-r.over
	r.k.remove(r.pod)
}

// containers runs the init containers one after the other, and then the only container of the pod.
func (r *run) containers() error {
	if len(r.pod.Spec.Containers) != 1 {
		return fmt.Errorf("it has %d containers: this kubelet runs pods of one", len(r.pod.Spec.Containers))
	}
	if err := os.Mkdir(r.folder, 0o777); err != nil {
		return err
	}
	volumes, err := r.volumes()
	if err != nil {
		return err
	}
	r.ip, r.began = r.k.address(), metav1.Now()
	for i := range r.pod.Spec.InitContainers {
		if err := r.initContainer(&r.pod.Spec.InitContainers[i], volumes); err != nil {
			return fmt.Errorf("init container %s: %w", r.pod.Spec.InitContainers[i].Name, err)
		}
	}
	e, err := r.container(&r.pod.Spec.Containers[0], volumes, r.log, func() error {
		r.begun.Store(true)
		return r.report(r.running)
	})
	r.log.close() // before the API server knows that it has ended
	if err != nil {
		return err
	}
	return r.report(func(s *corev1.PodStatus) { r.ended(s, e) })
}

func (r *run) initContainer(c *corev1.Container, volumes map[string]string) error {
	said := newLog()
	e, err := r.container(c, volumes, said, nil)
	if err == nil && e.code != 0 {
		err = fmt.Errorf("it ended with code %d: %s", e.code, said.text())
	}
	return err
}

// report changes the status of the pod.
func (r *run) report(change func(*corev1.PodStatus)) error {
	pods := r.k.c.Client.CoreV1().Pods(r.pod.Namespace)
	err := retry.RetryOnConflict(conflicts(), func() error {
		p, err := pods.Get(r.k.ctx, r.pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.UID != r.pod.UID {
			return errReplaced
		}
		change(&p.Status)
		_, err = pods.UpdateStatus(r.k.ctx, p, metav1.UpdateOptions{})
		return err
	})
	if errors.Is(err, errReplaced) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// conflicts returns how often and when a status is written again after a conflict. Conflicts occur because the scheduler and the job controller
// write to pods, too.
func conflicts() wait.Backoff {
	return wait.Backoff{Steps: 15, Duration: 5 * time.Millisecond, Factor: 1.5}
}

// errReplaced is the error if another pod now has the name of the pod.
var errReplaced = errors.New("another pod has its name")

// running changes the status to that of a pod whose container has started.
func (r *run) running(s *corev1.PodStatus) {
	s.Phase, s.PodIP, s.PodIPs, s.StartTime = corev1.PodRunning, r.ip, []corev1.PodIP{{IP: r.ip}}, &r.began
	s.HostIP, s.HostIPs = nodeAddress, []corev1.HostIP{{IP: nodeAddress}}
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	now, yes := metav1.Now(), true
	for _, c := range r.pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: r.began, FinishedAt: now}}})
	}
	c := r.pod.Spec.Containers[0]
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: c.Name, Image: c.Image, Ready: true, Started: &yes,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}
	setConditions(s, corev1.ConditionTrue)
}

// ended changes the status to that of a pod whose container has ended.
func (r *run) ended(s *corev1.PodStatus, e end) {
	reason := "Completed"
	s.Phase = corev1.PodSucceeded
	if e.code != 0 {
		s.Phase, reason = corev1.PodFailed, "Error"
	}
	no := false
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		c.Ready, c.Started = false, &no
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: e.code, Reason: reason, Message: e.message, StartedAt: metav1.NewTime(e.began), FinishedAt: metav1.NewTime(e.at)}}
	}
	setConditions(s, corev1.ConditionFalse)
}

// setConditions sets the conditions of a pod that a kubelet is responsible for.
func setConditions(s *corev1.PodStatus, ready corev1.ConditionStatus) {
	values := map[corev1.PodConditionType]corev1.ConditionStatus{corev1.PodInitialized: corev1.ConditionTrue, corev1.ContainersReady: ready, corev1.PodReady: ready}
	now := metav1.NewTime(time.Now())
	for i := range s.Conditions {
		c := &s.Conditions[i]
		value, ours := values[c.Type]
		if ours && c.Status != value {
			c.Status, c.LastTransitionTime = value, now
		}
		delete(values, c.Type)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if value, missing := values[kind]; missing {
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
		}
	}
}
