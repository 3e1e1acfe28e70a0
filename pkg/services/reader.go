package services

import (
	"context"
	"log/slog"
	"time"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// Reader returns a function that reads the state of a cluster's services. It calls known with the name and the machines of the configuration as soon as
// that is loaded.
func Reader(c *kube.Cluster, log *slog.Logger) (func(ctx context.Context, known func(name string, l *layout.Layout)) ([]Status, error), error) {
	releases, err := release.NewHelm(c, log)
	if err != nil {
		return nil, err
	}
	held := store.New(c.Client)
	load := FromCluster(held, "")
	return func(ctx context.Context, known func(string, *layout.Layout)) ([]Status, error) {
		p := &Platform{Client: c.Client, Releases: releases, Ready: ready.New(c.Client), Current: held.Current, Clock: time.Now, Process: ThisProcess(), Log: log,
			Load: func(ctx context.Context) (*Desired, error) {
				d, err := load(ctx)
				if err == nil {
					known(d.Config.Kubernetes.Kubernetes.ClusterName, &d.Config.Layout)
				}
				return d, err
			}}
		return p.Status(ctx, nil)
	}, nil
}
