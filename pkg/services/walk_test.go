package services

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWalkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		errs := walk(t.Context(), []string{"a", "b", "c", "d"}, func(string) []string { return nil }, 2, func(context.Context, string) error {
			time.Sleep(time.Second)
			return nil
		})
		assert.Empty(t, errs)
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestWhatNeedsAFailureIsNotDoneAndSaysSo(t *testing.T) {
	needs := map[string][]string{"b": {"a"}, "c": {"b", "d"}, "e": {"elsewhere"}}
	boom := errors.New("boom")
	errs := walk(t.Context(), []string{"a", "b", "c", "d", "e"}, func(n string) []string { return needs[n] }, 4, func(_ context.Context, n string) error {
		if n == "a" {
			return boom
		}
		return nil
	})
	assert.Equal(t, map[string]error{"a": boom, "b": &waitsError{on: []string{"a"}}, "c": &waitsError{on: []string{"b"}}}, errs)
	assert.EqualError(t, errs["c"], "waits for b")
}

func TestNothingNewBeginsOnceTheRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	did := map[string]bool{}
	errs := walk(ctx, []string{"a", "b"}, func(n string) []string { return map[string][]string{"b": {"a"}}[n] }, 4, func(_ context.Context, n string) error {
		did[n] = true
		cancel()
		return nil
	})
	assert.Equal(t, map[string]bool{"a": true}, did)
	assert.ErrorIs(t, errs["b"], context.Canceled)
}
