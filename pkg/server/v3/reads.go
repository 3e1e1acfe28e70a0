package v3

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/status"
)

func readRoutes() []server.Route {
	stream := server.Limit{Stream: true}
	out := []server.Route{
		server.JSON("GET", one+"/brief", "job.read", "Returns a job, without its attempts", brief, server.Errors("NoJobError")),
		server.JSON("GET", one+"/parent", "job.read", "Returns the job that a job was cloned from, with the job file if you may read it", parent, server.Errors("NoJobError")),
		{Method: "GET", Path: one + "/follow", Rule: "job.read", Summary: "Streams the state of a job, whenever it changes, until it has finished", Serve: follow, Out: reflect.TypeFor[api.Frame](), Limit: stream, Media: "application/x-ndjson", Errors: []string{"NoJobError"}},
		{Method: "GET", Path: one + "/logs", Rule: "job.logs", Summary: "Streams lines of the logs of a job's tasks", Serve: lines, In: reflect.TypeFor[logsIn](), Out: reflect.TypeFor[api.Frame](), Limit: stream, Media: "application/x-ndjson", Errors: []string{"NoJobError"}},
		server.JSON("GET", one+"/top", "job.read", "Measures the resource usage of a job's tasks", top, server.Errors("NoJobError")),
		server.JSON("GET", one+"/freename", "job.read", "Returns an unused name for a copy of a job", freeName, server.Errors("NoJobError")),
		server.JSON("GET", one+"/targets", "job.enter", "Lists the running tasks of a job", targets, server.Errors("NoJobError")),
		server.JSON("GET", api.Prefix+"/queue", "queue.read", "Lists the queue of a virtual cluster", queue),
		server.JSON("GET", api.Prefix+"/usage", "usage.read", "Sums up GPU time", gpuTime),
		server.JSON("GET", api.Prefix+"/virtual-clusters", "vc.read", "Lists the virtual clusters that you may use, and their usage", virtualClusters),
		server.JSON("PATCH", api.Prefix+"/virtual-clusters", "vc.manage", "Changes virtual clusters in the stored configuration, or returns the effect of a change", changeVirtualClusters, server.Errors("ConflictError"), server.Body(orderBytes)),
		server.JSON("GET", api.Prefix+"/gpus", "kube.read", "Lists the GPUs of all nodes, and their problems", gpus),
		server.JSON("GET", api.Prefix+"/status", "status.read", "Returns the state of the cluster, as far as you may see it: problems, machines, GPUs, virtual clusters, jobs and alerts", wholeStatus, server.Each(1), server.Errors("NotImplementedError")),
		{Method: "GET", Path: api.Prefix + "/status/watch", Rule: "status.read", Summary: "Streams the state of the cluster, and then its changes, as server-sent events", Serve: watchStatus, In: reflect.TypeFor[statusIn](), Out: reflect.TypeFor[status.Delta](),
			Limit: stream, Media: server.MediaEvents, Errors: []string{"NotImplementedError"}},
		server.JSON("GET", api.Prefix+"/services", "kube.read", "Lists the platform's services: state, pods, release and problems of each", allServices, server.Each(1), server.Errors("NoFactsError", "NotImplementedError")),
		server.JSON("GET", api.Prefix+"/images", "job.submit", "Lists the images that all machines hold", images),
		server.JSON("GET", api.Prefix+"/offer", "job.submit", "Returns the resources that a job may request", offer),
	}
	return slices.Concat(out, metricsRoutes(), logRoutes(), taskRoutes(), storageRoutes())
}

func brief(ctx context.Context, d *app.Actions, in *oneIn) (*job.Job, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	return j.Brief()
}

func parent(ctx context.Context, d *app.Actions, in *oneIn) (*job.Job, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	return j.Parent(ctx)
}

func follow(c *server.Call) error {
	j, err := c.Actions.Job(c.Context(), "job.read", c.Request.PathValue("user"), c.Request.PathValue("name"))
	if err != nil {
		return err
	}
	l := c.Lines(j.Still)
	defer l.End()
	return end(c, l, j.Follow(l.Context(), func(d *job.Detail) bool {
		return l.Send(api.Frame{Detail: d}) == nil && !job.Phase(d.State).Done()
	}, func(err error) {
		if err == nil {
			_ = l.Send(api.Frame{Back: true})
			return
		}
		_ = l.Send(api.Frame{Problem: c.Meaning(err).Message})
	}))
}

// end sends the last frame of a stream if the reader is still connected.
func end(c *server.Call, l *server.Lines, err error) error {
	if cause := context.Cause(l.Context()); cause != nil {
		err = cause
	}
	if err == nil {
		_ = l.Send(api.Frame{End: true})
		return nil
	}
	_ = l.Send(api.Frame{Error: problem(c, err)})
	return nil
}

// problem converts an error to its form in streams.
func problem(c *server.Call, err error) *api.Error {
	e := c.Meaning(err)
	return &api.Error{Code: e.Code, Message: e.Message, Remedy: e.Remedy, Request: e.Request}
}

type logsIn struct {
	User     string `path:"user"`
	Name     string `path:"name"`
	Role     string `query:"role"`
	Task     *int32 `query:"task"`
	Attempt  *int32 `query:"attempt"`
	Previous bool   `query:"previous"`
	Follow   bool   `query:"follow"`
	Since    string `query:"since"`
	Tail     *int64 `query:"tail"`
	Match    string `query:"match"`
}

// matchBytes limits the searched part of a line, because the time of a search grows with the length of the line and of the expression.
const matchBytes = 4 << 10

func (in *logsIn) options() (logs.Options, error) {
	o := logs.Options{Selection: logs.Selection{Role: in.Role, Task: logs.All, Attempt: logs.All, Previous: in.Previous}, Follow: in.Follow, Tail: -1}
	if in.Task != nil {
		o.Task = *in.Task
	}
	if in.Attempt != nil {
		o.Attempt = *in.Attempt
	}
	if in.Tail != nil {
		o.Tail = *in.Tail
	}
	var err error
	if in.Since != "" {
		if o.Since, err = time.ParseDuration(in.Since); err != nil || o.Since < 0 {
			return o, wire.Bad(`"since" must be a time span such as 10m`)
		}
	}
	if in.Match != "" {
		if o.Match, err = logapi.Expression(in.Match); err != nil {
			return o, badMatch(err)
		}
		o.MatchBytes = matchBytes
	}
	return o, nil
}

func lines(c *server.Call) error {
	in := logsIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	j, err := c.Actions.Job(c.Context(), "job.logs", in.User, in.Name)
	if err != nil {
		return err
	}
	o, err := in.options()
	if err != nil {
		return err
	}
	l := c.Lines(j.Still)
	defer l.End()
	o.Problem = func(err error) { _ = l.Send(api.Frame{Problem: err.Error()}) }
	o.Note = func(text string) { _ = l.Send(api.Frame{Note: text}) }
	return end(c, l, j.Logs(l.Context(), o, func(line logs.Line) error { return l.Send(api.Frame{Line: &line}) }))
}

func top(ctx context.Context, d *app.Actions, in *oneIn) (*api.Top, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	items, problems, err := j.Top(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.Top{Items: items}
	for _, p := range problems {
		out.Problems = append(out.Problems, p.Error())
	}
	return out, nil
}

func freeName(ctx context.Context, d *app.Actions, in *oneIn) (*api.FreeName, error) {
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	name, err := j.FreeName(ctx)
	return &api.FreeName{Name: name}, err
}

func targets(ctx context.Context, d *app.Actions, in *oneIn) (*api.Targets, error) {
	j, err := d.Job(ctx, "job.enter", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	items, err := j.Targets(ctx)
	return &api.Targets{Items: items}, err
}

type queueIn struct {
	VC    string `query:"vc"`
	Limit int    `query:"limit"`
}

func queue(ctx context.Context, d *app.Actions, in *queueIn) (*job.WaitingList, error) {
	return d.Waiting(ctx, in.VC, in.Limit)
}

type usageIn struct {
	User  string   `query:"user"`
	VC    string   `query:"vc"`
	Type  string   `query:"type"`
	Since string   `query:"since"`
	Until string   `query:"until"`
	By    []string `query:"by"`
}

func gpuTime(ctx context.Context, d *app.Actions, in *usageIn) (*job.Usage, error) {
	q := fapi.UsageQuery{User: in.User, VirtualCluster: in.VC, Type: in.Type, By: in.By}
	var err error
	if q.Since, err = instant(in.Since); err != nil {
		return nil, err
	}
	if q.Until, err = instant(in.Until); err != nil {
		return nil, err
	}
	return d.Usage(ctx, q)
}

func virtualClusters(ctx context.Context, d *app.Actions, _ *struct{}) (*api.VirtualClusters, error) {
	all, down, err := d.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	out := &api.VirtualClusters{VirtualClusters: *all}
	if down != nil {
		out.Note = down.Error()
	}
	return out, nil
}

// orderBytes limits the body of a change to virtual clusters. A file with the quotas of ten thousand users is smaller.
const orderBytes = 512 << 10

type orderIn struct {
	Body vc.ChangeSet `body:"json"`
}

func changeVirtualClusters(ctx context.Context, d *app.Actions, in *orderIn) (*vc.Outcome, error) {
	return d.ChangeVirtualClusters(ctx, &in.Body)
}

func gpus(ctx context.Context, d *app.Actions, _ *struct{}) (*api.GPUs, error) {
	nodes, items, err := d.GPUs(ctx)
	return &api.GPUs{Nodes: append([]string{}, nodes...), Items: append([]schedulerapi.GPU{}, items...)}, err
}

type statusIn struct {
	Parts []string `query:"parts"`
}

func wholeStatus(ctx context.Context, d *app.Actions, in *statusIn) (*status.Cluster, error) {
	return d.Status(ctx, in.Parts)
}

func allServices(ctx context.Context, d *app.Actions, _ *struct{}) (*state.Report, error) {
	return d.Services(ctx)
}

func images(ctx context.Context, d *app.Actions, _ *struct{}) (*api.Images, error) {
	items, err := d.Images(ctx)
	return &api.Images{Items: append([]string{}, items...)}, err
}

func offer(ctx context.Context, d *app.Actions, _ *struct{}) (*job.Offer, error) { return d.Offer(ctx) }
