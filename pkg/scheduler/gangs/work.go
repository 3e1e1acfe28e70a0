package gangs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// taskKind is a kind of task for a pod. Tasks send requests to the API server.
type taskKind string

const (
	evict    taskKind = "evict"    // delete the pod, which is a victim
	annotate taskKind = "annotate" // write the pod's placement
	doubt    taskKind = "doubt"    // record that the pod may have other GPUs than its claim contains
	reclaim  taskKind = "reclaim"  // check the pod's claim
	ask      taskKind = "ask"      // determine the outcome of the pod's binding
)

// task identifies an action for a pod. The worker reads the details when it executes the task, so that it uses the latest
// state.
type task struct {
	kind taskKind
	uid  types.UID
}

// work sends requests to the API server, except for bindings, which kube-scheduler starts. It retries a failed task until the
// task succeeds, or until the pod or the state no longer exists.
type work struct {
	b     *Store
	queue workqueue.TypedRateLimitingInterface[task]
}

// workers is the number of concurrent requests.
const workers = 8

func newWork(b *Store) *work {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[task](50*time.Millisecond, 10*time.Second)
	return &work{b, workqueue.NewTypedRateLimitingQueue(limiter)}
}

func (w *work) add(t task) { w.queue.Add(t) }

func (w *work) run(ctx context.Context) {
	context.AfterFunc(ctx, w.queue.ShutDown)
	for range workers {
		go func() {
			for w.next(ctx) {
			}
		}()
	}
}

func (w *work) next(ctx context.Context) bool {
	t, stop := w.queue.Get()
	if stop {
		return false
	}
	defer w.queue.Done(t)
	err := w.do(ctx, t)
	if err != nil && ctx.Err() == nil {
		w.b.log.WarnContext(ctx, "retrying", "task", string(t.kind), "err", err)
		w.queue.AddRateLimited(t)
		return true
	}
	w.queue.Forget(t)
	return true
}

// do executes a task if the task is still necessary.
func (w *work) do(ctx context.Context, t task) error {
	done, ok := w.b.opts.Election.Begin(bindTimeout)
	if !ok {
		return errNotLeading
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	switch t.kind {
	case reclaim:
		return w.b.reclaim(ctx, t.uid)
	case ask:
		return w.b.ask(ctx, t.uid)
	}
	obj, annotations := w.b.subject(t)
	switch {
	case obj == nil:
		return nil
	case t.kind == evict:
		return w.evict(ctx, obj, w.b.preemptor(t.uid))
	}
	return w.patch(ctx, obj, annotations)
}

// subject returns the pod of a task and the annotations to write, or nil if the task is no longer necessary.
func (b *Store) subject(t task) (obj *corev1.Pod, annotations map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nil {
		return nil, nil
	}
	p := b.state.pods[t.uid]
	if p == nil {
		return nil, nil
	}
	switch t.kind {
	case evict:
		if p.object.DeletionTimestamp != nil || !b.state.mustGo(p) {
			return nil, nil
		}
	case doubt:
		if p.doubt == "" || p.state != api.Ignored {
			return nil, nil
		}
		annotations = map[string]string{claim.DoubtKey: p.doubt}
	case annotate:
		if Claims(p.object) {
			if len(p.details) == 0 {
				return nil, nil
			}
			annotations = map[string]string{claim.DetailsKey: string(p.details)}
			break
		}
		annotations = map[string]string{annotation.PlacementKey: p.bound.Placement}
		if p.retold {
			annotations[annotation.BindInfoKey] = p.bound.BindInfo
		}
	}
	return p.object, annotations
}

// preemptor describes the gang that needs the cells of a pod.
func (b *Store) preemptor(uid types.UID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == nil || b.state.pods[uid] == nil || b.state.pods[uid].by == nil {
		return "another gang"
	}
	g := b.state.pods[uid].by
	return fmt.Sprintf("the gang %s of virtual cluster %s", g.name, g.vc)
}

// mustGo reports whether a victim must still be evicted. The pod that needs the victim's place may have been deleted.
func (s *state) mustGo(p *pod) bool {
	if p.request == nil {
		return false
	}
	if by := s.pods[p.preemptor]; by != nil && by.state == api.Binding {
		return true
	}
	status, ok := s.core.Brief(p.request.VirtualCluster, p.request.Gang)
	if ok && status.State == beingPreempted && p.by != nil && s.core.PreemptedBy(p.request.VirtualCluster, p.request.Gang, p.by.vc, p.by.name) && slices.ContainsFunc(p.by.pods, func(q *pod) bool { return q.state == api.Preempting }) {
		return true
	}
	p.evicted, p.preemptor = time.Time{}, ""
	return false
}

// preempting is the state of a gang that has reserved cells of other gangs. beingPreempted is the state of a gang whose cells
// are reserved for another gang.
const (
	preempting     = "Preempting"
	beingPreempted = "BeingPreempted"
)

// maxGrace is the maximum grace period of a victim in seconds. It is also the largest value that a job can set. Without this
// limit, a pod with a larger value could delay other gangs without limit.
const maxGrace int64 = 24 * 60 * 60

// evict deletes a pod with its grace period. It first records the reason on the pod, so that a controller with a failure policy
// doesn't count the eviction as a program failure.
func (w *work) evict(ctx context.Context, obj *corev1.Pod, by string) error {
	pods := w.b.client.CoreV1().Pods(obj.Namespace)
	condition := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		Message: "preempted for " + by, LastTransitionTime: metav1.NewTime(w.b.now()),
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": obj.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	if _, err := pods.Patch(ctx, obj.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return ignoreGone(fmt.Errorf("note the preemption of %s: %w", podKey(obj), err))
	}
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(obj.UID))}
	if own := obj.Spec.TerminationGracePeriodSeconds; own != nil && *own > maxGrace {
		most := maxGrace
		o.GracePeriodSeconds = &most
	}
	err = pods.Delete(ctx, obj.Name, o)
	if err != nil {
		return ignoreGone(fmt.Errorf("delete %s: %w", podKey(obj), err))
	}
	return nil
}

// patch writes annotations to the pod, or to its claim if the pod has one. It doesn't write to another pod or claim with the
// same name.
func (w *work) patch(ctx context.Context, obj *corev1.Pod, annotations map[string]string) error {
	metadata := map[string]any{"uid": obj.UID, "annotations": annotations}
	name, claimed := claim.Name(obj)
	if claimed {
		c, err := w.b.client.ResourceV1().ResourceClaims(obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || !claim.Of(c, obj.UID) {
			return ignoreGone(err) // if the claim is created again, it contains all known details
		}
		metadata["uid"] = c.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	if claimed {
		_, err = w.b.client.ResourceV1().ResourceClaims(obj.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = w.b.client.CoreV1().Pods(obj.Namespace).Patch(ctx, obj.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if claimed && apierrors.IsConflict(err) {
		return err // another client changed the object at the same time, or it was replaced; the next attempt detects that
	}
	if err != nil {
		return ignoreGone(fmt.Errorf("write the place of %s: %w", podKey(obj), err))
	}
	return nil
}

// ignoreGone drops the API server's error about a pod that no longer exists, or that was replaced with another pod of the same
// name.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// ask determines the result of a binding whose response was lost. The binding request has ended by now, because requests have a
// timeout.
func (b *Store) ask(ctx context.Context, uid types.UID) error {
	var obj *corev1.Pod
	var assumed time.Time
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.state == api.Binding && p.sent && !p.permitted {
			obj, assumed = p.object, p.assumed
		}
	})
	if obj == nil {
		return nil
	}
	now, err := b.client.CoreV1().Pods(obj.Namespace).Get(ctx, obj.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && now.UID == uid && now.Spec.NodeName != "" {
		return nil // the informer will report the binding
	}
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.state == api.Binding && p.assumed.Equal(assumed) && !p.permitted {
			p.sent = false
		}
	})
	return nil
}
