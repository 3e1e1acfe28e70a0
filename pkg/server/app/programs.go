package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Keys of the values that are stored for the sign-in of a program.
const (
	valueUser      = "uid"
	valueSessions  = "sessions"
	valueVia       = "via"
	valueChallenge = "challenge"
	valueRedirect  = "redirect"
	valueClient    = "client"
	valueNetwork   = "network"
	valueAddress   = "address"
	valueHash      = "hash"
	valueDenied    = "denied"
	valueBegan     = "began"
)

// Lifetimes of codes, and limits of their number.
const (
	codeTime    = time.Minute
	deviceTime  = 10 * time.Minute
	mostCodes   = 1000
	mostPerson  = 20
	mostNetwork = 50
)

// Program is a program on the browser's machine that requests a session according to RFC 8252.
type Program struct {
	Redirect  string `json:"redirect"`
	State     string `json:"state"`
	Challenge string `json:"challenge"`
	Client    string `json:"client"`
}

// challenge matches a PKCE challenge of method S256.
var challenge = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// maxState limits the length of a program's state, which is returned to the program.
const maxState = 512

// maxPage limits the length of a program's address.
const maxPage = 1024

// loopback reports whether an address is an HTTP loopback address, as RFC 8252 allows for programs. It accepts only IP addresses, because a name
// could resolve to another machine.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxPage || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" || strings.ContainsAny(address, "\\\r\n\t ") {
		return false
	}
	port, err := strconv.Atoi(u.Port())
	return err == nil && port > 0 && port < 1<<16 && (u.Hostname() == "127.0.0.1" || u.Hostname() == "::1")
}

// check returns an error if the program must not get a session.
func (p *Program) check() error {
	switch {
	case !loopback(p.Redirect):
		return wire.Bad("redirect_uri must be http://127.0.0.1:PORT/… or http://[::1]:PORT/…: only programs on your machine can get a session")
	case !challenge.MatchString(p.Challenge):
		return wire.Bad("code_challenge must be one of S256, as PKCE has it")
	case p.State == "" || len(p.State) > maxState:
		return wire.Bad("state is needed, of 512 bytes at most")
	}
	return nil
}

// signInProgram signs in a program that waits at a loopback address. It returns the address for the browser. The address contains a code that can be
// used once within a minute.
func (d *Actions) signInProgram(ctx context.Context, of *people.Person, p *Program) (address string, err error) {
	code := rand.Text() + rand.Text()
	values := valuesOf(of)
	values[valueChallenge], values[valueRedirect], values[valueClient] = p.Challenge, p.Redirect, p.Client
	err = d.app.Once.Put(ctx, &onetime.Entry{Kind: onetime.Code, ID: onetime.ID(code), Values: values, Expires: d.app.now().Add(codeTime)}, onetime.Limit{All: mostCodes, Key: valueUser, Each: mostPerson})
	detail := map[string]string{"way": "browser", "program": wire.Shown(p.Client)}
	if err := d.auditedAs(ctx, "sign-in-program", rules.Object{Kind: rules.KindToken, Owner: of.Name}, detail, err); err != nil {
		return "", err
	}
	u, err := url.Parse(p.Redirect)
	if err != nil {
		return "", err
	}
	u.RawQuery = url.Values{"code": {code}, "state": {p.State}}.Encode()
	return u.String(), nil
}

// valuesOf returns the values about a person that are stored for a session that begins later.
func valuesOf(p *people.Person) map[string]string {
	return map[string]string{valueUser: string(p.UID), valueSessions: strconv.FormatInt(p.Sessions, 10), valueVia: p.Via}
}

// begin begins a session of the person in the stored values, unless the person's sessions have been ended since.
func (d *Actions) begin(ctx context.Context, t *onetime.Entry, client string) (*token.Pair, error) {
	p, err := d.app.People.ByUID(types.UID(t.Values[valueUser]))
	sessions, wrong := strconv.ParseInt(t.Values[valueSessions], 10, 64)
	if err != nil || wrong != nil || p.Disabled || p.Sessions > sessions {
		return nil, onetime.ErrNone
	}
	signed := *p
	signed.Via = t.Values[valueVia]
	return d.app.Tokens.Session(ctx, &signed, token.New{Client: client, Address: d.origin.Address})
}

// Redeem exchanges the code that the browser returned for a session. A code can be used only once, even if the attempt fails because of a wrong
// verifier or redirect.
func (d *Actions) Redeem(ctx context.Context, code secret.String, verifier, redirect, client string) (*token.Pair, error) {
	if err := d.app.People.Fresh(); err != nil {
		return nil, err
	}
	t, err := d.app.Once.Get(ctx, onetime.Code, onetime.ID(code.Reveal()))
	if err != nil {
		return nil, err
	}
	if err := d.app.Once.Use(ctx, t); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(verifier))
	shown := base64.RawURLEncoding.EncodeToString(sum[:])
	if subtle.ConstantTimeCompare([]byte(shown), []byte(t.Values[valueChallenge])) != 1 || redirect != t.Values[valueRedirect] {
		return nil, onetime.ErrNone
	}
	return d.begin(ctx, t, client)
}
