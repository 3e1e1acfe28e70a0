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
	// goneEvery is how often the archive is compared with the API, in addition to the start and whenever a
	// Framework is seen to vanish.
	goneEvery = 10 * time.Minute
	goneRetry = 10 * time.Second // after an error
)

// runRemoved ends jobs in the archive whose Frameworks are gone and whose end wasn't observed: they were deleted by force, while no
// controller ran, or with their namespace.
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

// endRemoved reads the archive first, and then the API. A row is written while its Framework exists, so a Framework that doesn't exist
// later is gone permanently, even if users submit jobs at the same time. A new job may have its name by then, so the UID decides.
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

// removedPage is the number of jobs of one batch.
const removedPage = 5000

// listRemoved makes the archive list finished jobs that it still expects in the API although their Frameworks are gone: their Frameworks
// were removed by force, or they were imported, or an earlier version wrote them. The cache is enough: the replica that wrote the end of a
// job had its Framework in the cache, or listed it later.
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

// exists queries the API if the cache doesn't have the Framework, because the cache may be late.
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

// vanish notes that a Framework is gone whose end isn't in the archive.
func (r *reconciler) vanish() { vanish(r.vanished) }

// LookForGone starts a check for jobs whose Frameworks are gone, because the archive has got other jobs. A replica that isn't the
// leader leaves that to the leader's next check.
func (c *Controller) LookForGone() { vanish(c.vanished) }

func vanish(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // a check is already due
	}
}
