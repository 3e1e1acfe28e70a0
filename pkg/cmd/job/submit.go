package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/job/protocol"
)

// SubmitOptions are the options of "paictl job submit".
type SubmitOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Files   []string
	// Template is the name of a template that is submitted instead of a file.
	Template string
	Source   Source
	Submit   job.SubmitOptions
	Watch    bool
	Wait     bool
	Timeout  time.Duration
	// Sweep holds parameters with several values each. One job is submitted for each combination of values.
	Sweep []string
	Yes   bool
	// After holds the names of jobs that must succeed before the jobs start.
	After []string
	// ClonedFrom is the name of the job whose file was cloned.
	ClonedFrom string
	Output     cmdutil.Output
	// aside means that outcomes are printed on stderr. whole means that a submission isn't interrupted halfway, so that its outcome is known.
	aside, whole bool
	// submitted is called after each submitted job. It may be nil.
	submitted func(context.Context)
}

// NewCmdSubmit returns "paictl job submit".
func NewCmdSubmit(f *cmdutil.Factory) *cobra.Command {
	opts := &SubmitOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "submit [FILE...]",
		SuggestFor: []string{"sbatch", "qsub", "apply", "bsub"},
		Short:      "Submit jobs",
		Long: `Checks job files and their requests to the cluster, then submits them. If one of several files
has a mistake, none is submitted. FILE can be - for standard input.

Each user can use a name once. Submitting the same file twice is safe: an interrupted submission is
completed, a complete one is reported as already submitted. --replace reuses the name of a finished job,
which stays in the history.

--set changes values of the file's parameters, --name the name of the job.

--sweep gives a parameter of the file several values, and submits one job for each of them, named after the
value: train-lr-0_1. Several --sweep flags make one job for each combination. Running the same command again
submits the jobs that are missing, and skips those that exist, running or finished, unless --replace is given.

--after NAME starts the job when another one has succeeded, as extras.after in the file does. If the
other one fails or is stopped, this job fails without having started.

--cloned-from NAME records that the file was cloned from another job, as "paictl job clone" writes it. "paictl
job diff" then shows what was changed.

--template NAME submits the job file of a template, yours, AUTHOR/NAME, or a built-in one: see "paictl job template --help".

--notify selects the notices that you get about the job, instead of those that you chose with "paictl notify", as
extras.jobStatusChangeNotification in the file does.

--code DIR sends a folder with the job: its files are in the tasks' working directory when the commands
start. Files that .gitignore names are not sent. An unchanged folder is sent only once.`,
		Example: `  paictl job submit hello.yaml
  paictl job submit train.yaml --watch
  paictl job submit train.yaml --code ./src
  paictl job submit train.yaml --notify started,finished,failed
  paictl job submit train.yaml --dry-run
  paictl job submit train.yaml --name train-lr2 --set lr=0.01 --set epochs=20
  paictl job submit prepare.yaml && paictl job submit train.yaml --after prepare
  paictl job submit --template ann/train --name my-train --set lr=0.01
  paictl job submit train.yaml --sweep lr=0.1,0.01 --sweep seed=1,2,3 --dry-run
  paictl job submit a.yaml b.yaml --wait && echo "both succeeded"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Files = append(args, opts.Files...)
			if err := opts.check(cmd); err != nil {
				return err
			}
			return submitRun(cmd.Context(), opts)
		},
	}
	opts.addFlags(cmd, "check everything, also against the cluster, say whether the job would start now, and submit nothing")
	opts.Source.addText(cmd)
	fl := cmd.Flags()
	fl.StringSliceVarP(&opts.Files, "file", "f", nil, "a job file; the same as FILE")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	fl.StringVar(&opts.Template, "template", "", "a template, in place of a file: NAME or AUTHOR/NAME")
	_ = cmd.RegisterFlagCompletionFunc("template", opts.Flags.completeTemplates(f, cmdutil.FlagValue))
	fl.StringArrayVar(&opts.Sweep, "sweep", nil, "NAME=VALUE,VALUE...: a job for each value of a parameter; repeat the flag for all combinations")
	fl.StringSliceVar(&opts.After, "after", nil, "start when these jobs have succeeded: NAME or USER/NAME")
	_ = cmd.RegisterFlagCompletionFunc("after", opts.Flags.completeJobs(f, cmdutil.FlagValue))
	fl.StringVar(&opts.ClonedFrom, "cloned-from", "", "record the job that the file was cloned from: NAME or USER/NAME")
	_ = cmd.RegisterFlagCompletionFunc("cloned-from", opts.Flags.completeJobs(f, cmdutil.FlagValue))
	fl.BoolVarP(&opts.Yes, "yes", "y", false, fmt.Sprintf("don't ask before a sweep of more than %d jobs", sweepAsks))
	fl.BoolVarP(&opts.Watch, "watch", "w", false, "print each state and follow the logs until the job has finished; the exit code is the job's")
	fl.BoolVar(&opts.Wait, "wait", false, "wait until the job has finished, and say only how; the exit code is the job's")
	fl.DurationVar(&opts.Timeout, "timeout", 0, "with --watch or --wait: wait no longer than this")
	return cmd
}

// addFlags adds the flags that submit and run share. dryRun is the help text of --dry-run, which differs between the two commands.
func (opts *SubmitOptions) addFlags(cmd *cobra.Command, dryRun string) {
	opts.Flags.add(opts.Factory, cmd)
	opts.Source.addOptions(cmd)
	cmd.Flags().BoolVar(&opts.Submit.DryRun, "dry-run", false, dryRun)
	cmd.Flags().BoolVar(&opts.Submit.Replace, "replace", false, "reuse the name of a finished job")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml", "name")
}

func (opts *SubmitOptions) check(cmd *cobra.Command) error {
	if len(opts.Files) == 0 && opts.Template == "" {
		return cmdutil.Usagef("name a job file, or - for standard input (see %s --help)", cmd.CommandPath())
	}
	if len(opts.Files) > 0 && opts.Template != "" {
		return cmdutil.Usagef("give a job file or --template, not both (see %s --help)", cmd.CommandPath())
	}
	if opts.Source.Name != "" && len(opts.Files) > 1 {
		return cmdutil.Usagef("--name is for one file (see %s --help)", cmd.CommandPath())
	}
	if len(opts.Sweep) > 0 && len(opts.Files) > 1 {
		return cmdutil.Usagef("--sweep is for one file (see %s --help)", cmd.CommandPath())
	}
	if _, err := readSweep(opts.Sweep); err != nil {
		return err
	}
	opts.Submit.SkipEnded = len(opts.Sweep) > 0
	for _, name := range opts.After {
		if err := protocol.CheckName(name); err != nil {
			return cmdutil.Usagef("--after: %w", err)
		}
		opts.Submit.After = append(opts.Submit.After, protocol.After{Job: name})
	}
	if opts.ClonedFrom != "" {
		if err := protocol.CheckName(opts.ClonedFrom); err != nil {
			return cmdutil.Usagef("--cloned-from: %w", err)
		}
	}
	if opts.Watch && opts.Wait || opts.Submit.DryRun && (opts.Watch || opts.Wait) {
		return cmdutil.Usagef("give one of --watch, --wait and --dry-run (see %s --help)", cmd.CommandPath())
	}
	return opts.Source.check()
}

// submission is a job file on its way to the cluster.
type submission struct {
	client.Request
	job     *protocol.Job
	summary job.Summary
	outlook *job.Outlook
	outcome job.Outcome
	// parameters are the values that distinguish this job from the other jobs of its sweep.
	parameters map[string]string
}

func unparsed(file string, text []byte) submission {
	return submission{Request: client.Request{File: file, Text: text}}
}

func submitRun(ctx context.Context, opts *SubmitOptions) error {
	if opts.Template != "" {
		return submitTemplate(ctx, opts)
	}
	all, err := opts.Source.read(opts.Factory, opts.Files)
	if err != nil {
		return err
	}
	return opts.submitAll(ctx, all)
}

// submitAll submits the jobs that were read, or the jobs of the sweep.
func (opts *SubmitOptions) submitAll(ctx context.Context, all []submission) (err error) {
	if len(opts.Sweep) > 0 {
		if all, err = opts.sweep(&all[0]); err != nil {
			return err
		}
	}
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	return opts.submit(ctx, c, all)
}

// submit checks jobs against the cluster, submits them, and follows them if the flags request it.
func (opts *SubmitOptions) submit(ctx context.Context, c *client.Jobs, all []submission) error {
	owner, err := opts.Flags.maker(ctx, opts.Factory, c)
	if err != nil {
		return err
	}
	if err := opts.prepare(ctx, c, owner, all); err != nil {
		return err
	}
	sending := ctx
	if opts.whole && ctx.Err() == nil {
		var cancel context.CancelFunc
		sending, cancel = context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
	}
	if err := opts.send(sending, c, all); err != nil {
		return err
	}
	if opts.Watch || opts.Wait {
		return opts.follow(ctx, c, owner, all)
	}
	return nil
}

// prepare uploads the folder with the code of the jobs, and checks the jobs.
func (opts *SubmitOptions) prepare(ctx context.Context, c *client.Jobs, owner string, all []submission) error {
	folder, err := opts.code(ctx, c, owner)
	if err != nil {
		return err
	}
	group := opts.Source.group(opts.Factory)
	requests := make([]client.Request, len(all))
	for i := range all {
		all[i].Group, all[i].Code, all[i].ClonedFrom = group, folder, opts.ClonedFrom
		requests[i] = all[i].Request
	}
	checked, findings, err := c.Check(ctx, requests, opts.Submit.DryRun)
	if err != nil {
		return err
	}
	if err := report(opts.Factory, findings); err != nil {
		return err
	}
	for i := range all {
		all[i].summary, all[i].outlook = checked[i].Summary, checked[i].Outlook
	}
	return nil
}

// code uploads the folder with the code of the jobs to the cluster. It returns nil if the jobs have no code.
func (opts *SubmitOptions) code(ctx context.Context, c *client.Jobs, owner string) (*job.Code, error) {
	if opts.Source.Code == "" {
		return nil, nil
	}
	offer, err := c.Offer(ctx)
	if err != nil {
		return nil, err
	}
	if !offer.TakesCode {
		return nil, job.ErrNoCode
	}
	send := func(a *code.Archive) (bool, error) { return c.PutCode(ctx, owner, a) }
	if opts.Submit.DryRun {
		send = nil
	}
	return opts.Source.pack(ctx, opts.Factory, send)
}

// follow waits for all jobs concurrently. The exit code of the command is that of the first job, in the order of submission, that did not
// succeed.
func (opts *SubmitOptions) follow(ctx context.Context, c *client.Jobs, owner string, all []submission) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { errs[i] = opts.followOne(ctx, c, owner, all[i].job.Name, len(all) > 1) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			if coded, ok := errors.AsType[*cmdutil.CodeError](err); ok && !coded.Silent && len(all) > 1 {
				cmdutil.PrintError(opts.Factory.IO.Err, err)
				return &cmdutil.CodeError{Err: coded.Err, Code: coded.Code, Silent: true}
			}
			return err
		}
	}
	return nil
}

func (opts *SubmitOptions) followOne(ctx context.Context, c *client.Jobs, owner, name string, several bool) error {
	j, err := c.Resolve(ctx, owner, name)
	if err != nil {
		return err
	}
	o := followOptions{until: job.Phase.Done, timeout: opts.Timeout, quiet: opts.Wait}
	if opts.Watch {
		return watch(ctx, opts.Factory, c, j, o, several)
	}
	d, err := follow(ctx, opts.Factory, c, j, o)
	if err != nil {
		return err
	}
	opts.Factory.IO.Say("%s  %s", j.Title(), progressText(d, time.Now()))
	return tellEnd(ctx, opts.Factory, c, j, d, true)
}
