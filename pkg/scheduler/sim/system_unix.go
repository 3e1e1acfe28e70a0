//go:build unix

package sim

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

func (system) CPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (system) PeakMemory() uint64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(u.Maxrss) // in bytes on this system, in KiB on others
	}
	return uint64(u.Maxrss) * 1024
}
