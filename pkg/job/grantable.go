package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// Grantable returns the names of the virtual clusters and storages that groups may grant. A list is nil if the names aren't known, or if the cluster
// doesn't run jobs yet. Unlike Facts, Grantable doesn't read nodes.
func (c *Client) Grantable(ctx context.Context) (vcs, storages []string, err error) {
	configuration, err := c.systemConfig(ctx, api.ConfigMap)
	if err != nil || configuration == nil {
		return nil, nil, err
	}
	claims, err := c.storages(ctx)
	if err != nil {
		return nil, nil, c.Explain(err)
	}
	storages = slices.AppendSeq([]string{}, maps.Keys(claims))
	if api.ReadConfiguration(configuration).SchedulerName == "" {
		return nil, storages, nil // no scheduler enforces virtual clusters
	}
	config, err := c.cells(ctx)
	if err != nil || config == nil {
		return nil, storages, err
	}
	for i := range config.VirtualClusters {
		vcs = append(vcs, config.VirtualClusters[i].Name)
	}
	return vcs, storages, nil
}

// cells returns the configuration that the scheduler reads, or nil if the configuration doesn't exist, can't be read or is invalid. If it is invalid,
// the scheduler continues with the previous configuration, which only the scheduler has.
func (c *Client) cells(ctx context.Context) (*cell.Config, error) {
	text, err := c.systemConfig(ctx, schedulerconfig.ConfigMap)
	if err != nil || text == nil {
		return nil, err
	}
	config, found := schedulerconfig.Parse(schedulerconfig.ConfigMapKey, []byte(text[schedulerconfig.ConfigMapKey]))
	if len(found.Errors()) > 0 {
		return nil, nil
	}
	return &config, nil
}

// VirtualClusters returns the virtual clusters and their usage. If the scheduler doesn't respond, VirtualClusters returns the virtual clusters of the
// configuration without their usage, and down is the reason.
func (c *Client) VirtualClusters(ctx context.Context) (all *schedulerapi.VirtualClusters, down, err error) {
	all, err = c.Scheduler.VirtualClusters(ctx)
	if !errors.Is(err, vc.ErrNotRunning) {
		return all, nil, err
	}
	down, configured := err, c.Configured
	if configured == nil {
		configured = c.configured
	}
	items, err := configured(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case items == nil:
		return nil, nil, down
	}
	return &schedulerapi.VirtualClusters{Items: items}, down, nil
}

func (c *Client) configured(ctx context.Context) ([]schedulerapi.VirtualCluster, error) {
	cells, err := c.cells(ctx)
	if err != nil || cells == nil {
		return nil, err
	}
	return vc.Configured(*cells), nil
}

// systemConfig reads a ConfigMap of the platform. It returns nil if the ConfigMap doesn't exist or the user may not read it.
func (c *Client) systemConfig(ctx context.Context, name string) (map[string]string, error) {
	m, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the ConfigMap %s: %w", name, err))
	}
	return m.Data, nil
}
