package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// DownOptions are the options of "paictl cluster down".
type DownOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	DryRun  bool
	Purge   bool
}

// NewCmdDown returns "paictl cluster down".
func NewCmdDown(f *cmdutil.Factory) *cobra.Command {
	opts := &DownOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take the cluster down and restore the machines",
		Long: `Stops all pods, Kubernetes and its container runtime on all machines, deletes their files
(including etcd's data with all Kubernetes objects), and undoes every change that paictl recorded on each
machine: files, units, kernel modules and settings, /etc/hosts, swap. Everything that paictl did not create
stays.

The data of the services (cluster.common.data-path) stays unless --purge-data is given. Machines that
don't answer are skipped and listed (exit 3). The command can be interrupted and run again.

On a terminal you confirm by typing the cluster-id; without a terminal, --yes is needed.`,
		Example: `  paictl cluster down -p ./cluster --dry-run
  paictl cluster down -p ./cluster
  paictl cluster down -p ./cluster --purge-data --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return downRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddLimit(cmd)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddYes(cmd, "don't ask for the cluster-id")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be undone")
	cmd.Flags().BoolVar(&opts.Purge, "purge-data", false, "also delete the services' data on the machines")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func downRun(ctx context.Context, opts *DownOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: opts.DryRun, Format: opts.Output.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	if !opts.DryRun {
		common := s.Config.Services.Cluster.Common
		where := "on all machines"
		if len(opts.Flags.Limit) > 0 {
			where = "on " + strings.Join(opts.Flags.Limit, ", ")
		}
		what := "This ends the cluster " + where + " and deletes everything that runs there."
		if opts.Purge {
			what += " The data in " + common.DataPath + " is deleted, too."
		}
		if err := s.ConfirmName(what, common.ClusterID); err != nil {
			return err
		}
	}
	changes, err := cluster.Down(ctx, s.Spec, s.Options, opts.Purge)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if opts.DryRun && changes != nil && !opts.Output.Is("json") {
		return cmp.Or(writeUndo(opts, changes), err)
	}
	return err
}

func writeUndo(opts *DownOptions, changes []engine.Change) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(opts.Factory.IO.Out, "Nothing to undo: paictl has changed nothing on the hosts.")
		return err
	}
	return progress.WritePlan(opts.Factory.IO.Out, changes)
}
