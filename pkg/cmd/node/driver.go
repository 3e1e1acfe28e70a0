package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// NewCmdDriver returns "paictl node driver".
func NewCmdDriver(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "driver",
		Short: "Upgrade NVIDIA's driver on machines of a running cluster",
		Long: `NVIDIA's driver on machines with GPUs, where the configuration says gpu-driver: {policy: install}.
Before there is a cluster, and on new machines, paictl cluster up installs it.`,
		Example: `  paictl node driver upgrade -p ./cluster --dry-run
  paictl node driver upgrade -p ./cluster --to 570`,
	}
	cmd.AddCommand(NewCmdDriverUpgrade(f))
	return cmd
}

// DriverUpgradeOptions are the options of "paictl node driver upgrade".
type DriverUpgradeOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	To      string
	DryRun  bool
	Driver  cluster.DriverOptions
}

// NewCmdDriverUpgrade returns "paictl node driver upgrade".
func NewCmdDriverUpgrade(f *cmdutil.Factory) *cobra.Command {
	opts := &DriverUpgradeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "upgrade [HOST...]",
		Short: "Upgrade drivers to the configured version, one machine after the other",
		Long: `Brings NVIDIA's driver to the version that kubernetes-configuration.yaml names, on all machines with GPUs
or on the named ones. Each machine is cordoned and drained (disruption budgets are respected; tasks of
jobs are retried elsewhere), the driver is replaced and checked, and the machine is uncordoned. A machine
that already has the version is skipped, and one that someone else cordoned stays cordoned.

--to writes the version into kubernetes-configuration.yaml first: a branch such as 570, or a release of
it. An older one is a downgrade. With --at-once N, up to N machines are out of service at the same time.

It stops at the first machine that fails. That machine stays cordoned; its former packages are restored
if possible. To continue, run the same command again, also after Ctrl-C. If the new module can't be
loaded because the old one can't be unloaded, --reboot restarts the machine and waits for it.`,
		Example: `  paictl node driver upgrade -p ./cluster --dry-run
  paictl node driver upgrade gpu-1 -p ./cluster --to 570       one machine first
  paictl node driver upgrade -p ./cluster --at-once 4 --yes    then all others`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Flags.Limit = strings.Split(strings.Join(args, ","), ",")
			}
			if opts.Driver.AtOnce < 1 {
				return cmdutil.Usagef("--at-once %d: give 1 or more", opts.Driver.AtOnce)
			}
			return driverUpgradeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.Flags.CompleteHosts,
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Flags.AddYes(cmd, "don't ask")
	fl := cmd.Flags()
	fl.StringVar(&opts.To, "to", "", "version of the driver (default: the one in kubernetes-configuration.yaml)")
	fl.IntVar(&opts.Driver.AtOnce, "at-once", 1, "how many machines may be out of service at the same time")
	fl.DurationVar(&opts.Driver.DrainTimeout, "drain-timeout", 5*time.Minute, "time limit for the eviction of a machine's pods")
	fl.BoolVar(&opts.Driver.Force, "force", false, "delete pods that can't be evicted")
	fl.BoolVar(&opts.Driver.Reboot, "reboot", false, "restart machines if the new module can't be loaded otherwise")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func driverUpgradeRun(ctx context.Context, opts *DriverUpgradeOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: true, ReadOnly: opts.DryRun, Format: opts.Output.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	var edit *config.VersionEdit
	if opts.To != "" {
		if edit, err = config.SetDriverVersion(s.Config.Dir, opts.To); err != nil {
			return err
		}
		if err := s.Use(ctx, edit.Cluster); err != nil {
			return err
		}
	}
	if !opts.DryRun {
		const what = "Machines that need another driver are cordoned, at most %d at the same time: their pods are evicted, and tasks of jobs start again on other machines."
		if err := s.ConfirmName(fmt.Sprintf(what, opts.Driver.AtOnce), "yes"); err != nil {
			return err
		}
	}
	s.Options.Retry = func([]string) string { return s.Options.Command } // the upgrade continues where it stopped
	written := false
	opts.Driver.Begin = func() error {
		if edit == nil || edit.Before == opts.To {
			return nil
		}
		// Write the version before the first machine is upgraded. Otherwise another command would revert the upgrade.
		err := edit.Write()
		written = err == nil
		return err
	}
	changes, err := cluster.UpgradeDriver(ctx, s.Spec, s.Options, opts.Driver)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if written {
		fmt.Fprintf(opts.Factory.IO.Err, "%s now names version %s of the driver\n", config.KubernetesFile, opts.To)
	}
	if opts.DryRun && changes != nil && !opts.Output.Is("json") {
		if werr := progress.WritePlan(opts.Factory.IO.Out, changes); werr != nil {
			return werr
		}
	}
	return err
}
