package token

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/peopletest"
	"github.com/openpai/paictl/pkg/secret"
)

// alone is a Service for the person ann, with a clock that the test sets.
type alone struct {
	*Service
	t   *testing.T
	api *peopletest.API
	d   *people.Directory
	at  time.Time
}

func newAlone(t *testing.T) *alone {
	t.Helper()
	a := &alone{t: t, api: peopletest.New(t, peopletest.User("ann")), at: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)}
	var err error
	a.d, err = people.Open(a.api.Config(), people.Options{})
	require.NoError(t, err)
	a.Service, err = Open(a.api.Config(), a.d, Options{Now: func() time.Time { return a.at }})
	require.NoError(t, err)
	require.NoError(t, a.d.Load(t.Context()))
	require.NoError(t, a.Load(t.Context()))
	return a
}

func (a *alone) ann() *people.Person {
	a.t.Helper()
	p, err := a.d.Person("ann")
	require.NoError(a.t, err)
	return p
}

func (a *alone) session() *Pair {
	a.t.Helper()
	pair, err := a.Session(a.t.Context(), a.ann(), New{})
	require.NoError(a.t, err)
	return pair
}

// good reports whether a token is valid. It fails the test if the error isn't ErrInvalid.
func (a *alone) good(text string) bool {
	a.t.Helper()
	_, err := a.Verify(a.t.Context(), text)
	if err != nil {
		require.ErrorIs(a.t, err, ErrInvalid)
	}
	return err == nil
}

func TestATokenEndsWhenItsTimeIsOver(t *testing.T) {
	a := newAlone(t)
	pair := a.session()
	browser, err := a.Browser(t.Context(), a.ann(), New{Lifetime: time.Hour})
	require.NoError(t, err)
	application, err := a.Application(t.Context(), a.ann(), New{Lifetime: time.Hour})
	require.NoError(t, err)
	lasting, err := a.Application(t.Context(), a.ann(), New{})
	require.NoError(t, err)
	begin := a.at
	for _, c := range []struct {
		kind, text string
		life       time.Duration
	}{
		{"access", pair.Access.Reveal(), pair.Lifetime}, {"browser", browser.Token.Reveal(), time.Hour}, {"application", application.Token.Reveal(), time.Hour},
	} {
		a.at = begin
		assert.True(t, a.good(c.text), c.kind)
		a.at = begin.Add(c.life - time.Second)
		assert.True(t, a.good(c.text), c.kind)
		a.at = begin.Add(c.life)
		assert.False(t, a.good(c.text), c.kind)
	}
	a.at = begin.Add(365 * 24 * time.Hour)
	assert.True(t, a.good(lasting.Token.Reveal()), "it has no end")
	assert.Equal(t, []Record{lasting.Record}, a.Of("ann"))
}

func TestWhenAllSessionsOfAPersonEndOnlyApplicationTokensStay(t *testing.T) {
	a := newAlone(t)
	pair := a.session()
	browser, err := a.Browser(t.Context(), a.ann(), New{})
	require.NoError(t, err)
	application, err := a.Application(t.Context(), a.ann(), New{})
	require.NoError(t, err)
	u := peopletest.User("ann")
	u.Annotations = map[string]string{people.AnnotationSessions: strconv.Itoa(1)}
	a.api.Put(u)
	require.NoError(t, a.d.Load(t.Context()))
	assert.False(t, a.good(pair.Access.Reveal()))
	assert.False(t, a.good(browser.Token.Reveal()))
	assert.True(t, a.good(application.Token.Reveal()))
	_, err = a.Refresh(t.Context(), pair.Refresh, New{})
	require.ErrorIs(t, err, ErrInvalid)
	assert.True(t, a.good(a.session().Access.Reveal()))
}

func TestNoTokenOfAPersonWhoIsDisabledIsValid(t *testing.T) {
	a := newAlone(t)
	pair := a.session()
	application, err := a.Application(t.Context(), a.ann(), New{})
	require.NoError(t, err)
	u := peopletest.User("ann")
	u.Spec.Disabled = true
	a.api.Put(u)
	require.NoError(t, a.d.Load(t.Context()))
	assert.False(t, a.good(pair.Access.Reveal()))
	assert.False(t, a.good(application.Token.Reveal()))
}

func TestARefreshTokenThatIsShownAgainLateEndsTheSession(t *testing.T) {
	a := newAlone(t)
	first := a.session()
	second, err := a.Refresh(t.Context(), first.Refresh, New{})
	require.NoError(t, err)
	assert.NotEqual(t, first.Refresh, second.Refresh)
	a.at = a.at.Add(grace - time.Second)
	again, err := a.Refresh(t.Context(), first.Refresh, New{})
	require.NoError(t, err, "the answer may have been lost")
	assert.Equal(t, second.Refresh, again.Refresh)
	a.at = a.at.Add(time.Second)
	_, err = a.Refresh(t.Context(), first.Refresh, New{})
	require.ErrorIs(t, err, ErrReused)
	assert.False(t, a.good(second.Access.Reveal()))
	_, err = a.Refresh(t.Context(), second.Refresh, New{})
	require.ErrorIs(t, err, ErrInvalid, "two had it")
}

// If a thief refreshes the session several times, the owner's refresh token is an old token of the session, not an unknown token.
func TestARefreshTokenOfAnyAgeEndsTheSession(t *testing.T) {
	a := newAlone(t)
	first := a.session()
	pair := first
	for range 5 {
		a.at = a.at.Add(time.Hour)
		next, err := a.Refresh(t.Context(), pair.Refresh, New{})
		require.NoError(t, err)
		pair = next
	}
	foreign := a.session()
	id, _ := parseRefresh(pair.Refresh.Reveal())
	other, _ := parseRefresh(foreign.Refresh.Reveal())
	_, err := a.Refresh(t.Context(), secret.String(strings.Replace(foreign.Refresh.Reveal(), other, id, 1)), New{})
	require.EqualError(t, err, ErrInvalid.Error(), "made up from a token of another session")
	require.True(t, a.good(pair.Access.Reveal()))
	_, err = a.Refresh(t.Context(), first.Refresh, New{})
	require.ErrorIs(t, err, ErrReused)
	assert.False(t, a.good(pair.Access.Reveal()))
	_, err = a.Refresh(t.Context(), pair.Refresh, New{})
	require.ErrorIs(t, err, ErrInvalid)
	assert.True(t, a.good(foreign.Access.Reveal()))

	signedOut := a.session()
	next, err := a.Refresh(t.Context(), signedOut.Refresh, New{})
	require.NoError(t, err)
	_, err = a.Refresh(t.Context(), next.Refresh, New{})
	require.NoError(t, err)
	require.NoError(t, a.RevokeRefresh(t.Context(), signedOut.Refresh), "a program that lost an answer signs out")
	assert.False(t, a.good(next.Access.Reveal()))
}

// Sessions that began before refresh tokens contained codes stay valid.
func TestASessionWithoutAMarkGetsOne(t *testing.T) {
	e := &entry{Record: Record{ID: newID()}}
	e.hash = hashOf("pair_" + e.ID + "_" + strings.Repeat("x", 43))
	assert.True(t, e.issued(secret.String("pair_"+e.ID+"_"+strings.Repeat("x", 43))))
	assert.False(t, e.issued(secret.String("pair_"+e.ID+"_"+strings.Repeat("y", 43))))
	token := e.newRefresh()
	assert.True(t, e.issued(token))
}
