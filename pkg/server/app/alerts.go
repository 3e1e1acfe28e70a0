package app

import (
	"context"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/people/rules"
)

// Alert is an alert that fires. If it is about a job, its label job_name is USER~NAME, as clients name jobs.
type Alert = alerts.Alert

// labelUsername is the label in which OpenPAI's clients expect the owner of the job.
const labelUsername = "username"

// Alerts returns the alerts that fire. Administrators and users who are granted the page alerts see all of them; others see those
// about jobs that they can see.
func (d *Actions) Alerts(ctx context.Context) ([]Alert, error) {
	if err := rules.Class("alert.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	all, err := d.app.Alerts.Firing(ctx)
	if err != nil {
		return nil, err
	}
	everything := d.caller.Grants.Administrator || d.caller.Grants.Pages[rules.PageAlerts]
	out := []Alert{}
	for _, a := range all {
		owner, name := a.Labels[alerts.LabelUser], a.Labels[alerts.LabelJob]
		about := owner != "" && name != ""
		if !everything && (!about || rules.Decide("alert.read", &d.caller.Subject, rules.Thing{Kind: rules.KindAlert, Owner: owner, VC: a.Labels[alerts.LabelVC]}) != nil) {
			continue
		}
		if about {
			a.Labels = maps.Clone(a.Labels)
			a.Labels[labelUsername], a.Labels[alerts.LabelJob] = owner, owner+"~"+name
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Alert) int { return b.StartsAt.Compare(a.StartsAt) })
	return out, nil
}
