// Package doctor contains the command "paictl doctor".
// In: flags and a configuration folder, a kubeconfig, or both. Out: the findings of pkg/diagnose/doctor, the worst first, on stdout; progress
// and questions on stderr; an exit code that depends on the severity.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/doctor"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Exit codes of the doctor. A script must not mistake a doctor that could not run for a healthy cluster, so errors of the doctor and mistakes on
// the command line have the exit code of problems.
const (
	exitWarnings = 1
	exitProblems = 2
)

// Options are the options of "paictl doctor".
type Options struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Kube    kube.Options
	Output  cmdutil.Output

	Only, Skip []string
	Fix        bool
	EndToEnd   bool
	List       bool
	All        bool
	// Image and JobImage are the images for the pods and jobs that the doctor creates.
	Image, JobImage string

	dirGiven bool
}

// NewCmdDoctor returns "paictl doctor".
func NewCmdDoctor(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find a cluster's problems, and show how to solve them",
		Long: `Checks machines, Kubernetes, network, storage, configuration, services, GPUs and jobs, and reports each
problem with its remedy. It changes nothing, except that it starts test pods and removes them again;
--fix makes the repairs that are safe, and lists them first.

With -p DIR it asks the machines by SSH, and the API of their cluster. With only a kubeconfig, it skips the
checks that need SSH to the machines. If the API doesn't answer, it still checks the machines.

--end-to-end also runs a small job in each virtual cluster, and one job on two machines.

Exit codes: 0 no problems, 1 warnings only, 2 problems, or the doctor could not run.`,
		Example: `  paictl doctor -p ./cluster
  paictl doctor -p ./cluster --only network,certificates
  paictl doctor -p ./cluster --fix
  paictl doctor --kubeconfig ~/.kube/config --end-to-end
  paictl doctor -p ./cluster -o json | jq '.checks[] | select(.verdict == "problem")'
  paictl doctor --list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	before := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if err := before(c, args); err != nil {
			return err
		}
		settings, err := f.Settings()
		if err != nil {
			return err
		}
		opts.dirGiven = c.Flags().Changed("config-path") || settings.GetString("config") != ""
		return nil
	}
	opts.Flags.AddConnection(cmd)
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	fl := cmd.Flags()
	fl.Lookup("config-path").Usage = "folder with the configuration (setting: config, PAICTL_CONFIG; default: the current folder, if it has one)"
	fl.Lookup("kubeconfig").Usage = "kubeconfig file (default: the machines' own with -p, or $KUBECONFIG, or ~/.kube/config)"
	fl.StringSliceVar(&opts.Only, "only", nil, "only these checks or groups, separated by commas")
	fl.StringSliceVar(&opts.Skip, "skip", nil, "all except these checks or groups, separated by commas")
	for _, name := range []string{"only", "skip"} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeChecks)
	}
	fl.BoolVar(&opts.Fix, "fix", false, "make the repairs that are safe, after asking, and check again")
	opts.Flags.AddYes(cmd, "make the repairs without asking")
	fl.BoolVar(&opts.EndToEnd, "end-to-end", false, "also run a small job in each virtual cluster and one on two machines")
	fl.BoolVar(&opts.List, "list", false, "list the checks without running them")
	fl.BoolVarP(&opts.All, "all", "v", false, "also show the checks that passed or were skipped")
	fl.StringVar(&opts.Image, "image", doctor.ProbeImage, "image of the doctor's pods, paictl's netcheck")
	fl.StringVar(&opts.JobImage, "job-image", "", "image of the jobs of --end-to-end (default: one that all machines have)")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	return cmd
}

func completeChecks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	out := doctor.Groups()
	for _, c := range doctor.Checks() {
		out = append(out, c.ID)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// chosen returns the checks that the flags select.
func (opts *Options) chosen() ([]*doctor.Check, error) {
	checks, unknown := doctor.Select(doctor.Checks(), opts.Only, opts.Skip)
	if len(unknown) > 0 {
		return nil, cmdutil.Usagef("there is no check and no group %s (see paictl doctor --list)", strings.Join(unknown, ", "))
	}
	// Checks that run jobs are left out unless a flag requests them. --end-to-end adds them to the checks of --only.
	jobs := opts.EndToEnd || opts.List
	for _, c := range doctor.Checks() {
		jobs = jobs || c.Group == doctor.EndToEnd && (slices.Contains(opts.Only, c.ID) || slices.Contains(opts.Only, c.Group))
	}
	if !jobs {
		checks = slices.DeleteFunc(checks, func(c *doctor.Check) bool { return c.Group == doctor.EndToEnd })
	}
	if opts.EndToEnd && len(opts.Only) > 0 {
		checks, _ = doctor.Select(doctor.Checks(), append(slices.Clone(opts.Only), doctor.EndToEnd), opts.Skip)
	}
	if len(checks) == 0 {
		return nil, cmdutil.Usagef("no check is left (see paictl doctor --list)")
	}
	return checks, nil
}

func run(ctx context.Context, opts *Options) error {
	checks, err := opts.chosen()
	if err != nil {
		return err
	}
	if opts.List {
		return writeList(opts.Factory.IO.Out, &opts.Output, checks)
	}
	if opts.Fix && !opts.Flags.Yes && !opts.Factory.IO.CanPrompt() {
		return cmdutil.Usagef("--fix must be confirmed, but there is no terminal to ask on: add --yes")
	}
	c, o, done, err := opts.open(ctx)
	if err != nil {
		return opts.asProblem(ctx, err)
	}
	defer done()
	o.Checks = checks
	report, err := doctor.Run(ctx, c, o)
	if err != nil {
		return opts.asProblem(ctx, err)
	}
	if opts.Fix {
		if err := opts.fix(ctx, c, o, report); err != nil {
			return opts.asProblem(ctx, err)
		}
	}
	if err := writeReport(opts.Factory.IO.Out, &opts.Output, report, opts.All); err != nil {
		return err
	}
	return verdict(report)
}

// asProblem gives the exit code of problems to an error that prevented the doctor from working.
func (opts *Options) asProblem(ctx context.Context, err error) error {
	if ctx.Err() != nil || cmdutil.ExitCode(err) != cmdutil.ExitFailure {
		return err
	}
	return &cmdutil.CodeError{Err: err, Code: exitProblems}
}

// verdict returns an error that sets the exit code. It isn't printed, because the findings have already been printed.
func verdict(r *doctor.Report) error {
	switch r.Verdict {
	case doctor.Problem:
		return &cmdutil.CodeError{Err: errors.New("there are problems"), Code: exitProblems, Silent: true}
	case doctor.Warning:
		return &cmdutil.CodeError{Err: errors.New("there are warnings"), Code: exitWarnings, Silent: true}
	}
	return nil
}

// fix lists the possible repairs, asks for confirmation, makes the repairs, and runs the checks again.
func (opts *Options) fix(ctx context.Context, c *doctor.Cluster, o doctor.Options, report *doctor.Report) error {
	io := opts.Factory.IO
	fixes := doctor.Fixes(report)
	if len(fixes) == 0 {
		io.Say("no problem that --fix can repair")
		return nil
	}
	io.Say("%s:", plural.Of(len(fixes), "repair"))
	for _, f := range fixes {
		io.Say("  %s", f.What)
	}
	if err := prompt.Confirm(io, opts.Flags.Yes, "--fix", "Make them?"); err != nil {
		return err
	}
	done := doctor.Apply(ctx, c, o, fixes)
	for _, d := range done {
		if d.Error != "" {
			io.Say("failed: %s: %s", d.What, d.Error)
			if d.Hint != "" {
				io.Say("  -> %s", d.Hint)
			}
			continue
		}
		io.Say("done: %s", d.What)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.WaitReady(ctx, fixes)
	o.Checks = doctor.Again(o.Checks, report)
	again, err := doctor.Run(ctx, c.Fresh(), o)
	if err != nil {
		return fmt.Errorf("look again: %w", err)
	}
	report.Merge(again, done)
	return nil
}
