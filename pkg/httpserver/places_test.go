package httpserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPlaceGoesToTheKeyWithTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(3, 2)
		var greedy []func()
		for range 2 {
			release, err := p.Acquire(t.Context(), "job a", "host a")
			require.NoError(t, err)
			greedy = append(greedy, release)
		}
		got := make(chan string, 4)
		wait := func(keys ...string) {
			go func() {
				if _, err := p.Acquire(t.Context(), keys...); err == nil {
					got <- keys[0]
				}
			}()
			synctest.Wait()
		}
		wait("job a", "host b") // the job has all that it may have
		wait("job b", "host a") // and so has the host
		assert.Empty(t, got)
		wait("job c", "host c")
		assert.Equal(t, "job c", <-got, "others have a place, although two came before")

		wait("job c", "host d")
		greedy[0]()
		greedy[0]() // a second time changes nothing
		synctest.Wait()
		require.Len(t, got, 1)
		assert.Equal(t, "job a", <-got, "of those that have as many, the first")
		greedy[1]()
		synctest.Wait()
		assert.Equal(t, "job b", <-got)
		assert.Empty(t, got)
	})
}

func TestWhoStopsToWaitTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1, 1)
		release, err := p.Acquire(t.Context(), "a")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Acquire(ctx, "b")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		release()
		_, err = p.Acquire(t.Context(), "b")
		require.NoError(t, err)
		assert.Equal(t, 1, p.taken)
		assert.Empty(t, p.waiting)
	})
}
