package app

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people/rules"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

// VirtualClusters returns the virtual clusters that are granted to the caller. If no scheduler responds, down is the reason, and the virtual clusters
// contain no usage.
func (d *Actions) VirtualClusters(ctx context.Context) (granted *schedulerapi.VirtualClusters, down, err error) {
	if err := rules.Class("vc.read", &d.caller.Subject); err != nil {
		return nil, nil, err
	}
	all, down, err := d.app.Jobs.VirtualClusters(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := *all
	out.Items = slices.DeleteFunc(slices.Clone(all.Items), func(v schedulerapi.VirtualCluster) bool { return !d.caller.Grants.MayUse(v.Name) })
	if !d.caller.Grants.Administrator {
		out.Deleted, out.Problem = nil, "" // they could name other virtual clusters
	}
	return &out, down, nil
}

// NoVC returns OpenPAI's error for a virtual cluster that doesn't exist. The server returns the same error for a virtual cluster that isn't granted
// to the caller.
func NoVC(name string) error {
	return &wire.Error{Status: http.StatusNotFound, Code: "NoVirtualClusterError", Message: "Virtual cluster " + wire.Shown(name) + " is not found."}
}

// Machines returns the machines for jobs with their used GPUs, but without the users of these GPUs.
func (d *Actions) Machines(ctx context.Context) (*schedulerapi.Nodes, error) {
	if err := rules.Class("vc.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	return d.app.Jobs.Scheduler.Nodes(ctx)
}

// Shares returns, by the type of a leaf cell (GPU or CPU), the resources of a job for one leaf cell. If vc isn't "", it returns only the types in
// that virtual cluster.
func (d *Actions) Shares(ctx context.Context, vc string) (map[string]job.Share, error) {
	if err := rules.Class("sku.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	if vc != "" && !d.caller.Grants.MayUse(vc) {
		return nil, NoVC(vc)
	}
	f, err := d.app.facts.read(ctx, d.app.now(), d.app.Jobs.Facts)
	if err != nil {
		return nil, err
	}
	return f.Shares(vc), nil
}

// factsFor is how long the server caches facts of the cluster for display. Submissions bypass this cache.
const factsFor = 15 * time.Second

// facts caches the facts of the cluster, so that many callers share one read.
type facts struct {
	mu   sync.Mutex
	have *job.Facts
	at   time.Time
}

func (f *facts) read(ctx context.Context, now time.Time, read func(context.Context) (*job.Facts, error)) (*job.Facts, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.have != nil && now.Sub(f.at) < factsFor {
		return f.have, nil
	}
	got, err := read(ctx)
	if err == nil {
		err = got.Complete()
	}
	if err != nil {
		return nil, err
	}
	f.have, f.at = got, now
	return got, nil
}
