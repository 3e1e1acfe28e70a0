// Package vc is the commands "paictl vc ...": virtual clusters, which divide the GPUs between teams.
// In: flags, a kubeconfig, the configuration that the cluster holds, the scheduler that runs. Out:
// tables and JSON on stdout; a new revision of the configuration that takes effect at once.
package vc

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/way"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
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
machines, not just a number of GPUs. A team always gets what it requests within its cells, whatever others
run; others may use its idle cells until the team needs them.

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

// reader is the interface from which list and show read.
type reader interface {
	look(ctx context.Context) (*state, error)
	queue(ctx context.Context, name string) ([]api.Queued, error)
	Explain(err error) error
}

// openReader connects by the cluster's server if the user has signed in, or by a kubeconfig. It doesn't send a request yet.
func openReader(f *cmdutil.Factory, o kube.Options, server string) (reader, error) {
	w, err := way.Choose(f, o, server)
	if err != nil {
		return nil, err
	}
	if w != nil {
		return &signedIn{&client.Jobs{Server: w.Server, Name: w.User}}, nil
	}
	return open(f, o)
}

// signedIn reads from the server the virtual clusters that are granted to the user.
type signedIn struct{ *client.Jobs }

func (s *signedIn) look(ctx context.Context) (*state, error) {
	all, err := s.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	return &state{Running: true, VirtualClusters: *all}, nil
}

func (s *signedIn) queue(ctx context.Context, name string) ([]api.Queued, error) {
	list, err := s.Waiting(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	var out []api.Queued
	for i := range list.Items {
		out = append(out, list.Items[i].Queued)
	}
	return out, nil
}

// Explain implements reader: errors of the server say what to do.
func (s *signedIn) Explain(err error) error { return err }

// queue is empty if no scheduler runs.
func (c *cluster) queue(ctx context.Context, name string) ([]api.Queued, error) {
	q, err := c.scheduler.Queue(ctx, api.QueueQuery{VC: name})
	if errors.Is(err, vc.ErrNotRunning) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return q.Items, nil
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
	// Note says why it didn't.
	Note string `json:"note,omitempty"`
	api.VirtualClusters
}

// look asks the scheduler, or reads the configuration if no scheduler runs.
func (c *cluster) look(ctx context.Context) (*state, error) {
	answer, err := c.scheduler.VirtualClusters(ctx)
	if err == nil {
		return &state{Running: true, VirtualClusters: *answer}, nil
	}
	if !errors.Is(err, vc.ErrNotRunning) {
		return nil, err
	}
	why := err.Error()
	cells, err := c.configured(ctx)
	if err != nil {
		return nil, err
	}
	return &state{Note: why, VirtualClusters: api.VirtualClusters{Items: vc.Configured(cells)}}, nil
}

// configured is the scheduler's configuration, from the configuration that the cluster holds.
func (c *cluster) configured(ctx context.Context) (cell.Config, error) {
	held, _, err := c.store.Load(ctx)
	if err != nil {
		return cell.Config{}, err
	}
	cells, found := catalogue.SchedulerConfig(held)
	if err := found.Err(); err != nil {
		return cell.Config{}, hint.Wrap(err, "correct it with: paictl config push -p DIR")
	}
	return cells, nil
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
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		r, err := openReader(f, *o, *server)
		signed, ok := r.(*signedIn)
		if err != nil || !ok || len(args) > 0 {
			return completeNames(f, o)(cmd, args, text)
		}
		all, err := signed.VirtualClusters(ctx)
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
	cells, err := c.configured(ctx)
	if err != nil {
		return nil
	}
	return names(cells)
}
