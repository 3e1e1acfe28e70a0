package server

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

func withToken(id string) *rules.Subject {
	return &rules.Subject{Name: "mallory", Token: rules.Token{ID: id}}
}

func TestManyTokensOfAPersonDontMakeManyPeople(t *testing.T) {
	now := time.Now()
	l := newLimiter(Limits{PerTokenMinute: 10}, func() time.Time { return now })
	passed := 0
	for token := range 5 {
		for range 10 {
			if l.take(netip.Addr{}, withToken(strconv.Itoa(token))) == 0 {
				passed++
			}
		}
	}
	assert.Equal(t, 10*personTokens, passed)
	other := &rules.Subject{Name: "ann", Token: rules.Token{ID: "0"}}
	assert.Zero(t, l.take(netip.Addr{}, other), "another person isn't limited by that")

	s := newOpen(1000)
	var give []func()
	for token := range 10 {
		for range tokenStreams + 1 {
			if end, ok := s.take(stream(withToken(strconv.Itoa(token)))...); ok {
				give = append(give, end)
			}
		}
	}
	assert.Len(t, give, personStreams)
	for _, end := range give {
		end()
	}
	assert.Empty(t, s.each)
	assert.Zero(t, s.all)
}

// The audit log keeps two million records of all people together.
func TestOnePersonDoesntFillTheAudit(t *testing.T) {
	now := time.Now()
	l := newLimiter(Limits{}, func() time.Time { return now })
	passed := 0
	for minute := range 6 * 60 {
		for token := range 3000 {
			if l.change(withToken(strconv.Itoa(token))) == 0 {
				passed++
			}
		}
		now = now.Add(time.Minute)
		assert.Zero(t, l.change(&rules.Subject{Name: "ann" + strconv.Itoa(minute)}))
	}
	assert.InDelta(t, 7*6000, passed, 200, "in six hours")
}

func TestListsThatAreTooLargeTogetherWaitForEachOther(t *testing.T) {
	s := newRows()
	s.wait = 10 * time.Millisecond
	first, err := s.take(t.Context(), "mallory", maxPersonRows)
	require.NoError(t, err)
	refused := func(who string, n int) {
		t.Helper()
		_, err := s.take(t.Context(), who, n)
		e, ok := err.(*wire.Error) //nolint:errorlint // it isn't wrapped
		require.True(t, ok, "%v", err)
		assert.Equal(t, http.StatusServiceUnavailable, e.Status)
		assert.Positive(t, e.RetryAfter)
	}
	refused("mallory", 1)
	refused("ann", maxRows-maxPersonRows+1)
	some, err := s.take(t.Context(), "ann", maxRows-maxPersonRows)
	require.NoError(t, err, "one person doesn't take all")
	s.wait = time.Minute
	waited := make(chan error, 1)
	go func() {
		give, err := s.take(t.Context(), "bob", 100)
		if err == nil {
			give()
		}
		waited <- err
	}()
	some()
	require.NoError(t, <-waited)
	first()
	assert.Empty(t, s.each)
	all, err := s.take(t.Context(), "ann", 1_000_000)
	require.NoError(t, err, "what was held is given back")
	all()
}

func TestRequestsThatWaitForOthersOfTheirPersonEndWithTheirContext(t *testing.T) {
	s := &Server{places: &shares{each: map[string]*share{}}}
	first, err := s.place(t.Context(), "GET /x", "mallory", 1)
	require.NoError(t, err)
	other, err := s.place(t.Context(), "GET /x", "ann", 1)
	require.NoError(t, err, "another person doesn't wait")
	other()
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = s.place(gone, "GET /x", "mallory", 1)
	e, ok := err.(*wire.Error) //nolint:errorlint // it isn't wrapped
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusServiceUnavailable, e.Status)
	assert.Positive(t, e.RetryAfter)
	waited := make(chan error, 1)
	go func() {
		give, err := s.place(t.Context(), "GET /x", "mallory", 1)
		if err == nil {
			give()
		}
		waited <- err
	}()
	first()
	require.NoError(t, <-waited)
	assert.Empty(t, s.places.each)
}
