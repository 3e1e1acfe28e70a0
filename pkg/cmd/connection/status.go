package connection

import (
	"context"
	"log/slog"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/status"
)

// wholeStatus returns a function that reads the state of a whole cluster.
func wholeStatus(c *kube.Cluster, log *slog.Logger) func(context.Context) (*status.Cluster, error) {
	return func(ctx context.Context) (*status.Cluster, error) {
		f, err := Follow(c, log)
		if err != nil {
			return nil, err
		}
		return f.Once(ctx)
	}
}

// Follow returns a follower of a cluster.
func Follow(c *kube.Cluster, log *slog.Logger) (*status.Follower, error) {
	read, err := services.Reader(c, log)
	if err != nil {
		return nil, err
	}
	return status.New(c, status.Options{Services: read})
}
