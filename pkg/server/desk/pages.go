package desk

import (
	"context"

	"github.com/openpai/paictl/pkg/people/rules"
)

// MaySee decides whether the caller is shown a page of another service.
func (d *Desk) MaySee(page string) error {
	return rules.Decide("page.monitoring", &d.caller.Subject, rules.Thing{Kind: rules.KindPage, Page: page})
}

// ChangeBehind decides whether the caller may change something in another service, and lets it be done. what is the request, for the audit.
func (d *Desk) ChangeBehind(ctx context.Context, page, what string, do func() error) error {
	thing := rules.Thing{Kind: rules.KindPage, Name: what, Page: rules.PageMonitoringWrite}
	err := d.MaySee(page)
	if err == nil {
		err = rules.Decide("page.monitoring.write", &d.caller.Subject, thing)
	}
	if err == nil {
		err = do()
	}
	return d.audited(ctx, "page.monitoring.write", thing, nil, err)
}

// SignInBehind lets who may see a page sign in to the service that it is of. Which of the service's people that is, the service knows.
func (d *Desk) SignInBehind(ctx context.Context, page, what string, do func() error) error {
	err := d.MaySee(page)
	if err == nil {
		err = do()
	}
	return d.auditedAs(ctx, "sign-in", rules.Thing{Kind: rules.KindPage, Name: what}, nil, err)
}

// RefusedBehind writes to the audit that the caller asked another service for what no one gets through the door.
func (d *Desk) RefusedBehind(ctx context.Context, what string, err error) error {
	return d.audited(ctx, "page.monitoring.write", rules.Thing{Kind: rules.KindPage, Name: what}, nil, err)
}
