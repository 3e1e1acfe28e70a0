package service

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// defaultWait is how long a command waits for a service to become ready by default.
const defaultWait = 5 * time.Minute

// StartOptions are the options of "paictl service start".
type StartOptions struct {
	Factory    *cmdutil.Factory
	Flags      Flags
	Output     cmdutil.Output
	Wait       time.Duration
	DryRun     bool
	KeepFailed bool
}

// NewCmdStart returns "paictl service start". Tests pass runF, which replaces the function that runs the command.
func NewCmdStart(f *cmdutil.Factory, runF func(context.Context, *StartOptions) error) *cobra.Command {
	opts := &StartOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "start [NAME...]",
		Short: "Make the services match the configuration, and wait until they are ready",
		Long: `Starts the services in the order of their dependencies, in parallel if possible. It changes only
what differs from the configuration: a second start changes nothing. It uses the configuration that the
cluster stores ("paictl config push" stores it there); with -p it warns if a folder differs from it. "paictl
cluster up" labels the nodes; if their labels differ from the pushed layout, start says so. On a Kubernetes
that paictl did not install, start labels them first.

While a service isn't ready, the reason is printed as soon as it is known: an image that can't be
pulled, a pod that fits on no node, a container that crashes, with its last lines. A service that
fails is rolled back to its last revision, or uninstalled if there isn't one; its volumes stay.
--keep-failed leaves it as it is. Services that require it are not started. All others are started,
and the exit code is 3.

When rest-server runs, its address and the fingerprint of its certificate's authority are printed, and if no
administrator can sign in yet, a link that makes one. It can be used once, within 24 hours.

A lock in the cluster prevents two runs at the same time (exit 5).`,
		Example: `  paictl service start
  paictl service start grafana           and the services that it requires
  paictl service start -x watchdog
  paictl service start --dry-run            show what would be changed, with diffs
  paictl service start --wait 10m -o json   events as JSON lines on stdout`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Wait < 0 {
				return cmdutil.Usagef("--wait %s: give a duration, or 0 for no wait", opts.Wait)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return startRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addDir(cmd, f, "folder to compare with the cluster's configuration (setting: config, PAICTL_CONFIG)")
	opts.Flags.addNames(cmd, "only these services and those that they require, separated by commas", "skip these services, separated by commas")
	addWait(cmd, &opts.Wait)
	addKeepFailed(cmd, &opts.KeepFailed)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func startRun(ctx context.Context, opts *StartOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	o := opts.Flags.options(opts.Wait)
	o.DryRun, o.KeepFailed = opts.DryRun, opts.KeepFailed
	if err := c.run(ctx, opts.Factory, opts.Output.String(), o, c.Start); err != nil || opts.DryRun || !asksForServer(o.Names, o.Except) {
		return err
	}
	out := opts.Factory.IO.Out
	if opts.Output.String() == "json" {
		out = opts.Factory.IO.Err
	}
	return c.explain(c.welcome(ctx, out))
}

func addWait(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", defaultWait, "wait this long for each service; 0 doesn't wait")
}

func addKeepFailed(cmd *cobra.Command, keep *bool) {
	cmd.Flags().BoolVar(keep, "keep-failed", false, "don't roll back a failed service, so that you can inspect it")
}
