package connection

import (
	"log/slog"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/status"
)

// wholeStatus returns an object that reads the whole state of a cluster.
func wholeStatus(c *kube.Cluster, log *slog.Logger) *status.Shared {
	return &status.Shared{Open: func() (*status.Follower, error) { return Follow(c, log) }}
}

// Follow returns a follower, which keeps the state of a cluster up to date.
func Follow(c *kube.Cluster, log *slog.Logger) (*status.Follower, error) {
	read, err := services.Reader(c, log)
	if err != nil {
		return nil, err
	}
	return status.New(c, status.Options{Services: read})
}
