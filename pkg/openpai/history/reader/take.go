package reader

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/openpai/history"
)

const (
	// partJobs is the number of jobs that are passed on in one part. partBytes is approximately the memory that they take when they are decoded.
	partJobs  = 1000
	partBytes = 256 << 20
	// batchBytes is the memory that jobs that are written together may take. The last of these jobs may exceed it.
	batchBytes = 64 << 20
	// writers is the number of concurrent writers of a part. The changes of concurrent writers are flushed to disk together.
	writers = 128
)

// Options specifies how Read handles the jobs that it reads.
type Options struct {
	// Known reports for each of the given UIDs whether the history already has the job.
	Known func(ctx context.Context, uids []string) ([]bool, error)
	// Store stores a part of size bytes in a history. If Store is nil, the run is a dry run.
	Store func(ctx context.Context, part io.Reader, size int64) error
	// Progress is called after each step with the number of processed jobs and the number of all jobs. It may be nil.
	Progress func(done, all int)
	Now      func() time.Time
	// Part is the approximate number of jobs in one part; 0 means a thousand.
	Part int
}

// Read reads all jobs, and passes on the finished jobs in parts. It also passes on jobs that the history already has, because an earlier run may
// have been interrupted before their data was complete. If an error occurs, the report describes the jobs before the error.
func (s *Source) Read(ctx context.Context, o Options) (*history.Report, error) {
	t := newTaker(s, o)
	err := t.run(ctx)
	if err = errors.Join(err, t.drop()); ctx.Err() != nil {
		err = ctx.Err() // the database reports it in other words
	}
	t.report.People = t.people.people()
	return t.report, err
}

type taker struct {
	*Source
	o      Options
	report *history.Report
	people tally
	seen   map[string]bool // UIDs
	// room is the memory that is available for changes that haven't been made yet.
	room *semaphore.Weighted
	// waiting holds the jobs of the part that hasn't been passed on yet.
	waiting []counted

	dir   string // the folder of the part; empty without one
	part  archive.Store
	bytes int64
}

func newTaker(s *Source, o Options) *taker {
	return &taker{Source: s, o: o, report: &history.Report{LeftOut: []history.SkippedJob{}}, people: tally{}, seen: map[string]bool{}, room: semaphore.NewWeighted(maxDecoded)}
}

// counted is a job that the report will count once the job has been passed on.
type counted struct {
	user      string
	submitted time.Time
	known     bool
}

func (t *taker) run(ctx context.Context) error {
	all, err := t.count(ctx)
	if err != nil {
		return err
	}
	for after, done := "", 0; ; {
		page, err := t.page(ctx, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return t.give(ctx)
		}
		if err := t.take(ctx, page); err != nil {
			return err
		}
		after, done = page[len(page)-1].name, done+len(page)
		if t.o.Progress != nil {
			t.o.Progress(done, max(all, done))
		}
	}
}

// take processes a page of jobs.
func (t *taker) take(ctx context.Context, page []row) error {
	for len(page) > 0 {
		var jobs map[string]*job
		jobs, page = t.read(page)
		if err := t.enqueue(ctx, jobs); err != nil {
			return err
		}
		if t.o.Store != nil && len(jobs) > 0 {
			if err := t.save(ctx, jobs); err != nil {
				return err
			}
		}
		if err := t.full(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read converts the first rows of a page, as many as fit into memory, and returns the other rows as left.
func (t *taker) read(page []row) (jobs map[string]*job, left []row) {
	jobs = map[string]*job{}
	weight := int64(0)
	for i := range page {
		r := &page[i]
		j, err := r.read(t.o.Now())
		r.snapshot, r.config = "", ""
		if err == nil && t.seen[string(j.f.UID)] {
			err = errTwice
		}
		if err != nil {
			t.leave(r, err)
			continue
		}
		t.seen[string(j.f.UID)], jobs[r.name] = true, j
		if j.f.Annotations[v1.AnnotationConfig] == "" {
			t.report.WithoutText++
		}
		t.bytes += j.weight
		if weight += j.weight; weight >= batchBytes {
			return jobs, page[i+1:]
		}
	}
	return jobs, nil
}

// enqueue adds jobs to those that are counted when the next part has been passed on.
func (t *taker) enqueue(ctx context.Context, jobs map[string]*job) error {
	if len(jobs) == 0 {
		return nil
	}
	var uids []string
	var all []counted
	for _, j := range jobs {
		uids = append(uids, string(j.f.UID))
		all = append(all, counted{user: j.f.Labels[v1.LabelUser], submitted: j.f.CreationTimestamp.UTC()})
	}
	known, err := t.o.Known(ctx, uids)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].known = known[i]
	}
	t.waiting = append(t.waiting, all...)
	return nil
}

// save writes jobs and all related data to the part.
func (t *taker) save(ctx context.Context, jobs map[string]*job) error {
	if err := t.open(ctx); err != nil {
		return err
	}
	if err := t.tags(ctx, jobs); err != nil {
		return err
	}
	save := func(give giver) error {
		for _, j := range jobs {
			if err := give(j.weight, func(ctx context.Context, to archive.Store) error { return to.SaveJob(ctx, j.f) }); err != nil {
				return err
			}
		}
		return nil
	}
	// The attempts are read before the attempts of tasks, because each attempt of a task belongs to an attempt.
	for _, step := range []func(give giver) error{
		save,
		func(give giver) error { return t.earlier(ctx, jobs, give) },
		func(give giver) error { return t.taskAttempts(ctx, jobs, give) },
		func(give giver) error { return t.events(ctx, jobs, give) },
	} {
		if err := t.write(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// write applies the changes of a step concurrently, as far as memory allows. It returns after all changes have been applied.
func (t *taker) write(ctx context.Context, step func(give giver) error) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	err := step(func(weight int64, w write) error {
		weight = min(weight, maxDecoded)
		if err := t.room.Acquire(within, weight); err != nil {
			return err
		}
		g.Go(func() error {
			defer t.room.Release(weight)
			return w(within, t.part)
		})
		return within.Err()
	})
	if failed := g.Wait(); failed != nil {
		return failed
	}
	return err
}

// open creates a part, unless one is already open.
func (t *taker) open(ctx context.Context) (err error) {
	if t.part != nil {
		return nil
	}
	if t.dir, err = os.MkdirTemp("", "paictl-history-"); err != nil {
		return err
	}
	t.part, err = archive.Open(ctx, archive.Options{Path: filepath.Join(t.dir, "part.db"), Now: t.o.Now})
	return err
}

// full passes on the part if it has become large enough.
func (t *taker) full(ctx context.Context) error {
	if len(t.waiting) < cmp.Or(t.o.Part, partJobs) && t.bytes < partBytes {
		return nil
	}
	return t.give(ctx)
}

// give passes on the part, and then removes the part's files.
func (t *taker) give(ctx context.Context) error {
	if t.part != nil {
		file, size, err := t.part.Export(ctx, false)
		if err != nil {
			return err
		}
		err = t.o.Store(ctx, file, size)
		if err = errors.Join(err, file.Close(), t.drop()); err != nil {
			return err
		}
	}
	for _, c := range t.waiting {
		t.people.add(c.user, c.submitted, c.known)
		if c.known {
			t.report.Known++
		} else {
			t.report.Jobs++
		}
	}
	t.waiting, t.bytes = nil, 0
	return nil
}

// drop removes the local files of the part.
func (t *taker) drop() error {
	var err error
	if t.part != nil {
		err = t.part.Close()
	}
	if t.dir != "" {
		err = errors.Join(err, os.RemoveAll(t.dir))
	}
	t.part, t.dir = nil, ""
	return err
}
