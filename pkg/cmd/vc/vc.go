// Package vc is the commands "paictl vc ...": virtual clusters, which divide the GPUs between teams.
// In: flags, a kubeconfig, the configuration that the cluster holds, the scheduler that runs. Out:
// tables and JSON on stdout; a new revision of the configuration that takes effect at once.
package vc

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/way"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/catalogue/fetch"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
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

"vc list" and "vc show" also work after "paictl login": then they show those that you may use.`,
		Example: `  paictl vc list
  paictl vc show vision
  paictl vc set vision --cells 8x-a100-NODE=3 --quota-per-user 8
  paictl vc set audio --cells 8x-a100-NODE=1 --take-from vision --dry-run
  paictl vc validate -p ./cluster`,
	}
	cmd.AddCommand(NewCmdList(f, nil), NewCmdShow(f, nil), NewCmdSet(f, nil), NewCmdValidate(f, nil))
	return cmd
}

// cluster is a cluster with the configuration that it holds and the scheduler that runs in it.
type cluster struct {
	*kube.Cluster
	factory   *cmdutil.Factory
	store     *store.Store
	scheduler *vc.Scheduler
}

// openJobs connects to the cluster's server, or to the server inside paictl with a kubeconfig. It doesn't send a request yet.
func openJobs(f *cmdutil.Factory, o kube.Options, server string) (*client.Jobs, error) {
	w, err := way.Open(f, o, server, "")
	if err != nil {
		return nil, err
	}
	return &client.Jobs{Server: w.Server, Name: w.User}, nil
}

// open connects to the cluster. It doesn't send a request yet.
func open(f *cmdutil.Factory, o kube.Options) (*cluster, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, err
	}
	s := store.New(c.Client)
	s.SecretPaths, s.Checks = catalogue.SecretPaths, []config.Check{catalogue.Check}
	return &cluster{Cluster: c, factory: f, store: s, scheduler: vc.NewScheduler(c.Client)}, nil
}

// platform returns the client that starts services.
func (c *cluster) platform() (*services.Platform, error) {
	releases, err := release.NewHelm(c.Cluster, c.factory.Log)
	if err != nil {
		return nil, err
	}
	return &services.Platform{
		Client: c.Client, Releases: releases, Ready: ready.New(c.Client), Load: services.FromCluster(c.store, ""), Current: c.store.Current,
		Fetcher: func(d *services.Desired) catalogue.Fetcher {
			return fetch.New(fetch.Options{Registry: d.Config.Services.Cluster.DockerRegistry, Bundle: d.Config.Kubernetes.Kubernetes.Bundle})
		},
		Clock: time.Now, Process: services.ThisProcess(), Log: c.factory.Log,
	}, nil
}

// state is all that is known about virtual clusters.
type state struct {
	// Running reports whether the scheduler answered. Otherwise Items come from the configuration.
	Running bool `json:"running"`
	v3.VirtualClusters
}

// look reads the virtual clusters.
func look(ctx context.Context, c *client.Jobs) (*state, error) {
	all, err := c.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	return &state{Running: all.Note == "", VirtualClusters: *all}, nil
}

// completionTimeout keeps the shell from waiting for a cluster that doesn't answer.
const completionTimeout = 3 * time.Second

// completeNames completes the names of virtual clusters.
func completeNames(f *cmdutil.Factory, o *kube.Options) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return known(cmd.Context(), f, *o, namesOf), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNamesOf completes the names of those that may be read.
func completeNamesOf(f *cmdutil.Factory, o *kube.Options, server *string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		c, err := openJobs(f, *o, *server)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := c.VirtualClusters(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i := range all.Items {
			out = append(out, all.Items[i].Name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeName completes the name of a virtual cluster as the value of a flag.
func completeName(f *cmdutil.Factory, o *kube.Options) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return known(cmd.Context(), f, *o, namesOf), cobra.ShellCompDirectiveNoFileComp
	}
}

func namesOf(cells cell.Config) []string {
	var out []string
	for _, v := range cells.VirtualClusters {
		out = append(out, v.Name)
	}
	return out
}

// completeCells completes TYPE= of --cells.
func completeCells(f *cmdutil.Factory, o *kube.Options) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return known(cmd.Context(), f, *o, func(cells cell.Config) []string {
			out := vc.CellTypes(cells)
			for i := range out {
				out[i] += "="
			}
			return out
		}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func known(ctx context.Context, f *cmdutil.Factory, o kube.Options, names func(cell.Config) []string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := open(f, o)
	if err != nil {
		return nil
	}
	cells, err := way.Cells(ctx, c.Client)
	if err != nil {
		return nil
	}
	return names(cells)
}
