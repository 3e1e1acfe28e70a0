package service

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/progress"
	"github.com/openpai/paictl/pkg/version"
)

// UpgradeOptions are the options of "paictl service upgrade".
type UpgradeOptions struct {
	Factory     *cmdutil.Factory
	Flags       Flags
	Output      cmdutil.Output
	Wait        time.Duration
	DryRun      bool
	Yes         bool
	KeepFailed  bool
	Downgrade   bool
	MaxFailures int
}

// NewCmdUpgrade returns "paictl service upgrade".
func NewCmdUpgrade(f *cmdutil.Factory) *cobra.Command {
	opts := &UpgradeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "upgrade [NAME...]",
		Short: "Bring running services to the charts of this paictl",
		Long: `Renders this paictl's charts with the configuration that the cluster stores, shows how the objects of the
installed services would change, and asks. Then it upgrades one service at a time, each after those that
it requires: first the definitions of its kinds (CRDs), then its release. It waits until the service is
ready before it begins the next.

If a service isn't ready in time, paictl prints the reason and rolls it back to its previous revision. Then the run
stops and leaves the others as they are (exit 3, or 1 if nothing succeeded); with --max-failures it continues with
those that don't require it. Definitions are not rolled back. A definition that a chart no longer has stays. If a new
definition no longer has a version in which objects are stored, paictl refuses it before it changes anything.

Services that aren't installed, and those that the configuration disables or no longer has, are named and
left alone. If the run is interrupted or killed, run it again. "paictl service start" doesn't change charts.`,
		Example: `  paictl service upgrade --dry-run         show what would be changed, with diffs
  paictl service upgrade
  paictl service upgrade grafana           and the services that it requires
  paictl service upgrade --downgrade --dry-run
  paictl service upgrade --yes --wait 10m --max-failures 3 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Wait <= 0 {
				return cmdutil.Usagef("--wait %s: an upgrade that isn't waited for can't be rolled back; give a duration", opts.Wait)
			}
			if opts.MaxFailures < 1 {
				return cmdutil.Usagef("--max-failures %d: give 1 or more", opts.MaxFailures)
			}
			return upgradeRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addDir(cmd, f, "folder to compare with the cluster's configuration (setting: config, PAICTL_CONFIG)")
	opts.Flags.addNames(cmd, "only these services and those that they require, separated by commas", "skip these services, separated by commas")
	cmd.Flags().DurationVar(&opts.Wait, "wait", defaultWait, "wait this long for each service before it is rolled back")
	cmd.Flags().IntVar(&opts.MaxFailures, "max-failures", 1, "how many services may fail before the others are left as they are")
	addKeepFailed(cmd, &opts.KeepFailed)
	cmd.Flags().BoolVar(&opts.Downgrade, "downgrade", false, "also go back to charts of an earlier paictl, and let definitions lose versions and fields")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask, for scripts")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func upgradeRun(ctx context.Context, opts *UpgradeOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	o := opts.Flags.options(opts.Wait)
	o.DryRun, o.KeepFailed, o.MaxFailures, o.Downgrade = opts.DryRun, opts.KeepFailed, opts.MaxFailures, opts.Downgrade
	o.ConfirmUpgrade = func(_ context.Context, planned []services.Event) error {
		return opts.confirm(planned, c.cluster.Context)
	}
	return c.run(ctx, opts.Factory, opts.Output.String(), o, c.Upgrade)
}

// confirm shows the planned changes, and asks the user to confirm them.
func (opts *UpgradeOptions) confirm(planned []services.Event, kubeContext string) error {
	if opts.Yes {
		return nil
	}
	io := opts.Factory.IO
	if io.CanPrompt() {
		if err := progress.WriteServicePlan(io.Err, planned); err != nil {
			return err
		}
	}
	n := 0
	for _, e := range planned {
		if e.Action != release.Unchanged {
			n++
		}
	}
	return prompt.Confirm(io, false, "service upgrade", fmt.Sprintf("Upgrade %s of the cluster %s to the charts of paictl %s?", plural.Of(n, "service"), kubeContext, version.Version))
}
