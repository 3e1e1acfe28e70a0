package job

import (
	"context"
	"io"
	"time"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
)

// lastLines is how long the end of the logs is waited for when a job has ended.
const lastLines = 5 * time.Second

// watch tells the states of a job on stderr and its logs on stdout, until its end, which becomes the
// command's. Names of jobs stand before lines where several are watched.
func watch(ctx context.Context, f *cmdutil.Factory, c *job.Client, j *job.Job, o followOptions, several bool) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	out := logScreen(f.IO, false)
	defer out.Close()
	go func() {
		defer close(ended)
		if err := logs.Write(reading, c, j, logOptions(f, c, j, several, out)); err != nil && reading.Err() == nil {
			f.IO.Say("warning: %v", err)
		}
	}()
	d, err := follow(ctx, f, c, j, o)
	if err == nil {
		timer := time.NewTimer(lastLines)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
	}
	cancel()
	<-ended
	if err != nil {
		return err
	}
	return tellEnd(ctx, f, c, j, d, o.quiet)
}

func logOptions(f *cmdutil.Factory, c *job.Client, j *job.Job, several bool, out io.Writer) logs.Options {
	o := logs.Options{
		Selection: logs.Selection{Task: logs.All, Attempt: logs.All}, Follow: true, Tail: -1, Out: out,
		Problem: func(err error) { f.IO.Say("warning: %v", err) },
		Note:    func(string) {}, // attempts are told as states
	}
	if several || logs.Tasks(c, j, o.Selection) > 1 {
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
