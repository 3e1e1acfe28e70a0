package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/status/stored"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	refillRetry = 10 * time.Second // after an error
	refillPage  = 100              // Frameworks at a time
)

// runRefill writes jobs into an archive that replaced a damaged archive: those that have ended and are still in the API. Jobs that haven't ended
// are written as usual.
func (r *reconciler) runRefill(ctx context.Context) error {
	if r.o.Replaced == nil {
		return nil
	}
	defer r.refilled.close()
	r.recorder.Eventf(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: leaseName, Namespace: r.o.SystemNamespace},
	}, nil, corev1.EventTypeWarning, "ArchiveReplaced", "ArchiveReplaced", "%s", clip(r.o.Replaced.String()))
	for {
		n, err := r.refill(ctx)
		if err == nil {
			r.o.Log.Info("jobs that had ended are in the archive again", "jobs", n)
			r.refilled.close()
			err = r.o.Replaced.Done()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		r.o.Log.Error(err, "write jobs that have ended into the archive again")
		timer := time.NewTimer(refillRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

func (r *reconciler) refill(ctx context.Context) (jobs int, err error) {
	for next := ""; ; {
		page := &v1.FrameworkList{}
		if err := r.api.List(ctx, page, client.InNamespace(r.o.Namespace), client.Limit(refillPage), client.Continue(next)); err != nil {
			return jobs, fmt.Errorf("list jobs: %w", err)
		}
		for i := range page.Items {
			f := &page.Items[i]
			if f.Status == nil || f.Status.ArchivedTime == nil {
				continue
			}
			if _, _, err := stored.Complete(ctx, r.api, f); err != nil {
				return jobs, err
			}
			if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.SaveJob(ctx, f) }); err != nil {
				return jobs, err
			}
			jobs++
		}
		if next = page.Continue; next == "" {
			return jobs, nil
		}
	}
}
