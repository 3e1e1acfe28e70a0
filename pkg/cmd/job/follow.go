package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
)

// exitTimeout is the exit code of a command whose --timeout has expired. timeout(1) uses the same code.
const exitTimeout = 124

// followOptions determine how a command follows a job.
type followOptions struct {
	until   func(job.Phase) bool
	timeout time.Duration // 0 means no limit
	quiet   bool          // no line for each state
	mine    bool          // the job stops with the command, which prints that itself
}

// errTimeout is the cause of the end of a context if the timeout has expired.
var errTimeout = errors.New("timeout")

// follow prints each state of a job, and why the job stays in a state, until the job finishes or reaches a state that the caller waits for.
// Ctrl-C ends only follow, not the job.
func follow(ctx context.Context, f *cmdutil.Factory, c *client.Jobs, j *job.Job, o followOptions) (*job.Detail, error) {
	waiting := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	var last *job.Detail
	told, why := "", newReasons(c, j)
	tell := func(text string) {
		f.IO.Say("%s  %s  %s", time.Now().Local().Format(time.TimeOnly), j.Name, text)
	}
	err := c.Follow(waiting, j, func(d *job.Detail) bool {
		last = d
		if text := progressText(d, time.Now()); !o.quiet && text != told {
			tell(text)
			told = text
		}
		if !o.quiet {
			if w := why.of(waiting, d); w != nil {
				tell(d.At().Text(time.Now()) + ": " + w.Sentence)
				for _, remedy := range w.Remedy {
					tell("  -> " + remedy)
				}
			}
		}
		return !o.until(job.Phase(d.State)) && !job.Phase(d.State).Done()
	}, func(problem error) {
		if problem == nil {
			f.IO.Say("%s  the cluster answers again", time.Now().Local().Format(time.TimeOnly))
			return
		}
		f.IO.Say("%s  %v; retrying", time.Now().Local().Format(time.TimeOnly), problem)
	})
	switch {
	case err == nil:
		return last, nil
	case errors.Is(err, errTimeout):
		at := "whose state is unknown"
		if last != nil {
			at = last.At().Text(time.Now())
		}
		return last, &cmdutil.CodeError{Code: exitTimeout, Err: hint.Errorf("the job continues; see why with: paictl job why "+j.Title(),
			"%s is %s after %s", j.Title(), at, o.timeout)}
	case ctx.Err() != nil && o.mine:
		return last, ctx.Err()
	case ctx.Err() != nil:
		return last, left(f, j, last)
	}
	return last, err
}

// left ends a command after Ctrl-C. It prints whether the job continues, and how to follow the job again. last is the last known state of the
// job.
func left(f *cmdutil.Factory, j *job.Job, last *job.Detail) error {
	goesOn := "continues"
	if last != nil && (job.Phase(last.State) == job.Stopping || job.Phase(last.State) == job.Deleting) {
		goesOn = "is still stopping"
	}
	f.IO.Say("\n%[1]s %[2]s. Show it with: paictl job get %[1]s; follow it with: paictl job logs %[1]s -f; stop it with: paictl job stop %[1]s", j.Title(), goesOn)
	return &cmdutil.CodeError{Err: context.Canceled, Code: cmdutil.ExitCancelled, Silent: true}
}

// progressText describes the state of a followed job. The text contains no durations, because follow prints a line whenever the text changes.
func progressText(d *job.Detail, now time.Time) string {
	text := d.At().Text(now)
	if job.Phase(d.State) == job.Retry {
		text = "retry"
		if d.RetryAt != nil {
			text = "retry at " + d.RetryAt.Local().Format(time.TimeOnly)
		}
	}
	if d.Retries > 0 && !job.Phase(d.State).Done() {
		text += fmt.Sprintf(" (attempt %d)", d.Retries)
	}
	if begun, total := d.Progress(); begun > 0 && begun < total && !job.Phase(d.State).Done() {
		text += fmt.Sprintf(", %d of %d tasks have started", begun, total)
	}
	if p := job.Phase(d.State); d.Message != "" && (p == job.Waiting || p == job.Retry) {
		text += ": " + d.Message
	}
	return text
}

// exitOf returns an error with the exit code of a command that follows a job: the exit code of the job, limited to 1 to 255. If the job has
// succeeded, it returns nil.
func exitOf(d *job.Detail) error {
	if job.Phase(d.State) == job.Succeeded {
		return nil
	}
	code := 1
	if d.Code != nil && *d.Code > 0 {
		code = min(int(*d.Code), 255)
	}
	return &cmdutil.CodeError{Err: fmt.Errorf("%s/%s %s", d.User, d.Name, job.Phase(d.State).Verb()), Code: code, Silent: true}
}
