// Package vc contains the commands "paictl vc ...", which manage virtual clusters. Virtual clusters divide the GPUs between teams.
// In: flags, a kubeconfig or a sign-in, the configuration that is stored in the cluster, the running scheduler. Out: tables and JSON on stdout;
// a new revision of the configuration that takes effect at once.
package vc

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// NewCmdVC returns "paictl vc".
func NewCmdVC(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vc",
		Short: "Divide the GPUs between teams with virtual clusters",
		Long: `A virtual cluster is the part of the cluster that a team owns: cells, which are machines or parts of
machines, not just a number of GPUs. A team always gets the GPUs that it requests within its cells, even if
others run jobs there; others may use its idle cells until the team needs them.

They are defined in the section scheduler of services-configuration.yaml, which the cluster stores. "vc
set" checks a change against what runs, shows it, and pushes it as a new revision; it takes effect
without a restart.

After "paictl login", "vc list", "vc show" and "vc metrics" show those that you may use, and "vc set" works for administrators.
"vc validate" needs a kubeconfig.`,
		Example: `  paictl vc list
  paictl vc show vision
  paictl vc set vision --cells 8x-a100-NODE=3 --quota-per-user 8
  paictl vc set audio --cells 8x-a100-NODE=1 --take-from vision --dry-run
  paictl vc validate -p ./cluster`,
	}
	cmd.AddCommand(NewCmdList(f), NewCmdShow(f), NewCmdMetrics(f), NewCmdSet(f), NewCmdValidate(f))
	return cmd
}

// cluster is a connection to a cluster, to its stored configuration, and to its scheduler.
type cluster struct {
	*kube.Cluster
	store     *store.Store
	scheduler *vc.Scheduler
}

// openJobs connects to the server of the cluster, or to the server inside paictl if the command uses a kubeconfig. It sends no request yet.
func openJobs(f *cmdutil.Factory, fl *connection.Flags) (*client.Jobs, error) {
	w, err := fl.Open(f)
	if err != nil {
		return nil, err
	}
	return &client.Jobs{Server: w.Server, Name: w.User}, nil
}

// open connects to the cluster of the kubeconfig. It sends no request yet.
func open(o kube.Options) (*cluster, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, err
	}
	s := store.New(c.Client)
	s.SecretPaths, s.Checks = catalogue.SecretPaths, []config.Check{catalogue.Check}
	return &cluster{Cluster: c, store: s, scheduler: vc.NewScheduler(c.Client)}, nil
}

// state is the state of all virtual clusters, as far as it is known.
type state struct {
	// Running reports whether the scheduler responded. If it is false, Items come from the configuration.
	Running bool `json:"running"`
	v3.VirtualClusters
}

// look reads the state of the virtual clusters.
func look(ctx context.Context, c *client.Jobs) (*state, error) {
	all, err := c.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	return &state{Running: all.Note == "", VirtualClusters: *all}, nil
}

// completeNames completes up to most names of virtual clusters that the user may see.
func completeNames(f *cmdutil.Factory, fl *connection.Flags, most int) cobra.CompletionFunc {
	return f.Complete(most, func(ctx context.Context, _ []string) (out []string, _ error) {
		all, err := known(ctx, f, fl)
		for i := range all {
			out = append(out, all[i].Name)
		}
		return out, err
	})
}

// completeCells completes TYPE= in the value of --cells. An operator is offered all types, other users the types that virtual clusters own.
func completeCells(f *cmdutil.Factory, fl *connection.Flags) cobra.CompletionFunc {
	words := f.Complete(cmdutil.FlagValue, func(ctx context.Context, _ []string) ([]string, error) {
		types, err := cellTypes(ctx, f, fl)
		for i := range types {
			types[i] += "="
		}
		return types, err
	})
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		out, directive := words(cmd, args, word)
		return out, directive | cobra.ShellCompDirectiveNoSpace
	}
}

func cellTypes(ctx context.Context, f *cmdutil.Factory, fl *connection.Flags) (out []string, _ error) {
	if w, err := fl.Open(f); err == nil && w.Operator {
		if cells, err := connection.Cells(ctx, w.Cluster.Client); err == nil {
			return vc.CellTypes(cells), nil
		}
	}
	all, err := known(ctx, f, fl)
	for i := range all {
		for _, c := range all[i].Cells {
			out = append(out, c.CellType)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

func known(ctx context.Context, f *cmdutil.Factory, fl *connection.Flags) ([]api.VirtualCluster, error) {
	c, err := openJobs(f, fl)
	if err != nil {
		return nil, err
	}
	all, err := c.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}
