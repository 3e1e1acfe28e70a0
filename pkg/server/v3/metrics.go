package v3

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

const (
	// metricsTime limits a report. A report needs about ten queries, which partly run at the same time.
	metricsTime = time.Minute
	// metricsEach is the maximum number of a person's simultaneous reports.
	metricsEach = 2
)

func metricsRoutes() []server.Route {
	bounds := []server.Option{server.Within(metricsTime), server.Each(metricsEach)}
	with := func(codes ...string) []server.Option {
		return append([]server.Option{server.Errors(append(codes, "NotImplementedError")...)}, bounds...)
	}
	return []server.Route{
		server.JSON("GET", one+"/metrics", "job.read", "Returns how the tasks of a job used their resources over time, with sentences that explain the figures", jobMetrics, with("NoJobError")...),
		server.JSON("GET", api.Prefix+"/machines/{machine}/metrics", "status.read", "Returns how a machine used its resources over time, with sentences that explain the figures", machineMetrics, with("NoMachineError")...),
		server.JSON("GET", api.Prefix+"/virtual-clusters/{vc}/metrics", "vc.read", "Returns the GPUs and the queue of a virtual cluster over time, with sentences that explain the figures", vcMetrics, with("NoVirtualClusterError")...),
	}
}

type jobMetricsIn struct {
	User   string `path:"user"`
	Name   string `path:"name"`
	Task   string `query:"task"`
	Since  string `query:"since"`
	Until  string `query:"until"`
	Points int    `query:"points"`
}

func jobMetrics(ctx context.Context, d *app.Actions, in *jobMetricsIn) (*metrics.Report, error) {
	w, err := window(in.Since, in.Until, in.Points)
	if err != nil {
		return nil, err
	}
	j, err := d.Job(ctx, "job.read", in.User, in.Name)
	if err != nil {
		return nil, err
	}
	return j.Metrics(ctx, in.Task, w)
}

type machineMetricsIn struct {
	Machine string `path:"machine"`
	Since   string `query:"since"`
	Until   string `query:"until"`
	Points  int    `query:"points"`
}

func machineMetrics(ctx context.Context, d *app.Actions, in *machineMetricsIn) (*metrics.Report, error) {
	w, err := window(in.Since, in.Until, in.Points)
	if err != nil {
		return nil, err
	}
	return d.MachineMetrics(ctx, in.Machine, w)
}

type vcMetricsIn struct {
	VC     string `path:"vc"`
	Since  string `query:"since"`
	Until  string `query:"until"`
	Points int    `query:"points"`
}

func vcMetrics(ctx context.Context, d *app.Actions, in *vcMetricsIn) (*metrics.Report, error) {
	w, err := window(in.Since, in.Until, in.Points)
	if err != nil {
		return nil, err
	}
	return d.VirtualClusterMetrics(ctx, in.VC, w)
}

// window parses a time range. since is a time, or a time span before the end of the range.
func window(since, until string, points int) (w metrics.Window, err error) {
	w.Points = points
	if w.Until, err = instant(until); err != nil {
		return w, err
	}
	if w.Last, err = span(since); err == nil {
		return w, nil
	}
	var ok bool
	if w.Since, ok = moment(since); !ok {
		return w, wire.Bad(`"since" must be a time span such as 6h or 7d, or a time such as 2026-01-31T12:00:00Z`)
	}
	return w, nil
}

// span parses a time span, which may be in days. It returns 0 for the empty text.
func span(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	const most = 10 * 365 // days, so that it fits into a Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= most {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = strconv.ErrRange
	}
	return d, err
}
