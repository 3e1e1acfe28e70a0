package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// goneEvery is how often the archive is compared with the API. This also happens at the start, and whenever a Framework disappears
	// unexpectedly.
	goneEvery = 10 * time.Minute
	goneRetry = 10 * time.Second // after an error
)

// runRemoved ends jobs in the archive whose Frameworks are gone and whose end wasn't observed. Their Frameworks were deleted by force, while no
// controller ran, or together with their namespace.
func (r *reconciler) runRemoved(ctx context.Context) error {
	select { // wait for the refill: jobs that seem unfinished in the archive may only have to be written again
	case <-ctx.Done():
		return nil
	case <-r.refilled.done:
	}
	for {
		next := goneEvery
		if err := r.endRemoved(ctx); err != nil && ctx.Err() == nil {
			r.o.Log.Error(err, "look for jobs that are gone")
			next = goneRetry
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-r.vanished:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// endRemoved reads the archive first, and then the API. A row is written only while its Framework exists. So if the Framework doesn't exist
// later, it is gone permanently, even if users submit jobs at the same time. endRemoved compares the UIDs, because a new job may have the same
// name.
func (r *reconciler) endRemoved(ctx context.Context) error {
	open, err := r.o.Store.Unended(ctx)
	if err != nil {
		return fmt.Errorf("read which jobs of the archive have not ended: %w", err)
	}
	var gone []string
	for i := range open {
		there, err := r.exists(ctx, open[i].Framework, open[i].UID)
		if err != nil {
			return err
		}
		if !there {
			gone = append(gone, open[i].UID)
			r.o.Log.Info("a job is gone, and its end was not seen", "framework", open[i].Framework, "uid", open[i].UID)
		}
	}
	if len(gone) > 0 {
		if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.EndRemoved(ctx, gone) }); err != nil {
			return err
		}
	}
	return r.listRemoved(ctx)
}

// removedPage is the number of jobs in one batch.
const removedPage = 5000

// listRemoved marks finished jobs as gone if the archive still expects them in the API although their Frameworks don't exist. Such Frameworks
// were removed by force, or the jobs were imported, or an earlier version wrote them. The cache is enough for this check, because each replica
// that wrote the end of a job had the Framework in its cache, or listed it later.
func (r *reconciler) listRemoved(ctx context.Context) error {
	for after := ""; ; {
		ended, err := r.o.Store.Unreleased(ctx, after, removedPage)
		if err != nil {
			return fmt.Errorf("read which jobs of the archive are still there: %w", err)
		}
		var gone []string
		for i := range ended {
			if f := r.cache.framework(ended[i].Framework); f == nil || string(f.UID) != ended[i].UID {
				gone = append(gone, ended[i].UID)
			}
		}
		if len(gone) > 0 {
			if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.EndRemoved(ctx, gone) }); err != nil {
				return err
			}
		}
		if len(ended) < removedPage {
			return nil
		}
		after = ended[len(ended)-1].UID
	}
}

// exists reports whether a Framework exists. If the cache doesn't have the Framework, exists queries the API, because the cache may lag behind.
func (r *reconciler) exists(ctx context.Context, name, uid string) (bool, error) {
	if f := r.cache.framework(name); f != nil && string(f.UID) == uid {
		return true, nil
	}
	f := &v1.Framework{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: r.o.Namespace, Name: name}, f)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for job %s: %w", name, err)
	}
	return string(f.UID) == uid, nil
}

// vanish records that a Framework without an end in the archive is gone, so that a check follows.
func (r *reconciler) vanish() { vanish(r.vanished) }

// CheckDeleted starts a check for jobs whose Frameworks are gone, because jobs were added to the archive. On a replica that doesn't lead, it has
// no effect, and the leader's next regular check finds these jobs.
func (c *Controller) CheckDeleted() { vanish(c.vanished) }

func vanish(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // a check is already due
	}
}
