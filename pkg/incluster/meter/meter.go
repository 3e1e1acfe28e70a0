// Package meter measures what the containers of a machine use, as its control groups count it.
// In: the machine's folder of control groups, and which pods are asked about. Out: CPU and memory of their containers.
package meter

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/incluster/logstore/logapi"
)

const (
	// shortest is the time over which CPU is measured at least: over less, the kernel's steps show.
	shortest = time.Second
	// longest is how old an earlier reading may be: over more, the mean tells little about now.
	longest = 30 * time.Second
)

// Meter measures. Many may ask it: it reads the machine once a second at most.
type Meter struct {
	folder string
	now    func() time.Time
	pause  func(context.Context, time.Duration) error

	turn chan struct{} // holds a place for the one who reads
	last reading
	told map[string]logapi.Use // by container: what was answered when last was read
}

// reading is what the counters of containers said, by container.
type reading map[string]counters

// counters are those of one container.
type counters struct {
	pod    string
	at     time.Time
	cpu    time.Duration // since the container started
	memory int64
}

// New makes a meter of a folder such as /sys/fs/cgroup. It reads nothing yet.
func New(folder string) *Meter {
	return &Meter{folder: folder, now: time.Now, pause: pause, turn: make(chan struct{}, 1)}
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

// Use measures the containers of pods of some UIDs, which run now. It takes a second, unless it was asked shortly before.
func (m *Meter) Use(ctx context.Context, pods map[string]bool) ([]logapi.Use, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r, err := m.read(pods)
	if err != nil {
		return nil, err
	}
	if age := m.age(r); age < 0 || age >= shortest {
		if r, err = m.measure(ctx, r, age, pods); err != nil {
			return nil, err
		}
	}
	out := []logapi.Use{}
	for id := range r {
		out = append(out, m.told[id])
	}
	slices.SortFunc(out, func(a, b logapi.Use) int { return strings.Compare(a.Container, b.Container) })
	return out, nil
}

// measure compares a reading with the last one, or with one that it waits for. Who leaves meanwhile changes nothing.
func (m *Meter) measure(ctx context.Context, r reading, age time.Duration, pods map[string]bool) (reading, error) {
	before := m.last
	if age < 0 || age > longest {
		before = r
		if err := m.pause(ctx, shortest); err != nil {
			return nil, err
		}
		var err error
		if r, err = m.read(pods); err != nil {
			return nil, err
		}
	}
	m.last, m.told = r, map[string]logapi.Use{}
	for id, c := range r {
		m.told[id] = c.since(before[id], id)
	}
	return r, nil
}

// age is how old the last reading of these containers is; negative where one of them wasn't there.
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

// since is what a container has used since an earlier reading. Without one its CPU isn't known.
func (c counters) since(before counters, id string) logapi.Use {
	u := logapi.Use{Pod: c.pod, Container: id, Memory: c.memory}
	if passed := c.at.Sub(before.at); !before.at.IsZero() && passed > 0 && c.cpu >= before.cpu {
		cores := float64(c.cpu-before.cpu) / float64(passed)
		u.CPU = &cores
	}
	return u
}
