// Package app provides the operations that a person may use with the token of a request. In: a subject, and the libraries of people, tokens and jobs.
// Out: methods that check the rules of pkg/people/rules before they act. Methods that change something write to the audit log, even if they reject
// the request. HTTP handlers use only these methods, so they can't bypass the rules.
package app

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/cache"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/server/idempotency"
	"github.com/openpai/paictl/pkg/services/state"
)

// Lister lists jobs from a cache. Package pkg/job/cache implements it.
type Lister interface {
	List(ctx context.Context, f listing.Filter) (*listing.Page, error)
	Ordered(ctx context.Context, f listing.Filter) (*listing.OrderedPage, error)
	// Where returns the virtual cluster of a live job. known is false if the user has no live job with that name.
	Where(user, name string) (vc string, known bool)
	// Unfinished returns the number of a user's unfinished jobs, and the number of their tasks.
	Unfinished(user string) (jobs, tasks int)
	// Row returns the row of a live job in lists.
	Row(framework string) (listing.Row, bool)
	// Await waits until changed returns true for the job's row, or until the context ends.
	Await(ctx context.Context, framework string, changed func(listing.Row) bool)
	// WaitDeleted waits until a job's Framework is deleted. It returns false if the context ends first.
	WaitDeleted(ctx context.Context, j *job.Job) (bool, error)
	// Watch and Resume return readers of changes of jobs; see cache.Cache.
	Watch() (*cache.Watch, error)
	Resume(ctx context.Context, place string) (*cache.Watch, error)
}

// Audit writes records to the audit log.
type Audit interface {
	Write(ctx context.Context, r audit.Record)
}

// App holds the state that all Actions of a process share.
type App struct {
	People *people.Directory
	Tokens *token.Service
	SignIn *signin.Service
	Jobs   *job.Client
	Lister Lister
	Audit  Audit
	Now    func() time.Time
	Alerts *alerts.Client
	// Keys stores submissions with an idempotency key.
	Keys      *idempotency.Store
	Templates *template.Store
	// Most limits the unfinished jobs of one person.
	Most Most
	// LogMemory limits the memory for reading the logs of jobs.
	LogMemory *logs.Memory
	// PasswordSignIn allows people to sign in with a password.
	PasswordSignIn bool

	facts facts
	// Issuers holds the issuers of OpenID Connect by name.
	Issuers map[string]Issuer
	// Once stores the codes of sign-ins in progress.
	Once *onetime.Store
	// At is the address of this server to which issuers redirect browsers, https://HOST. Pages at other addresses first redirect browsers to At.
	At string
	// ReturnPages lists the pages that may receive a token in their address.
	ReturnPages []string
	// Author is recorded as the author of an operator's changes in the history of the configuration.
	Author string
	// Status reads the state of the whole cluster. It may be nil.
	Status StatusSource
	// Services reads the state of the platform's services. It may be nil.
	Services func(context.Context) (*state.Report, error)
	// Actions watches the Actions of the cluster. If Actions is nil, the server lists the Actions for each page.
	Actions *ActionWatch
	// Metrics reads time series from Prometheus. It is nil if the cluster has no Prometheus.
	Metrics *metrics.Reader

	polls   polls
	uses    uses
	room    room
	actions actionClient
}

// Origin describes the source of a request.
type Origin struct {
	Request string // its id
	Address string
}

// Caller is the sender of a request. The zero Caller is a guest.
type Caller struct {
	rules.Subject
	person *people.Person
	claims token.Claims
	via    string // the provider that identified the person when the session began
	ended  <-chan struct{}
	text   string // the token itself, which a logout revokes
	log    *Log   // the log of a link that was used instead of a token
	// operator returns the name of the kubeconfig's user. It is nil if the request came with a token.
	operator func(context.Context) string
}

// OperatorPrefix begins the actor of an audit record for a change with a kubeconfig. Names of people contain no colon.
const OperatorPrefix = "kubeconfig:"

// Operator returns the Caller for requests with the cluster's kubeconfig. user returns the name of the kubeconfig's user for the audit log. as is the
// name of the person for whom the operator acts, or "".
func (s *App) Operator(user func(context.Context) string, as string) Caller {
	c := Caller{Subject: rules.Subject{Operator: true, Name: as, Grants: rules.Grants{Administrator: true, AllVCs: true}}, operator: user}
	if p, err := s.People.Person(as); err == nil {
		c.person, c.Groups = p, p.Groups
	}
	return c
}

// Ended returns a channel that is closed when the caller's token becomes invalid. The channel is nil for a guest.
func (c *Caller) Ended() <-chan struct{} { return c.ended }

// defaultVirtualCluster returns the virtual cluster that the person chose for jobs whose files don't name one, or "".
func (c *Caller) defaultVirtualCluster() string {
	if c.person == nil || c.person.User == nil {
		return ""
	}
	return c.person.User.Spec.DefaultVirtualCluster
}

// Actions provides the operations of one caller as methods.
type Actions struct {
	app    *App
	caller Caller
	origin Origin
}

// For returns the operations of a caller.
func (s *App) For(c Caller, o Origin) *Actions { return &Actions{s, c, o} }

// Name returns the caller's name, or "" for a guest.
func (d *Actions) Name() string { return d.caller.Name }

// Administrator reports whether the caller is an administrator.
func (d *Actions) Administrator() bool { return d.caller.Grants.Administrator }

// ErrToken is the error for an invalid token, for any reason.
var ErrToken = errors.New("your token is invalid")

// Caller returns the caller in an Authorization header. With the scheme Basic, the header contains the name of a user, and an application token as
// the password.
func (s *App) Caller(ctx context.Context, header string) (Caller, error) {
	scheme, text, _ := strings.Cut(strings.TrimSpace(header), " ")
	text = strings.TrimSpace(text)
	basic := ""
	switch strings.ToLower(scheme) {
	case "bearer":
	case "basic":
		plain, err := base64.StdEncoding.DecodeString(text)
		user, password, ok := strings.Cut(string(plain), ":")
		if err != nil || !ok || user == "" {
			return Caller{}, ErrToken
		}
		basic, text = user, password
	default:
		return Caller{}, ErrToken
	}
	if text == "" {
		return Caller{}, ErrToken
	}
	v, err := s.Tokens.Verify(ctx, text)
	if err != nil {
		return Caller{}, err
	}
	if basic != "" && (!v.Subject.Token.Application || v.Subject.Name != basic) {
		return Caller{}, ErrToken
	}
	return Caller{Subject: v.Subject, person: v.Person, claims: v.Claims, via: v.Via, ended: v.Ended, text: text}, nil
}

// audited writes an operation to the audit log, and returns err unchanged. It is used for changes and for sign-ins.
func (d *Actions) audited(ctx context.Context, rule string, t rules.Object, detail map[string]string, err error) error {
	r, _ := rules.Find(rule)
	return d.auditedAs(ctx, string(r.Verb), t, detail, err)
}

// auditedAs is like audited, but writes the given verb instead of the rule's verb.
func (d *Actions) auditedAs(ctx context.Context, verb string, t rules.Object, detail map[string]string, err error) error {
	record := audit.Record{
		ID: rand.Text(), Time: d.app.now(), Request: d.origin.Request, Address: d.origin.Address,
		Actor: d.caller.Name, Token: d.caller.Token.ID, Verb: verb, Kind: string(t.Kind), Object: t.Name, Owner: t.Owner, VC: t.VC,
		Outcome: audit.Done, Detail: detail,
	}
	switch {
	case d.caller.operator != nil:
		record.Actor = OperatorPrefix + d.caller.operator(ctx)
	case d.caller.person != nil:
		record.ActorUID = string(d.caller.person.UID)
	}
	if err != nil {
		e := Meaning(err)
		record.Outcome, record.Status, record.Reason = audit.Failed, e.Status, e.Message
		if e.Status == 401 || e.Status == 403 || e.Status == 404 {
			record.Outcome = audit.Refused
		}
	}
	d.app.Audit.Write(ctx, record)
	return err
}

func (s *App) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
