//go:build !unix

package sim

import "time"

func (system) CPU() time.Duration { return 0 }

func (system) PeakMemory() uint64 { return 0 }
