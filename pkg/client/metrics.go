package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Metrics returns the resource usage of a job's tasks over time. task is ROLE[INDEX], or "" for all tasks.
func (c *Jobs) Metrics(ctx context.Context, j *job.Job, task string, w metrics.Window) (*metrics.Report, error) {
	q := windowQuery(w)
	if task != "" {
		q.Set("task", task)
	}
	out := &metrics.Report{}
	if err := c.ask(ctx, get(one(j, "/metrics"), q), out); err != nil {
		return nil, about(j, err)
	}
	return out, nil
}

// MachineMetrics returns the resource usage of a machine over time.
func (s *Server) MachineMetrics(ctx context.Context, machine string, w metrics.Window) (*metrics.Report, error) {
	return answered[metrics.Report](ctx, s, get(api.Prefix+"/machines/"+url.PathEscape(machine)+"/metrics", windowQuery(w)), nil)
}

// VirtualClusterMetrics returns the GPU usage and the queue length of a virtual cluster over time.
func (s *Server) VirtualClusterMetrics(ctx context.Context, vc string, w metrics.Window) (*metrics.Report, error) {
	return answered[metrics.Report](ctx, s, get(api.Prefix+"/virtual-clusters/"+url.PathEscape(vc)+"/metrics", windowQuery(w)), nil)
}

func windowQuery(w metrics.Window) url.Values {
	q := url.Values{}
	if !w.Since.IsZero() {
		q.Set("since", w.Since.UTC().Format(time.RFC3339))
	} else if w.Last > 0 {
		q.Set("since", w.Last.String())
	}
	if !w.Until.IsZero() {
		q.Set("until", w.Until.UTC().Format(time.RFC3339))
	}
	if w.Points > 0 {
		q.Set("points", strconv.Itoa(w.Points))
	}
	return q
}
