// Package archive keeps jobs after their Frameworks are gone: jobs, attempts, tasks, events, exit reports, the masked protocol, logs of finished
// tasks, and the code of their submissions.
// In: Frameworks as the controller saw them. Out: rows in SQLite or PostgreSQL, pages of history.
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

// ErrNotFound is returned if a requested object isn't in the archive.
var ErrNotFound = errors.New("not in the archive")

// Store is one archive in a database. All methods are safe for concurrent use. Every write may be repeated: repeating it changes nothing.
type Store interface {
	// SaveJob writes the current state of a job: the job's row, its latest attempt, and the latest attempts of its tasks. f must be complete,
	// with all chunks of tasks merged into it.
	SaveJob(ctx context.Context, f *v1.Framework) error
	// SaveAttempt writes the current attempt of a job before the next attempt begins.
	SaveAttempt(ctx context.Context, f *v1.Framework) error
	// SaveTaskAttempts writes attempts of tasks that have ended and will be retried.
	SaveTaskAttempts(ctx context.Context, f *v1.Framework, tasks []TaskAttempt) error
	// SaveHolds records the GPUs that the tasks of a running job currently hold. The other methods that save a job also record them.
	SaveHolds(ctx context.Context, f *v1.Framework) error
	// SaveEvents writes Kubernetes events of the job and its pods.
	SaveEvents(ctx context.Context, framework string, events []api.Event) error
	// SaveLog stores the end of the log of a task's attempt.
	SaveLog(ctx context.Context, key api.LogKey, data []byte, truncated bool) error

	// Unended returns the jobs whose end isn't recorded.
	Unended(ctx context.Context) ([]api.Job, error)
	// EndRemoved records that the Frameworks of jobs with these UIDs are gone, and ends those of the jobs whose end isn't recorded.
	EndRemoved(ctx context.Context, uids []string) error
	// MarkDeleted records that the Framework of a job is about to be removed. It also records the Framework's tags, and whether a user has deleted
	// it.
	MarkDeleted(ctx context.Context, f *v1.Framework) error
	// Unreleased returns finished jobs that aren't recorded as gone. They are sorted by UID, and begin after the UID after. Only the UID and the
	// Framework's name of each job are set.
	Unreleased(ctx context.Context, after string, limit int) ([]api.Job, error)

	// Jobs returns a page of a list of jobs. An error that wraps ErrBadQuery means that the query is invalid.
	Jobs(ctx context.Context, q api.JobQuery) (*api.JobPage, error)
	// Ordered returns a page of the jobs that are gone, in any order. An error that wraps ErrBadQuery means that the query is invalid.
	Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error)
	// Tag adds and removes tags of the job with a UID, and returns all tags of the job after the change. Its errors may wrap ErrNotFound,
	// ErrBadQuery, or ErrNotGone if the Framework still exists and therefore has the tags.
	Tag(ctx context.Context, uid string, add, remove []string) ([]string, error)
	// Job, Events and Log accept the UID of a job or the name of a Framework. The name means the last job with that name.
	Job(ctx context.Context, framework string) (*api.JobDetail, error)
	Events(ctx context.Context, framework string) ([]api.Event, error)
	Log(ctx context.Context, key api.LogKey) (data []byte, truncated bool, err error)

	// Usage sums up how long GPUs were held. An error that wraps ErrBadQuery means that the query is invalid. GPU time is kept when jobs are
	// deleted or pruned.
	Usage(ctx context.Context, q api.UsageQuery) (*api.Usage, error)
	// Holds returns which GPUs are currently held by tasks.
	Holds(ctx context.Context) ([]api.Hold, error)

	// Delete removes finished jobs with their logs and events: all jobs with a Framework's name, or the job with a UID. Its errors may wrap
	// ErrNotFound, or ErrNotEnded if none of these jobs has finished.
	Delete(ctx context.Context, framework string) (jobs int, err error)

	// PutCode stores an archive of code under its SHA-256 sum. If the sender is at fault, its errors wrap ErrMismatch, ErrTooLarge or
	// ErrBadQuery. A user who has sent the whole code owns it, even if it was already stored.
	PutCode(ctx context.Context, owner, sha256 string, size int64, r io.Reader) error
	Code(ctx context.Context, sha256 string) (io.ReadSeekCloser, int64, error)
	// OwnsCode reports whether a user owns the code with a SHA-256 sum. If so, OwnsCode records that the code is in use.
	OwnsCode(ctx context.Context, owner, sha256 string) (bool, error)

	// SaveAudit adds records to the audit. It doesn't change existing records. An error that wraps ErrBadQuery means that a record is invalid.
	SaveAudit(ctx context.Context, records []audit.Record) error
	// Audit returns a page of records, starting with the latest record. An error that wraps ErrBadQuery means that the query is invalid.
	Audit(ctx context.Context, q audit.Query) (*audit.Page, error)
	// PruneAudit removes the records from before a time. If there are still more than the given number of rows, it also removes the oldest of
	// them. A zero time or number disables that limit.
	PruneAudit(ctx context.Context, before time.Time, rows int64) error

	// Prune removes jobs that finished before a time. It also removes code that hasn't been requested for a day and that no job needs, neither in
	// the archive nor in liveCode. For jobs that finished long ago, it sums up the GPU time by hours, and keeps the sums for at least UsageTime.
	Prune(ctx context.Context, before time.Time, liveCode []string) (jobs int, err error)

	// Copy writes a copy of the database beside it. If the database is damaged, the copy replaces it. Copied returns the time of the last copy,
	// or zero if there is no copy. For a database server, which has separate backups, Copy does nothing, and Copied returns the current time.
	Copy(ctx context.Context) error
	Copied() time.Time
	// Export returns a copy of the database as an SQLite file, with or without the audit, and the size of the file in bytes. Its errors may wrap
	// ErrElsewhere or ErrExporting. The caller must close the file.
	Export(ctx context.Context, withAudit bool) (io.ReadCloser, int64, error)
	// Import adds rows from an export of this archive or another archive, if this archive doesn't have them. size is in bytes. Existing jobs
	// aren't changed. Its errors may wrap ErrImporting, or ErrMismatch if the file isn't an export.
	Import(ctx context.Context, r io.Reader, size int64, withAudit bool) (*api.Import, error)
	// Failed returns a channel that delivers an error if the store can't be used until the program is restarted.
	Failed() <-chan error
	Close() error
}

// TaskAttempt is one attempt of one task.
type TaskAttempt struct {
	Role   string // in the Framework
	Status v1.TaskStatus
}
