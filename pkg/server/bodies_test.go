package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/app"
)

type noteIn struct {
	Body struct {
		Text string `json:"text"`
	} `body:"json"`
}

// notes returns a server that accepts notes from anyone, and a function that sends a note.
func notes(l Limits) (s *Server, post func(from, text string) *httptest.ResponseRecorder) {
	take := JSON("POST", "/api/notes", "open", "Takes a note", func(_ context.Context, _ *app.Actions, in *noteIn) (*noteIn, error) { return in, nil })
	s = New(Options{Routes: []Route{take}, Limits: l, Log: slog.New(slog.DiscardHandler)})
	for _, p := range []*pool{s.bodies.guestRead, s.bodies.guestDecoded} {
		p.wait = 10 * time.Millisecond
	}
	return s, func(from, text string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/notes", strings.NewReader(`{"text":"`+text+`"}`))
		r.RemoteAddr = from + ":1000"
		s.ServeHTTP(w, r)
		return w
	}
}

func TestBodiesWithoutATokenAreShortAndFew(t *testing.T) {
	_, post := notes(Limits{PerMinute: 100})
	assert.Equal(t, http.StatusOK, post("192.0.2.1", strings.Repeat("a", 8000)).Code)
	assert.Equal(t, http.StatusRequestEntityTooLarge, post("192.0.2.1", strings.Repeat("a", 8200)).Code)
	for range 8 {
		require.Equal(t, http.StatusOK, post("192.0.2.1", "a").Code)
	}
	assert.Equal(t, http.StatusTooManyRequests, post("192.0.2.1", "a").Code, "a tenth of a minute's may come at once")
	assert.Equal(t, http.StatusOK, post("192.0.2.2", "a").Code, "others aren't counted with them")
}

// A decoded body takes a multiple of its size, and a job file takes a larger multiple.
func TestDecodedBodiesCountWithTheirSurroundings(t *testing.T) {
	for times, most := range map[int]int64{decodedTimes: decodedTimes * 100, jobTimes: jobTimes * 100} {
		p := newPool(most, most, errors.New("full"), nil)
		p.wait = time.Millisecond
		read := func(n int) error {
			a := &answer{ResponseWriter: httptest.NewRecorder()}
			r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
			b := &body{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("a", n))), call: &Call{Writer: a, Request: r}, size: int64(n), times: times, read: newPool(1000, 1000, nil, nil), decoded: p}
			_, err := b.All()
			return err
		}
		require.NoError(t, read(60))
		require.ErrorContains(t, read(60), "full", "the first request isn't over")
	}
}

// A waiting request keeps its header in memory.
func TestAHeaderHasFewFields(t *testing.T) {
	s, _ := notes(Limits{})
	for n, want := range map[int]int{maxFields: http.StatusOK, maxFields + 1: http.StatusRequestHeaderFieldsTooLarge} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/notes", strings.NewReader(`{"text":"a"}`))
		r.Header["A"] = make([]string, n)
		s.ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, "%d fields", n)
	}
}

func TestBodiesWaitForTheMemoryOfOthers(t *testing.T) {
	s, post := notes(Limits{})
	for what, p := range map[string]*pool{"read": s.bodies.guestRead, "decoded": s.bodies.guestDecoded} {
		var give []func()
		for _, network := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"} {
			one, err := p.take(t.Context(), network, int(p.own))
			if err == nil {
				give = append(give, one)
			}
		}
		w := post("192.0.2.1", "a")
		assert.Equal(t, http.StatusServiceUnavailable, w.Code, what)
		assert.Equal(t, "2", w.Header().Get("Retry-After"))
		for _, one := range give {
			one()
		}
		assert.Equal(t, http.StatusOK, post("192.0.2.1", "a").Code, what)
		assert.Empty(t, p.each, "it is given back with the answer")
	}
	own, err := s.bodies.guestDecoded.take(t.Context(), "192.0.2.1", int(s.bodies.guestDecoded.own))
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, post("192.0.2.1", "a").Code)
	assert.Equal(t, http.StatusOK, post("192.0.2.2", "a").Code, "one network doesn't take all")
	own()
}
