package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// SimulateOptions are the options of "paictl scheduler simulate".
type SimulateOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	Trace  string
	// Compare are several configurations. The trace is run with each of them.
	Compare []string
	// Policies are scheduling policies. The trace is run with each of them, and all virtual clusters use the policy. If Policies is empty, the
	// policies in the configuration are used.
	Policies []string
	Meter    sim.Meter
	// Jobs is the path of a CSV file for the times of each job. "" means that no file is written.
	Jobs                string
	Drain               bool
	Checkpoint, Restart int // seconds
	ReservationAfter    time.Duration

	source source
}

// simulated is the result of one run of the trace.
type simulated struct {
	Config string `json:"config"`
	// Policy is the policy that all virtual clusters used. "" means that they used the policies in the configuration.
	Policy string `json:"policy,omitempty"`
	*sim.Report
}

// NewCmdSimulate returns "paictl scheduler simulate".
func NewCmdSimulate(f *cmdutil.Factory) *cobra.Command {
	opts := &SimulateOptions{IO: f.IO, Meter: sim.System()}
	var noSpeed bool
	cmd := &cobra.Command{
		Use:   "simulate --trace CSV",
		Short: "Run a trace of jobs in virtual time and report waiting times and GPU use",
		Long: `Replays jobs on a cluster whose nodes are all healthy, with the scheduler that runs in a cluster, and
reports how busy the GPUs were, how long the jobs of each virtual cluster waited and why, how close together
the GPUs of a job were, what was preempted, and how long a decision takes. --compare runs other configurations
on the same jobs and prints them side by side, so that you can compare divisions of the cluster; --policy does
the same with policies for all virtual clusters.

The trace is a CSV file whose first line is
  ` + trace.Header() + `
priority is -1 for opportunistic jobs, or 0 to 1000. All pods of a job are one gang. Time is virtual:
hours take seconds. The run ends at the last arrival; with --drain it continues until all jobs have
finished, and reports how long they took.

A preempted job keeps its work, unless --checkpoint sets the time between two checkpoints, and --restart
the time that a restart takes.`,
		Example: `  paictl scheduler simulate --config hivedscheduler.yaml --trace jobs.csv
  paictl scheduler simulate --trace jobs.csv --drain --checkpoint 1800 --restart 60 --jobs result.csv
  paictl scheduler simulate -p ./cluster --trace jobs.csv -o json | jq .utilisation
  paictl scheduler simulate --trace jobs.csv --compare today.yaml,tomorrow.yaml
  paictl scheduler simulate --trace jobs.csv --drain --policy balanced,fewer-kills`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Trace == "" {
				return cmdutil.Usagef("name the trace with --trace CSV (see %s --help)", cmd.CommandPath())
			}
			if outside := func(n int) bool { return n < 0 || n > trace.MaxSeconds }; outside(opts.Checkpoint) || outside(opts.Restart) {
				return cmdutil.Usagef("--checkpoint and --restart are seconds, from 0 to %d", trace.MaxSeconds)
			}
			if opts.ReservationAfter < 0 {
				return cmdutil.Usagef("--reservation-after is a time such as 12h, or 0")
			}
			if opts.Jobs != "" && (len(opts.Compare) > 0 || len(opts.Policies) > 1) {
				return cmdutil.Usagef("--jobs is for one run; remove --compare, and all policies except one")
			}
			for _, name := range opts.Policies {
				if !slices.Contains(cell.PolicyNames(), name) {
					return cmdutil.Usagef("there is no policy %q; the policies are %s", name, strings.Join(cell.PolicyNames(), ", "))
				}
			}
			if noSpeed {
				opts.Meter = nil
			}
			// A comparison doesn't read the default configuration folder.
			if len(opts.Compare) > 0 && !cmd.Flags().Changed("config-path") && opts.source.File == "" {
				opts.source.Dir = ""
			}
			return simulateRun(cmd.Context(), opts)
		},
	}
	opts.source.add(cmd, f)
	cmd.Flags().StringVar(&opts.Trace, "trace", "", "the jobs, a CSV file")
	_ = cmd.MarkFlagFilename("trace", "csv")
	cmd.Flags().StringSliceVar(&opts.Compare, "compare", nil, "scheduler configurations to run on the same jobs, side by side")
	_ = cmd.MarkFlagFilename("compare", "yaml", "yml")
	cmd.Flags().StringSliceVar(&opts.Policies, "policy", nil, "policies for all virtual clusters, one run each: "+strings.Join(cell.PolicyNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(cell.PolicyCompletions(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&noSpeed, "no-speed", false, "leave out values that depend on this machine, so that the same input gives the same output")
	cmd.Flags().BoolVar(&opts.Drain, "drain", false, "continue after the last arrival until all jobs have finished")
	cmd.Flags().IntVar(&opts.Checkpoint, "checkpoint", 0, "seconds of work between two checkpoints of a job; a preempted job repeats its work since the last one (0: it keeps all its work)")
	cmd.Flags().IntVar(&opts.Restart, "restart", 0, "seconds that each start after a preemption takes, during which the job holds its GPUs without working")
	cmd.Flags().DurationVar(&opts.ReservationAfter, "reservation-after", queue.ReservationAfter, "how long a guaranteed job waits before free cells of its virtual cluster are reserved for it (0: forever)")
	cmd.Flags().StringVar(&opts.Jobs, "jobs", "", "CSV file to write, with a line for each job: "+recordHeader)
	_ = cmd.MarkFlagFilename("jobs", "csv")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	return cmd
}

const recordHeader = "job_id,arrival_s,first_start_s,finish_s,kills,lost_gpu_s"

// writeRecords writes the times of each job into a CSV file. If an event didn't happen, its time is empty.
func writeRecords(path string, records []sim.Record) error {
	var b strings.Builder
	b.WriteString(recordHeader + "\n")
	at := func(seconds int) string {
		if seconds < 0 {
			return ""
		}
		return strconv.Itoa(seconds)
	}
	for _, r := range records {
		fmt.Fprintf(&b, "%d,%d,%s,%s,%d,%d\n", r.ID, r.Arrival, at(r.FirstStart), at(r.Finish), r.Kills, r.LostGPUSeconds)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return cmdutil.Usagef("--jobs %s is a folder: write the path of a file in it", path)
	}
	if err := renameio.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the jobs: %w", err)
	}
	return nil
}

func simulateRun(ctx context.Context, opts *SimulateOptions) error {
	jobs, err := readTrace(opts.Trace)
	if err != nil {
		return err
	}
	var sources []source
	if opts.source.name() != "" {
		sources = append(sources, opts.source)
	}
	for _, file := range opts.Compare {
		sources = append(sources, source{File: file})
	}
	// Report all mistakes before the first run, because a run may take long.
	var runs []attempt
	for i := range sources {
		c, err := sources[i].valid()
		if err != nil {
			return err
		}
		runs = append(runs, attempts(sources[i].name(), c, opts.Policies)...)
	}
	var results []simulated
	var records []sim.Record
	for i := range runs {
		one := &runs[i]
		o := sim.Options{Meter: opts.Meter, Progress: progress(opts.IO, one.title(), len(runs) > 1), Drain: opts.Drain, Checkpoint: opts.Checkpoint, Restart: opts.Restart, ReservationAfter: cmp.Or(opts.ReservationAfter, -1)}
		if opts.Jobs != "" {
			o.Job = func(r sim.Record) { records = append(records, r) }
		}
		report, err := sim.Run(ctx, one.config, jobs, o)
		clearLine(opts.IO)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", opts.Trace, one.title(), err)
		}
		results = append(results, simulated{one.name, one.policy, report})
	}
	if opts.Jobs != "" {
		if err := writeRecords(opts.Jobs, records); err != nil {
			return err
		}
	}
	if opts.Output.IsTable() {
		return writeSimulated(opts, results)
	}
	if len(opts.Compare) == 0 && len(opts.Policies) < 2 {
		return opts.Output.Write(opts.IO.Out, results[0], cmdutil.Table{})
	}
	return opts.Output.Write(opts.IO.Out, results, cmdutil.Table{})
}

// attempt is one run of the trace with one configuration.
type attempt struct {
	name, policy string
	config       cell.Config
}

// title returns the name of an attempt in tables and messages.
func (a *attempt) title() string {
	if a.policy == "" {
		return a.name
	}
	return a.name + " with " + a.policy
}

// attempts returns the runs for one configuration: one run for each given policy, or a run with the policies in the configuration if none is
// given.
func attempts(name string, c cell.Config, policies []string) []attempt {
	if len(policies) == 0 {
		return []attempt{{name: name, config: c}}
	}
	var out []attempt
	for _, policy := range policies {
		one := c
		one.VirtualClusters = slices.Clone(c.VirtualClusters)
		for i := range one.VirtualClusters {
			one.VirtualClusters[i].Policy = policy
		}
		out = append(out, attempt{name, policy, one})
	}
	return out
}

func readTrace(path string) ([]trace.Job, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close()
	jobs, err := trace.ReadCSV(path, f)
	if err == nil && len(jobs) == 0 {
		return nil, hint.Errorf("write a line per job", "%s has no jobs", path)
	}
	return jobs, err
}

// progress returns a function that shows the number of arrived jobs. It updates one line on a terminal. For other outputs, progress returns nil.
func progress(io *iostreams.IOStreams, name string, several bool) func(arrived, all int) {
	if !io.CanRedraw() {
		return nil
	}
	shown := -1
	return func(arrived, all int) {
		percent := arrived * 100 / all
		if percent == shown {
			return
		}
		shown = percent
		if several {
			fmt.Fprintf(io.Err, "\r\033[K%s: %d of %d jobs", name, arrived, all)
			return
		}
		fmt.Fprintf(io.Err, "\r\033[K%d of %d jobs", arrived, all)
	}
}

func clearLine(io *iostreams.IOStreams) {
	if io.CanRedraw() {
		fmt.Fprint(io.Err, "\r\033[K")
	}
}
