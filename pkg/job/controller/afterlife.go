package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// afterlife keeps an archived Framework until its TTL has expired or it is being deleted. Then it removes the Framework. It returns how long to
// wait before the next call.
func (r *reconciler) afterlife(ctx context.Context, f *v1.Framework, e *entry) (time.Duration, error) {
	leaving := f.DeletionTimestamp != nil
	if due := e.status.CompletionTime.Add(r.o.TTL); !leaving && r.now().Before(due) {
		return due.Sub(r.now()), nil
	}
	if !r.refilled.passed() {
		return time.Second, nil // it may be all that is left of the job
	}
	if e.released {
		return 0, nil // its deletion is the next event
	}
	if !r.keepLogs(f) {
		return time.Second, nil
	}
	if err := r.deleteEnded(ctx, f, e); err != nil {
		return 0, err
	}
	if leaving {
		e.released = true
		if err := r.letGo(ctx, f); err != nil {
			e.released = false
			return 0, err
		}
		return 0, nil
	}
	if err := r.expire(ctx, f); err != nil {
		return 0, err
	}
	uid := f.UID
	err := r.api.Delete(ctx, &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace}},
		client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return 0, client.IgnoreNotFound(err)
}

// expire marks a Framework whose TTL has expired, so that lists don't show the job as deleted by a user.
func (r *reconciler) expire(ctx context.Context, f *v1.Framework) error {
	if f.Annotations[v1.AnnotationExpired] == "true" {
		return nil
	}
	return client.IgnoreNotFound(r.setMetadata(ctx, f, "", "annotations", map[string]string{v1.AnnotationExpired: "true"}))
}

// letGo makes the archive list the job, with its current tags, before the Framework disappears from the API. So no list omits the job.
func (r *reconciler) letGo(ctx context.Context, f *v1.Framework) error {
	if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.MarkDeleted(ctx, f) }); err != nil {
		return err
	}
	return r.release(ctx, f)
}

// deleteEnded deletes the pods and the Service of a Framework before the Framework itself is deleted. Kubernetes would also delete them, but only
// later, and with queries for each object and its owner.
func (r *reconciler) deleteEnded(ctx context.Context, f *v1.Framework, e *entry) error {
	var all []machine.Deletion
	for _, p := range r.cache.podsOf(f.Name) {
		if p.DeletionTimestamp == nil {
			all = append(all, machine.Deletion{Name: p.Name, UID: p.UID})
		}
	}
	if _, err := r.deletePods(ctx, f, e, all); err != nil || !f.OwnsPods() || !machine.Many(f) {
		return err
	}
	// The Service can't belong to another job, because this name is free only after this job is removed.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace}}
	return client.IgnoreNotFound(r.api.Delete(ctx, service))
}
