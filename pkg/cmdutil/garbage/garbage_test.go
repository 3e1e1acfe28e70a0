package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// percent returns the present percentage.
func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

func TestTheFirstCollectionEndsTheStart(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	untilFirst(700, 150)
	assert.Equal(t, 700, percent())
	runtime.GC()
	assert.Eventually(t, func() bool { return percent() == 150 }, time.Minute, time.Millisecond, "cleanups run after a collection")
}

func TestTheUsersSettingStays(t *testing.T) {
	t.Setenv("GOGC", "50")
	assert.False(t, unset())
	t.Setenv("GOGC", "")
	assert.True(t, unset())
}
