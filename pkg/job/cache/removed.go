package cache

import (
	"context"

	"github.com/openpai/paictl/pkg/job"
)

// WaitDeleted waits until a job's Framework no longer exists. It returns false if the context ends first. WaitDeleted queries the API server only about a job
// that isn't in the index, because such a job is either gone or was submitted a moment ago. So many callers that wait cause few requests.
func (l *Cache) WaitDeleted(ctx context.Context, j *job.Job) (gone bool, err error) {
	for {
		next := l.next()
		if r, there := l.index.Row(j.Object); !there || r.UID != j.UID {
			if gone, err := l.jobs.Deleted(ctx, j); gone || err != nil && ctx.Err() == nil {
				return gone, err
			}
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-next:
		}
	}
}
