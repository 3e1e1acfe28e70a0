package status

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/services/state"
)

// shared returns a Shared for an API server without objects, and a counter of opened followers. The server calls before for each request.
func shared(t *testing.T, before ...func(*http.Request)) (*Shared, *atomic.Int32) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, f := range before {
			f(r)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`{"metadata":{"resourceVersion":"1"},"items":[]}`))
	}))
	t.Cleanup(api.CloseClientConnections) // watches last
	address := strings.TrimPrefix(api.URL, "http://")
	var opened atomic.Int32
	s := &Shared{wait: time.Millisecond, Open: func() (*Follower, error) {
		opened.Add(1)
		return New(through(t, address, ""), Options{Patience: 5 * time.Second, Services: func(context.Context, func(string, *layout.Layout)) ([]state.Status, error) {
			return nil, &AbsentError{Err: errors.New("no run has published them")}
		}})
	}}
	return s, &opened
}

func TestReadersShareOneFollower(t *testing.T) {
	s, opened := shared(t)
	ctx, stop := context.WithCancel(t.Context())
	given := make(chan *Cluster)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Follow(ctx, 0, func(c *Cluster) error {
			select {
			case given <- c:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	first := <-given
	assert.True(t, first.Knows(SourceAPI), "a reader doesn't get a model before Kubernetes has answered")
	c, err := s.Read(t.Context())
	require.NoError(t, err)
	assert.NotNil(t, c)
	assert.Equal(t, int32(1), opened.Load())
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { // after the last reader it ends
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lead == nil
	}, 10*time.Second, time.Millisecond)
	_, err = s.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int32(2), opened.Load())
}

func TestASharedFollowerEndsWithItsOwner(t *testing.T) {
	s, _ := shared(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	ended := make(chan error, 1)
	given := make(chan struct{}, 1)
	go func() {
		ended <- s.Follow(t.Context(), 0, func(*Cluster) error {
			select {
			case given <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	<-given
	stop()
	require.NoError(t, <-done)
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err := s.Read(t.Context())
	require.ErrorIs(t, err, context.Canceled)
}

// The list of jobs may take long. A reader of the stream sees the machines before that, and the jobs afterwards.
func TestAStreamBeginsWhileTheJobsAreLoading(t *testing.T) {
	jobs := make(chan struct{})
	s, _ := shared(t, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/frameworks") {
			select {
			case <-jobs:
			case <-r.Context().Done():
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var states []string
	err := s.Follow(ctx, 0, func(c *Cluster) error {
		require.True(t, c.Knows(SourceAPI))
		if states = append(states, c.Source(SourceJobs).State); len(states) == 1 {
			close(jobs)
		}
		if c.Knows(SourceJobs) {
			stop()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{StateLoading, StateCurrent}, []string{states[0], states[len(states)-1]})
}

func TestAReaderPausesLongerIfModelsAreExpensive(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{0: 250 * time.Millisecond, 10 * time.Millisecond: 250 * time.Millisecond, 50 * time.Millisecond: 450 * time.Millisecond, 3 * time.Second: time.Second} {
		assert.Equal(t, want, pauseAfter(cost, 250*time.Millisecond), cost)
	}
}

func TestAReaderDoesNotWaitForAFollowerThatHasEnded(t *testing.T) {
	silent := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(silent)
		api.Close()
	})
	s := &Shared{Open: func() (*Follower, error) {
		return New(through(t, strings.TrimPrefix(api.URL, "http://"), ""), Options{Patience: time.Hour, Services: func(context.Context, func(string, *layout.Layout)) ([]state.Status, error) {
			return nil, &AbsentError{Err: errors.New("no run has published them")}
		}})
	}}
	ctx, stop := context.WithCancel(t.Context())
	done, read := make(chan error, 1), make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	go func() {
		_, err := s.Read(t.Context())
		read <- err
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lead != nil
	}, 10*time.Second, time.Millisecond)
	stop()
	require.NoError(t, <-done)
	select {
	case err := <-read:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits on")
	}
}
