package app

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAUseCountsOnceInAWhile(t *testing.T) {
	u, now := uses{}, time.Now()
	assert.True(t, u.first("ann", "train", now))
	assert.False(t, u.first("ann", "train", now.Add(usesTime-1)))
	assert.True(t, u.first("bob", "train", now))
	assert.True(t, u.first("ann", "train", now.Add(usesTime)))

	now = now.Add(3 * usesTime)
	counted := 0
	for i := range 2 * maxUses {
		if u.first("ann", strconv.Itoa(i), now) {
			counted++
		}
	}
	assert.Equal(t, maxUses, counted)
	assert.Len(t, u.by, 1, "who used one long ago is forgotten")
}
