package app

import (
	"context"
	"slices"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/people/rules"
)

// Alert is a firing alert.
type Alert = alerts.Alert

// Alerts returns the firing alerts, including silenced alerts, the latest first. Administrators, and users who are granted the Alerts page, get all
// alerts. Other users get the alerts about jobs that they may read.
func (d *Actions) Alerts(ctx context.Context) ([]Alert, error) {
	if err := rules.Class("alert.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	all, err := d.app.Alerts.All(ctx)
	if err != nil {
		return nil, err
	}
	everything := d.caller.Grants.Administrator || d.caller.Grants.Pages[rules.PageAlerts]
	out := []Alert{}
	for _, a := range all {
		owner, name := a.Labels[alerts.LabelUser], a.Labels[alerts.LabelJob]
		if !everything && (owner == "" || name == "" || rules.Decide("alert.read", &d.caller.Subject, rules.Object{Kind: rules.KindAlert, Owner: owner, VC: a.Labels[alerts.LabelVC]}) != nil) {
			continue
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Alert) int { return b.StartsAt.Compare(a.StartsAt) })
	return out, nil
}
