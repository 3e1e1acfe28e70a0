package token_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const good = "correct horse battery"

// replica is a Directory and a Service with separate memory.
type replica struct {
	*token.Service
	people *people.Directory
	skew   atomic.Int64
}

// replicas returns n replicas that watch the same API server with the users ann and bob.
func replicas(t *testing.T, n int) []*replica {
	t.Helper()
	c := kubetest.Start(t)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	api, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	require.NoError(t, api.Resource(v1.Users).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, name := range []string{"ann", "bob"} {
		_, err := d.Add(t.Context(), people.NewUser{Name: name, Password: good, Groups: []string{"administrators"}})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	out := make([]*replica, n)
	for i := range out {
		r := &replica{}
		r.people, err = people.Open(c.Config, people.Options{})
		require.NoError(t, err)
		r.Service, err = token.Open(c.Config, r.people, token.Options{Now: func() time.Time { return time.Now().Add(time.Duration(r.skew.Load())) }})
		require.NoError(t, err)
		all.Go(func() { _ = r.people.Run(ctx) })
		all.Go(func() { _ = r.Run(ctx) })
		out[i] = r
	}
	for _, r := range out {
		require.Eventually(t, func() bool { return r.Fresh() == nil && len(r.people.Users()) == 2 }, 20*time.Second, 10*time.Millisecond)
	}
	return out
}

func (r *replica) person(t *testing.T, name string) *people.Person {
	t.Helper()
	p, err := r.people.Person(name)
	require.NoError(t, err)
	return p
}

func (r *replica) application(t *testing.T, name string, n token.New) string {
	t.Helper()
	got, err := r.Application(t.Context(), r.person(t, name), n)
	require.NoError(t, err)
	return got.Token.Reveal()
}

func (r *replica) valid(t *testing.T, text string) bool {
	t.Helper()
	_, err := r.Verify(t.Context(), text)
	if err != nil {
		require.ErrorIs(t, err, token.ErrInvalid)
	}
	return err == nil
}

// another returns a text that differs from text in one character.
func another(text string) string {
	at := len(text) - 10
	if text[at] == 'A' {
		return text[:at] + "B" + text[at+1:]
	}
	return text[:at] + "A" + text[at+1:]
}

func (r *replica) soonInvalid(t *testing.T, text string) {
	t.Helper()
	begin := time.Now()
	require.Eventually(t, func() bool { _, err := r.Verify(t.Context(), text); return err != nil }, time.Minute, time.Millisecond)
	assert.False(t, r.valid(t, text))
	t.Logf("refused after %s", time.Since(begin))
}

func TestATokenOfOneReplicaIsGoodAtTheOtherUntilItIsRevoked(t *testing.T) {
	r := replicas(t, 2)
	ann := r[0].person(t, "ann")
	pair, err := r[0].Session(t.Context(), ann, token.New{Client: "paictl", Address: "10.0.0.7"})
	require.NoError(t, err)
	browser, err := r[0].Browser(t.Context(), ann, token.New{})
	require.NoError(t, err)
	for kind, text := range map[string]secret.String{"access": pair.Access, "browser": browser.Token, "application": secret.String(r[0].application(t, "ann", token.New{Label: "ci"}))} {
		t.Run(kind, func(t *testing.T) {
			got, err := r[1].Verify(t.Context(), text.Reveal())
			require.NoError(t, err, "at once, before the watch has it")
			assert.Equal(t, "ann", got.Subject.Name)
			assert.True(t, got.Subject.Grants.Administrator)
			assert.Equal(t, kind, got.Claims.Type)
			assert.Equal(t, kind == "application", got.Subject.Token.Application)
			require.NoError(t, r[1].Revoke(t.Context(), "ann", text.Reveal()))
			assert.False(t, r[1].valid(t, text.Reveal()), "at once where it was revoked")
			r[0].soonInvalid(t, text.Reveal())
			select {
			case <-got.Ended:
			case <-time.After(time.Second):
				t.Error("its streams go on")
			}
			assert.ErrorIs(t, r[0].Revoke(t.Context(), "ann", text.Reveal()), token.ErrNone)
		})
	}
	_, err = r[0].Refresh(t.Context(), pair.Refresh, token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid)
}

func TestForgedTokensAreRefused(t *testing.T) {
	r := replicas(t, 1)[0]
	text := r.application(t, "ann", token.New{})
	require.True(t, r.valid(t, text))
	parts := strings.Split(text, ".")
	b := base64.RawURLEncoding
	payload, err := b.DecodeString(parts[1])
	require.NoError(t, err)
	none := func(alg string) string {
		return b.EncodeToString([]byte(`{"alg":"`+alg+`","typ":"JWT"}`)) + "." + parts[1] + "."
	}
	signed := func(alg jose.SignatureAlgorithm, key any) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
		require.NoError(t, err)
		out, err := s.Sign(payload)
		require.NoError(t, err)
		compact, err := out.CompactSerialize()
		require.NoError(t, err)
		return compact
	}
	for name, forged := range map[string]string{
		"nothing":              "",
		"none":                 none("none"),
		"None":                 none("None"),
		"no algorithm":         b.EncodeToString([]byte(`{}`)) + "." + parts[1] + "." + parts[2],
		"HS256":                signed(jose.HS256, []byte(strings.Repeat("k", 32))),
		"another payload":      parts[0] + "." + b.EncodeToString([]byte(strings.Replace(string(payload), `"ann"`, `"bob"`, 1))) + "." + parts[2],
		"without a signature":  parts[0] + "." + parts[1] + ".",
		"cut off":              text[:len(text)-1],
		"longer":               text + "A",
		"the last bits differ": text[:len(text)-1] + string(text[len(text)-1]^1),
		"two":                  text + "." + text,
		"spaces":               " " + text,
		"a JSON serialization": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"very long":            strings.Repeat("a", 1<<20),
	} {
		t.Run(name, func(t *testing.T) { assert.False(t, r.valid(t, forged)) })
	}
	for _, rec := range r.Of("ann") {
		assert.False(t, r.valid(t, token.Handle(rec)), "a handle is no token")
		assert.False(t, r.valid(t, rec.ID))
		id, err := token.IDOf(token.Handle(rec))
		require.NoError(t, err)
		assert.Equal(t, rec.ID, id)
		assert.ErrorIs(t, r.Revoke(t.Context(), "bob", id), token.ErrNone, "it belongs to another person")
		require.NoError(t, r.Revoke(t.Context(), "ann", token.Handle(rec)))
	}
	assert.False(t, r.valid(t, text))
}

func TestATokenOfAnotherKindStandsForNone(t *testing.T) {
	r := replicas(t, 1)[0]
	pair, err := r.Session(t.Context(), r.person(t, "ann"), token.New{})
	require.NoError(t, err)
	assert.False(t, r.valid(t, pair.Refresh.Reveal()), "a refresh token is for one question")
	_, err = r.Refresh(t.Context(), pair.Access, token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid)
}

func TestTokensExpire(t *testing.T) {
	r := replicas(t, 1)[0]
	ann := r.person(t, "ann")
	pair, err := r.Session(t.Context(), ann, token.New{})
	require.NoError(t, err)
	short, err := r.Browser(t.Context(), ann, token.New{Lifetime: time.Second})
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(time.Minute), short.Record.Expires, 2*time.Second, "a minute at least")
	long, err := r.Browser(t.Context(), ann, token.New{Lifetime: 1000 * time.Hour})
	require.NoError(t, err)
	forever := r.application(t, "ann", token.New{})
	month := r.application(t, "ann", token.New{Lifetime: 30 * 24 * time.Hour})
	ends, err := r.Verify(t.Context(), short.Token.Reveal())
	require.NoError(t, err)
	at := func(d time.Duration) { r.skew.Store(int64(d)) }
	at(14 * time.Minute)
	assert.True(t, r.valid(t, pair.Access.Reveal()))
	assert.False(t, r.valid(t, short.Token.Reveal()))
	select {
	case <-ends.Ended:
	case <-time.After(3 * time.Second):
		t.Error("streams of a token that has expired go on")
	}
	at(15 * time.Minute)
	assert.False(t, r.valid(t, pair.Access.Reveal()))
	at(167 * time.Hour)
	assert.True(t, r.valid(t, long.Token.Reveal()))
	at(168 * time.Hour)
	assert.False(t, r.valid(t, long.Token.Reveal()))
	at(29 * 24 * time.Hour)
	assert.True(t, r.valid(t, month))
	at(31 * 24 * time.Hour)
	assert.False(t, r.valid(t, month))
	_, err = r.Refresh(t.Context(), pair.Refresh, token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid, "30 days without use")
	at(10 * 365 * 24 * time.Hour)
	assert.True(t, r.valid(t, forever))
	at(-2 * time.Minute)
	assert.False(t, r.valid(t, forever), "from the future")
	at(-50 * time.Second)
	assert.True(t, r.valid(t, forever), "clocks of masters differ a little")
}

func TestARefreshTokenIsUsedOnce(t *testing.T) {
	r := replicas(t, 2)
	pair, err := r[0].Session(t.Context(), r[0].person(t, "ann"), token.New{})
	require.NoError(t, err)
	next, err := r[1].Refresh(t.Context(), pair.Refresh, token.New{})
	require.NoError(t, err)
	assert.NotEqual(t, pair.Refresh.Reveal(), next.Refresh.Reveal())
	again, err := r[0].Refresh(t.Context(), pair.Refresh, token.New{})
	require.NoError(t, err, "the answer was lost")
	assert.Equal(t, next.Refresh.Reveal(), again.Refresh.Reveal())
	assert.True(t, r[1].valid(t, again.Access.Reveal()))
	third, err := r[0].Refresh(t.Context(), next.Refresh, token.New{})
	require.NoError(t, err)
	_, err = r[0].Refresh(t.Context(), secret.String(another(next.Refresh.Reveal())), token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid)
	assert.True(t, r[0].valid(t, third.Access.Reveal()), "a wrong one revokes nothing: else whoever knows an id could")
	r[0].skew.Store(int64(31 * time.Second))
	_, err = r[0].Refresh(t.Context(), next.Refresh, token.New{})
	assert.ErrorIs(t, err, token.ErrReused)
	assert.ErrorIs(t, err, token.ErrInvalid)
	_, err = r[0].Refresh(t.Context(), third.Refresh, token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid, "two had it: the session is revoked")
	r[1].soonInvalid(t, third.Access.Reveal())
}

func TestOfTwentyThatRefreshAtOnceAllGetTheSame(t *testing.T) {
	r := replicas(t, 2)
	pair, err := r[0].Session(t.Context(), r[0].person(t, "ann"), token.New{})
	require.NoError(t, err)
	got := make([]string, 20)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			next, err := r[i%2].Refresh(t.Context(), pair.Refresh, token.New{})
			if assert.NoError(t, err) {
				got[i] = next.Refresh.Reveal()
			}
		})
	}
	all.Wait()
	for _, text := range got {
		assert.Equal(t, got[0], text)
	}
	require.NoError(t, r[0].RevokeRefresh(t.Context(), secret.String(got[0])))
	_, err = r[1].Refresh(t.Context(), secret.String(got[0]), token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid)
}

func TestChangesOfThePersonEndTokens(t *testing.T) {
	r := replicas(t, 2)
	make := func() (session, application string) {
		pair, err := r[0].Session(t.Context(), r[0].person(t, "ann"), token.New{})
		require.NoError(t, err)
		return pair.Access.Reveal(), r[0].application(t, "ann", token.New{})
	}
	session, application := make()
	require.NoError(t, r[0].people.SetPassword(t.Context(), "ann", good+" two"))
	assert.False(t, r[0].valid(t, session))
	r[1].soonInvalid(t, session)
	assert.True(t, r[1].valid(t, application), "an application goes on when a password changes")

	session, _ = make()
	verified, err := r[1].Verify(t.Context(), session)
	require.NoError(t, err)
	require.NoError(t, r[0].people.Disable(t.Context(), "ann", true))
	assert.False(t, r[0].valid(t, session))
	assert.False(t, r[0].valid(t, application))
	r[1].soonInvalid(t, session)
	r[1].soonInvalid(t, application)
	select {
	case <-verified.Ended:
	case <-time.After(time.Second):
		t.Error("streams of a disabled person go on")
	}
	require.NoError(t, r[0].people.Disable(t.Context(), "ann", false))
	assert.False(t, r[0].valid(t, session), "sessions are over")
	assert.True(t, r[0].valid(t, application))

	session, _ = make()
	before, err := r[0].Verify(t.Context(), session)
	require.NoError(t, err)
	assert.True(t, before.Subject.Grants.Administrator)
	_, err = r[1].people.Update(t.Context(), "ann", func(s *v1.UserSpec) error { s.Groups = []string{"default"}; return nil })
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := r[0].Verify(t.Context(), session)
		return err == nil && !got.Subject.Grants.Administrator
	}, time.Minute, time.Millisecond, "grants are those of now")

	require.NoError(t, r[0].people.Remove(t.Context(), "ann"))
	_, err = r[0].people.Add(t.Context(), people.NewUser{Name: "ann", Password: good, TakeOver: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool { p, err := r[1].people.Person("ann"); return err == nil && !p.Disabled }, time.Minute, time.Millisecond)
	for _, text := range []string{session, application} {
		assert.False(t, r[0].valid(t, text), "another person of that name")
		assert.False(t, r[1].valid(t, text))
	}
	assert.Empty(t, r[0].Of("ann"))
}

func TestASessionThatBeginsWhileThePasswordChangesIsOver(t *testing.T) {
	r := replicas(t, 1)[0]
	before := r.person(t, "ann") // ann's record at the time of the sign-in
	require.NoError(t, r.people.SetPassword(t.Context(), "ann", good+" two"))
	pair, err := r.Session(t.Context(), before, token.New{})
	require.NoError(t, err)
	assert.False(t, r.valid(t, pair.Access.Reveal()))
	_, err = r.Refresh(t.Context(), pair.Refresh, token.New{})
	assert.ErrorIs(t, err, token.ErrInvalid)
}

func TestKeysRotateAndApplicationTokensOutliveThem(t *testing.T) {
	r := replicas(t, 2)
	application := r[0].application(t, "ann", token.New{})
	pair, err := r[0].Session(t.Context(), r[0].person(t, "ann"), token.New{})
	require.NoError(t, err)
	require.NoError(t, r[0].RotateKeys(t.Context(), false))
	assert.True(t, r[0].valid(t, pair.Access.Reveal()))
	after, err := r[0].Session(t.Context(), r[0].person(t, "ann"), token.New{})
	require.NoError(t, err)
	assert.True(t, r[1].valid(t, after.Access.Reveal()))
	require.NoError(t, r[0].RotateKeys(t.Context(), true))
	assert.False(t, r[0].valid(t, pair.Access.Reveal()))
	r[1].soonInvalid(t, pair.Access.Reveal())
	assert.True(t, r[0].valid(t, application), "it is known by its hash")
	assert.True(t, r[1].valid(t, application))
	assert.False(t, r[1].valid(t, another(application)))
	last := r[1].application(t, "bob", token.New{})
	assert.True(t, r[0].valid(t, last))
}

func TestWhatIsStoredHoldsNoToken(t *testing.T) {
	r := replicas(t, 1)[0]
	pair, err := r.Session(t.Context(), r.person(t, "ann"), token.New{Label: "a\nb" + strings.Repeat("x", 500)})
	require.NoError(t, err)
	next, err := r.Refresh(t.Context(), pair.Refresh, token.New{})
	require.NoError(t, err)
	application := r.application(t, "ann", token.New{})
	list, err := kubetest.Start(t).Client.CoreV1().Secrets(v1.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, s := range list.Items {
		for key, value := range s.Data {
			for _, text := range []string{pair.Refresh.Reveal(), next.Refresh.Reveal(), next.Access.Reveal(), application, next.Refresh.Reveal()[26:]} {
				assert.NotContains(t, string(value), text, "%s of %s", key, s.Name)
			}
		}
	}
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", pair, *pair, pair), pair.Refresh.Reveal())
	for _, rec := range r.Of("ann") {
		assert.LessOrEqual(t, len(rec.Label), 200)
		assert.NotContains(t, rec.Label, "\n")
	}
}

func TestScopesAreThoseOfTheToken(t *testing.T) {
	r := replicas(t, 1)[0]
	got, err := r.Verify(t.Context(), r.application(t, "ann", token.New{}))
	require.NoError(t, err)
	assert.Equal(t, []rules.Scope{"read", "submit"}, got.Subject.Token.Scopes)
	assert.Error(t, rules.Class("user.manage", &got.Subject), "an administrator's application manages no people")
	got, err = r.Verify(t.Context(), r.application(t, "ann", token.New{Scopes: []rules.Scope{"read"}}))
	require.NoError(t, err)
	assert.Error(t, rules.Class("job.submit", &got.Subject))
	_, err = r.Application(t.Context(), r.person(t, "ann"), token.New{Scopes: []rules.Scope{"root"}})
	assert.ErrorIs(t, err, people.ErrInvalid)
	_, err = r.Application(t.Context(), r.person(t, "ann"), token.New{Lifetime: -time.Second})
	assert.ErrorIs(t, err, people.ErrInvalid)
}

func TestTheEldestOfAHundredSessionsGoes(t *testing.T) {
	r := replicas(t, 1)[0]
	ann := r.person(t, "ann")
	for i := range 105 {
		r.skew.Store(int64(time.Duration(i) * time.Second))
		_, err := r.Browser(t.Context(), ann, token.New{Lifetime: time.Hour})
		require.NoError(t, err)
	}
	assert.Len(t, r.Of("ann"), 100)
}

func TestACommandMakesATokenWithoutAServer(t *testing.T) {
	r := replicas(t, 1)[0]
	d, err := people.Open(kubetest.Start(t).Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Load(t.Context()))
	s, err := token.Open(kubetest.Start(t).Config, d, token.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context()))
	ann, err := d.Person("ann")
	require.NoError(t, err)
	got, err := s.Application(t.Context(), ann, token.New{Label: "ci"})
	require.NoError(t, err)
	assert.True(t, r.valid(t, got.Token.Reveal()))
	n, err := s.RevokeAll(t.Context(), "ann", false)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	r.soonInvalid(t, got.Token.Reveal())
}

func FuzzIDOf(f *testing.F) {
	f.Add("eyJhbGciOiJub25lIn0.eyJqdGkiOiJhYWFhYWFhYWFhYWFhYWFhYWFhYSJ9.x")
	f.Add("aaaaaaaaaaaaaaaaaaaa")
	f.Add("pair_aaaaaaaaaaaaaaaaaaaa_" + strings.Repeat("A", 43))
	f.Fuzz(func(t *testing.T, text string) {
		id, err := token.IDOf(text)
		if err == nil && (len(id) != 20 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "") {
			t.Fatalf("%q names %q", text, id)
		}
	})
}
