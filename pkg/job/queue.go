package job

import (
	"context"
	"strings"

	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/hint"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// WaitingList is the gangs that wait for GPUs, in their order.
type WaitingList struct {
	Items []WaitingGang `json:"items"`
}

// WaitingGang is one of them, and its job.
type WaitingGang struct {
	Job string `json:"job"` // user/name
	schedulerapi.Queued
}

// Waiting asks the scheduler who waits in a virtual cluster, or in all.
func (c *Client) Waiting(ctx context.Context, vc string) (*WaitingList, error) {
	q, err := c.Scheduler.Queue(ctx, vc)
	if err != nil {
		return nil, err
	}
	if vc != "" && len(q.Items) == 0 {
		if err := c.checkVC(ctx, vc); err != nil {
			return nil, err
		}
	}
	return &WaitingList{Items: Gangs(q, func(object, other string) string { return c.titleOf(ctx, object, other) })}, nil
}

// checkVC tells a virtual cluster in which nothing waits from one that isn't there.
func (c *Client) checkVC(ctx context.Context, name string) error {
	all, err := c.Scheduler.VirtualClusters(ctx)
	if err != nil {
		return err
	}
	var names []string
	for i := range all.Items {
		if all.Items[i].Name == name {
			return nil
		}
		names = append(names, all.Items[i].Name)
	}
	return hint.Errorf("there are: "+strings.Join(names, ", "), "there is no virtual cluster %q", name)
}

// titleOf names the job of a Framework; other is for what belongs to none.
func (c *Client) titleOf(ctx context.Context, object, other string) string {
	if !objectName.MatchString(object) {
		return other
	}
	f, err := c.Frameworks.Get(ctx, object)
	if err != nil || f.Annotations[v1.AnnotationJobName] == "" {
		return other
	}
	row := api.Summary(f)
	return row.User + "/" + row.Name
}
