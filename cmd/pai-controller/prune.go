package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	pruneInterval = time.Hour
	copyDelay     = time.Minute
	copyInterval  = 24*time.Hour - pruneInterval/2
	// page is the number of Frameworks in one page of a list request.
	page = 500
)

// prune periodically removes old data and unused code from the archive. It also copies the archive once a day. It does
// nothing while another replica leads.
func prune(ctx context.Context, o *options, config *rest.Config, store archive.Store, leads func() bool, log *slog.Logger) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("open the cluster: %w", err)
	}
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	soon := time.After(copyDelay) // so that a controller that restarts often makes copies, too
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-soon:
			if leads() {
				copyDue(ctx, store, log)
			}
			continue
		case <-tick.C:
		}
		if !leads() {
			continue
		}
		if err := pruneOnce(ctx, o, client, store, log); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "the archive was not pruned", "error", err.Error()) // retried in the next round
		}
		copyDue(ctx, store, log)
	}
}

func copyDue(ctx context.Context, store archive.Store, log *slog.Logger) {
	if err := copyOnce(ctx, store, time.Now()); err != nil && ctx.Err() == nil {
		log.ErrorContext(ctx, "the archive was not copied", "error", err.Error())
	}
}

// copyOnce copies the archive if the last copy is more than a day old.
func copyOnce(ctx context.Context, store archive.Store, now time.Time) error {
	if now.Sub(store.Copied()) < copyInterval {
		return nil
	}
	return store.Copy(ctx)
}

func pruneOnce(ctx context.Context, o *options, client metadata.Interface, store archive.Store, log *slog.Logger) error {
	live, err := liveCode(ctx, client, o.namespace)
	if err != nil {
		return err
	}
	before := time.Time{}
	if o.keep > 0 {
		before = time.Now().Add(-o.keep)
	}
	n, err := store.Prune(ctx, before, live)
	if n > 0 {
		log.InfoContext(ctx, "pruned the archive", "jobs", n, "before", before.Format(time.RFC3339))
	}
	if err != nil || o.keepAudit == 0 && o.auditRows == 0 {
		return err
	}
	before = time.Time{}
	if o.keepAudit > 0 {
		before = time.Now().Add(-o.keepAudit)
	}
	return store.PruneAudit(ctx, before, o.auditRows)
}

// liveCode returns the checksums of the code of existing jobs. These jobs may not be in the archive yet.
func liveCode(ctx context.Context, client metadata.Interface, namespace string) ([]string, error) {
	frameworks := client.Resource(v1.Resource).Namespace(namespace)
	var out []string
	for o := (metav1.ListOptions{Limit: page}); ; {
		list, err := frameworks.List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("list jobs: %w", err)
		}
		for i := range list.Items {
			if code := list.Items[i].Annotations[v1.AnnotationCode]; code != "" {
				out = append(out, code)
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return out, nil
		}
	}
}
