package v3

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/job/report"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// reportTime limits a report. A report about a month needs about thirty queries to Prometheus, and several pages of jobs.
const reportTime = 3 * time.Minute

func reportRoutes() []server.Route {
	return []server.Route{
		server.JSON("GET", api.Prefix+"/report", "report.read", "Sums up how GPUs were given, used and lost, by virtual cluster and person; yours, or everyone's for administrators", getReport, server.Within(reportTime), server.Each(1)),
	}
}

type reportIn struct {
	User  string `query:"user"`
	VC    string `query:"vc"`
	Since string `query:"since"`
	Until string `query:"until"`
}

// usualReport is the time range of a report if the request doesn't set since.
const usualReport = 7 * 24 * time.Hour

func getReport(ctx context.Context, d *app.Actions, in *reportIn) (*report.Report, error) {
	w, err := window(in.Since, in.Until, 0)
	if err != nil {
		return nil, err
	}
	q := report.Query{User: in.User, VirtualCluster: in.VC, Since: w.Since, Until: w.Until}
	if q.Until.IsZero() {
		q.Until = time.Now()
	}
	if q.Since.IsZero() {
		if w.Last <= 0 {
			w.Last = usualReport
		}
		q.Since = q.Until.Add(-w.Last)
	}
	return d.Report(ctx, q)
}
