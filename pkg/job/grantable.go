package job

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Grantable returns the names of the virtual clusters and storages that groups may grant. A list is empty if the cluster can't tell, or doesn't run
// jobs yet.
func (c *Client) Grantable(ctx context.Context) (vcs, storages []string, err error) {
	f, err := c.Facts(ctx)
	if errors.Is(err, ErrNoConfiguration) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return slices.Collect(maps.Keys(f.Cluster.VirtualClusters)), slices.Collect(maps.Keys(f.Cluster.Storages)), nil
}
