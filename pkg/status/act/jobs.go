package act

import (
	"context"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/status"
)

const (
	tailJob  = 500 // lines of a task's log before the new lines
	stopWait = 10 * time.Minute
	askEvery = 2 * time.Second
)

// JobClient is a client of the platform's server, or of the server inside paictl.
type JobClient interface {
	Resolve(ctx context.Context, user, name string) (*job.Job, error)
	Detail(ctx context.Context, j *job.Job) (*job.Detail, error)
	Why(ctx context.Context, j *job.Job) (*job.Why, error)
	Events(ctx context.Context, j *job.Job) (list []api.Event, note, err error)
	Logs(ctx context.Context, j *job.Job, o logs.Options, give func(logs.Line) error) error
	Stop(ctx context.Context, j *job.Job) (before job.Phase, err error)
	Retry(ctx context.Context, j *job.Job) (before job.Phase, err error)
	Explain(err error) error
}

// Jobs implements the actions on jobs.
type Jobs struct {
	Client JobClient
	// ShellIn returns the command that opens a shell in a task. If task is "", the command chooses the first running
	// task.
	ShellIn func(title, task string) tea.ExecCommand
}

// find reads the job of a row. It compares the UIDs, because a new job may have the same name.
func (c *Jobs) find(ctx context.Context, row *status.Job) (*job.Job, error) {
	j, err := c.Client.Resolve(ctx, row.User, row.Title())
	if err != nil && row.Framework != "" && job.IsNotFound(err) {
		j, err = c.Client.Resolve(ctx, row.User, row.Framework)
	}
	if err != nil {
		return nil, err
	}
	if row.UID != "" && j.UID != "" && j.UID != row.UID {
		return nil, hint.Errorf("look at the list again", "another job is now named %s", row.Title())
	}
	return j, nil
}

// Tasks implements view.Actions.
func (c *Jobs) Tasks(ctx context.Context, row *status.Job) (*job.Detail, error) {
	j, err := c.find(ctx, row)
	if err != nil {
		return nil, err
	}
	return c.Client.Detail(ctx, j)
}

// Why implements view.Actions.
func (c *Jobs) Why(ctx context.Context, row *status.Job) (*job.Why, error) {
	j, err := c.find(ctx, row)
	if err != nil {
		return nil, err
	}
	return c.Client.Why(ctx, j)
}

// JobEvents implements view.Actions.
func (c *Jobs) JobEvents(ctx context.Context, row *status.Job) ([]api.Event, error) {
	j, err := c.find(ctx, row)
	if err != nil {
		return nil, err
	}
	list, _, err := c.Client.Events(ctx, j)
	return list, err
}

// JobLogs implements view.Actions.
func (c *Jobs) JobLogs(ctx context.Context, row *status.Job, task string, out io.Writer) error {
	j, err := c.find(ctx, row)
	if err != nil {
		return err
	}
	w := &lines{w: out}
	o := logs.Options{Selection: logs.Selection{Task: logs.All, Attempt: logs.All}, Follow: true, Tail: tailJob, Out: w,
		Problem: func(err error) { w.say("warning: " + err.Error()) }, Note: func(text string) { w.say("--- " + text + " ---") }}
	if role, index, ok := job.ParseTask(task); ok {
		o.Role, o.Task = role, index
	}
	if logs.Tasks(j, o.Selection) > 1 {
		o.Prefix = func(task string) string { return task + "  " }
	}
	return c.Client.Explain(c.Client.Logs(ctx, j, o, o.Write))
}

// Shell implements view.Actions.
func (c *Jobs) Shell(row *status.Job, task string) tea.ExecCommand {
	return c.ShellIn(row.Title(), task)
}

// StopJob implements view.Actions.
func (c *Jobs) StopJob(ctx context.Context, row *status.Job) error {
	j, err := c.find(ctx, row)
	if err != nil {
		return err
	}
	_, err = c.Client.Stop(ctx, j)
	return err
}

// RetryJob implements view.Actions. If the job is being stopped, RetryJob retries it after it has finished.
func (c *Jobs) RetryJob(ctx context.Context, row *status.Job) error {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	j, err := c.find(ctx, row)
	for err == nil && j.Stopping() {
		select {
		case <-ctx.Done():
			return hint.Errorf("retry it when it has ended", "%s has not stopped within %s", row.Title(), stopWait)
		case <-time.After(askEvery):
		}
		j, err = c.find(ctx, row)
	}
	if err != nil {
		return err
	}
	_, err = c.Client.Retry(ctx, j)
	return err
}
