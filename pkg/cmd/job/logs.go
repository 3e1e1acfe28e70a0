package job

import (
	"context"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// LogsOptions are the options of "paictl job logs".
type LogsOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	Logs    logs.Options
	// NoPrefix omits the names of tasks before lines. Raw passes all bytes to a terminal.
	NoPrefix, Raw bool

	task string
	grep string
	tail bool // --tail was given
}

// severalTail is how many lines of each task are printed by default if the job has several tasks.
const severalTail = 200

// NewCmdLogs returns "paictl job logs".
func NewCmdLogs(f *cmdutil.Factory) *cobra.Command {
	opts := &LogsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print and follow the logs of a job",
		Long: `Prints the logs of a job's tasks: of all tasks, ordered by time and with the task's name before each
line, or of selected tasks. For several tasks it prints the last 200 lines of each, unless --tail or --since is
given. -f continues with new lines, across retries and restarts, until the job has finished. Ctrl-C ends the
command with exit code 130; the job keeps running.

Logs come from the service log-manager, which keeps the output of tasks on each machine, also after the
job has finished. Without it, logs come from Kubernetes, which keeps some MB per task, and for deleted
pods from the job controller's archive, which keeps the last part. If lines are missing, a message on
stderr says so.

On a terminal, colours and carriage returns work; other control sequences, which could change the
terminal's title, move the cursor or write to the clipboard, are removed unless --raw is given. A file
or a pipe gets all bytes unchanged.`,
		Example: `  paictl job logs train -f
  paictl job logs train --role worker --task 3 --tail 100
  paictl job logs train --task worker[3] --previous     show the attempt before
  paictl job logs train --attempt 0                     show the first attempt
  paictl job logs train --since 10m --timestamps        with the time before each line
  paictl job logs train --grep 'loss=nan|Error'         only lines that match`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name, opts.tail = args[0], cmd.Flags().Changed("tail")
			if err := opts.complete(); err != nil {
				return err
			}
			return logsRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&opts.Logs.Follow, "follow", "f", false, "print new lines as they arrive, until the job has finished")
	fl.StringVar(&opts.Logs.Role, "role", "", "only tasks of this role")
	fl.StringVar(&opts.task, "task", "", "only this task: its index, or ROLE[INDEX]")
	fl.Int32Var(&opts.Logs.Attempt, "attempt", logs.All, "show this attempt of the job, counted from 0 (default: the latest)")
	fl.BoolVar(&opts.Logs.Previous, "previous", false, "show the attempt before the latest")
	fl.Int64VarP(&opts.Logs.Tail, "tail", "n", -1, "only the last lines of each task (default: all, or 200 each if there are several tasks)")
	fl.DurationVar(&opts.Logs.Since, "since", 0, "only lines newer than this, such as 10m")
	fl.StringVar(&opts.grep, "grep", "", "only lines that match this regular expression (begin it with (?i) to ignore case); --tail counts only these")
	fl.BoolVar(&opts.Logs.Timestamps, "timestamps", false, "print before each line when it was written, in UTC; not known for lines from the archive")
	fl.BoolVar(&opts.NoPrefix, "no-prefix", false, "don't print the names of tasks")
	fl.BoolVar(&opts.Raw, "raw", false, "on a terminal: also print all control sequences; only for programs that you trust")
	for _, name := range []string{"attempt", "tail"} { // a default of -1 in the help would confuse users
		fl.Lookup(name).DefValue = "0"
	}
	_ = cmd.RegisterFlagCompletionFunc("role", opts.Flags.completeRoles(f))
	return cmd
}

func (opts *LogsOptions) complete() (err error) {
	o := &opts.Logs
	if o.Role, o.Task, err = parseTask(o.Role, opts.task); err != nil {
		return err
	}
	if opts.grep != "" {
		if o.Match, err = regexp.Compile(opts.grep); err != nil {
			return cmdutil.Usagef("--grep: %w; write \\ before a special character to match it literally", err)
		}
	}
	switch {
	case o.Follow && (o.Previous || o.Attempt >= 0):
		return cmdutil.Usagef("earlier attempts write no more lines: remove -f")
	case o.Previous && o.Attempt >= 0:
		return cmdutil.Usagef("give --attempt or --previous, not both")
	case o.Since < 0:
		return cmdutil.Usagef("--since %s: give a time that has passed, such as 10m", o.Since)
	case opts.tail && o.Tail < -1:
		return cmdutil.Usagef("--tail %d: give a number of lines, or -1 for all", o.Tail)
	case o.Attempt < logs.All:
		return cmdutil.Usagef("--attempt %d: attempts are counted from 0", o.Attempt)
	}
	return nil
}

// parseTask parses the values of --role and --task together. The index is -1 if the flags don't choose a task.
func parseTask(role, task string) (string, int32, error) {
	if task == "" {
		return role, -1, nil
	}
	if n, err := strconv.ParseInt(task, 10, 32); err == nil && n >= 0 {
		return role, int32(n), nil
	}
	named, index, ok := job.ParseTask(task)
	switch {
	case !ok:
		return "", 0, cmdutil.Usagef("--task %s: give the index of a task, or ROLE[INDEX]", task)
	case role != "" && role != named:
		return "", 0, cmdutil.Usagef("--task %s has a different role than --role %s", task, role)
	}
	return named, index, nil
}

func logsRun(ctx context.Context, opts *LogsOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	io, o := opts.Factory.IO, opts.Logs
	out := io.Logs(opts.Raw)
	defer out.Close()
	o.Out = out
	o.Problem = func(err error) { io.Say("warning: %v", err) }
	o.Note = func(text string) { io.Say("--- %s ---", text) }
	if logs.Tasks(j, o.Selection) > 1 {
		if !opts.NoPrefix {
			o.Prefix = prefixes(io)
		}
		if !opts.tail && o.Since == 0 && o.Match == nil {
			o.Tail = severalTail
		}
	}
	if o.Follow && !j.Ended() {
		waiting, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { sayWhy(waiting, io, c, j) })
		defer wg.Wait()
		defer stop()
	}
	err = c.Logs(ctx, j, o, o.Write)
	if o.Follow && ctx.Err() != nil {
		return left(opts.Factory, j, nil)
	}
	return c.Explain(err)
}

// sayWhy prints why a followed job, or some of its tasks, has no output yet.
func sayWhy(ctx context.Context, io *iostreams.IOStreams, c *client.Jobs, j *job.Job) {
	why := newReasons(c, j)
	_ = c.Follow(ctx, j, func(d *job.Detail) bool {
		if w := why.of(ctx, d); w != nil {
			io.Say("--- %s: %s ---", d.At().Text(time.Now()), w.Sentence)
		}
		return !job.Phase(d.State).Done()
	}, func(error) {}) // Logs reports that the cluster doesn't respond
}

// palette lists the codes of colors that can be read on light and dark screens.
var palette = []int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}

// prefixes returns a function that returns the prefix for the lines of a task: the name of the task. On a terminal, each task has a different
// color.
func prefixes(io *iostreams.IOStreams) func(string) string {
	return func(task string) string {
		task = terminal.Line(task)
		if !io.IsOutTTY() || !io.ColourEnabled() {
			return task + "  "
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(task)) // never fails
		return fmt.Sprintf("\x1b[%dm%s\x1b[0m  ", palette[h.Sum32()%uint32(len(palette))], task)
	}
}

// ago formats the time between then and now in its largest unit.
func ago(now, then time.Time) string {
	switch d := max(now.Sub(then), 0); {
	case then.IsZero():
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
