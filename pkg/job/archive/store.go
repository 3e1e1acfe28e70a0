// Package archive keeps jobs after their Frameworks are gone: jobs, attempts, tasks, events, exit reports, the masked protocol, logs of
// finished tasks, and the code of their submissions. In: Frameworks as the controller saw them. Out: rows in SQLite or PostgreSQL,
// pages of history.
package archive

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// ErrNotFound is returned by reads if the object isn't in the archive.
var ErrNotFound = errors.New("not in the archive")

// Store is one database. All methods are safe for concurrent use. Every write may be repeated: the second write changes nothing.
type Store interface {
	// SaveJob writes the current state of the job: the job's row, its latest attempt and all its tasks' latest
	// attempts. f is complete: chunks of tasks are merged.
	SaveJob(ctx context.Context, f *v1.Framework) error
	// SaveAttempt writes an attempt of the job before the next attempt begins.
	SaveAttempt(ctx context.Context, f *v1.Framework) error
	// SaveTaskAttempts writes the attempts of tasks that will be retried.
	SaveTaskAttempts(ctx context.Context, f *v1.Framework, tasks []TaskAttempt) error
	// SaveHolds records the GPUs that the tasks of a running job currently hold. The other methods that save a job also record them.
	SaveHolds(ctx context.Context, f *v1.Framework) error
	// SaveEvents writes Kubernetes events of the job and its pods.
	SaveEvents(ctx context.Context, framework string, events []api.Event) error
	// SaveLog keeps the end of a task attempt's log.
	SaveLog(ctx context.Context, key api.LogKey, data []byte, truncated bool) error

	// Unended returns the jobs whose end isn't known.
	Unended(ctx context.Context) ([]api.Job, error)
	// EndRemoved ends jobs whose Frameworks are gone, by UID, unless their end has been written, and records that they are gone.
	EndRemoved(ctx context.Context, uids []string) error
	// MarkGone records that the Framework of a job is about to be removed, the tags that it has, and whether a user has deleted it.
	MarkGone(ctx context.Context, f *v1.Framework) error
	// Unreleased returns finished jobs that aren't recorded as gone: those after a UID, in the order of UIDs, with only the UID and the
	// name of the Framework.
	Unreleased(ctx context.Context, after string, limit int) ([]api.Job, error)

	// Jobs returns a page of a list. An error that wraps ErrBadQuery is the caller's fault.
	Jobs(ctx context.Context, q api.JobQuery) (*api.JobPage, error)
	// Ordered returns a part of a list of jobs that are gone, in any order. An error that wraps ErrBadQuery is the caller's fault.
	Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error)
	// Tag adds and removes tags of the job with a UID, and returns the tags that it has then. Its errors wrap ErrNotFound, ErrNotGone if
	// its Framework has the tags, and ErrBadQuery.
	Tag(ctx context.Context, uid string, add, remove []string) ([]string, error)
	// Job, Events and Log take the name of a Framework, which means the last job with that name, or the UID of a job.
	Job(ctx context.Context, framework string) (*api.JobDetail, error)
	Events(ctx context.Context, framework string) ([]api.Event, error)
	Log(ctx context.Context, key api.LogKey) (data []byte, truncated bool, err error)

	// Usage sums up for how long GPUs were held. An error that wraps ErrBadQuery is the caller's fault. GPU time stays when jobs are
	// deleted or pruned.
	Usage(ctx context.Context, q api.UsageQuery) (*api.Usage, error)
	// Holds returns the GPUs that tasks hold now.
	Holds(ctx context.Context) ([]api.Hold, error)

	// Delete removes finished jobs with their logs and events: all jobs of a Framework's name, or the job with a UID. Its errors wrap
	// ErrNotFound, and ErrNotEnded if all these jobs haven't finished.
	Delete(ctx context.Context, framework string) (jobs int, err error)

	// PutCode stores an archive of code under its SHA-256, and rejects other content: its errors wrap ErrMismatch, ErrTooLarge
	// or ErrBadQuery if the sender is at fault. A user who has sent the whole code owns it, even if it was already stored.
	PutCode(ctx context.Context, owner, sha256 string, size int64, r io.Reader) error
	Code(ctx context.Context, sha256 string) (io.ReadSeekCloser, int64, error)
	// OwnsCode reports whether a user has sent the code with that SHA-256, and records that the code is in use.
	OwnsCode(ctx context.Context, owner, sha256 string) (bool, error)

	// SaveAudit adds records. Existing records don't change. An error that wraps ErrBadQuery is the sender's fault.
	SaveAudit(ctx context.Context, records []audit.Record) error
	// Audit returns a page of records, the latest first. An error that wraps ErrBadQuery is the caller's fault.
	Audit(ctx context.Context, q audit.Query) (*audit.Page, error)
	// PruneAudit removes records from before a time, and the oldest of the rest if they exceed a number of rows; zero disables either
	// limit.
	PruneAudit(ctx context.Context, before time.Time, rows int64) error

	// Prune removes jobs that finished before a time, and code that no job of the archive or of live needs and that hasn't been requested
	// for a day. GPU time of jobs that finished long ago is summed up by hours, and kept for UsageTime at least.
	Prune(ctx context.Context, before time.Time, liveCode []string) (jobs int, err error)

	// Copy writes a copy of the database beside it, which replaces the database if that is damaged. Copied returns the time of the last
	// copy; zero: never. A database server has its own backups, and needs neither.
	Copy(ctx context.Context) error
	Copied() time.Time
	// Export returns a copy of the database as an SQLite file, and its size in bytes; with the audit, or without. Its errors wrap
	// ErrElsewhere and ErrExporting. The caller closes it.
	Export(ctx context.Context, withAudit bool) (io.ReadCloser, int64, error)
	// Import adds the rows of an export of this archive, or of another one, that this archive doesn't have; size is in bytes. Existing
	// jobs stay as they are. Its errors wrap ErrMismatch if the file isn't an export, and ErrImporting.
	Import(ctx context.Context, r io.Reader, size int64, withAudit bool) (*api.Import, error)
	// Failed delivers the reason why the store can't be used until the program starts again.
	Failed() <-chan error
	Close() error
}

// TaskAttempt is one attempt of one task.
type TaskAttempt struct {
	Role   string // in the Framework
	Status v1.TaskStatus
}
