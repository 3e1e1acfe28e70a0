package job

import (
	"context"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/terminal"
)

// LogsOptions are those of "paictl job logs".
type LogsOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	Logs    logs.Options
	// NoPrefix leaves out the names of tasks; Raw lets all bytes through to a terminal.
	NoPrefix, Raw bool

	task string
	grep string
	tail bool // --tail was given
}

// severalTail is how many lines of each task are shown where there are several and nothing else is said.
const severalTail = 200

// NewCmdLogs returns "paictl job logs". runF replaces the run in tests.
func NewCmdLogs(f *cmdutil.Factory, runF func(context.Context, *LogsOptions) error) *cobra.Command {
	opts := &LogsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print what the programs of a job wrote, and follow it",
		Long: `Prints the logs of a job's tasks: of all, in the order of time and with the task before each line, or of
those that are chosen. Of several tasks it is the last 200 lines each, unless --tail or --since says
otherwise. -f goes on with what comes, over retries and restarts, and ends when the job has ended. Ctrl-C
ends it with exit code 130, and never the job.

Logs come from the service log-manager, which keeps on each machine what its tasks printed, also after the
job's end. Without it they come from Kubernetes, which keeps some MB of each, and of pods that are gone
from the job controller's archive, which keeps the end of each. What is missing is said on stderr.

On a terminal colours and carriage returns are shown as the program meant them; other control sequences,
which could change the terminal's title, move the cursor or write to the clipboard, are left out unless
--raw is given. Into a file or a pipe all bytes go as they are.`,
		Example: `  paictl job logs train -f
  paictl job logs train --role worker --task 3 --tail 100
  paictl job logs train --task worker[3] --previous     of the attempt before
  paictl job logs train --attempt 0                     of the first attempt
  paictl job logs train --since 10m --timestamps        with the time before each line
  paictl job logs train --grep 'loss=nan|Error'         only lines that fit`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name, opts.tail = args[0], cmd.Flags().Changed("tail")
			if err := opts.complete(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return logsRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&opts.Logs.Follow, "follow", "f", false, "go on with what comes, until the job has ended")
	fl.StringVar(&opts.Logs.Role, "role", "", "only tasks of this role")
	fl.StringVar(&opts.task, "task", "", "only this task: its index, or ROLE[INDEX]")
	fl.Int32Var(&opts.Logs.Attempt, "attempt", logs.All, "of this attempt of the job, from 0 (default: the latest)")
	fl.BoolVar(&opts.Logs.Previous, "previous", false, "of the attempt before the latest")
	fl.Int64Var(&opts.Logs.Tail, "tail", -1, "only so many last lines of each task (default: all, or 200 of each of several)")
	fl.DurationVar(&opts.Logs.Since, "since", 0, "only lines of the last time, such as 10m")
	fl.StringVar(&opts.grep, "grep", "", "only lines that this regular expression fits ((?i) before it ignores case); --tail counts them")
	fl.BoolVar(&opts.Logs.Timestamps, "timestamps", false, "when each line was written, in UTC, before it; the archive doesn't know it")
	fl.BoolVar(&opts.NoPrefix, "no-prefix", false, "leave out the names of tasks")
	fl.BoolVar(&opts.Raw, "raw", false, "on a terminal: all control sequences too; only for programs that you trust")
	for _, name := range []string{"attempt", "tail"} { // -1 is no default that a person could make sense of
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
			return cmdutil.Usagef("--grep: %w; a character that means something is written with \\ before it", err)
		}
	}
	switch {
	case o.Follow && (o.Previous || o.Attempt >= 0):
		return cmdutil.Usagef("earlier attempts write no more lines: leave out -f")
	case o.Previous && o.Attempt >= 0:
		return cmdutil.Usagef("give --attempt or --previous, not both")
	case o.Since < 0:
		return cmdutil.Usagef("--since %s: give a time that has passed, such as 10m", o.Since)
	case o.Attempt < logs.All:
		return cmdutil.Usagef("--attempt %d: attempts are counted from 0", o.Attempt)
	}
	return nil
}

// parseTask reads --role and --task together; the index is -1 where there is none.
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
		return "", 0, cmdutil.Usagef("--task %s is of another role than --role %s", task, role)
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
	if logs.Tasks(c, j, o.Selection) > 1 {
		if !opts.NoPrefix {
			o.Prefix = prefixes(io)
		}
		if !opts.tail && o.Since == 0 && o.Match == nil {
			o.Tail = severalTail
		}
	}
	err = logs.Write(ctx, c, j, o)
	if o.Follow && ctx.Err() != nil {
		return left(opts.Factory, j, nil)
	}
	return c.Explain(err)
}

// palette are colours that can be read on light and dark screens.
var palette = []int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}

// prefixes names tasks before their lines, each in a colour of its own where a person looks on.
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

// ago writes how long ago something was, in its largest unit.
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
