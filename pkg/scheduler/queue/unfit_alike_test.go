package queue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two gangs of a user over the quota come before a large gang that has waited for long. The pass tries one of the two gangs,
// and skips the other because it is equivalent. GPUs must not be held for either gang.
func TestGangsThatGPUsDoNotHelpAreNoHeadWhenTheyAreAlike(t *testing.T) {
	q := Queue{Reservations: Reservations{Guaranteed: 10}}
	first, second := gang("a", "over-1", 5, 0, 1), gang("a", "over-2", 5, 1, 1)
	first.Class, second.Class = "over", "over"
	large, small := gang("a", "large", 1, 2, 8), gang("a", "small", 1, 90, 1)
	for _, g := range []*Gang{first, second, large, small} {
		q.Add(g)
	}
	require.NoError(t, q.Pass(100, func(g *Gang) (Attempt, error) {
		if g.Class == "over" {
			return Unfit, nil
		}
		if g == small {
			return Starts, nil
		}
		return Waits, nil
	}, nil))
	assert.Equal(t, large, q.Reservation(small), "small ones take what becomes free for ever")
}
