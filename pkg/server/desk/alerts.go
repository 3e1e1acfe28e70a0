package desk

import (
	"context"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/alerts"
	"github.com/openpai/paictl/pkg/people/rules"
)

// Alert is one that fires, with the job that it is about as clients name it: USER~NAME.
type Alert = alerts.Alert

// labelUsername is what OpenPAI's clients call whose job an alert is about.
const labelUsername = "username"

// Alerts are those that fire: all for administrators and who is granted the page alerts; for others those about jobs that they see.
func (d *Desk) Alerts(ctx context.Context) ([]Alert, error) {
	if err := rules.Class("alert.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	all, err := d.shop.Alerts.Firing(ctx)
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
