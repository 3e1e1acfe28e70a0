package queue

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func gang(vc, name string, priority int, since int64, gpus int) *Gang {
	return &Gang{VC: vc, Name: name, Priority: priority, Since: since, GPUs: gpus, Class: name}
}

func names(list []*Gang) (out []string) {
	for _, g := range list {
		out = append(out, g.Name)
	}
	return out
}

func TestVirtualClustersTakeTurns(t *testing.T) {
	var q Queue
	assert.Empty(t, q.Order())
	q.Started(gang("a", "runs", 0, 0, 4))
	for _, g := range []*Gang{
		gang("a", "a-idle", -1, 0, 1), gang("a", "a1", 1, 10, 8), gang("a", "a-urgent", 5, 30, 8), gang("a", "a2", 1, 20, 1),
		gang("b", "b1", 0, 40, 2), gang("b", "b2", 0, 50, 4), gang("b", "b3", 0, 60, 1), gang("b", "b-idle", -1, 5, 1),
	} {
		q.Add(g)
	}
	assert.Equal(t, 8, q.Len())
	assert.Equal(t, []string{"b1", "b2", "a-urgent", "b3", "a1", "a2", "a-idle", "b-idle"}, names(q.Order()))
}

func TestAGangThatIsRemovedDoesNotWait(t *testing.T) {
	var q Queue
	g := gang("a", "g", 0, 0, 1)
	assert.False(t, q.Remove(g))
	q.Add(g)
	assert.True(t, q.Remove(g))
	assert.False(t, q.Remove(g))
	assert.Zero(t, q.Len())
	q.Started(g)
	q.Ended(g)
	q.Add(gang("b", "other", 0, 1, 1))
	q.Add(g)
	assert.Equal(t, []string{"g", "other"}, names(q.Order()), "it holds nothing any more")
}

// pass runs a pass in which only the gangs in starts start. It returns the names of the tried gangs and of the skipped gangs.
func pass(t *testing.T, q *Queue, now int64, attempt Attempt, starts ...string) (tried, passed []string) {
	t.Helper()
	require.NoError(t, q.Pass(now, func(g *Gang) (Attempt, error) {
		tried = append(tried, g.Name)
		for _, name := range starts {
			if name == g.Name {
				q.Remove(g)
				q.Started(g)
				return Starts, nil
			}
		}
		return attempt, nil
	}, func(g, cause *Gang) { passed = append(passed, g.Name+" for "+cause.Name) }))
	return tried, passed
}

func TestTheLikesOfAGangThatCannotStartAreNotTried(t *testing.T) {
	var q Queue
	for i, name := range []string{"one", "two", "three"} {
		g := gang("a", name, 0, int64(i), 1)
		g.Class = "same"
		q.Add(g)
	}
	q.Add(gang("a", "other", 0, 9, 1))
	tried, passed := pass(t, &q, 0, Waits, "one", "other")
	assert.Equal(t, []string{"one", "two", "other"}, tried)
	assert.Equal(t, []string{"three for two"}, passed)
	err := errors.New("it ends")
	require.ErrorIs(t, q.Pass(0, func(*Gang) (Attempt, error) { return Unfit, err }, nil), err)
}

func TestWhatBecomesFreeIsHeldForAGangThatWaitedLong(t *testing.T) {
	q := Queue{Reservations: Reservations{Guaranteed: 100}}
	for _, g := range []*Gang{gang("a", "large", 5, 0, 8), gang("a", "small", 5, 10, 1), gang("a", "low", 1, 10, 1), gang("b", "other", 5, 10, 1), gang("a", "idle", -1, 0, 1)} {
		q.Add(g)
	}
	tried, _ := pass(t, &q, 99, Waits)
	assert.Len(t, tried, 5, "it hasn't waited long enough")
	tried, passed := pass(t, &q, 100, Waits)
	assert.Equal(t, []string{"large", "other", "low", "idle"}, tried, "it may end the low one itself")
	assert.Equal(t, []string{"small for large"}, passed)
	tried, _ = pass(t, &q, 101, Unfit)
	assert.Contains(t, tried, "small", "what it waits for isn't in use")
	q.Add(gang("a", "over-quota", 9, 0, 1))
	require.NoError(t, q.Pass(102, func(g *Gang) (Attempt, error) {
		assert.NotEqual(t, "small", g.Name, "the large one is the first that GPUs help")
		return map[bool]Attempt{true: Unfit, false: Waits}[g.Name == "over-quota"], nil
	}, nil))
	pass(t, &q, 103, Waits)
	tried, _ = pass(t, &q, 104, Waits, "large")
	assert.Contains(t, tried, "small", "it has started")
}

func TestOnlyWhatEndsInTimeStartsWhileGPUsAreHeld(t *testing.T) {
	q := Queue{Reservations: Reservations{Guaranteed: 100}}
	for i, end := range []int64{500, 300, 400} {
		runs := gang("a", "runs", 5, int64(i), 4)
		q.Started(runs)
		q.EndsBy(runs, end)
	}
	q.Free("a", 1)
	large := gang("a", "large", 5, 0, 8)
	short, long, unknown := gang("a", "short", 5, 10, 1), gang("a", "long", 5, 11, 1), gang("a", "unknown", 5, 12, 1)
	short.Lasts, long.Lasts = 200, 201
	for _, g := range []*Gang{large, short, long, unknown} {
		q.Add(g)
	}
	tried, passed := pass(t, &q, 200, Waits)
	assert.Equal(t, []string{"large", "short"}, tried, "of 12 GPUs that are in use 8 are free at 400")
	assert.Equal(t, []string{"long for large", "unknown for large"}, passed)
	assert.Equal(t, []string{"large"}, names(q.Reserving()))
	tried, _ = pass(t, &q, 201, Waits)
	assert.Equal(t, []string{"large"}, tried, "it would end too late by now")

	q.Free("a", 8)
	tried, _ = pass(t, &q, 150, Waits)
	assert.Equal(t, []string{"large"}, tried, "GPUs enough are free, in other places: what ends may help at any time")
}

func TestAGangWhoseTurnHasNotComeIsAsBefore(t *testing.T) {
	q := Queue{Reservations: Reservations{Guaranteed: 10}}
	first, second := gang("a", "first", 5, 0, 1), gang("a", "second", 5, 1, 1)
	first.Class, second.Class = "same", "same"
	q.Add(first)
	q.Add(second)
	tried, passed := pass(t, &q, 20, Later)
	assert.Equal(t, []string{"first", "second"}, tried, "nothing is known of its like")
	assert.Empty(t, passed)
	assert.Empty(t, q.Reserving())
}

func TestNothingIsHeldForAGangThatNoLongerWaits(t *testing.T) {
	q := Queue{Reservations: Reservations{Guaranteed: 100}}
	large, small := gang("a", "large", 5, 0, 8), gang("a", "small", 5, 10, 1)
	q.Add(large)
	q.Add(small)
	pass(t, &q, 100, Waits)
	require.Equal(t, large, q.Reservation(small))
	q.Remove(large)
	assert.Nil(t, q.Reservation(small))
	assert.Empty(t, q.Reserving())
}

func TestAGangThatStartsHoldsNothingBackInTheSamePass(t *testing.T) {
	q := Queue{Reservations: Reservations{Guaranteed: 100}}
	q.Add(gang("a", "large", 5, 0, 8))
	q.Add(gang("a", "small", 5, 10, 1))
	pass(t, &q, 100, Waits)
	tried, _ := pass(t, &q, 101, Waits, "large")
	assert.Equal(t, []string{"large", "small"}, tried)
}
