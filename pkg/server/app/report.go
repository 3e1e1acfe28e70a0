package app

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/report"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// maxReport is the maximum time range of a report.
const maxReport = 31 * 24 * time.Hour

// Report summarizes how GPUs were allocated, used and lost. Administrators get all figures. Other people get only their figures.
func (d *Actions) Report(ctx context.Context, q report.Query) (*report.Report, error) {
	if q.User == "" && !d.caller.Grants.Administrator {
		q.User = d.caller.Name
	}
	if err := rules.Decide("report.read", &d.caller.Subject, rules.Object{Kind: rules.KindUsage, Owner: q.User}); err != nil {
		return nil, err
	}
	if q.Until.IsZero() {
		q.Until = d.app.now()
	}
	switch {
	case !q.Since.Before(q.Until):
		return nil, wire.Bad(`"since" isn't before "until"`)
	case q.Until.Sub(q.Since) > maxReport:
		return nil, hint.Wrap(wire.Bad(`from "since" to "until" is more than 31 days`), "ask for a shorter time; GPU hours of any time: paictl job usage")
	}
	return report.Make(ctx, report.Sources{Usage: d.app.Jobs.History.Usage, Jobs: d.app.Lister.List, Occupied: d.app.Metrics.Occupied, Now: d.app.now}, q)
}
