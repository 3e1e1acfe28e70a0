package app

import (
	"context"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/people/rules"
)

// Refused writes an audit record if the rule never allows the caller this change, for any object. It doesn't record reads, or requests of guests.
func (d *Actions) Refused(ctx context.Context, rule, route string, err error) {
	if r, _ := rules.Find(rule); r.Changes() && !d.caller.Guest() {
		_ = d.audited(ctx, rule, rules.Object{Kind: r.Kind}, map[string]string{"route": route}, err)
	}
}

// Audited returns a page of the audit log, the latest records first. Users who aren't administrators get only their records.
func (d *Actions) Audited(ctx context.Context, q audit.Query) (*audit.Page, error) {
	if !d.caller.Grants.Administrator && q.Actor == "" {
		q.Actor = d.caller.Name
	}
	owner := q.Actor
	if d.caller.Grants.Administrator {
		owner = d.caller.Name
	}
	if err := rules.Decide("audit.read", &d.caller.Subject, rules.Object{Kind: rules.KindAudit, Owner: owner}); err != nil {
		return nil, err
	}
	return d.app.Jobs.History.Audit(ctx, q)
}
