// Package archive keeps jobs after their Frameworks are gone: jobs, attempts, tasks, events, exit
// reports, the masked protocol, logs of ended tasks, and the code that was submitted along.
// In: Frameworks as the controller saw them. Out: rows in SQLite or PostgreSQL, pages of history.
package archive

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// ErrNotFound is what reads return for what isn't there.
var ErrNotFound = errors.New("not in the archive")

// Store is one database. All methods are safe for concurrent use, and every write may be
// repeated: the second one changes nothing.
type Store interface {
	// SaveJob writes the job as it is now: the job's row, its latest attempt and all its tasks'
	// latest attempts. f is whole: chunks of tasks are put together.
	SaveJob(ctx context.Context, f *v1.Framework) error
	// SaveAttempt writes an attempt of the job that will be followed by another, before it is.
	SaveAttempt(ctx context.Context, f *v1.Framework) error
	// SaveTaskAttempts writes attempts of tasks that will be followed by another.
	SaveTaskAttempts(ctx context.Context, f *v1.Framework, tasks []TaskAttempt) error
	// SaveHolds writes which GPUs the tasks of a job that runs hold by now. The others that save a job write
	// that as well.
	SaveHolds(ctx context.Context, f *v1.Framework) error
	// SaveEvents writes Kubernetes events of the job and its pods.
	SaveEvents(ctx context.Context, framework string, events []api.Event) error
	// SaveLog keeps the end of a task attempt's log.
	SaveLog(ctx context.Context, key api.LogKey, data []byte, truncated bool) error

	// Unended returns the jobs whose end isn't known.
	Unended(ctx context.Context) ([]api.Job, error)
	// EndGone ends jobs whose Frameworks are gone, by UID, where no one has written their end, and notes that they are gone.
	EndGone(ctx context.Context, uids []string) error
	// MarkGone notes that the Framework of a job is about to be gone, the tags that it has, and whether someone
	// has deleted it.
	MarkGone(ctx context.Context, f *v1.Framework) error
	// Unreleased returns jobs that have ended and of which no one has noted that they are gone: those after a UID, in the order of UIDs, with
	// nothing but UID and name of the Framework.
	Unreleased(ctx context.Context, after string, limit int) ([]api.Job, error)

	// Jobs returns a page of a list. An error that wraps ErrBadQuery is the asker's.
	Jobs(ctx context.Context, q api.JobQuery) (*api.JobPage, error)
	// Ordered returns a part of a list of jobs that are gone, in any order. An error that wraps ErrBadQuery is the asker's.
	Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error)
	// Tag gives the job of a UID tags and takes others away, and returns those that it has then. Its errors wrap ErrNotFound, ErrNotGone where
	// its Framework has the tags, and ErrBadQuery.
	Tag(ctx context.Context, uid string, add, remove []string) ([]string, error)
	// Job, Events and Log take the name of a Framework, which means the last job of that name, or
	// the UID of one.
	Job(ctx context.Context, framework string) (*api.JobDetail, error)
	Events(ctx context.Context, framework string) ([]api.Event, error)
	Log(ctx context.Context, key api.LogKey) (data []byte, truncated bool, err error)

	// Usage sums up for how long GPUs were held. An error that wraps ErrBadQuery is the asker's. GPU time stays when
	// jobs are deleted or pruned.
	Usage(ctx context.Context, q api.UsageQuery) (*api.Usage, error)
	// Holds are the GPUs that tasks hold now.
	Holds(ctx context.Context) ([]api.Hold, error)

	// Delete removes jobs that have ended, with their logs and events: all of a Framework's name, or the
	// one of a UID. Its errors wrap ErrNotFound, and ErrNotEnded where there are only others.
	Delete(ctx context.Context, framework string) (jobs int, err error)

	// PutCode keeps an archive of code under its SHA-256, and refuses another content: its errors
	// wrap ErrMismatch, ErrTooLarge or ErrBadQuery where the sender is at fault. Who has sent all of it owns it, also where it was there.
	PutCode(ctx context.Context, owner, sha256 string, size int64, r io.Reader) error
	Code(ctx context.Context, sha256 string) (io.ReadSeekCloser, int64, error)
	// OwnsCode reports whether a user has sent that code, and notes that it is wanted.
	OwnsCode(ctx context.Context, owner, sha256 string) (bool, error)

	// SaveAudit adds records; those that are there stay as they are. An error that wraps ErrBadQuery is the sender's.
	SaveAudit(ctx context.Context, records []audit.Record) error
	// Audit returns a page of them, the latest first. An error that wraps ErrBadQuery is the asker's.
	Audit(ctx context.Context, q audit.Query) (*audit.Page, error)
	// PruneAudit removes those of before a time, and of the others the oldest that are more than so many rows; zero of either removes none.
	PruneAudit(ctx context.Context, before time.Time, rows int64) error

	// Prune removes jobs that ended before, and code that no job of the archive or of live needs and
	// no one has asked for since a day. GPU time of jobs that ended long ago is summed up by hours, and kept for
	// UsageTime at least.
	Prune(ctx context.Context, before time.Time, liveCode []string) (jobs int, err error)

	// Copy writes a copy of the whole beside it, which takes its place where it is damaged. Copied is when
	// that was done last; zero: never. A database that has backups of its own needs neither.
	Copy(ctx context.Context) error
	Copied() time.Time
	// Export returns a copy of the whole as a file of SQLite, and its size in bytes; with the audit, or without. Its errors wrap ErrElsewhere and ErrExporting. The
	// caller closes it.
	Export(ctx context.Context, withAudit bool) (io.ReadCloser, int64, error)
	// Import adds what an export of this archive, or of another one, has and this one hasn't; size is in bytes. Jobs that are here stay as they
	// are. Its errors wrap ErrMismatch where it is no export, and ErrImporting.
	Import(ctx context.Context, r io.Reader, size int64, withAudit bool) (*api.Import, error)
	// Failed delivers why the store is of no use until the program starts again.
	Failed() <-chan error
	Close() error
}

// TaskAttempt is one attempt of one task.
type TaskAttempt struct {
	Role   string // in the Framework
	Status v1.TaskStatus
}
