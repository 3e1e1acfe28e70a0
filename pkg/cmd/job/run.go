package job

import (
	"context"
	"crypto/rand"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
)

// RunOptions are the options of "paictl job run".
type RunOptions struct {
	SubmitOptions
	Draft   protocol.Draft
	Command []string
	Env     []string
	// Stdin and TTY make the job a session: its task only waits, and the command runs in the task as with "exec".
	Stdin, TTY  bool
	Detach      bool
	MaxDuration time.Duration
	// given reports whether the user gave a flag. The defaults of the other flags depend on the cluster.
	given func(flag string) bool
}

// NewCmdRun returns "paictl job run".
func NewCmdRun(f *cmdutil.Factory) *cobra.Command {
	opts := &RunOptions{SubmitOptions: SubmitOptions{Factory: f}}
	cmd := &cobra.Command{
		Use:        "run IMAGE -- COMMAND [ARG...]",
		SuggestFor: []string{"srun", "salloc"},
		Short:      "Run a command or an interactive shell as a job, without a job file",
		Long: `Submits a job with one role, defined by flags, and follows it until it has finished, as "submit
--watch" does; Ctrl-C stops following, and the job keeps running. --detach returns once the job is submitted.
--dry-run checks it and prints its job file, which you can edit.

The command is a program and its arguments; no shell interprets them. To use a shell, write: -- sh -c
'COMMANDS'.

-it opens an interactive session: it submits a job that waits, runs the command (default: bash, or sh)
in it with a terminal, and stops the job when the command ends, when you press Ctrl-C before it starts,
or when the terminal is closed. If paictl is killed or loses the connection to the cluster, the job stops
after 2 minutes; a job that still waits or pulls its image stops 2 minutes after it has started. The image
needs sh, cat and sleep.

Without --cpus and --memory a task gets the share of a machine that belongs to its GPUs, or 1 processor
and 1024 MB.`,
		Example: `  paictl job run docker.io/openpai/examples-python:3 -- python3 -c 'print(1)'
  paictl job run pytorch/pytorch:2.9.0 --gpus 8 --code ./src -- torchrun train.py
  paictl job run pytorch/pytorch:2.9.0 --env SEED=7 --detach -o name -- python3 train.py
  paictl job run -it pytorch/pytorch:2.9.0 --gpus 1
  paictl job run pytorch/pytorch:2.9.0 --dry-run -- python3 train.py > train.yaml`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return opts.Flags.completeImages(f)(cmd, args, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Draft.Image, opts.Command, opts.given = args[0], args[1:], cmd.Flags().Changed
			if err := opts.check(cmd); err != nil {
				return err
			}
			return runRun(cmd.Context(), opts)
		},
	}
	opts.addFlags(cmd, "check everything, also against the cluster, and print the job file without submitting it")
	d, fl := &opts.Draft, cmd.Flags()
	fl.StringVar(&d.Name, "name", "", "name of the job (default: the name of the image with a random suffix)")
	fl.IntVar(&d.GPU, "gpus", 0, "GPUs of one task (default: 1, or 0 if the cluster has no GPUs)")
	fl.Float64Var(&d.CPU, "cpus", 0, "processors of one task, such as 4 or 0.5")
	fl.Var((*megabytes)(&d.MemoryMB), "memory", memoryUsage)
	fl.IntVar(&d.Instances, "instances", 1, "number of tasks")
	fl.StringVar(&d.VirtualCluster, "vc", "", "virtual cluster (default: yours, see \"paictl whoami\", or \"default\")")
	fl.StringArrayVar(&d.Storages, "storage", nil, "storage that the tasks mount at /mnt/NAME; can be repeated")
	fl.StringArrayVarP(&opts.Env, "env", "e", nil, "NAME=VALUE in the environment of the command; can be repeated. It is not kept secret")
	fl.DurationVar(&opts.MaxDuration, "max-duration", 0, "stop the job after this time, such as 2h; 0 means no limit")
	fl.BoolVarP(&opts.Stdin, "stdin", "i", false, "pass standard input to the command; the job stops when the command exits")
	fl.BoolVarP(&opts.TTY, "tty", "t", false, "give the command a terminal; the job stops when the command exits")
	fl.BoolVarP(&opts.Detach, "detach", "d", false, "return once the job is submitted")
	_ = cmd.RegisterFlagCompletionFunc("vc", opts.Flags.completeVC(f))
	return cmd
}

func (opts *RunOptions) session() bool { return opts.Stdin || opts.TTY }

func (opts *RunOptions) check(cmd *cobra.Command) error {
	see := "(see " + cmd.CommandPath() + " --help)"
	switch at := cmd.ArgsLenAtDash(); {
	case at == 0 || at > 1 || at < 0 && len(opts.Command) > 0:
		return cmdutil.Usagef("name one image, then -- and the command %s", see)
	case len(opts.Command) == 0 && !opts.session():
		return cmdutil.Usagef("name the command after --, or open a shell with -it %s", see)
	case opts.session() && (opts.Detach || opts.Draft.Instances != 1):
		return cmdutil.Usagef("-i and -t are for one task that stops when the command exits: remove --detach and --instances %s", see)
	case opts.Detach && opts.Submit.DryRun:
		return cmdutil.Usagef("give one of --detach and --dry-run %s", see)
	case !opts.Detach && !opts.Output.Is("text"):
		return cmdutil.Usagef("--output is for --detach: otherwise standard output is the command's %s", see)
	case opts.Draft.Instances < 1:
		return cmdutil.Usagef("--instances %d: a job has at least one task", opts.Draft.Instances)
	case opts.Draft.GPU < 0:
		return cmdutil.Usagef("--gpus %d: give the number of GPUs of one task, or 0", opts.Draft.GPU)
	case opts.MaxDuration < 0 || opts.MaxDuration%time.Second != 0:
		return cmdutil.Usagef("--max-duration %s: give whole seconds, such as 30m", opts.MaxDuration)
	}
	for _, e := range opts.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || !isVariable(name) {
			return cmdutil.Usagef("--env %s: write NAME=VALUE", e)
		}
	}
	if opts.TTY && !opts.Submit.DryRun {
		if _, err := terminalOf(opts.Factory.IO); err != nil {
			return err
		}
	}
	return nil
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

func runRun(ctx context.Context, opts *RunOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	offer, err := c.Offer(ctx)
	if err != nil {
		return err
	}
	opts.complete(offer)
	text, err := opts.Draft.Write()
	if err != nil {
		return err
	}
	all, err := parse(opts.Factory, unparsed("job run", text))
	if err != nil {
		return err
	}
	// Standard output is reserved for the output of the command, or for the job file.
	opts.aside = !opts.Detach
	if opts.session() && !opts.Submit.DryRun {
		return opts.attach(ctx, c, all)
	}
	opts.Watch = !opts.Detach && !opts.Submit.DryRun
	if err := opts.submit(ctx, c, all); err != nil || !opts.Submit.DryRun {
		return err
	}
	_, err = opts.Factory.IO.Out.Write(text)
	return err
}

// complete sets the values that no flag sets. Its defaults depend on the hardware that the cluster offers.
func (opts *RunOptions) complete(offer *job.Offer) {
	d := &opts.Draft
	d.Role, d.MaxDurationSec = "main", int(opts.MaxDuration/time.Second)
	if d.Name == "" {
		d.Name = nameOf(d.Image) + "-" + strings.ToLower(rand.Text()[:5])
	}
	if !opts.given("gpus") && len(offer.SKUs) > 0 {
		d.GPU = 1
	}
	cpus, memory := 1.0, 1024
	if d.GPU > 0 {
		if c, m := smallest(offer); c > 0 && m > 0 {
			// Round down, so that the processors don't exceed the share of the GPUs.
			cpus, memory = math.Floor(c*float64(d.GPU)*10)/10, m*d.GPU
		}
	}
	if !opts.given("cpus") {
		d.CPU = max(cpus, 0.1)
	}
	if !opts.given("memory") {
		d.MemoryMB = memory
	}
	command := opts.Command
	switch {
	case opts.session():
		d.Commands = strings.Split(strings.TrimSpace(holder), "\n")
	case len(opts.Env) > 0:
		// A job file has no field for environment variables, so the command is run with env.
		d.Exec = append([]string{"env"}, append(opts.Env, command...)...)
	default:
		d.Exec = command
	}
	for i, arg := range d.Exec {
		if strings.Contains(arg, "<%") { // text that would be read as a reference
			d.Parameters = map[string]string{"open": "<%"}
			d.Exec[i] = strings.ReplaceAll(arg, "<%", "<% $parameters.open %>")
		}
	}
}

// smallest returns the smallest number of processors and the smallest amount of memory that belong to one GPU on the machines of the cluster.
func smallest(offer *job.Offer) (cpus float64, memoryMB int) {
	for _, s := range offer.SKUs {
		if c := float64(s.MilliCPU) / 1000; cpus == 0 || c < cpus {
			cpus = c
		}
		if memoryMB == 0 || s.MemoryMB < memoryMB {
			memoryMB = s.MemoryMB
		}
	}
	return cpus, memoryMB
}

// nameOf converts the last part of an image's name to a valid name of a job.
func nameOf(image string) string {
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], "@")
	name, _, _ = strings.Cut(name, ":")
	if name = strings.Trim(inName(name), "-_"); name == "" {
		name = "run"
	}
	return name[:min(len(name), 40)]
}
