package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/ui/terminal"
	"github.com/openpai/paictl/pkg/version"
)

// StatusOptions are the options of "paictl service status".
type StatusOptions struct {
	Factory  *cmdutil.Factory
	Flags    Flags
	Server   string
	Output   cmdutil.Output
	ExitCode bool
}

// NewCmdStatus returns "paictl service status".
func NewCmdStatus(f *cmdutil.Factory) *cobra.Command {
	opts := &StatusOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show which services run, and why others don't",
		Long: `Shows the state of every service, its pods and revision, and whether it runs with the
configuration that the cluster stores. Below the table is a line per problem, with what to do.

After "paictl login", administrators see what the last run of "paictl service" published, without secrets, and the
current state of pods. If something has changed since, a warning says what isn't known.

States:
` + cmdutil.Explained(services.States()),
		Example: `  paictl service status
  paictl service status -n prometheus -o yaml
  paictl service status --exit-code && echo all ready`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return statusRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addNames(cmd, "only these services, separated by commas", "")
	connection.AddFlag(f, cmd, &opts.Server)
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "exit with code 3 if an enabled service isn't ready")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func statusRun(ctx context.Context, opts *StatusOptions) error {
	w, err := connection.Open(opts.Factory, opts.Flags.Kube, opts.Server, "")
	if err != nil {
		return err
	}
	report, err := w.Server.Services(ctx)
	if err != nil {
		return err
	}
	all, err := named(report.Items, opts.Flags.Names)
	if err != nil {
		return err
	}
	for _, n := range report.Notes {
		text := "warning: " + terminal.Text(n.Message)
		if n.Remedy != "" {
			text += "\n  -> " + terminal.Line(n.Remedy)
		}
		opts.Factory.IO.Say("%s", text)
	}
	if err := writeStatus(opts.Factory.IO.Out, &opts.Output, all, time.Now()); err != nil {
		return err
	}
	if opts.Output.IsTable() && w.Operator {
		c := &opened{cluster: w.Cluster}
		if err := c.writeEntrance(ctx, opts.Factory.IO.Out, all); err != nil {
			return c.explain(err)
		}
	}
	if opts.ExitCode && !allReady(all) {
		return &cmdutil.CodeError{Err: errors.New("not all services are ready"), Code: cmdutil.ExitPartial, Silent: true}
	}
	return nil
}

// named returns the services with the given names, or all services if there are no names.
func named(all []services.Status, names []string) ([]services.Status, error) {
	if len(names) == 0 {
		return all, nil
	}
	var there []string
	for i := range all {
		there = append(there, all[i].Name)
	}
	names = catalogue.ResolveAll(names, func(name string) bool { return slices.Contains(there, name) })
	for _, name := range names {
		if !slices.Contains(there, name) {
			return nil, catalogue.UnknownError(there, name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s services.Status) bool { return !slices.Contains(names, s.Name) }), nil
}

func allReady(all []services.Status) bool {
	for _, s := range all {
		if s.State != services.StateReady && s.State != services.StateDisabled {
			return false
		}
	}
	return true
}

func writeStatus(w io.Writer, out *cmdutil.Output, all []services.Status, now time.Time) error {
	t := cmdutil.Table{Header: []string{"NAME", "STATE", "PODS", "REVISION", "CHART", "AGE", "CONFIGURATION"}}
	for _, s := range all {
		row := []string{s.Name, s.State, "-", "-", "-", "-", "-"}
		if s.Revision > 0 {
			row = []string{s.Name, s.State, fmt.Sprintf("%d/%d", s.ReadyPods, s.Pods), fmt.Sprint(s.Revision), terminal.Line(s.Chart), cmdutil.Age(now.Sub(s.Updated)), cmp.Or(s.Configuration, "-")}
		}
		t.Rows = append(t.Rows, row)
	}
	if err := out.Write(w, all, t); err != nil || !out.IsTable() {
		return err
	}
	if err := writeProblems(w, all); err != nil {
		return err
	}
	return writeOlder(w, all)
}

// writeOlder lists the services that another version of paictl installed, because their charts may differ.
func writeOlder(w io.Writer, all []services.Status) error {
	var names, by []string
	for _, s := range all {
		if s.Paictl == "" || s.Paictl == version.OfTag(version.Tag()) || s.State == services.StateOrphan {
			continue
		}
		names = append(names, s.Name)
		if !slices.Contains(by, s.Paictl) {
			by = append(by, s.Paictl)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(by)
	remedy := "paictl service upgrade"
	for _, v := range by {
		if catalogue.LaterPaictl(v, version.Version) {
			remedy = "use a paictl that is as new"
		}
	}
	_, err := fmt.Fprintf(w, "\n%s: installed by paictl %s, this is %s\n  -> %s\n",
		terminal.Line(strings.Join(names, ", ")), terminal.Line(strings.Join(by, " and ")), version.Version, remedy)
	return err
}

// writeProblems prints each problem on one line, with its remedy on the next line. Services that were not started share one line, because in a
// new cluster no service was started.
func writeProblems(w io.Writer, all []services.Status) error {
	var b strings.Builder
	for _, s := range all {
		for _, p := range s.Problems {
			fmt.Fprintln(&b, terminal.Line(s.Name+": "+p.Text()))
			if p.Hint != "" {
				fmt.Fprintf(&b, "  -> %s\n", terminal.Line(p.Hint))
			}
		}
	}
	for _, absent := range []string{services.StateStopped, services.StateNotInstalled} {
		var names []string
		for _, s := range all {
			if s.State == absent && s.Hint != "" {
				names = append(names, s.Name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "%s: %s\n  -> %s\n", terminal.Line(strings.Join(names, ", ")), absent, terminal.Line(state.StartCommand(names...)))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n"+b.String())
	return err
}
