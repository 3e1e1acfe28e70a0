package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// RemoveOptions are the options of "paictl node remove".
type RemoveOptions struct {
	Factory      *cmdutil.Factory
	Flags        session.Flags
	Output       cmdutil.Output
	Force        bool
	DryRun       bool
	TakeFrom     string
	DrainTimeout time.Duration

	replaced bool // by Replace, whose command has no --take-from
}

const drainTimeout = 5 * time.Minute

// NewCmdRemove returns "paictl node remove".
func NewCmdRemove(f *cmdutil.Factory) *cobra.Command {
	opts := &RemoveOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "remove HOST...",
		Aliases: []string{"rm"},
		Short:   "Drain machines and remove them from the cluster and the layout",
		Long: `Evicts the pods (disruption budgets are respected), removes a machine of the control plane from
etcd, restores the machine to its state before paictl, deletes the node, and removes it from layout.yaml.
Before it asks, it lists volumes in folders of the machine: their data stays there.

If virtual clusters own cells of the machines, they give them up in services-configuration.yaml; the
change is printed before the question. Cells come from the virtual cluster of --take-from; without it, from
the only one that owns such cells, or from default.

A machine that doesn't answer is removed from the cluster anyway; paictl lists the data that stays on it. If pods
can't be evicted within --drain-timeout, the removal stops and lists them; --force deletes them. If the
run is interrupted, run the same command again.`,
		Example: `  paictl node remove worker-4 -p ./cluster
  paictl node remove worker-4 worker-5 -p ./cluster --yes
  paictl node remove worker-4 -p ./cluster --dry-run
  paictl node remove worker-4 -p ./cluster --take-from vision
  paictl node remove worker-4 -p ./cluster --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdutil.Usagef("name at least one machine (paictl node list shows them)")
			}
			opts.Flags.Limit = strings.Split(strings.Join(args, ","), ",")
			return removeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.Flags.CompleteHosts,
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Flags.AddYes(cmd, "don't ask")
	cmd.Flags().BoolVar(&opts.Force, "force", false, "delete pods that can't be evicted; also remove machines that refuse the login")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be removed and changed")
	cmd.Flags().StringVar(&opts.TakeFrom, "take-from", "", "virtual `cluster` that gives up the cells of the machines")
	cmd.Flags().DurationVar(&opts.DrainTimeout, "drain-timeout", drainTimeout, "time limit for the eviction of a machine's pods")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func removeRun(ctx context.Context, opts *RemoveOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Format: opts.Output.String(), ReadOnly: opts.DryRun})
	if err != nil {
		return err
	}
	defer s.Close()
	nodes, err := cluster.Removable(s.Spec, s.Options.Limit)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Hostname)
	}
	cells := &cells{takeFrom: opts.TakeFrom, asks: !opts.replaced}
	edit, err := config.RemoveMachines(s.Config.Dir, names, cells.rules()) // finds mistakes before anything is done
	if err != nil {
		return err
	}
	if !opts.DryRun {
		if err := s.CanConfirm(); err != nil {
			return err
		}
	}
	data, err := cluster.DataOn(ctx, s.Spec, s.Options, s.Options.Limit)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stays := whatStays(data, err)
	if opts.DryRun {
		return opts.show(s, names, data, stays, cells)
	}
	if opts.Flags.Yes {
		fmt.Fprint(opts.Factory.IO.Err, stays, cells)
	}
	what := fmt.Sprintf("%s%sThis removes %s from the cluster %s, with everything that runs there.", stays, cells, strings.Join(names, ", "), s.Config.Kubernetes.Kubernetes.ClusterName)
	if err := s.ConfirmName(what, strings.Join(names, ",")); err != nil {
		return err
	}
	cells.decided = true
	s.Options.Retry = s.Again // machines are arguments here, and removed machines are no longer in the layout
	err = cluster.RemoveNodes(ctx, s.Spec, s.Options, cluster.RemoveOptions{
		Force: opts.Force, DrainTimeout: opts.DrainTimeout,
		Removed: func(n *engine.Node) error { return forget(&edit, s.Config.Dir, n.Hostname, cells) },
	})
	if err != nil {
		return err
	}
	return settle(ctx, opts, s, edit)
}

// show prints what a removal would do.
func (opts *RemoveOptions) show(s *session.Session, names []string, data []cluster.Data, stays string, cells *cells) error {
	io := opts.Factory.IO
	if opts.Output.Is("json") {
		return opts.Output.Write(io.Out, map[string]any{"dryRun": true, "machines": names, "data": append([]cluster.Data{}, data...), "virtualClusters": append([]string{}, cells.changes...)}, cmdutil.Table{})
	}
	_, err := fmt.Fprintf(io.Out, "%s%swould remove %s from the cluster %s, with everything that runs there (--dry-run)\n",
		stays, cells, strings.Join(names, ", "), s.Config.Kubernetes.Kubernetes.ClusterName)
	return err
}

// whatStays describes the data that stays on the removed machines, or returns a warning if the check failed. It returns "" if no data stays.
func whatStays(data []cluster.Data, err error) string {
	if err != nil {
		return fmt.Sprintf("warning: could not check whether services store data on these machines: %v\n", err)
	}
	if len(data) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("warning: this data is not moved; it stays in its folders, and the cluster can no longer use it:\n")
	for _, d := range data {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	b.WriteString("  -> to move it: \"Moving data\" in docs/storage.md, before you remove the machine\n")
	return b.String()
}

// forget removes one machine from the layout. It sets *edit to the edit that it wrote.
func forget(edit **config.LayoutEdit, dir, host string, cells *cells) error {
	e, err := config.RemoveMachines(dir, []string{host}, cells.rules())
	if err != nil {
		return err
	}
	*edit = e
	return e.Write()
}

// settle applies the smaller layout to the remaining machines. Only this step needs the bundle, so a missing bundle is only a warning.
func settle(ctx context.Context, opts *RemoveOptions, s *session.Session, edit *config.LayoutEdit) error {
	if err := s.UseBundle(ctx); err != nil {
		fmt.Fprintf(opts.Factory.IO.Err, "the names of the removed machines stay in /etc/hosts until the next cluster up: %v\n  -> %s\n", err, hint.Of(err))
		return nil
	}
	if err := s.Use(ctx, edit.Cluster); err != nil {
		return err
	}
	s.Options.Copy = nil // the removal has already reported it
	return converge(ctx, s, false)
}
