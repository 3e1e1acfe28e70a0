package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/usage"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/status"
)

// Offer returns the resources that a job may request from the cluster.
func (c *Jobs) Offer(ctx context.Context) (*job.Offer, error) {
	out := &job.Offer{}
	return out, explained(c.ask(ctx, get(api.Prefix+"/offer", nil), out))
}

// VirtualClusters returns the virtual clusters that the user may use, and their usage.
func (c *Jobs) VirtualClusters(ctx context.Context) (*api.VirtualClusters, error) {
	out := &api.VirtualClusters{}
	return out, explained(c.ask(ctx, get(api.Prefix+"/virtual-clusters", nil), out))
}

// ChangeVirtualClusters changes virtual clusters. With DryRun, it only returns the effect that the change would have.
func (s *Server) ChangeVirtualClusters(ctx context.Context, o *vc.ChangeSet) (*vc.Outcome, error) {
	q, err := change(http.MethodPatch, api.Prefix+"/virtual-clusters", o)
	q.again = o.DryRun
	out, err := answered[vc.Outcome](ctx, s, q, err)
	if e, ok := errors.AsType[*Error](err); ok && len(e.Body.Findings) > 0 {
		return nil, e.Body.Findings // with their places and remedies
	}
	return out, err
}

// GPUs returns the GPUs of all nodes, with their state.
func (s *Server) GPUs(ctx context.Context) (*api.GPUs, error) {
	out := &api.GPUs{}
	return out, explained(s.ask(ctx, get(api.Prefix+"/gpus", nil), out))
}

// Status returns the state of the whole cluster.
func (s *Server) Status(ctx context.Context) (*status.Cluster, error) {
	return answered[status.Cluster](ctx, s, get(api.Prefix+"/status", nil), nil)
}

// Services returns the state of the platform's services.
func (s *Server) Services(ctx context.Context) (*state.Report, error) {
	return answered[state.Report](ctx, s, get(api.Prefix+"/services", nil), nil)
}

// Images returns the names of the container images that every machine has already pulled.
func (c *Jobs) Images(ctx context.Context) ([]string, error) {
	out := &api.Images{}
	err := c.ask(ctx, get(api.Prefix+"/images", nil), out)
	return out.Items, explained(err)
}

// Waiting returns the queue of a virtual cluster, or the queues of all virtual clusters that the user may use if vc is "". The result contains
// the first gangs, up to limit, or all gangs if limit is 0.
func (c *Jobs) Waiting(ctx context.Context, vc string, limit int) (*job.WaitingList, error) {
	if vc != "" || c.inside != nil {
		return c.waiting(ctx, vc, limit)
	}
	me, err := c.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	if me.Grants.Administrator {
		return c.waiting(ctx, "", limit)
	}
	out := &job.WaitingList{Items: []job.WaitingGang{}} // only administrators may request the queues of all virtual clusters at once
	for _, granted := range me.Grants.VirtualClusters {
		one, err := c.waiting(ctx, granted.Name, limit)
		if err != nil {
			return nil, err
		}
		out.Items, out.Total = append(out.Items, one.Items...), out.Total+one.Total
	}
	slices.SortStableFunc(out.Items, func(a, b job.WaitingGang) int { return cmp.Compare(a.Position, b.Position) })
	if limit > 0 && len(out.Items) > limit {
		out.Items = out.Items[:limit]
	}
	return out, nil
}

func (c *Jobs) waiting(ctx context.Context, vc string, limit int) (*job.WaitingList, error) {
	q := url.Values{}
	if vc != "" {
		q.Set("vc", vc)
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	out := &job.WaitingList{}
	return out, explained(c.ask(ctx, get(api.Prefix+"/queue", q), out))
}

// Usage returns the GPU time of jobs, summed up for each user, virtual cluster or other group that the query names.
func (c *Jobs) Usage(ctx context.Context, u fapi.UsageQuery) (*job.Usage, error) {
	q := url.Values{"by": u.By}
	for name, value := range map[string]string{"user": u.User, "vc": u.VirtualCluster, "type": u.Type} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": u.Since, "until": u.Until} {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	out := &job.Usage{}
	return out, explained(c.ask(ctx, get(api.Prefix+"/usage", q), out))
}

// Top measures the current resource usage of a job's tasks. problems contains an error for each machine that doesn't respond.
func (c *Jobs) Top(ctx context.Context, j *job.Job) (list []usage.Task, problems []error, err error) {
	out := &api.Top{}
	if err := c.ask(ctx, get(one(j, "/top"), nil), out); err != nil {
		return nil, nil, about(j, err)
	}
	for _, p := range out.Problems {
		problems = append(problems, errors.New(p))
	}
	return out.Items, problems, nil
}

// Targets returns the running tasks of a job. Exec and Forward can connect to these tasks.
func (c *Jobs) Targets(ctx context.Context, j *job.Job) ([]*job.Target, error) {
	out := &api.Targets{}
	if err := c.ask(ctx, get(one(j, "/targets"), nil), out); err != nil {
		return nil, about(j, err)
	}
	items := slices.DeleteFunc(out.Items, func(t *job.Target) bool { return t == nil })
	for _, t := range items {
		t.User, t.Job = j.User, j.Name
	}
	return items, nil
}
