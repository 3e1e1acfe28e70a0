// Package meter measures the resource use of a machine's containers, from the counters of its control groups.
// In: the machine's folder of control groups, and the UIDs of pods. Out: CPU and memory of their containers.
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
	// shortest is the minimum time over which CPU use is measured. Over a shorter time, the resolution of the kernel's counters would dominate the
	// result.
	shortest = time.Second
	// longest is the maximum time over which CPU use is measured. A mean over a longer time isn't the current use.
	longest = 30 * time.Second
)

// Meter measures resource use. It is safe for concurrent use. If its last reading is less than a second old, it doesn't read the machine again.
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

// reading maps the IDs of containers to their counters.
type reading map[string]counters

// counters holds the counters of one container at one time.
type counters struct {
	pod    string
	at     time.Time
	cpu    time.Duration // since the container started
	memory int64
}

// New returns a Meter for a folder of control groups such as /sys/fs/cgroup. It doesn't read the folder yet.
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

// Use returns the resource use of the running containers in the pods with these UIDs. It takes a second, unless it was called shortly before.
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

// fresh reports whether the last reading is recent and includes all of these pods.
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

// refresh reads the counters. If a container is new or the last reading is too old, it reads them again after a pause and measures between the two
// readings. If ctx ends during the pause, refresh fails.
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

// age returns the age of the last reading of these containers. It is negative if the last reading doesn't contain one of the containers.
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

// since returns the resource use of a container since an earlier reading. Without an earlier reading, CPU is nil.
func (c counters) since(before counters, id string) logapi.Use {
	u := logapi.Use{Pod: c.pod, Container: id, Memory: c.memory}
	if passed := c.at.Sub(before.at); !before.at.IsZero() && passed > 0 && c.cpu >= before.cpu {
		cores := float64(c.cpu-before.cpu) / float64(passed)
		u.CPU = &cores
	}
	return u
}
