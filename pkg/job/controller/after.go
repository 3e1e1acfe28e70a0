package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// byAfter is the name of an index that finds a Framework by the names of the Frameworks that it waits for.
const byAfter = "after"

// awaited returns the names of the Frameworks that a Framework waits for.
func awaited(o any) ([]string, error) {
	f, ok := o.(*v1.Framework)
	if !ok || f.Annotations[v1.AnnotationAfter] == "" || f.Status != nil && f.Status.State == v1.Completed {
		return nil, nil
	}
	all, _ := f.After() // an unreadable one ends without this
	var names []string
	for _, a := range all {
		names = append(names, a.Framework)
	}
	return names, nil
}

// archiveTime limits a query of the archive. If the archive hangs, other jobs must not wait long.
const archiveTime = 5 * time.Second

// after checks whether the jobs that a Framework waits for have ended. It does so until the Framework's first task has run.
func (r *reconciler) after(ctx context.Context, f *v1.Framework, st *v1.FrameworkStatus) (machine.After, error) {
	stopping := f.Spec.ExecutionType == v1.ExecutionStop || f.DeletionTimestamp != nil
	if f.Annotations[v1.AnnotationAfter] == "" || stopping || st != nil && (st.RunTime != nil || st.State == v1.Completed) {
		return machine.After{}, nil
	}
	all, err := f.After()
	if err != nil {
		return machine.After{Failed: err.Error()}, nil //nolint:nilerr // retries don't help: the job fails with this message
	}
	var out machine.After
	if st != nil {
		out.Done = slices.Clone(st.AfterDone)
	}
	seen := map[types.UID]bool{}
	for i := range all {
		a := &all[i]
		if slices.Contains(out.Done, string(a.UID)) {
			continue
		}
		how, err := r.endOf(ctx, a)
		switch {
		case err != nil:
			return machine.After{}, err
		case how == "" && !f.CreationTimestamp.After(r.created(a)) && r.leadsTo(a, f.UID, seen):
			out.Failed = fmt.Sprintf("it waits for %s, which waits for this job itself", a.Job)
		case how == "":
			out.Waits = append(out.Waits, a.Job)
		case how == api.Succeeded || a.Ended:
			out.Done = append(out.Done, string(a.UID))
		case out.Failed == "":
			out.Failed = fmt.Sprintf("it was to start after %s had succeeded, but that job %s", a.Job, how)
		}
	}
	return out, nil
}

// created returns when a job was created that is waiting or running, or the zero time if this is unknown. It limits the search for cycles: each
// cycle contains a job that waits for a job which isn't older, and only such a job searches for the cycle.
func (r *reconciler) created(a *v1.After) time.Time {
	if f := r.cache.framework(a.Framework); f != nil && f.UID == a.UID {
		return f.CreationTimestamp.Time
	}
	return time.Time{}
}

// leadsTo reports whether a job waits, directly or indirectly, for the Framework with a UID. Commands can't create such a cycle, but annotations
// that were written by hand can. seen contains the UIDs of jobs that have already been checked.
func (r *reconciler) leadsTo(a *v1.After, uid types.UID, seen map[types.UID]bool) bool {
	if a.UID == uid {
		return true
	}
	f := r.cache.framework(a.Framework)
	if seen[a.UID] || f == nil || f.UID != a.UID || f.Status != nil && (f.Status.RunTime != nil || f.Status.State == v1.Completed) {
		return false
	}
	seen[a.UID] = true
	next, _ := f.After() // an unreadable one ends without this
	return slices.ContainsFunc(next, func(a v1.After) bool { return r.leadsTo(&a, uid, seen) })
}

// endOf returns the final state of a job in words, or "" if the job is still active.
func (r *reconciler) endOf(ctx context.Context, a *v1.After) (string, error) {
	if f := r.cache.framework(a.Framework); f != nil && f.UID == a.UID {
		return endedHow(api.StateOf(f)), nil
	}
	// The cache may lag behind, and a deleted job is only in the archive.
	live := &v1.Framework{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: r.o.Namespace, Name: a.Framework}, live)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("look for the job %s: %w", a.Job, err)
	}
	if err == nil && live.UID == a.UID {
		return endedHow(api.StateOf(live)), nil
	}
	brief, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	d, err := r.o.Store.Job(brief, string(a.UID))
	switch {
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return "", nil // retried within a minute
	case errors.Is(err, archive.ErrNotFound):
		return "was deleted, and its result is unknown", nil
	case err != nil:
		return "", fmt.Errorf("look for the job %s in the archive: %w", a.Job, err)
	}
	return endedHow(d.State), nil
}

// endedHow describes a final state. It returns "" for other states.
func endedHow(state string) string {
	switch state {
	case api.Succeeded, api.Failed:
		return state
	case api.Stopped, api.Deleted:
		return "was " + state
	}
	return ""
}

// wakers returns the event handler that queues Frameworks when a job that they wait for ends or is removed.
func (r *reconciler) wakers() handler.EventHandler {
	wake := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		waiting, _ := r.cache.frameworks.GetIndexer().ByIndex(byAfter, o.GetName())
		for _, w := range waiting {
			q.Add(r.request(w.(*v1.Framework).Name))
		}
	}
	ended := func(o client.Object) bool {
		f, ok := o.(*v1.Framework)
		return ok && f.Status != nil && f.Status.State == v1.Completed
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if ended(e.ObjectNew) && !ended(e.ObjectOld) {
				wake(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, q)
		},
	}
}
