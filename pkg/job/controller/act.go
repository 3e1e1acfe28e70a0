package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// maxCreate is how many pods are made before the Framework is checked again. So a stop is noticed even while ten thousand pods are being
	// made.
	maxCreate = 200
	parallel  = 16 // simultaneous calls for one Framework
)

// act carries out the actions of a step. It returns how long to wait before the next step. Zero means that the next step follows immediately.
func (r *reconciler) act(ctx context.Context, f *v1.Framework, e *entry, todo *machine.Result) (time.Duration, error) {
	if err := r.archiveBefore(ctx, f, e, todo); err != nil {
		return 0, err
	}
	progress, err := r.deletePods(ctx, f, e, todo.Delete)
	if err != nil {
		return 0, err
	}
	if err := r.configMaps(ctx, f, e, todo); err != nil {
		return 0, err
	}
	if len(todo.Create) > 0 {
		return r.createPods(ctx, f, e, todo.Create)
	}
	e.blocked, e.blockedTimes = "", 0
	if todo.Peers != nil {
		if err := r.publish(ctx, f, e, todo.Peers); err != nil {
			return 0, err
		}
	}
	if len(todo.Delete) > 0 && !progress {
		return time.Second, nil // logs are being saved; their end wakes this Framework earlier
	}
	return 0, nil
}

// archiveBefore saves attempts to the archive that the next status will no longer contain.
func (r *reconciler) archiveBefore(ctx context.Context, f *v1.Framework, e *entry, todo *machine.Result) error {
	whole := e.whole(f)
	if todo.ArchiveAttempt {
		if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.SaveAttempt(ctx, whole) }); err != nil {
			return err
		}
		if e.savedAttempts == nil {
			e.savedAttempts = map[int32]bool{}
		}
		e.savedAttempts[e.status.AttemptStatus.ID] = true
	}
	if len(todo.ArchiveTasks) == 0 {
		return nil
	}
	tasks := make([]archive.TaskAttempt, 0, len(todo.ArchiveTasks))
	for _, ref := range todo.ArchiveTasks {
		if t := e.task(ref); t != nil {
			tasks = append(tasks, archive.TaskAttempt{Role: ref.Role, Status: *t.DeepCopy()})
		}
	}
	if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.SaveTaskAttempts(ctx, whole, tasks) }); err != nil {
		return err
	}
	if e.savedTasks == nil {
		e.savedTasks = map[savedTask]bool{}
	}
	for _, t := range tasks {
		e.savedTasks[savedTask{machine.Task{Role: t.Role, Index: t.Status.Index}, t.Status.AttemptStatus.ID}] = true
	}
	return nil
}

// archive calls write, which writes to the archive. A failure is counted, and the queue repeats the work later.
func (r *reconciler) archive(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := write(ctx); err != nil {
		r.metrics.archive.Inc()
		return fmt.Errorf("write to the archive: %w", err)
	}
	return nil
}

// whole returns the Framework with the status that this process knows, which includes all tasks.
func (e *entry) whole(f *v1.Framework) *v1.Framework {
	return &v1.Framework{TypeMeta: f.TypeMeta, ObjectMeta: f.ObjectMeta, Spec: f.Spec, Status: e.status}
}

func (e *entry) task(ref machine.Task) *v1.TaskStatus {
	for _, role := range e.status.AttemptStatus.TaskRoleStatuses {
		if role.Name == ref.Role && int(ref.Index) < len(role.TaskStatuses) {
			return role.TaskStatuses[ref.Index]
		}
	}
	return nil
}

// deletePods deletes the pods whose logs need not be saved or are saved. It reports whether it deleted any pod.
func (r *reconciler) deletePods(ctx context.Context, f *v1.Framework, e *entry, all []machine.Deletion) (bool, error) {
	ready := make([]machine.Deletion, 0, len(all))
	for _, d := range all {
		if d.Log == nil || r.logs.saved(f, d) {
			ready = append(ready, d)
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, d := range ready {
		group.Go(func() error {
			gone, err := r.deletePod(ctx, d)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			e.view.Deleted(d, gone, r.now())
			return nil
		})
	}
	return len(ready) > 0, group.Wait()
}

func (r *reconciler) deletePod(ctx context.Context, d machine.Deletion) (gone bool, err error) {
	o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(d.UID))}
	if d.Force {
		now := int64(0)
		o.GracePeriodSeconds = &now
		r.metrics.forced.Inc()
	}
	err = r.pods.Pods(r.o.Namespace).Delete(ctx, d.Name, o)
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // a pod of another UID has the name
		return true, nil
	}
	return false, fmt.Errorf("delete pod %s: %w", d.Name, err)
}

// completed finishes a job. It archives the job before it writes the job's end to the API, so that a single write is enough. If the archive
// fails, completed writes the end anyway, and returns the error.
func (r *reconciler) completed(ctx context.Context, f *v1.Framework, e *entry, result *machine.Result) (time.Duration, error) {
	var archiveErr error
	if e.status.ArchivedTime == nil {
		whole := e.whole(f)
		archiveErr = r.archive(ctx, func(ctx context.Context) error { return r.o.Store.SaveJob(ctx, whole) })
		if archiveErr == nil {
			now := metav1.NewTime(r.now())
			e.status.ArchivedTime = &now
			e.mark(&machine.Result{Changed: true}, r.now())
		}
	}
	if err := r.persist(ctx, f, e); err != nil {
		e.status.ArchivedTime = nil
		return 0, errors.Join(err, archiveErr)
	}
	r.o.Peers.Forget(f.Name)
	r.tell(f, e)
	if archiveErr != nil {
		return 0, archiveErr
	}
	if len(result.Delete) > 0 {
		if _, err := r.deletePods(ctx, f, e, result.Delete); err != nil {
			return 0, err
		}
	}
	return r.afterlife(ctx, f, e)
}
