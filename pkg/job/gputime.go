package job

import (
	"context"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
)

// Usage is the GPU time of jobs, and its share of the GPUs that virtual clusters own.
type Usage struct {
	Since time.Time   `json:"since"`
	Until time.Time   `json:"until"`
	Items []UsageItem `json:"items"`
	Total api.GPUTime `json:"total"`
}

// UsageItem is one row in a report about usage.
type UsageItem struct {
	api.UsageItem
	// Share is the GPU time of guaranteed jobs, divided by the possible GPU time. The possible GPU time is the number of GPUs that the virtual
	// cluster owns now, multiplied by the elapsed part of the row's period. Share is nil if it isn't known.
	Share *float64 `json:"shareOfGuarantee,omitempty"`
}

// Usage sums up for how long jobs held GPUs. A row has a share if it is for a virtual cluster and not for one of its GPU types, and if the scheduler
// responds.
func (c *Client) Usage(ctx context.Context, q api.UsageQuery) (*Usage, error) {
	u, err := c.History.Usage(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &Usage{Since: u.Since, Until: u.Until, Total: u.Total, Items: make([]UsageItem, len(u.Items))}
	for i := range u.Items {
		out.Items[i].UsageItem = u.Items[i]
	}
	if !slices.Contains(q.By, api.ByVC) || slices.Contains(q.By, api.ByType) || q.Type != "" || len(u.Items) == 0 {
		return out, nil
	}
	owned := map[string]int{}
	all, err := c.Scheduler.VirtualClusters(ctx)
	if err != nil {
		return out, nil //nolint:nilerr // without a scheduler there are no guarantees
	}
	for i := range all.Items {
		owned[all.Items[i].Name] = all.Items[i].Guaranteed
	}
	for i := range out.Items {
		one := &out.Items[i]
		if have := float64(owned[one.VirtualCluster]) * span(one.Period, q.By, u.Since, u.Until, c.Now()).Seconds(); have > 0 {
			share := float64(one.Guaranteed) / have
			one.Share = &share
		}
	}
	return out, nil
}

// span returns how much of a row's period has elapsed.
func span(period *time.Time, by []string, since, until, now time.Time) time.Duration {
	if period != nil {
		end := period.Add(time.Hour)
		switch {
		case slices.Contains(by, api.ByDay):
			end = period.AddDate(0, 0, 1)
		case slices.Contains(by, api.ByMonth):
			end = period.AddDate(0, 1, 0)
		}
		since, until = latest(since, *period), earliest(until, end)
	}
	return earliest(until, now).Sub(since)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
