package status

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestALongListOfEventsKeepsTheNewestAndFewOthers(t *testing.T) {
	const all = 20_000
	start, events, kept := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), &newest{}, map[int]bool{}
	for i := range all {
		second := i * 7919 % all // each once, in another order
		if events.has(strconv.Itoa(second), start.Add(time.Duration(second)*time.Second)) {
			kept[second] = true
		}
	}
	for second := all - MaxEvents; second < all; second++ {
		assert.True(t, kept[second], "event of second %d", second)
	}
	assert.Less(t, len(kept), 4*maxEventRows)
	assert.False(t, events.has("0", start))
	events.reset()
	assert.True(t, events.has("0", start), "a server that was restored from a backup has older events")
}

func TestAnEventThatOccursOftenHidesNoOther(t *testing.T) {
	start, events := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), &newest{}
	for second := range 2 * maxEventRows {
		events.has("probe fails", start.Add(time.Duration(second)*time.Second))
	}
	assert.True(t, events.has("of a machine whose clock is behind", start))
}
