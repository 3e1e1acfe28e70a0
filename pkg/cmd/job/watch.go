package job

import (
	"context"
	"io"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
)

// watch prints the states of a job on stderr and its logs on stdout, until the job finishes. It returns an error with the job's exit code, which
// becomes the exit code of the command. If several jobs are watched, each line begins with the name of its job.
func watch(ctx context.Context, f *cmdutil.Factory, c *client.Jobs, j *job.Job, o followOptions, several bool) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	out := f.IO.Logs(false)
	defer out.Close()
	go func() {
		defer close(ended)
		o := logOptions(f, j, several, out)
		if err := c.Logs(reading, j, o, o.Write); err != nil && reading.Err() == nil {
			f.IO.Say("warning: %v", err)
			if remedy := hint.Of(err); remedy != "" {
				f.IO.Say("  -> %s", remedy)
			}
		}
	}()
	d, err := follow(ctx, f, c, j, o)
	if err != nil {
		cancel()
		<-ended
		return err
	}
	<-ended // all output is shown, however long that takes; Ctrl-C interrupts it
	if ctx.Err() != nil {
		return left(f, j, d)
	}
	return tellEnd(ctx, f, c, j, d, o.quiet)
}

func logOptions(f *cmdutil.Factory, j *job.Job, several bool, out io.Writer) logs.Options {
	o := logs.Options{
		Selection: logs.Selection{Task: logs.All, Attempt: logs.All}, Follow: true, Tail: -1, Out: out,
		Problem: func(err error) { f.IO.Say("warning: %v", err) },
		Note:    func(string) {}, // attempts are shown as states
	}
	if several || logs.Tasks(j, o.Selection) > 1 {
		name := prefixes(f.IO)
		o.Prefix = func(task string) string {
			if several {
				task = j.Name + "/" + task
			}
			return name(task)
		}
	}
	return o
}
