package service

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// RestartOptions are the options of "paictl service restart".
type RestartOptions struct {
	Factory    *cmdutil.Factory
	Flags      Flags
	Output     cmdutil.Output
	Wait       time.Duration
	DryRun     bool
	KeepFailed bool
	Force      bool
}

// NewCmdRestart returns "paictl service restart".
func NewCmdRestart(f *cmdutil.Factory) *cobra.Command {
	opts := &RestartOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "restart [NAME...]",
		Short: "Apply a changed configuration to the services that it affects",
		Long: `Upgrades the services whose values were changed by the last "paictl config push", and names
them. It does not change the others.

With --force it also replaces the pods of the chosen services even if nothing changed, one after the
other as each service allows.`,
		Example: `  paictl service restart
  paictl service restart -n prometheus --force
  paictl service restart --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Wait < 0 {
				return cmdutil.Usagef("--wait %s: give a duration, or 0 for no wait", opts.Wait)
			}
			return restartRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addDir(cmd, f, "folder to compare with the cluster's configuration (setting: config, PAICTL_CONFIG)")
	opts.Flags.addNames(cmd, "only these services and those that they require, separated by commas", "skip these services, separated by commas")
	addWait(cmd, &opts.Wait)
	addKeepFailed(cmd, &opts.KeepFailed)
	cmd.Flags().BoolVar(&opts.Force, "force", false, "also replace the pods even if nothing changed")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func restartRun(ctx context.Context, opts *RestartOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	o := opts.Flags.options(opts.Wait)
	o.DryRun, o.KeepFailed, o.Renew = opts.DryRun, opts.KeepFailed, opts.Force
	return c.run(ctx, opts.Factory, opts.Output.String(), o, c.Restart)
}
