package job

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/job"
)

// reasonEvery is the time between two requests for the reason why a job waits. Such a request causes more work than reading the state of the
// job.
const reasonEvery = 4 * time.Second

// reasonAfter is how long a job must be in a state before the reason for this state is requested.
const reasonAfter = 2 * time.Second

// reasons finds out why a followed job makes no progress, and reports each reason only once.
type reasons struct {
	now  func() time.Time
	why  func(context.Context) (*job.Why, error)
	at   string    // the state of the job at the last check
	next time.Time // the time of the next request
	told string
}

func newReasons(c *client.Jobs, j *job.Job) *reasons {
	return &reasons{now: time.Now, why: func(ctx context.Context) (*job.Why, error) {
		now, err := c.Get(ctx, j)
		if err != nil {
			return nil, err
		}
		return c.Why(ctx, now)
	}}
}

// of returns the reason why a job makes no progress. It returns nil if the reason is not known, not new, or if it is too early for a request.
func (r *reasons) of(ctx context.Context, d *job.Detail) *job.Why {
	if r.at != d.State {
		r.at, r.next = d.State, r.now().Add(reasonAfter)
	}
	if !pending(d) || r.now().Before(r.next) {
		return nil
	}
	r.next = r.now().Add(reasonEvery)
	w, err := r.why(ctx)
	if err != nil || w.Sentence == "" {
		return nil // it may be known at the next check
	}
	if at, _, _ := strings.Cut(w.State, " "); at != d.State {
		return nil // the state of the job has changed since
	}
	text := timeless(w.Sentence)
	if text == r.told || d.Message != "" && strings.Contains(text, strings.TrimRight(timeless(d.Message), ".")) {
		return nil
	}
	r.told = text
	return w
}

// pending reports whether a job, or a part of its tasks, hasn't started.
func pending(d *job.Detail) bool {
	begun, total := d.Progress()
	return unfinished(job.Phase(d.State)) && (job.Phase(d.State) != job.Running || begun < total)
}

func unfinished(p job.Phase) bool {
	switch p {
	case job.Waiting, job.Queued, job.Starting, job.Barrier, job.Running:
		return true
	}
	return false
}

// passing matches durations in a sentence. They differ at each check, so they are ignored when sentences are compared.
var passing = regexp.MustCompile(`\b(\d+(d|h|m|s))+\b`)

func timeless(sentence string) string { return passing.ReplaceAllString(sentence, "...") }
