package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/oidc"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Issuer is an OpenID Connect issuer. Begin starts a sign-in. Finish returns the identity after the browser has returned.
type Issuer interface {
	Begin() (address string, ask oidc.PendingRequest, err error)
	Finish(ctx context.Context, back url.Values, ask oidc.PendingRequest) (*signin.Identity, error)
	// Title is the label of the issuer's button.
	Title() string
}

// SignInMethods lists the methods to sign in at this server.
type SignInMethods struct {
	Password bool
	Issuers  []IssuerName
	// At is the address of this server that browsers must use to sign in at an issuer.
	At string
}

// IssuerName is the name of an issuer, and the title of its button.
type IssuerName struct{ Name, Title string }

// SignInMethods returns the methods to sign in at this server. Its issuers are sorted by name.
func (d *Actions) SignInMethods() SignInMethods {
	w := SignInMethods{Password: d.app.PasswordSignIn || d.app.SignIn.Providers(), Issuers: []IssuerName{}, At: d.app.At}
	for name, i := range d.app.Issuers {
		w.Issuers = append(w.Issuers, IssuerName{name, i.Title()})
	}
	slices.SortFunc(w.Issuers, func(a, b IssuerName) int { return strings.Compare(a.Name, b.Name) })
	return w
}

// Goal is the purpose of a browser's sign-in. There are four purposes: the browser's own session, with a path of this server to open; a configured
// page that gets the token in its address, as OpenPAI's portal expects; a program on the browser's machine; or a program that waits with a code.
//
// The cookie of a session never signs in a program, because proxied pages of other services could use the cookie, too.
type Goal struct {
	To string `json:"to,omitempty"`
	// Page is the address of a client's page. From is a value that the server returns to the page unchanged.
	Page    string   `json:"page,omitempty"`
	From    string   `json:"from,omitempty"`
	Program *Program `json:"program,omitempty"`
	Device  string   `json:"device,omitempty"`
}

func (s *App) check(g Goal) error {
	switch {
	case len(g.From) > maxState:
		return wire.Bad("from is too long")
	case len(g.Device) > maxState:
		return wire.Bad("that isn't the code of a program")
	case g.Page != "" && !slices.Contains(s.ReturnPages, g.Page):
		return &wire.Error{Status: 400, Code: wire.CodeParameters, Message: "redirect_uri " + wire.Shown(g.Page) + " isn't a page that gets tokens of this cluster",
			Remedy: "sign in with paictl login; for a portal an administrator adds its page to signIn.returnPages of the section rest-server"}
	case g.Program != nil:
		return g.Program.check()
	}
	return nil
}

// Away is a redirect of a browser to an issuer. The browser stores Sealed under Name until the issuer redirects the browser back.
type Away struct{ Address, Name, Sealed string }

// asked is the encrypted content of the field Sealed in Away.
type asked struct {
	Issuer string              `json:"issuer"`
	Ask    oidc.PendingRequest `json:"ask"`
	Goal   Goal                `json:"goal"`
	Until  time.Time           `json:"until"`
}

const (
	// sealedFor is the purpose of the encryption, so that data that was encrypted for other purposes isn't accepted.
	sealedFor = "paictl sign-in at an issuer"
	// AwayTime is the time within which a person must sign in at an issuer.
	AwayTime = 10 * time.Minute
)

// ToIssuer begins a sign-in at an issuer. It returns the redirect for the browser.
func (d *Actions) ToIssuer(ctx context.Context, name string, g Goal) (*Away, error) {
	issuer := d.app.Issuers[name]
	if issuer == nil {
		return nil, &wire.Error{Status: 404, Code: wire.CodeNoAPI, Message: "there is no issuer " + wire.Shown(name)}
	}
	if err := d.app.check(g); err != nil {
		return nil, err
	}
	address, ask, err := issuer.Begin()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(asked{name, ask, g, d.app.now().Add(AwayTime)})
	if err != nil {
		return nil, err
	}
	sealed, err := d.app.Tokens.Seal(ctx, sealedFor, text)
	if err != nil {
		return nil, err
	}
	return &Away{address, awayName(ask.State), sealed}, nil
}

// awayName returns a storage name for the state of a sign-in. Several tabs of a browser then use different names. It returns "" if the state is
// malformed.
func awayName(state string) string {
	if len(state) < awayLetters || strings.ContainsFunc(state, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }) {
		return ""
	}
	return state[:awayLetters]
}

const awayLetters = 8

// AwayName returns the storage name for the state in an issuer's response, or "" if the state is malformed.
func AwayName(back url.Values) string { return awayName(back.Get("state")) }

// Arrival is the result of a sign-in: a token, the address of a program on the browser's machine, or a waiting program.
type Arrival struct {
	*SignedIn
	Address string
	Waiting *Waiting
}

// FromIssuer signs in a person whom an issuer has identified. sealed is the value that the browser has stored. If sealed is valid, FromIssuer returns
// the goal even with an error.
func (d *Actions) FromIssuer(ctx context.Context, name string, back url.Values, sealed, client string) (*Arrival, Goal, error) {
	issuer := d.app.Issuers[name]
	text, err := d.app.Tokens.Unseal(ctx, sealedFor, sealed)
	if errors.Is(err, token.ErrInvalid) || issuer == nil {
		return nil, Goal{}, oidc.ErrMismatch
	}
	if err != nil {
		return nil, Goal{}, err
	}
	a := asked{}
	if err := json.Unmarshal(text, &a); err != nil || a.Issuer != name || !d.app.now().Before(a.Until) {
		return nil, Goal{}, oidc.ErrMismatch
	}
	if err := d.app.check(a.Goal); err != nil { // the settings may have changed since
		return nil, Goal{}, err
	}
	p, err := d.vouched(ctx, issuer, back, a.Ask)
	if err := d.noteIssuer(ctx, name, p, err); err != nil {
		return nil, a.Goal, err
	}
	got, err := d.arrive(ctx, p, a.Goal, client)
	return got, a.Goal, err
}

// SignInFor signs in a person with a password, for a program.
func (d *Actions) SignInFor(ctx context.Context, name string, password secret.String, g Goal, client string) (*Arrival, error) {
	if err := d.app.check(g); err != nil {
		return nil, err
	}
	if g.Program == nil && g.Device == "" {
		return nil, wire.Bad("say which program is to be signed in")
	}
	p, err := d.admit(ctx, name, password)
	if err != nil {
		return nil, err
	}
	return d.arrive(ctx, p, g, client)
}

func (d *Actions) arrive(ctx context.Context, p *people.Person, g Goal, client string) (*Arrival, error) {
	switch {
	case g.Program != nil:
		address, err := d.signInProgram(ctx, p, g.Program)
		return &Arrival{Address: address}, err
	case g.Device != "":
		w, err := d.waits(ctx, p, g.Device)
		return &Arrival{Waiting: w}, err
	}
	made, err := d.app.Tokens.Browser(ctx, p, token.New{Client: client, Address: d.origin.Address})
	if err != nil {
		return nil, err
	}
	return &Arrival{SignedIn: &SignedIn{p.Name, p.Grants.Administrator, made.Token, made.Record.Expires}}, nil
}

// vouched returns the person whom the issuer identified when the browser returned.
func (d *Actions) vouched(ctx context.Context, issuer Issuer, back url.Values, ask oidc.PendingRequest) (*people.Person, error) {
	if err := d.app.People.Fresh(); err != nil {
		return nil, err
	}
	id, err := issuer.Finish(ctx, back, ask)
	if err != nil {
		return nil, err
	}
	p, err := d.app.SignIn.Admit(ctx, id)
	if errors.Is(err, signin.ErrWrong) {
		return nil, &rules.ForbiddenError{Why: "you may not sign in here"}
	}
	return p, err
}

// noteIssuer writes a sign-in by an issuer to the audit log, and returns err unchanged.
func (d *Actions) noteIssuer(ctx context.Context, name string, p *people.Person, err error) error {
	thing := rules.Object{Kind: rules.KindToken}
	if err == nil {
		thing.Owner = p.Name
		d.caller.Subject, d.caller.person = p.Subject(rules.Token{}), p
		d.app.SignIn.Note(ctx, p)
	}
	return d.auditedAs(ctx, "sign-in", thing, map[string]string{"way": "oidc", "provider": name}, err)
}
