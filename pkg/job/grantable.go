package job

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/kube"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
)

// Grantable returns the names of the virtual clusters and storages that groups may grant. A list is nil if the cluster can't tell, or doesn't run
// jobs yet. Unlike Facts, it reads no nodes.
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
	text, err := c.systemConfig(ctx, schedulerConfigMap)
	if err != nil || text == nil {
		return nil, storages, err
	}
	config, found := schedulerconfig.Parse(schedulerKey, []byte(text[schedulerKey]))
	if len(found.Errors()) > 0 {
		return nil, storages, nil // the scheduler continues with the one before, which only it has
	}
	for i := range config.VirtualClusters {
		vcs = append(vcs, config.VirtualClusters[i].Name)
	}
	return vcs, storages, nil
}

// systemConfig reads a ConfigMap of the platform; nil if it doesn't exist or may not be read.
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
