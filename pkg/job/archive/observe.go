package archive

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Observe returns a Store that measures how long the operations of s take, and counts their errors.
func Observe(s Store, r prometheus.Registerer) Store {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "pai_archive_operation_duration_seconds", Help: "How long the archive takes, by operation.",
		Buckets: prometheus.ExponentialBucketsRange(0.5e-3, 30, 14),
	}, []string{"operation"})
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pai_archive_errors_total", Help: "Operations of the archive that failed for reasons other than a wrong request, by operation.",
	}, []string{"operation"})
	r.MustRegister(took, failed)
	o := &observed{Store: s, took: took, failed: failed}
	for _, name := range []string{"save", "save_events", "save_log", "list", "get", "events", "log", "put_code", "code", "prune", "unended", "end_gone", "delete", "copy", "usage", "export", "import", "tag", "audit"} {
		took.WithLabelValues(name)
		failed.WithLabelValues(name)
	}
	return o
}

type observed struct {
	Store
	took   *prometheus.HistogramVec
	failed *prometheus.CounterVec
}

// note records the duration and the error of an operation. Errors that aren't the archive's fault don't count.
func (o *observed) note(operation string, start time.Time, err *error) {
	o.took.WithLabelValues(operation).Observe(time.Since(start).Seconds())
	for _, own := range []error{nil, ErrNotFound, ErrNotEnded, ErrNotGone, ErrBadQuery, ErrMismatch, ErrTooLarge, context.Canceled} {
		if errors.Is(*err, own) {
			return
		}
	}
	o.failed.WithLabelValues(operation).Inc()
	if d, ok := o.Store.(*database); ok {
		d.noticed(*err)
	}
}

// SaveJob implements Store.
func (o *observed) SaveJob(ctx context.Context, f *v1.Framework) (err error) {
	defer o.note("save", time.Now(), &err)
	return o.Store.SaveJob(ctx, f)
}

// SaveAttempt implements Store.
func (o *observed) SaveAttempt(ctx context.Context, f *v1.Framework) (err error) {
	defer o.note("save", time.Now(), &err)
	return o.Store.SaveAttempt(ctx, f)
}

// SaveTaskAttempts implements Store.
func (o *observed) SaveTaskAttempts(ctx context.Context, f *v1.Framework, tasks []TaskAttempt) (err error) {
	defer o.note("save", time.Now(), &err)
	return o.Store.SaveTaskAttempts(ctx, f, tasks)
}

// SaveHolds implements Store.
func (o *observed) SaveHolds(ctx context.Context, f *v1.Framework) (err error) {
	defer o.note("save", time.Now(), &err)
	return o.Store.SaveHolds(ctx, f)
}

// Usage implements Store.
func (o *observed) Usage(ctx context.Context, q api.UsageQuery) (_ *api.Usage, err error) {
	defer o.note("usage", time.Now(), &err)
	return o.Store.Usage(ctx, q)
}

// Holds implements Store.
func (o *observed) Holds(ctx context.Context) (_ []api.Hold, err error) {
	defer o.note("usage", time.Now(), &err)
	return o.Store.Holds(ctx)
}

// SaveEvents implements Store.
func (o *observed) SaveEvents(ctx context.Context, framework string, events []api.Event) (err error) {
	defer o.note("save_events", time.Now(), &err)
	return o.Store.SaveEvents(ctx, framework, events)
}

// SaveLog implements Store.
func (o *observed) SaveLog(ctx context.Context, key api.LogKey, data []byte, truncated bool) (err error) {
	defer o.note("save_log", time.Now(), &err)
	return o.Store.SaveLog(ctx, key, data, truncated)
}

// Unended implements Store.
func (o *observed) Unended(ctx context.Context) (_ []api.Job, err error) {
	defer o.note("unended", time.Now(), &err)
	return o.Store.Unended(ctx)
}

// EndRemoved implements Store.
func (o *observed) EndRemoved(ctx context.Context, uids []string) (err error) {
	defer o.note("end_gone", time.Now(), &err)
	return o.Store.EndRemoved(ctx, uids)
}

// Delete implements Store.
func (o *observed) Delete(ctx context.Context, framework string) (_ int, err error) {
	defer o.note("delete", time.Now(), &err)
	return o.Store.Delete(ctx, framework)
}

// Jobs implements Store.
func (o *observed) Jobs(ctx context.Context, q api.JobQuery) (_ *api.JobPage, err error) {
	defer o.note("list", time.Now(), &err)
	return o.Store.Jobs(ctx, q)
}

// Job implements Store.
func (o *observed) Job(ctx context.Context, framework string) (_ *api.JobDetail, err error) {
	defer o.note("get", time.Now(), &err)
	return o.Store.Job(ctx, framework)
}

// Events implements Store.
func (o *observed) Events(ctx context.Context, framework string) (_ []api.Event, err error) {
	defer o.note("events", time.Now(), &err)
	return o.Store.Events(ctx, framework)
}

// Log implements Store.
func (o *observed) Log(ctx context.Context, key api.LogKey) (_ []byte, _ bool, err error) {
	defer o.note("log", time.Now(), &err)
	return o.Store.Log(ctx, key)
}

// PutCode implements Store. Most of the duration depends on the sender's connection.
func (o *observed) PutCode(ctx context.Context, owner, sha256 string, size int64, r io.Reader) (err error) {
	defer o.note("put_code", time.Now(), &err)
	return o.Store.PutCode(ctx, owner, sha256, size, r)
}

// Code implements Store.
func (o *observed) Code(ctx context.Context, sha256 string) (_ io.ReadSeekCloser, _ int64, err error) {
	defer o.note("code", time.Now(), &err)
	return o.Store.Code(ctx, sha256)
}

// Prune implements Store.
func (o *observed) Prune(ctx context.Context, before time.Time, liveCode []string) (_ int, err error) {
	defer o.note("prune", time.Now(), &err)
	return o.Store.Prune(ctx, before, liveCode)
}

// Copy implements Store.
func (o *observed) Copy(ctx context.Context) (err error) {
	defer o.note("copy", time.Now(), &err)
	return o.Store.Copy(ctx)
}

// Export implements Store.
func (o *observed) Export(ctx context.Context, withAudit bool) (_ io.ReadCloser, _ int64, err error) {
	defer o.note("export", time.Now(), &err)
	return o.Store.Export(ctx, withAudit)
}

// Import implements Store.
func (o *observed) Import(ctx context.Context, r io.Reader, size int64, withAudit bool) (_ *api.Import, err error) {
	defer o.note("import", time.Now(), &err)
	return o.Store.Import(ctx, r, size, withAudit)
}

// MarkDeleted implements Store.
func (o *observed) MarkDeleted(ctx context.Context, f *v1.Framework) (err error) {
	defer o.note("end_gone", time.Now(), &err)
	return o.Store.MarkDeleted(ctx, f)
}

// Unreleased implements Store.
func (o *observed) Unreleased(ctx context.Context, after string, limit int) (_ []api.Job, err error) {
	defer o.note("unended", time.Now(), &err)
	return o.Store.Unreleased(ctx, after, limit)
}

// Ordered implements Store.
func (o *observed) Ordered(ctx context.Context, q api.OrderedQuery) (_ *api.OrderedPage, err error) {
	defer o.note("list", time.Now(), &err)
	return o.Store.Ordered(ctx, q)
}

// Tag implements Store.
func (o *observed) Tag(ctx context.Context, uid string, add, remove []string) (_ []string, err error) {
	defer o.note("tag", time.Now(), &err)
	return o.Store.Tag(ctx, uid, add, remove)
}

// OwnsCode implements Store.
func (o *observed) OwnsCode(ctx context.Context, owner, sha256 string) (_ bool, err error) {
	defer o.note("code", time.Now(), &err)
	return o.Store.OwnsCode(ctx, owner, sha256)
}

// SaveAudit implements Store.
func (o *observed) SaveAudit(ctx context.Context, records []audit.Record) (err error) {
	defer o.note("audit", time.Now(), &err)
	return o.Store.SaveAudit(ctx, records)
}

// Audit implements Store.
func (o *observed) Audit(ctx context.Context, q audit.Query) (_ *audit.Page, err error) {
	defer o.note("audit", time.Now(), &err)
	return o.Store.Audit(ctx, q)
}

// PruneAudit implements Store.
func (o *observed) PruneAudit(ctx context.Context, before time.Time, rows int64) (err error) {
	defer o.note("audit", time.Now(), &err)
	return o.Store.PruneAudit(ctx, before, rows)
}
