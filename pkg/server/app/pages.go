package app

import (
	"context"

	"github.com/openpai/paictl/pkg/people/rules"
)

// MaySee returns an error if the caller may not open a page of another service.
func (d *Actions) MaySee(page string) error {
	return rules.Decide("page.monitoring", &d.caller.Subject, rules.Object{Kind: rules.KindPage, Page: page})
}

// ChangeBehind calls do, which changes something in the service of a page, if the caller may make such changes. It writes the request to the audit
// log.
func (d *Actions) ChangeBehind(ctx context.Context, page, what string, do func() error) error {
	thing := rules.Object{Kind: rules.KindPage, Name: what, Page: rules.PageMonitoringWrite}
	err := d.MaySee(page)
	if err == nil {
		err = rules.Decide("page.monitoring.write", &d.caller.Subject, thing)
	}
	if err == nil {
		err = do()
	}
	return d.audited(ctx, "page.monitoring.write", thing, nil, err)
}

// SignInBehind calls do, which signs in to the service of a page, if the caller may open the page. The service determines the user.
func (d *Actions) SignInBehind(ctx context.Context, page, what string, do func() error) error {
	err := d.MaySee(page)
	if err == nil {
		err = do()
	}
	return d.auditedAs(ctx, "sign-in", rules.Object{Kind: rules.KindPage, Name: what}, nil, err)
}

// RefusedBehind writes to the audit log that a request of the caller to another service was rejected.
func (d *Actions) RefusedBehind(ctx context.Context, what string, err error) error {
	return d.audited(ctx, "page.monitoring.write", rules.Object{Kind: rules.KindPage, Name: what}, nil, err)
}
