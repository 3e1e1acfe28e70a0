package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ExecOptions are the options of "paictl job exec" and "paictl job shell".
type ExecOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Target  TargetFlags
	Name    string
	Command []string
	Stdin   bool
	TTY     bool
}

// TargetFlags choose one running task.
type TargetFlags struct {
	Role string
	Task string
}

func (t *TargetFlags) add(f *cmdutil.Factory, fl *Flags, cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.Role, "role", "", "use a task of this role")
	cmd.Flags().StringVar(&t.Task, "task", "", "use this task: its index, or ROLE[INDEX] (default: the first running task)")
	_ = cmd.RegisterFlagCompletionFunc("role", fl.completeRoles(f))
}

// pick returns the task that the flags choose. If several tasks match, it chooses one and prints its name on stderr.
func (t *TargetFlags) pick(ctx context.Context, f *cmdutil.Factory, c *client.Jobs, j *job.Job) (*job.Target, error) {
	role, index, err := parseTask(t.Role, t.Task)
	if err != nil {
		return nil, err
	}
	target, err := pick(ctx, c, j, role, index)
	if err == nil && target.Others > 0 {
		f.IO.Say("in %s, the first of %d running tasks; choose another with --role and --task", target.Task, target.Others+1)
	}
	return target, err
}

// pick returns the running task with the given role and index. If the index is -1, it returns the first running task.
func pick(ctx context.Context, c *client.Jobs, j *job.Job, role string, index int32) (*job.Target, error) {
	if err := job.CheckRole(j, role); err != nil { // before the cluster is contacted
		return nil, err
	}
	all, err := c.Targets(ctx, j)
	if err != nil {
		return nil, err
	}
	return job.PickOf(j, all, role, index)
}

// NewCmdExec returns "paictl job exec".
func NewCmdExec(f *cmdutil.Factory) *cobra.Command {
	opts := &ExecOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a command in a task of a job",
		Long: `Runs a command in the container of a running task, with the environment of the task's program. The
exit code is the command's. Without --role and --task, the first running task is used.`,
		Example: `  paictl job exec train -- nvidia-smi
  paictl job exec train --task worker[3] -- env
  tar c conf | paictl job exec train -i -- tar x -C /tmp
  paictl job exec train -it -- python3`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at > 1 {
				return cmdutil.Usagef("name one job, then -- and the command (see %s --help)", cmd.CommandPath())
			}
			opts.Name, opts.Command = args[0], args[1:]
			return execRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	opts.Target.add(f, &opts.Flags, cmd)
	cmd.Flags().BoolVarP(&opts.Stdin, "stdin", "i", false, "pass standard input to the command")
	cmd.Flags().BoolVarP(&opts.TTY, "tty", "t", false, "give the command a terminal")
	return cmd
}

// NewCmdShell returns "paictl job shell".
func NewCmdShell(f *cmdutil.Factory) *cobra.Command {
	opts := &ExecOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "shell NAME",
		SuggestFor: []string{"attach", "ssh", "login"},
		Short:      "Open a shell in a task of a job",
		Long: `Opens bash, or sh if the image has no bash, in the container of a running task, with the environment
of the task's program. It needs neither an SSH server nor the address of a machine.`,
		Example: `  paictl job shell train
  paictl job shell train --task worker[3]`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			opts.Stdin, opts.TTY = true, f.IO.CanPrompt() && f.IO.IsOutTTY()
			opts.Command = shellCommand(f.Getenv("TERM"))
			return execRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	opts.Target.add(f, &opts.Flags, cmd)
	return cmd
}

// shellCommand returns the command that starts bash if the image contains it, and sh otherwise. The command sets TERM to the type of the
// terminal, because many images don't set TERM.
func shellCommand(terminal string) []string {
	return []string{"sh", "-c", `test -z "$1" || export TERM="$1"; command -v bash >/dev/null && exec bash; exec sh`, "sh", terminal}
}

func execRun(ctx context.Context, opts *ExecOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	target, err := opts.Target.pick(ctx, opts.Factory, c, j)
	if err != nil {
		return err
	}
	return opts.run(ctx, c, j, target)
}

// run runs the command in the given task.
func (opts *ExecOptions) run(ctx context.Context, c *client.Jobs, j *job.Job, target *job.Target) error {
	io := opts.Factory.IO
	e := stream.Command{Args: target.Command(opts.Command...), Stdout: io.Out, Stderr: io.Err}
	if opts.Stdin {
		e.Stdin = io.In
	}
	if opts.TTY {
		in, err := terminalOf(io)
		if err != nil {
			return err
		}
		restore, sizes, err := rawTerminal(ctx, in)
		if err != nil {
			return fmt.Errorf("prepare the terminal: %w", err)
		}
		defer restore()
		e.TTY, e.Sizes = true, sizes
	}
	return ended(c, j, target, c.Exec(ctx, target, e))
}

// terminalOf returns standard input if it is a terminal, and an error otherwise.
func terminalOf(io *iostreams.IOStreams) (*os.File, error) {
	in, ok := io.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, cmdutil.Usagef("standard input is not a terminal: remove -t")
	}
	return in, nil
}

// ended makes the exit code of a command in the task the exit code of the program.
func ended(c *client.Jobs, j *job.Job, target *job.Target, err error) error {
	if exit, ok := errors.AsType[*stream.ExitError](err); ok {
		return &cmdutil.CodeError{Err: exit, Code: exit.Code, Silent: true}
	}
	if err == nil {
		return nil
	}
	if target.OwnRuntime && target.LacksRuntime(err) {
		return noRuntime(target)
	}
	return c.Explain(fmt.Errorf("run a command in %s of %s: %w", target.Task, j.Title(), err))
}

func noRuntime(target *job.Target) error {
	return hint.Errorf("a program of the task removed it, or a volume of the job hides it: don't use the path "+path.Dir(target.Program)+
		"; until then use: kubectl exec -n "+target.Namespace+" "+target.Pod,
		"the container of %s has no job runtime at %s", target.Task, target.Program)
}
