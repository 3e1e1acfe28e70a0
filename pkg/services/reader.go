package services

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/services/state"
)

// Reader returns a function that reads the state of a cluster's services. After loading the configuration, the function calls known with the
// cluster's name and the layout.
func Reader(c *kube.Cluster, log *slog.Logger) (func(ctx context.Context, known func(name string, l *layout.Layout)) ([]Status, error), error) {
	p, err := reading(c, log)
	if err != nil {
		return nil, err
	}
	load := p.Load
	return func(ctx context.Context, known func(string, *layout.Layout)) ([]Status, error) {
		own := *p
		own.Load = func(ctx context.Context) (*Desired, error) {
			d, err := load(ctx)
			if err == nil {
				known(d.Config.Kubernetes.Kubernetes.ClusterName, &d.Config.Layout)
			}
			return d, err
		}
		return own.Status(ctx)
	}, nil
}

// Report returns the states of a cluster's services. Report reads the releases.
func Report(ctx context.Context, c *kube.Cluster, log *slog.Logger) (*state.Report, error) {
	p, err := reading(c, log)
	if err != nil {
		return nil, err
	}
	all, d, err := p.Compare(ctx)
	if err != nil {
		return nil, c.Explain(err)
	}
	out := &state.Report{Items: all}
	if d.Mistakes != nil {
		out.Notes = append(out.Notes, state.Note{Message: fmt.Sprintf("the cluster's configuration has mistakes, and no service is started until they are corrected:\n%v", d.Mistakes), Remedy: hint.Of(d.Mistakes)})
	}
	return out, nil
}

// reading returns a Platform for callers that only read.
func reading(c *kube.Cluster, log *slog.Logger) (*Platform, error) {
	releases, err := release.NewHelm(c, log)
	if err != nil {
		return nil, err
	}
	held := store.New(c.Client)
	return &Platform{Client: c.Client, Releases: releases, Ready: ready.New(c.Client), Load: FromCluster(held, ""), Current: held.Current, Clock: time.Now, Process: ThisProcess(), Log: log}, nil
}
