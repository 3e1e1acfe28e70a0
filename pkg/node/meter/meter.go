// Package meter measures the resource use of a machine's containers from the counters of their control groups. In: the machine's folder of control
// groups, and the UIDs of pods. Out: the CPU and memory use of the pods' containers.
package meter

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

const (
	// shortest is the minimum time between the two readings of a CPU measurement. Over a shorter time, the resolution of the kernel's counters would
	// dominate the result.
	shortest = time.Second
	// longest is the maximum time between the two readings of a CPU measurement. The mean over a longer time isn't the current use.
	longest = 30 * time.Second
)

// Meter measures resource use. Meter can be used concurrently. Meter reads the counters at most once per second.
type Meter struct {
	folder string
	now    func() time.Time
	pause  func(context.Context, time.Duration) error
	read   func(pods map[string]bool) (reading, error)

	turn  chan struct{} // held by the caller that reads
	last  reading
	at    time.Time             // the time at which last was read
	asked map[string]bool       // pods that were searched for in that reading or later
	told  map[string]logapi.Use // by container: the result of the last reading
}

type reading map[string]counters

type counters struct {
	pod    string
	at     time.Time
	cpu    time.Duration // since the container started
	memory int64
}

// New returns a Meter for a folder of control groups, such as /sys/fs/cgroup. New doesn't read the folder.
func New(folder string) *Meter {
	m := &Meter{folder: folder, now: time.Now, pause: pause, turn: make(chan struct{}, 1)}
	m.read = m.readGroups
	return m
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Use returns the resource use of the running containers in the pods with the given UIDs. A call takes a second, unless a recent reading is
// available.
func (m *Meter) Use(ctx context.Context, pods map[string]bool) ([]logapi.Use, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !m.fresh(pods) {
		if err := m.refresh(ctx, pods); err != nil {
			return nil, err
		}
	}
	out := []logapi.Use{}
	for _, u := range m.told {
		if pods[u.Pod] {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b logapi.Use) int { return strings.Compare(a.Container, b.Container) })
	return out, nil
}

// fresh reports whether the last reading is recent and includes all of the pods.
func (m *Meter) fresh(pods map[string]bool) bool {
	if m.at.IsZero() || m.now().Sub(m.at) >= shortest {
		return false
	}
	for uid := range pods {
		if !m.asked[uid] {
			return false
		}
	}
	return true
}

// refresh reads the counters. If a container is new or the last reading is too old, refresh reads the counters again after a pause and compares the
// two readings. refresh fails if ctx ends during the pause.
func (m *Meter) refresh(ctx context.Context, pods map[string]bool) error {
	r, err := m.read(pods)
	if err != nil {
		return err
	}
	age := m.age(r)
	if len(r) > 0 && age >= 0 && age < shortest { // pods without containers were requested for the first time
		maps.Copy(m.asked, pods)
		return nil
	}
	before := m.last
	if age < 0 || age > longest {
		before = r
		if err := m.pause(ctx, shortest); err != nil {
			return err
		}
		if r, err = m.read(pods); err != nil {
			return err
		}
	}
	m.last, m.at, m.asked, m.told = r, m.now(), maps.Clone(pods), map[string]logapi.Use{}
	for id, c := range r {
		m.told[id] = c.since(before[id], id)
	}
	return nil
}

// age returns the age of the last reading of the containers. age is negative if a container is missing in the last reading.
func (m *Meter) age(r reading) time.Duration {
	oldest := time.Duration(0)
	for id, c := range r {
		before, ok := m.last[id]
		if !ok {
			return -1
		}
		oldest = max(oldest, c.at.Sub(before.at))
	}
	return oldest
}

// since returns the resource use of a container since an earlier reading. CPU is nil without an earlier reading.
func (c counters) since(before counters, id string) logapi.Use {
	u := logapi.Use{Pod: c.pod, Container: id, Memory: c.memory}
	if passed := c.at.Sub(before.at); !before.at.IsZero() && passed > 0 && c.cpu >= before.cpu {
		cores := float64(c.cpu-before.cpu) / float64(passed)
		u.CPU = &cores
	}
	return u
}
