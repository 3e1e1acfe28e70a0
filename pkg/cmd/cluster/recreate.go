package cluster

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// RecreateOptions are the options of "paictl cluster recreate".
type RecreateOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	DryRun  bool
	Confirm string
}

// NewCmdRecreate returns "paictl cluster recreate".
func NewCmdRecreate(f *cmdutil.Factory) *cobra.Command {
	opts := &RecreateOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "recreate",
		Short: "Delete the cluster and make a new one on the same machines",
		Long: `Removes all machines from their cluster, deletes etcd's data with all Kubernetes objects, and makes a
new cluster as "cluster up" does. Use it when the control plane is lost: "cluster up" itself never makes a
cluster while a machine of the control plane is a member of one, or may be.

It first shows what will be lost and asks you to type the cluster's name; without a terminal,
--confirm NAME is needed. The folders with the services' data stay on the machines. All machines of
the control plane must answer. If it is interrupted at any point, run it again to finish.`,
		Example: `  paictl cluster recreate -p ./cluster --dry-run
  paictl cluster recreate -p ./cluster
  paictl cluster recreate -p ./cluster --confirm pai   in a script`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return recreateRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddPeers(cmd)
	opts.Flags.AddBundle(cmd)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be lost")
	cmd.Flags().StringVar(&opts.Confirm, "confirm", "", "the cluster's `NAME`, in place of the question")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func recreateRun(ctx context.Context, opts *RecreateOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{
		Bundle: true, ReadOnly: opts.DryRun, Format: opts.Output.String(),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	name := s.Config.Kubernetes.Kubernetes.ClusterName
	if !opts.DryRun && opts.Confirm == "" && !opts.Factory.IO.CanPrompt() {
		return cmdutil.Usagef("paictl cluster recreate must be confirmed, but there is no terminal to ask on: add --confirm %s", name)
	}
	if opts.Confirm != "" && opts.Confirm != name {
		return cmdutil.Usagef("--confirm %s: the cluster's name is %s", opts.Confirm, name)
	}
	loss, err := cluster.PreviewRecreate(ctx, s.Spec, s.Options)
	if err != nil {
		return err
	}
	switch {
	case opts.DryRun || opts.Confirm != "":
		fmt.Fprintln(opts.Factory.IO.Err, loss)
	default:
		if err := s.ConfirmName(loss.String(), name); err != nil {
			return err
		}
	}
	changes, err := cluster.Recreate(ctx, s.Spec, s.Options)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if opts.DryRun && changes != nil && !opts.Output.Is("json") {
		return cmp.Or(progress.WritePlan(opts.Factory.IO.Out, changes), err)
	}
	return err
}
