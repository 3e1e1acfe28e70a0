package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// PreflightOptions are the options of "paictl cluster preflight".
type PreflightOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	Fix     bool
}

// NewCmdPreflight returns "paictl cluster preflight".
func NewCmdPreflight(f *cmdutil.Factory) *cobra.Command {
	opts := &PreflightOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check whether the machines can become a cluster",
		Long: `Runs the checks of "cluster up" on all machines at the same time and changes nothing. Each finding
says what to do. With --fix it makes the repairs that are safe. It checks:

` + cmdutil.Explained(looks()) + `

A machine that can't be reached is a finding too; if all others pass, the exit code is 3.`,
		Example: `  paictl cluster preflight -p ./cluster
  paictl cluster preflight -p ./cluster --fix
  paictl cluster preflight -p ./cluster -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return preflightRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddLimit(cmd)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddBundle(cmd)
	cmd.Flags().BoolVar(&opts.Fix, "fix", false, "make the repairs that are safe, then check again")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "json", "yaml")
	return cmd
}

// looks returns the ID and the description of each check.
func looks() (out [][2]string) {
	for _, c := range preflight.Checks() {
		out = append(out, [2]string{c.ID, c.Examines})
	}
	return out
}

func preflightRun(ctx context.Context, opts *PreflightOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: true, ReadOnly: !opts.Fix, Reads: !opts.Fix, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	o := s.Options
	o.DryRun = false
	findings, err := cluster.Preflight(ctx, s.Spec, o, opts.Fix)
	if failed, ok := errors.AsType[*engine.PreflightError](err); ok {
		findings = failed.Findings
		// The findings are printed below, each with its remedy, so the error itself is not printed.
		err = &cmdutil.CodeError{Err: err, Code: cmdutil.ExitPreflight, Silent: true}
	}
	partial, _ := errors.AsType[*engine.PartialError](err)
	switch {
	case partial != nil:
		err = &cmdutil.CodeError{Err: err, Code: partial.ExitCode(), Silent: true}
	case err != nil && cmdutil.ExitCode(err) != cmdutil.ExitPreflight:
		return err
	}
	if werr := writeFindings(opts, findings, partial); werr != nil {
		return werr
	}
	return err
}

// writeFindings prints the findings and a conclusion. partial lists the hosts that could not be checked; it is nil if all hosts were checked.
func writeFindings(opts *PreflightOptions, findings []preflight.Finding, partial *engine.PartialError) error {
	w := opts.Factory.IO.Out
	if !opts.Output.Is("table") {
		if findings == nil {
			findings = []preflight.Finding{}
		}
		return opts.Output.Write(w, findings, cmdutil.Table{})
	}
	errs, warnings := 0, 0
	for _, f := range findings {
		where := f.Host
		if where == "" {
			where = "all hosts"
		}
		if f.Severity == preflight.SeverityError {
			errs++
		} else {
			warnings++
		}
		fmt.Fprintf(w, "%-7s  %s  %s: %s\n", f.Severity, where, f.Check, f.Text())
		if f.Remedy != "" {
			fmt.Fprintf(w, "         -> %s\n", f.Remedy)
		}
		if f.Fixable {
			fmt.Fprintln(w, "         -> --fix does it")
		}
	}
	switch {
	case partial != nil && len(partial.Failed) == partial.Hosts:
		fmt.Fprintln(w, "not ready: no host could be checked")
	case partial != nil:
		fmt.Fprintf(w, "%d of %s ready, with %s; %d could not be checked\n",
			partial.Hosts-len(partial.Failed), plural.Of(partial.Hosts, "host"), plural.Of(warnings, "warning"), len(partial.Failed))
	case errs > 0:
		fmt.Fprintf(w, "%s, %s; nothing was changed\n", plural.Of(errs, "error"), plural.Of(warnings, "warning"))
	case warnings > 0:
		fmt.Fprintf(w, "ready, with %s\n", plural.Of(warnings, "warning"))
	default:
		fmt.Fprintln(w, "ready: all checks passed")
	}
	return nil
}
