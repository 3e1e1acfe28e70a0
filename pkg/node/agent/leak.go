package agent

import (
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// This file detects leaked memory. Leaked memory is in use although no process uses the GPU, because the driver didn't release the memory of an ended
// process. The next job would get less memory than it expects.

const (
	// leakedFor is how long memory must be in use without a process before it counts as leaked. A process normally releases its memory within seconds of
	// exiting.
	leakedFor = 5 * time.Minute
	// The driver itself may use leakLeast bytes, or the GPU's memory divided by leakShare if that is more. The driver uses more memory on large GPUs.
	leakLeast = 1 << 30
	leakShare = 20
)

const leaked = "its memory is in use, although no process and no job uses it; paictl node gpu reset, or restart the machine"

// leaks records the time since which GPU memory has been in use without a process or a claim. An unknown number of processes doesn't count as a leak.
// The caller holds the lock.
func (m *monitor) leaks(s *slot) {
	g := &s.gpu
	limit := max(leakLeast, float64(g.Memory)/leakShare)
	if g.Lost || g.Processes == nil || *g.Processes > 0 || g.Values[gpu.MemoryUsed]*(1<<20) <= limit || m.claimed == nil || m.claimed(s.Index) {
		s.leaking = time.Time{}
		return
	}
	if s.leaking.IsZero() {
		s.leaking = m.now()
	}
}

// leakedBy reports whether memory of the GPU counts as leaked at the time now.
func (s *slot) leakedBy(now time.Time) bool {
	return !s.leaking.IsZero() && now.Sub(s.leaking) >= leakedFor
}

// claimed reports whether a claim uses a GPU or a part of the GPU.
func (r *records) claimed(card int32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of {
		for _, c := range one.cards() {
			if c == card {
				return true
			}
		}
	}
	return false
}
