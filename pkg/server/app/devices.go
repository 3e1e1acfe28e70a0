package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Device is a sign-in of a program without a browser. The program waits with Code, and its user types the code User into a page of the server.
type Device struct {
	Code     secret.String
	User     string
	At       string // address of the page; "" if the server doesn't know its own
	Life     time.Duration
	Interval time.Duration
}

// letters lists the letters of user codes. It contains no vowels, so that codes don't form words. It also contains no letters that look alike.
const letters = "BCDFGHJKLMNPQRSTVWXZ"

const (
	userLetters    = 8
	deviceInterval = 5 * time.Second
	deviceTries    = 4
)

// NewDevice begins a sign-in of a program without a browser, according to RFC 8628.
func (d *Actions) NewDevice(ctx context.Context, client string) (*Device, error) {
	var err error
	for range deviceTries {
		user := make([]byte, userLetters)
		for i := range user {
			n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(letters)))) // it never fails
			user[i] = letters[n.Int64()]
		}
		id := deviceID(string(user))
		code := id + "." + rand.Text() + rand.Text()
		err = d.app.Once.Put(ctx, &onetime.Entry{Kind: onetime.Device, ID: id, Expires: d.app.now().Add(deviceTime), Values: map[string]string{
			valueHash: onetime.ID(code), valueClient: client, valueAddress: d.origin.Address, valueNetwork: clientaddr.Site(d.origin.Address), valueBegan: d.app.now().UTC().Format(time.RFC3339),
		}}, onetime.Limit{All: mostCodes, Key: valueNetwork, Each: mostNetwork, Drop: unanswered})
		if err == nil {
			return &Device{Code: secret.String(code), User: string(user[:4]) + "-" + string(user[4:]), At: d.app.At, Life: deviceTime, Interval: deviceInterval}, nil
		}
		if !errors.Is(err, onetime.ErrChanged) { // on ErrChanged, another sign-in has that code: try another one
			return nil, err
		}
	}
	return nil, err
}

// unanswered reports whether the person hasn't decided about a program.
func unanswered(values map[string]string) bool {
	return values[valueUser] == "" && values[valueDenied] == ""
}

// deviceID returns the id of the stored sign-in for a user code. It ignores case, spaces and hyphens in the typed code.
func deviceID(user string) string {
	return onetime.ID("device " + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		if !strings.ContainsRune(letters, r) {
			return -1
		}
		return r
	}, user))
}

// Waiting is a program that waits for a person's approval. The person's browser returns Approval with the decision. The server never stores Approval
// in a cookie.
type Waiting struct {
	Name            string // the name of the person
	Client, Address string
	Began           time.Time
	Approval        secret.String
}

// approval is the encrypted content of Approval.
type approval struct {
	Device string            `json:"device"` // id
	Name   string            `json:"name"`
	Values map[string]string `json:"values"`
	Until  time.Time         `json:"until"`
}

const (
	// approvalFor is the purpose of the encryption, so that data that was encrypted for other purposes isn't accepted as an approval.
	approvalFor = "paictl approval of a program"
	// approvalTime is the time within which a person must decide.
	approvalTime = 5 * time.Minute
)

// waits returns the program that waits with a user code, for a person who has just authenticated. It throttles wrong codes in the same way as wrong
// passwords.
func (d *Actions) waits(ctx context.Context, p *people.Person, user string) (*Waiting, error) {
	t, err := d.device(ctx, p.Name, user)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(approval{t.ID, p.Name, valuesOf(p), d.app.now().Add(approvalTime)})
	if err != nil {
		return nil, err
	}
	sealed, err := d.app.Tokens.Seal(ctx, approvalFor, text)
	if err != nil {
		return nil, err
	}
	w := waiting(t)
	w.Name, w.Approval = p.Name, secret.String(sealed)
	return w, nil
}

func waiting(t *onetime.Entry) *Waiting {
	began, _ := time.Parse(time.RFC3339, t.Values[valueBegan]) // we wrote it
	return &Waiting{Client: t.Values[valueClient], Address: t.Values[valueAddress], Began: began}
}

// device returns the sign-in that waits with a user code. It throttles wrong codes for each person.
func (d *Actions) device(ctx context.Context, name, user string) (*onetime.Entry, error) {
	var t *onetime.Entry
	err := d.app.SignIn.Guess("device:"+name, onetime.ErrNone, func() (err error) {
		t, err = d.open(ctx, deviceID(user))
		return err
	})
	return t, err
}

// open returns the sign-in with the given id. It returns onetime.ErrNone if the person has already decided.
func (d *Actions) open(ctx context.Context, id string) (*onetime.Entry, error) {
	t, err := d.app.Once.Get(ctx, onetime.Device, id)
	if err == nil && !unanswered(t.Values) {
		return nil, onetime.ErrNone
	}
	return t, err
}

// Approve allows or denies a waiting program. sealed is the Approval that the person's browser received at the sign-in.
func (d *Actions) Approve(ctx context.Context, sealed secret.String, allow bool) error {
	text, err := d.app.Tokens.Unseal(ctx, approvalFor, sealed.Reveal())
	if errors.Is(err, token.ErrInvalid) {
		return onetime.ErrNone
	}
	if err != nil {
		return err
	}
	a := approval{}
	if err := json.Unmarshal(text, &a); err != nil || !d.app.now().Before(a.Until) {
		return onetime.ErrNone
	}
	t, err := d.open(ctx, a.Device)
	return d.answer(ctx, a.Name, t, a.Values, allow, err)
}

// Waits returns the program that waits with a user code, for a caller who already has a session.
func (d *Actions) Waits(ctx context.Context, user string) (*Waiting, error) {
	if err := rules.Decide("token.own", &d.caller.Subject, rules.Object{Kind: rules.KindToken, Owner: d.caller.Name}); err != nil {
		return nil, err
	}
	t, err := d.device(ctx, d.caller.Name, user)
	if err != nil {
		return nil, err
	}
	return waiting(t), nil
}

// errSession is the error for a caller who doesn't send the refresh token of the session.
var errSession = &wire.Error{
	Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "A program is signed in only with the refresh token of your session, not with an access token alone.",
	Remedy: "run paictl token approve CODE where you ran paictl login, with a current paictl; or open the page /device in a browser",
}

// LetIn allows or denies a waiting program to sign in as the caller, who already has a session. To allow the program, the caller must send the
// refresh token of the session. The program's session lasts much longer than an access token.
func (d *Actions) LetIn(ctx context.Context, user string, allow bool, session secret.String) error {
	if err := rules.Decide("token.own", &d.caller.Subject, rules.Object{Kind: rules.KindToken, Owner: d.caller.Name}); err != nil {
		return err
	}
	if allow {
		err := d.app.Tokens.Proves(ctx, session, d.caller.Name)
		if errors.Is(err, token.ErrInvalid) {
			err = errSession
		}
		if err != nil {
			return d.auditedAs(ctx, "sign-in-program", rules.Object{Kind: rules.KindToken, Owner: d.caller.Name}, map[string]string{"way": "device"}, err)
		}
	}
	t, err := d.device(ctx, d.caller.Name, user)
	if SignInBusy(err) {
		return err
	}
	own := *d.caller.person
	own.Via = d.caller.via
	return d.answer(ctx, d.caller.Name, t, valuesOf(&own), allow, err)
}

// answer stores a person's decision in a waiting sign-in, and writes the decision to the audit log.
func (d *Actions) answer(ctx context.Context, name string, t *onetime.Entry, values map[string]string, allow bool, err error) error {
	detail := map[string]string{"way": "device", "allowed": strconv.FormatBool(allow)}
	if err == nil {
		detail["program"], detail["address"] = wire.Shown(t.Values[valueClient]), t.Values[valueAddress]
		if allow {
			maps.Copy(t.Values, values)
		} else {
			t.Values[valueDenied] = "yes"
		}
		err = d.app.Once.Change(ctx, t)
	}
	return d.auditedAs(ctx, "sign-in-program", rules.Object{Kind: rules.KindToken, Owner: name}, detail, err)
}

// grantError explains why a waiting program gets no session. code is an error code of RFC 8628.
type grantError struct{ code, text string }

func (e *grantError) Error() string { return e.text }

// Errors of Await.
var (
	ErrPending = &grantError{"authorization_pending", "the sign-in hasn't been approved yet"}
	ErrSlow    = &grantError{"slow_down", "the program asks too often"}
	ErrDenied  = &grantError{"access_denied", "the sign-in was refused"}
	ErrExpired = &grantError{"expired_token", "the code is not valid, was used, or has expired"}
)

// GrantError returns the error code of RFC 6749 or RFC 8628 for an error of a grant.
func GrantError(err error) string {
	if e, ok := errors.AsType[*grantError](err); ok {
		return e.code
	}
	return "invalid_grant"
}

// Await returns the session for a program without a browser after a person has allowed the program.
func (d *Actions) Await(ctx context.Context, code secret.String, client string) (*token.Pair, error) {
	id, _, ok := strings.Cut(code.Reveal(), ".")
	if !ok || len(code.Reveal()) > maxState {
		return nil, ErrExpired
	}
	if err := d.app.People.Fresh(); err != nil {
		return nil, err
	}
	t, err := d.app.Once.Get(ctx, onetime.Device, id)
	if errors.Is(err, onetime.ErrNone) || err == nil && subtle.ConstantTimeCompare([]byte(t.Values[valueHash]), []byte(onetime.ID(code.Reveal()))) != 1 {
		return nil, ErrExpired
	}
	switch {
	case err != nil:
		return nil, err
	case t.Values[valueDenied] != "":
		return nil, ErrDenied
	case t.Values[valueUser] == "":
		if d.app.polls.fast(id, d.app.now()) {
			return nil, ErrSlow
		}
		return nil, ErrPending
	}
	if err := d.app.Once.Use(ctx, t); err != nil {
		return nil, err
	}
	return d.begin(ctx, t, client)
}
