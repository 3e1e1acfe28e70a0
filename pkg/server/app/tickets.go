package app

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

const (
	// TicketTime is how long a ticket is valid.
	TicketTime = 30 * time.Second
	// pageTime limits how long a browser can open proxied pages before it needs another ticket. The session may end earlier.
	pageTime = 24 * time.Hour

	// TicketProtocol is the prefix of the WebSocket subprotocol that contains a ticket to a task.
	TicketProtocol = "pai-ticket."

	mostTickets = 2000
)

// Keys of a ticket's values, in addition to valueUser.
const (
	valueSession = "session"
	valueTo      = "to"
)

// ErrTicket is the error for an invalid ticket, for any reason.
var ErrTicket = &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "the ticket is not valid here, was used, or has expired", Remedy: "open the page again"}

// errNoSession is the error for a caller without a session, because a ticket belongs to a session.
var errNoSession = &rules.ForbiddenError{Why: "a ticket is for a session: sign in first"}

// ticket creates a ticket that gives the caller's session access to one place. A ticket is valid once and for a short time.
func (d *Actions) ticket(ctx context.Context, to string) (secret.String, error) {
	c := d.caller.claims
	if c.Session == "" || c.UID == "" {
		return "", errNoSession
	}
	text := rand.Text()
	err := d.app.Once.Put(ctx, &onetime.Entry{Kind: onetime.Ticket, ID: onetime.ID(text), Expires: d.app.now().Add(TicketTime),
		Values: map[string]string{valueUser: c.UID, valueSession: c.Session, valueTo: to}}, onetime.Limit{All: mostTickets, Key: valueUser, Each: mostPerson})
	return secret.String(text), err
}

// admit returns the caller of a ticket for a place. Each attempt invalidates the ticket, even if the ticket is for another place.
func (s *App) admit(ctx context.Context, text, to string) (Caller, error) {
	if text == "" {
		return Caller{}, ErrTicket
	}
	t, err := s.Once.Get(ctx, onetime.Ticket, onetime.ID(text))
	if err == nil {
		err = s.Once.Use(ctx, t)
	}
	switch {
	case errors.Is(err, onetime.ErrNone), err == nil && t.Values[valueTo] != to:
		return Caller{}, ErrTicket
	case err != nil:
		return Caller{}, err
	}
	v, err := s.Tokens.Resume(ctx, t.Values[valueSession], t.Values[valueUser])
	if errors.Is(err, token.ErrInvalid) {
		return Caller{}, ErrTicket
	}
	return callerOf(v), err
}

// callerOf returns the Caller of a verified session, for requests without a token.
func callerOf(v *token.Verified) Caller {
	if v == nil {
		return Caller{}
	}
	return Caller{Subject: v.Subject, person: v.Person, claims: v.Claims, ended: v.Ended}
}

// page returns the place of a ticket for a service's pages. It contains the value browser, so that only the browser with this value can use the
// ticket. The address with the ticket doesn't contain this value.
func page(service, browser string) string { return "page " + service + " " + browser }

// TicketToPage creates a ticket for the pages of a service. The ticket gives no rights, because MaySee is checked for each request. browser is the
// hash of a value that the browser stores; see onetime.ID.
func (d *Actions) TicketToPage(ctx context.Context, service, browser string) (secret.String, error) {
	return d.ticket(ctx, page(service, browser))
}

// visit is the content of a proxied page's cookie.
type visit struct {
	Service string `json:"service"`
}

// Visit exchanges a ticket for the text of a cookie. The cookie gives the ticket's session access to the pages of a service until the session ends,
// for pageTime at most.
func (d *Actions) Visit(ctx context.Context, ticket, service, browser string) (secret.String, error) {
	c, err := d.app.admit(ctx, ticket, page(service, browser))
	if err != nil {
		return "", err
	}
	return d.app.Tokens.Link(ctx, c.claims, token.UsePage, visit{service}, pageTime)
}

// Visitor returns the caller of a cookie for the pages of a service. text is the text of the cookie.
func (s *App) Visitor(ctx context.Context, text, service string) (Caller, error) {
	to := visit{}
	v, err := s.Tokens.Follow(ctx, token.UsePage, text, &to)
	if err == nil && to.Service != service {
		err = token.ErrInvalid
	}
	if err != nil {
		return Caller{}, err
	}
	return callerOf(v), nil
}

// TicketTo creates a ticket for requests to a task, if the caller may enter the job. path is the path of the requests.
func (j *Job) TicketTo(ctx context.Context, path string) (secret.String, error) {
	if err := j.decide("job.enter"); err != nil {
		return "", err
	}
	return j.actions.ticket(ctx, "task "+path)
}

// AdmitTo returns the caller of a ticket to a task. path is the path of the requests.
func (s *App) AdmitTo(ctx context.Context, ticket, path string) (Caller, error) {
	return s.admit(ctx, ticket, "task "+path)
}
