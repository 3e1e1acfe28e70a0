package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// percent returns the current percentage of the garbage collector.
func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

func TestTheFirstCollectionEndsTheStart(t *testing.T) {
	before := debug.SetGCPercent(byDefault)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	start()
	assert.Equal(t, atStart, percent())
	runtime.GC()
	assert.Eventually(t, func() bool { return percent() == afterwards }, time.Minute, time.Millisecond, "cleanups run after a collection")
}

func TestTheUsersSettingStays(t *testing.T) {
	before := debug.SetGCPercent(50)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	start()
	assert.Equal(t, 50, percent())
}
