package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// persist writes the status to the API. The caller carries out actions only after this.
func (r *reconciler) persist(ctx context.Context, f *v1.Framework, e *entry) error {
	if !e.dirty {
		return nil
	}
	if e.newAttempt {
		e.layout.Reset()
		e.dirtyChunks = nil
	}
	for _, k := range e.layout.Update(e.status, e.dirtyTasks) {
		if !slices.Contains(e.dirtyChunks, k) {
			e.dirtyChunks = append(e.dirtyChunks, k)
		}
	}
	// A process may be killed between two writes, so their order matters. Chunks of a new attempt must not be written before the header of that
	// attempt, because they would hide the tasks of the previous attempt. Tasks that a decision ended must not be written before that decision.
	// In all other cases, the tasks are written first.
	headerFirst := !e.stored || e.newAttempt || e.decided && e.status.State != v1.Completed
	archived := e.status.ArchivedTime != nil
	switch {
	case headerFirst:
		// Once a header says that everything is archived, the job is never processed again. So this header isn't written before all chunks.
		if err := r.writeHeader(ctx, f, e, archived && len(e.dirtyChunks) == 0); err != nil {
			return err
		}
		// From now on, the chunks that are written belong to the new attempt. If a later write fails, the next try must continue with these
		// chunks.
		e.newAttempt = false
	case e.layout.Unlisted():
		if err := r.reserve(ctx, f, e); err != nil {
			return err
		}
	}
	if err := r.writeChunks(ctx, f, e); err != nil {
		return err
	}
	if !headerFirst || archived && len(e.dirtyChunks) > 0 {
		if err := r.writeHeader(ctx, f, e, archived); err != nil {
			return err
		}
	}
	e.clean()
	now := r.now()
	if e.recentWrites++; now.Sub(e.lastWrite) > 5*time.Second {
		e.recentWrites = 0
	}
	e.lastWrite = now
	return nil
}

// writeHeader writes the status in the Framework itself. The resource version ensures that a replica which lost its lease can't overwrite the
// status.
func (r *reconciler) writeHeader(ctx context.Context, f *v1.Framework, e *entry, archived bool) error {
	bare := &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace, UID: f.UID, ResourceVersion: e.rv},
		Status:     e.layout.Header(e.status),
	}
	if !archived {
		bare.Status.ArchivedTime = nil
	}
	if err := r.api.Status().Update(ctx, bare); err != nil {
		return fmt.Errorf("write the status of %s: %w", f.Name, err)
	}
	e.rv, e.stored, e.told = bare.ResourceVersion, true, e.status.State
	e.layout.Listed()
	return nil
}

// reserve lists further chunks in the Framework's status before they are written, and doesn't change the rest of the status. A replica that lost
// its lease fails here, before it writes chunks that its successor may also be writing. In addition, readers know that a chunk which the status
// doesn't list never belonged to this attempt.
func (r *reconciler) reserve(ctx context.Context, f *v1.Framework, e *entry) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": f.UID, "resourceVersion": e.rv},
		"status":   map[string]any{"attemptStatus": map[string]any{"taskChunks": e.layout.Chunks(), "taskParts": e.layout.Parts()}},
	})
	if err != nil {
		return err
	}
	bare := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace}}
	if err := r.api.Status().Patch(ctx, bare, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the status of %s: %w", f.Name, err)
	}
	e.rv = bare.ResourceVersion
	e.layout.Listed()
	return nil
}

func (r *reconciler) writeChunks(ctx context.Context, f *v1.Framework, e *entry) error {
	if len(e.dirtyChunks) == 0 {
		return nil
	}
	cms, err := e.layout.Encode(f, e.status, e.dirtyChunks)
	if err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(8)
	var going atomic.Int32
	for i, cm := range cms {
		group.Go(func() error {
			// Writing a job with ten thousand tasks takes a hundred writes. So check in between whether the job was deleted.
			if going.Add(1)%8 == 0 && r.deleted(f) {
				return errGone
			}
			if err := r.put(inner, f, cm); err != nil {
				return err
			}
			e.layout.Wrote(e.dirtyChunks[i], cm)
			return nil
		})
	}
	return group.Wait()
}

// errGone stops the work on a Framework that no longer exists.
var errGone = errors.New("the Framework is gone")

// deleted reports whether the Framework no longer exists, according to the cache.
func (r *reconciler) deleted(f *v1.Framework) bool {
	have := r.cache.framework(f.Name)
	return have == nil || have.UID != f.UID
}

// put updates a chunk in its known version, or creates the chunk. It overwrites a chunk of an earlier attempt or Framework. If another replica
// has written a newer version, put returns a conflict, and the caller reads the whole state again.
func (r *reconciler) put(ctx context.Context, f *v1.Framework, cm *corev1.ConfigMap) error {
	if cm.ResourceVersion != "" {
		err := r.api.Update(ctx, cm)
		if !apierrors.IsNotFound(err) {
			return written(cm, err)
		}
		cm.ResourceVersion, cm.UID = "", ""
	}
	err := r.api.Create(ctx, cm)
	if !apierrors.IsAlreadyExists(err) {
		return written(cm, err)
	}
	have := &corev1.ConfigMap{}
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(cm), have); err != nil {
		return written(cm, err)
	}
	if owner := metav1.GetControllerOf(have); owner == nil || owner.UID != f.UID {
		err = r.stillThere(ctx, f) // then the chunk wasn't written by a later Framework
	} else if status.Overtaken(cm, have) {
		err = apierrors.NewConflict(corev1.Resource("configmaps"), cm.Name, errors.New("another replica of the controller has written it"))
	} else {
		err = nil
	}
	if err != nil {
		return written(cm, err)
	}
	cm.ResourceVersion = have.ResourceVersion
	return written(cm, r.api.Update(ctx, cm))
}

// stillThere returns a conflict if the Framework no longer exists in the API, or another Framework has its name.
func (r *reconciler) stillThere(ctx context.Context, f *v1.Framework) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(v1.GroupVersion.WithKind(v1.Kind))
	if err := client.IgnoreNotFound(r.api.Get(ctx, client.ObjectKeyFromObject(f), live)); err != nil || live.UID == f.UID {
		return err
	}
	return apierrors.NewConflict(v1.GroupVersion.WithResource("frameworks").GroupResource(), f.Name, errors.New("it is another Framework by now"))
}

func written(cm *corev1.ConfigMap, err error) error {
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", cm.Name, err)
	}
	return nil
}

// keep adds the finalizer to a Framework whose submission didn't add it.
func (r *reconciler) keep(ctx context.Context, f *v1.Framework, e *entry) error {
	if !slices.Contains(f.Finalizers, v1.Finalizer) {
		if err := r.setFinalizers(ctx, f, e.rv, append(slices.Clone(f.Finalizers), v1.Finalizer)); err != nil {
			return err
		}
	}
	e.kept = true
	return nil
}

// release removes the finalizer, so that the Framework can be deleted.
func (r *reconciler) release(ctx context.Context, f *v1.Framework) error {
	others := slices.DeleteFunc(slices.Clone(f.Finalizers), func(have string) bool { return have == v1.Finalizer })
	if len(others) == len(f.Finalizers) {
		return nil
	}
	return client.IgnoreNotFound(r.setFinalizers(ctx, f, "", others))
}

// setFinalizers changes the finalizers of a Framework with the given UID. If rv isn't "", it changes them only if the Framework still has that
// resource version. The caller then writes the status based on the new resource version, so that it can't overwrite the change of another writer.
func (r *reconciler) setFinalizers(ctx context.Context, f *v1.Framework, rv string, to []string) error {
	return r.setMetadata(ctx, f, rv, "finalizers", to)
}

// setMetadata sets one field of the metadata, under the same conditions as setFinalizers.
func (r *reconciler) setMetadata(ctx context.Context, f *v1.Framework, rv, field string, to any) error {
	metadata := map[string]any{"uid": f.UID, field: to}
	if rv != "" {
		metadata["resourceVersion"] = rv
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	bare := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace}}
	if err := r.api.Patch(ctx, bare, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("set the %s of %s: %w", field, f.Name, err)
	}
	if e := r.entries.get(f.Name); rv != "" && e != nil && e.uid == f.UID {
		e.rv = bare.ResourceVersion
	}
	return nil
}
