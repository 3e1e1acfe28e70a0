package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// createPods makes pods for some of the tasks. It makes the first pod alone, so that with an exhausted quota only one request fails, and not two
// hundred.
func (r *reconciler) createPods(ctx context.Context, f *v1.Framework, e *entry, tasks []machine.Task) (time.Duration, error) {
	if err := r.prepareJob(ctx, f, e); err != nil {
		return 0, err
	}
	avoid := machine.Avoided(e.status, r.policy, r.now())
	tasks = tasks[:min(len(tasks), maxCreate)]
	if err := r.createPod(ctx, f, e, tasks[0], avoid, &sync.Mutex{}); err != nil {
		return r.block(f, e, err)
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, t := range tasks[1:] {
		group.Go(func() error { return r.createPod(ctx, f, e, t, avoid, &mu) })
	}
	if err := group.Wait(); err != nil {
		return r.block(f, e, err)
	}
	e.blocked, e.blockedTimes = "", 0
	return 0, nil
}

// errInTheWay means that a pod of an earlier attempt, or a pod of another program, has the name.
var errInTheWay = errors.New("a pod of that name is still there")

func (r *reconciler) createPod(ctx context.Context, f *v1.Framework, e *entry, ref machine.Task, avoid []string, mu *sync.Mutex) error {
	t := e.task(ref)
	p, err := makePod(f, e.status, ref.Role, t, avoid)
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		e.view.Refuse(t.AttemptStatus.PodName, machine.Refusal{Code: machine.CodePodCreationPermanent, Message: err.Error()})
		return nil
	}
	if f.OwnRuntime() && len(p.Spec.Containers) > 0 {
		if err := r.openCode(f, &p.Spec.Containers[0]); err != nil {
			return err
		}
	}
	if f.OwnsPods() && len(p.Spec.Containers) > 0 {
		if err := r.introduce(f, e.status, ref.Role, t, &p.Spec.Containers[0]); err != nil {
			return err
		}
	}
	if r.o.Claims {
		expectGPUs(p)
	}
	if f.OwnRuntime() && r.useImageVolumes() {
		mountRuntime(&p.Spec)
	}
	made, err := r.pods.Pods(r.o.Namespace).Create(ctx, p, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = r.existing(ctx, p)
	}
	mu.Lock()
	defer mu.Unlock()
	if code, refused := refusal(err); refused {
		e.view.Refuse(p.Name, machine.Refusal{Code: code, Message: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	e.view.Made(slimPod(made), r.now())
	return nil
}

// existing returns the existing pod with a name if it is the pod that should be created. This happens if an earlier request created the pod and
// its response was lost.
func (r *reconciler) existing(ctx context.Context, want *corev1.Pod) (*corev1.Pod, error) {
	have, err := r.lookup(ctx, want.Name)
	if err != nil {
		return nil, err
	}
	if have == nil {
		return nil, errInTheWay
	}
	for _, k := range []string{v1.AnnotationFrameworkAttempt, v1.AnnotationTaskAttempt, machine.AnnotationTaskUID} {
		if have.Annotations[k] != want.Annotations[k] {
			return nil, fmt.Errorf("%w: %s", errInTheWay, want.Name)
		}
	}
	if o := metav1.GetControllerOf(have); o == nil || o.UID != want.OwnerReferences[0].UID {
		return nil, fmt.Errorf("%w, but belongs to another owner: %s", errInTheWay, want.Name)
	}
	return have, nil
}

// refusal reports whether an error of the API means that the pod itself is invalid. If so, it returns the completion code for this.
func refusal(err error) (int32, bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case err == nil, strings.Contains(text, "exceeded quota"), strings.Contains(text, "object provided is unrecognized"),
		strings.Contains(text, "being terminated"):
		return 0, false
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err), machine.AboveLimit.MatchString(text):
		return machine.CodePodCreationPermanent, true
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return machine.CodePodCreationUnknown, true
	}
	return 0, false
}

// block records why no pod can be made now. It returns how long to wait before the next try.
func (r *reconciler) block(f *v1.Framework, e *entry, err error) (time.Duration, error) {
	if errors.Is(err, context.Canceled) {
		return 0, err
	}
	if errors.Is(err, errInTheWay) && e.blockedTimes < 5 {
		e.blockedTimes++ // the cache will soon show it, and the machine removes it
		return 200 * time.Millisecond, nil
	}
	if e.blocked != err.Error() {
		e.blocked = err.Error()
		r.recorder.Eventf(f, nil, corev1.EventTypeWarning, "PodsNotMade", "PodsNotMade", "%s", clip(err.Error()))
	}
	wait := time.Second << min(e.blockedTimes, 5)
	e.blockedTimes++
	return wait, nil
}
