package desk

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

// Issuer is an issuer of OpenID Connect.
type Issuer interface {
	Begin() (address string, ask oidc.Ask, err error)
	Finish(ctx context.Context, back url.Values, ask oidc.Ask) (*signin.Identity, error)
	// Title is what people read on its button.
	Title() string
}

// Ways are how people sign in.
type Ways struct {
	Password bool
	Issuers  []IssuerWay
	// At is the address from which browsers go to an issuer.
	At string
}

// IssuerWay is an issuer as people choose it.
type IssuerWay struct{ Name, Title string }

// Ways tells how people sign in.
func (d *Desk) Ways() Ways {
	w := Ways{Password: d.shop.PasswordSignIn || d.shop.SignIn.Providers(), Issuers: []IssuerWay{}, At: d.shop.At}
	for name, i := range d.shop.Issuers {
		w.Issuers = append(w.Issuers, IssuerWay{name, i.Title()})
	}
	slices.SortFunc(w.Issuers, func(a, b IssuerWay) int { return strings.Compare(a.Name, b.Name) })
	return w
}

// Goal is what a browser signs in for: a session of its own, and a path of this server to go to; a page of
// the settings that gets the token in its address, as OpenPAI's portal wants it; a program on its machine; or a program that waits with a code.
//
// A program is never let in by the cookie of a session: what other services' pages run behind the door could use that, too.
type Goal struct {
	To string `json:"to,omitempty"`
	// Page is that of a client; From is what it wants to get back.
	Page    string   `json:"page,omitempty"`
	From    string   `json:"from,omitempty"`
	Program *Program `json:"program,omitempty"`
	Device  string   `json:"device,omitempty"`
}

func (s *Shop) check(g Goal) error {
	switch {
	case len(g.From) > maxState:
		return wire.Bad("from is too long")
	case len(g.Device) > maxState:
		return wire.Bad("that is no code of a program")
	case g.Page != "" && !slices.Contains(s.ReturnPages, g.Page):
		return &wire.Error{Status: 400, Code: wire.CodeParameters, Message: "redirect_uri " + wire.Shown(g.Page) + " is no page that this cluster gives tokens to",
			Remedy: "sign in with paictl login; for a portal an administrator adds its page to signIn.returnPages of the section rest-server"}
	case g.Program != nil:
		return g.Program.check()
	}
	return nil
}

// Away is a browser on its way to an issuer. What is sealed it keeps, under a name, until it comes back.
type Away struct{ Address, Name, Sealed string }

// asked is what is sealed.
type asked struct {
	Issuer string    `json:"issuer"`
	Ask    oidc.Ask  `json:"ask"`
	Goal   Goal      `json:"goal"`
	Until  time.Time `json:"until"`
}

const (
	// sealedFor keeps what browsers keep from being opened as something else.
	sealedFor = "paictl sign-in at an issuer"
	// AwayTime is how long a person may take at an issuer.
	AwayTime = 10 * time.Minute
)

// ToIssuer sends a browser to an issuer.
func (d *Desk) ToIssuer(ctx context.Context, name string, g Goal) (*Away, error) {
	issuer := d.shop.Issuers[name]
	if issuer == nil {
		return nil, &wire.Error{Status: 404, Code: wire.CodeNoAPI, Message: "there is no issuer " + wire.Shown(name)}
	}
	if err := d.shop.check(g); err != nil {
		return nil, err
	}
	address, ask, err := issuer.Begin()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(asked{name, ask, g, d.shop.now().Add(AwayTime)})
	if err != nil {
		return nil, err
	}
	sealed, err := d.shop.Tokens.Seal(ctx, sealedFor, text)
	if err != nil {
		return nil, err
	}
	return &Away{address, awayName(ask.State), sealed}, nil
}

// awayName tells apart what several tabs of a browser keep.
func awayName(state string) string {
	if len(state) < awayLetters || strings.ContainsFunc(state, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }) {
		return ""
	}
	return state[:awayLetters]
}

const awayLetters = 8

// AwayName is the name under which a browser has kept what it comes back with; "" where there is none.
func AwayName(back url.Values) string { return awayName(back.Get("state")) }

// Arrival is a person who has signed in for a goal: a token, the address of a program on the browser's machine, or a program that waits.
type Arrival struct {
	*SignedIn
	Address string
	Waiting *Waiting
}

// FromIssuer lets in whom an issuer vouches for. sealed is what the browser kept. The goal is known where the browser's own question is answered,
// also with an error.
func (d *Desk) FromIssuer(ctx context.Context, name string, back url.Values, sealed, client string) (*Arrival, Goal, error) {
	issuer := d.shop.Issuers[name]
	text, err := d.shop.Tokens.Unseal(ctx, sealedFor, sealed)
	if errors.Is(err, token.ErrInvalid) || issuer == nil {
		return nil, Goal{}, oidc.ErrMismatch
	}
	if err != nil {
		return nil, Goal{}, err
	}
	a := asked{}
	if err := json.Unmarshal(text, &a); err != nil || a.Issuer != name || !d.shop.now().Before(a.Until) {
		return nil, Goal{}, oidc.ErrMismatch
	}
	if err := d.shop.check(a.Goal); err != nil { // the settings may have changed since
		return nil, Goal{}, err
	}
	p, err := d.vouched(ctx, issuer, back, a.Ask)
	if err := d.noteIssuer(ctx, name, p, err); err != nil {
		return nil, a.Goal, err
	}
	got, err := d.arrive(ctx, p, a.Goal, client)
	return got, a.Goal, err
}

// SignInFor lets in who shows a password, for a program.
func (d *Desk) SignInFor(ctx context.Context, name string, password secret.String, g Goal, client string) (*Arrival, error) {
	if err := d.shop.check(g); err != nil {
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

// arrive gives a person who has just signed in what that was for.
func (d *Desk) arrive(ctx context.Context, p *people.Person, g Goal, client string) (*Arrival, error) {
	switch {
	case g.Program != nil:
		address, err := d.signInProgram(ctx, p, g.Program)
		return &Arrival{Address: address}, err
	case g.Device != "":
		w, err := d.waits(ctx, p, g.Device)
		return &Arrival{Waiting: w}, err
	}
	made, err := d.shop.Tokens.Browser(ctx, p, token.New{Client: client, Address: d.origin.Address})
	if err != nil {
		return nil, err
	}
	return &Arrival{SignedIn: &SignedIn{p.Name, p.Grants.Administrator, made.Token, made.Record.Expires}}, nil
}

// vouched is the person of what a browser brought back.
func (d *Desk) vouched(ctx context.Context, issuer Issuer, back url.Values, ask oidc.Ask) (*people.Person, error) {
	if err := d.shop.People.Fresh(); err != nil {
		return nil, err
	}
	id, err := issuer.Finish(ctx, back, ask)
	if err != nil {
		return nil, err
	}
	p, err := d.shop.SignIn.Admit(ctx, id)
	if errors.Is(err, signin.ErrWrong) {
		return nil, &rules.ForbiddenError{Why: "you may not sign in here"}
	}
	return p, err
}

// noteIssuer writes a sign-in by an issuer to the audit, and returns err as it is.
func (d *Desk) noteIssuer(ctx context.Context, name string, p *people.Person, err error) error {
	thing := rules.Thing{Kind: rules.KindToken}
	if err == nil {
		thing.Owner = p.Name
		d.caller.Subject, d.caller.person = p.Subject(rules.Token{}), p
		d.shop.SignIn.Note(ctx, p)
	}
	return d.auditedAs(ctx, "sign-in", thing, map[string]string{"way": "oidc", "provider": name}, err)
}
