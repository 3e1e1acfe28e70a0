package app

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
)

// models is a source of states. It returns each state after the watch has sent the previous state.
type models []*status.Cluster

func (m models) Read(context.Context) (*status.Cluster, error) { return m[0], nil }

func (m models) Follow(ctx context.Context, _ time.Duration, give func(*status.Cluster) error) error {
	for _, c := range m {
		if err := give(c); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// shown collects the states of a watch, and ends the watch after most states.
type shown struct {
	names []string
	most  int
	stop  func()
}

func (s *shown) add(name string) error {
	if s.names = append(s.names, name); len(s.names) == s.most {
		s.stop()
	}
	return nil
}

func (s *shown) Snapshot(c *status.Cluster) error { return s.add(c.Name) }
func (s *shown) Changed(*status.Delta) error      { return s.add("") }
func (s *shown) Heartbeat() error                 { return nil }

// later returns a later state that differs only in its name and time.
func later(c *status.Cluster, name string) *status.Cluster {
	out := *c
	out.Name, out.At = name, c.At.Add(time.Second)
	return &out
}

// An operator has a kubeconfig, and isn't a person whose grants can change.
func TestAnOperatorWatchesTheStatus(t *testing.T) {
	s, _, _, _ := shopOf(t)
	first := statustest.Cluster(statustest.Small())
	next := later(first, first.Name)
	next.Jobs = next.Jobs[1:]
	s.Status = models{first, next}
	for _, as := range []string{"", "ann"} {
		ctx, stop := context.WithCancel(t.Context())
		got := &shown{most: 2, stop: stop}
		caller := s.Operator(func(context.Context) string { return "dev" }, as)
		require.ErrorIs(t, s.For(caller, Origin{}).WatchStatus(ctx, nil, got), context.Canceled)
		assert.Equal(t, []string{first.Name, ""}, got.names, as)
	}
}

// A Delta contains neither the name of the cluster nor the version of Kubernetes.
func TestAWatcherOfTheStatusGetsTheNewNameOfTheCluster(t *testing.T) {
	s, _, _, _ := shopOf(t)
	first := statustest.Cluster(statustest.Small())
	upgraded := later(first, "configured")
	upgraded.At, upgraded.Kubernetes = upgraded.At.Add(time.Second), "v9.9.9"
	s.Status = models{first, later(first, "configured"), upgraded}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	got := &shown{most: 3, stop: stop}
	caller := s.Operator(func(context.Context) string { return "dev" }, "")
	require.ErrorIs(t, s.For(caller, Origin{}).WatchStatus(ctx, nil, got), context.Canceled)
	assert.Equal(t, []string{first.Name, "configured", "configured"}, got.names)
}

// measuring is a source of one state. It records how many states the watch has sent when give returns.
type measuring struct {
	models
	got  *shown
	sent chan int
}

func (m *measuring) Follow(ctx context.Context, _ time.Duration, give func(*status.Cluster) error) error {
	if err := give(m.models[0]); err != nil {
		return err
	}
	m.sent <- len(m.got.names)
	<-ctx.Done()
	return context.Cause(ctx)
}

// A source waits longer after an expensive state, so it must learn how long the watch takes to send a state.
func TestAWatchReturnsToItsSourceAfterItHasSentAState(t *testing.T) {
	s, _, _, _ := shopOf(t)
	ctx, stop := context.WithCancel(t.Context())
	got := &shown{most: 9, stop: stop}
	m := &measuring{models: models{statustest.Cluster(statustest.Small())}, got: got, sent: make(chan int, 1)}
	s.Status = m
	done := make(chan error, 1)
	go func() {
		done <- s.For(s.Operator(func(context.Context) string { return "dev" }, ""), Origin{}).WatchStatus(ctx, nil, got)
	}()
	assert.Equal(t, 1, <-m.sent)
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
}
