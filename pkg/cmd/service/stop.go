package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// StopOptions are the options of "paictl service stop".
type StopOptions struct {
	Factory        *cmdutil.Factory
	Flags          Flags
	Output         cmdutil.Output
	Wait           time.Duration
	DryRun         bool
	WithDependents bool
	All            bool
}

// NewCmdStop returns "paictl service stop".
func NewCmdStop(f *cmdutil.Factory) *cobra.Command {
	opts := &StopOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "stop NAME... | --all",
		Short: "Stop services and keep their data",
		Long: `Removes the services from the cluster, each after those that require it, and waits until their pods
are gone. Volumes and the configuration stay: "paictl service start" starts everything again.

--all stops all services, also those that the configuration no longer has; without --all and without a
name, paictl asks. A service that others require is not stopped; --with-dependents also stops those
others.`,
		Example: `  paictl service stop grafana
  paictl service stop --all
  paictl service stop prometheus --with-dependents`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Wait < 0 {
				return cmdutil.Usagef("--wait %s: give a duration, or 0 for no wait", opts.Wait)
			}
			if opts.All && len(opts.Flags.Names) > 0 {
				return cmdutil.Usagef("--all stops all services: leave out %s, or --all", strings.Join(opts.Flags.Names, ", "))
			}
			return stopRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addNames(cmd, "only these services, separated by commas", "skip these services, separated by commas")
	addWait(cmd, &opts.Wait)
	cmd.Flags().BoolVar(&opts.All, "all", false, "stop all services")
	cmd.Flags().BoolVar(&opts.WithDependents, "with-dependents", false, "also stop the services that require those named")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be stopped")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func stopRun(ctx context.Context, opts *StopOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	if err := opts.confirm(c.cluster.Context); err != nil {
		return err
	}
	o := opts.Flags.options(opts.Wait)
	o.DryRun, o.WithDependents = opts.DryRun, opts.WithDependents
	return c.run(ctx, opts.Factory, opts.Output.String(), o, c.Stop)
}

// confirm asks the user before all services are stopped without --all. This is necessary because a user who forgets the name of a service
// requests this by mistake.
func (opts *StopOptions) confirm(kubeContext string) error {
	if opts.All || opts.DryRun || len(opts.Flags.Names) > 0 {
		return nil
	}
	if !opts.Factory.IO.CanPrompt() {
		return cmdutil.Usagef("no service is named: name the services to stop, or stop all with --all")
	}
	what := "all services"
	if len(opts.Flags.Except) > 0 {
		what += " but " + strings.Join(opts.Flags.Except, ", ")
	}
	return prompt.Confirm(opts.Factory.IO, false, "service stop", fmt.Sprintf("Stop %s of the cluster %s?", what, kubeContext))
}
