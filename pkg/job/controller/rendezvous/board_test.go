package rendezvous

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var first = Attempt{Framework: "f", UID: "u", Number: 0}

func TestAllTasksOfAnAttemptGetItsMessage(t *testing.T) {
	b := New()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			m, err := b.Wait(t.Context(), first, 0)
			assert.NoError(t, err)
			assert.Equal(t, "x", string(m.Data))
		})
	}
	assert.False(t, b.Has(first))
	b.Publish(first, []byte("x"))
	wg.Wait()
	assert.True(t, b.Has(first))
	m, err := b.Wait(t.Context(), first, 0)
	require.NoError(t, err, "one that comes later")
	assert.Equal(t, "x", string(m.Data))
	b.Forget("f")
	assert.Empty(t, b.jobs)
}

func TestATaskOfAnotherAttemptOrJobGetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New()
		b.Publish(Attempt{"f", "u", 1}, []byte("x"))
		_, err := b.Wait(t.Context(), first, 0)
		require.ErrorIs(t, err, ErrOver)
		for _, other := range []Attempt{{"f", "u", 2}, {"f", "of before", 1}, {"g", "u", 1}} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := b.Wait(ctx, other, 0)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Len(t, b.jobs, 1, "nothing is kept for those who waited in vain")
	})
}

func TestATaskThatHasSeenAMessageWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New()
		b.Publish(first, []byte("x"))
		m, err := b.Wait(t.Context(), first, 0)
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			b.Publish(first, []byte("y"))
		}()
		m, err = b.Wait(t.Context(), first, m.Version)
		require.NoError(t, err)
		assert.Equal(t, "y", string(m.Data))
	})
}

// A new process uses different versions. Otherwise a task that has a version of the earlier process might not get the message of the new process.
func TestWhatAFormerProcessSaidHidesNothing(t *testing.T) {
	b := New()
	b.Publish(first, []byte("x"))
	m, err := b.Wait(t.Context(), first, 0)
	require.NoError(t, err)
	again := New()
	again.Publish(first, []byte("y"))
	got, err := again.Wait(t.Context(), first, m.Version)
	require.NoError(t, err)
	assert.Equal(t, "y", string(got.Data))
}
