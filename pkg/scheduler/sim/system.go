package sim

import (
	"runtime"
	"time"
)

// System returns a Meter that measures this process.
func System() Meter { return system{time.Now()} }

type system struct{ began time.Time }

func (s system) Wall() time.Duration { return time.Since(s.began) }

func (system) Allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
