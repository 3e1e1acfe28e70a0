package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// memory is an archive for tests. It keeps saved objects in maps.
type memory struct {
	mu       sync.Mutex
	jobs     map[string]*v1.Framework
	attempts map[string]*v1.Framework
	tasks    map[string]v1.TaskStatus
	events   map[string]map[string]api.Event
	logs     map[api.LogKey]string
	open     map[string]*v1.Framework // by UID; nil if the end is known
	gone     map[string]bool          // by UID
	deleted  map[string]bool          // by UID: those of listed that someone deleted
	listed   map[string]bool          // by UID: jobs that the archive lists, since their Frameworks are gone
	held     map[string]*v1.Framework // by UID, as its GPUs were written last
	down     bool
}

var _ archive.Store = &memory{}

func newMemory() *memory {
	return &memory{jobs: map[string]*v1.Framework{}, attempts: map[string]*v1.Framework{}, tasks: map[string]v1.TaskStatus{},
		events: map[string]map[string]api.Event{}, logs: map[api.LogKey]string{}, open: map[string]*v1.Framework{}, gone: map[string]bool{}, deleted: map[string]bool{}, listed: map[string]bool{}, held: map[string]*v1.Framework{}}
}

func (m *memory) save(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errors.New("the archive is down")
	}
	f()
	return nil
}

func (m *memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *memory) job(name string) *v1.Framework {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.jobs[name]
}

func (m *memory) attempt(name string, id int) *v1.Framework {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attempts[fmt.Sprint(name, "/", id)]
}

// SaveJob implements Store.
func (m *memory) SaveJob(_ context.Context, f *v1.Framework) error {
	return m.save(func() {
		m.jobs[f.Name] = f.DeepCopy()
		m.open[string(f.UID)] = nil
	})
}

// Unended implements Store.
func (m *memory) Unended(context.Context) ([]api.Job, error) {
	var out []api.Job
	err := m.save(func() {
		for _, f := range m.open {
			if f != nil {
				out = append(out, api.Summary(f))
			}
		}
	})
	return out, err
}

// EndRemoved implements Store.
func (m *memory) EndRemoved(_ context.Context, uids []string) error {
	return m.save(func() {
		for _, uid := range uids {
			if m.open[uid] != nil {
				m.open[uid], m.gone[uid] = nil, true
			}
			m.listed[uid] = true
		}
	})
}

// isGone reports whether a job was ended because its Framework was gone.
func (m *memory) isGone(f *v1.Framework) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[string(f.UID)]
}

// begun records that a job has a row before its end.
func (m *memory) begun(f *v1.Framework) {
	if _, known := m.open[string(f.UID)]; !known {
		m.open[string(f.UID)] = f.DeepCopy()
	}
}

// SaveAttempt implements Store.
func (m *memory) SaveAttempt(_ context.Context, f *v1.Framework) error {
	return m.save(func() {
		m.attempts[fmt.Sprint(f.Name, "/", f.Status.AttemptStatus.ID)] = f.DeepCopy()
		m.begun(f)
	})
}

// SaveTaskAttempts implements Store.
func (m *memory) SaveTaskAttempts(_ context.Context, f *v1.Framework, tasks []archive.TaskAttempt) error {
	return m.save(func() {
		m.begun(f)
		for _, t := range tasks {
			m.tasks[fmt.Sprintf("%s/%d/%s-%d/%d", f.Name, f.Status.AttemptStatus.ID, t.Role, t.Status.Index, t.Status.AttemptStatus.ID)] = t.Status
		}
	})
}

// SaveEvents implements Store.
func (m *memory) SaveEvents(_ context.Context, framework string, events []api.Event) error {
	return m.save(func() {
		if m.events[framework] == nil {
			m.events[framework] = map[string]api.Event{}
		}
		for _, e := range events {
			m.events[framework][e.UID] = e
		}
	})
}

// SaveLog implements Store.
func (m *memory) SaveLog(_ context.Context, key api.LogKey, data []byte, _ bool) error {
	return m.save(func() { m.logs[key] = string(data) })
}

// The controller doesn't call most of the following methods. They return errUnused.

// Jobs implements Store.
func (*memory) Jobs(context.Context, api.JobQuery) (*api.JobPage, error) { return nil, errUnused }

// Job implements Store for a UID.
func (m *memory) Job(_ context.Context, uid string) (d *api.JobDetail, err error) {
	down := m.save(func() {
		err = fmt.Errorf("job %s: %w", uid, archive.ErrNotFound)
		for _, f := range m.jobs {
			if string(f.UID) == uid {
				d, err = &api.JobDetail{Job: api.Summary(f)}, nil
			}
		}
	})
	return d, errors.Join(down, err)
}

// Events implements Store.
func (*memory) Events(context.Context, string) ([]api.Event, error) { return nil, errUnused }

// Log implements Store.
func (*memory) Log(context.Context, api.LogKey) ([]byte, bool, error) { return nil, false, errUnused }

// Delete implements Store.
func (*memory) Delete(context.Context, string) (int, error) { return 0, errUnused }

// PutCode implements Store.
func (*memory) PutCode(context.Context, string, string, int64, io.Reader) error { return errUnused }

// Code implements Store.
func (*memory) Code(context.Context, string) (io.ReadSeekCloser, int64, error) {
	return nil, 0, errUnused
}

// Prune implements Store.
func (*memory) Prune(context.Context, time.Time, []string) (int, error) { return 0, errUnused }

// Copy implements Store.
func (*memory) Copy(context.Context) error { return errUnused }

// Copied implements Store.
func (*memory) Copied() time.Time { return time.Time{} }

// Import implements Store.
func (*memory) Import(context.Context, io.Reader, int64, bool) (*api.Import, error) {
	return nil, errors.New("not in these tests")
}

// Export implements Store.
func (*memory) Export(context.Context, bool) (io.ReadCloser, int64, error) {
	return nil, 0, archive.ErrElsewhere
}

// Failed implements Store.
func (*memory) Failed() <-chan error { return nil }

// Close implements Store.
func (*memory) Close() error { return nil }

var errUnused = errors.New("the controller is not expected to read the archive")

// SaveHolds implements archive.Store.
func (m *memory) SaveHolds(_ context.Context, f *v1.Framework) error {
	return m.save(func() { m.held[string(f.UID)] = f.DeepCopy() })
}

// Usage implements archive.Store.
func (m *memory) Usage(context.Context, api.UsageQuery) (*api.Usage, error) {
	return nil, archive.ErrNotFound
}

// Holds implements archive.Store.
func (m *memory) Holds(context.Context) ([]api.Hold, error) { return nil, nil }

// MarkDeleted implements archive.Store.
func (m *memory) MarkDeleted(_ context.Context, f *v1.Framework) error {
	return m.save(func() { m.listed[string(f.UID)], m.deleted[string(f.UID)] = true, api.Summary(f).Deleted })
}

// Unreleased implements archive.Store.
func (m *memory) Unreleased(_ context.Context, after string, limit int) ([]api.Job, error) {
	var out []api.Job
	err := m.save(func() {
		for _, f := range m.jobs {
			if uid := string(f.UID); uid > after && !m.listed[uid] && f.Status != nil && f.Status.CompletionTime != nil {
				out = append(out, api.Job{UID: uid, Framework: f.Name})
			}
		}
	})
	slices.SortFunc(out, func(a, b api.Job) int { return strings.Compare(a.UID, b.UID) })
	return out[:min(limit, len(out))], err
}

// lists reports whether the archive lists a job because the job's Framework is gone.
func (m *memory) lists(f *v1.Framework) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed[string(f.UID)]
}

// callsDeleted reports whether the archive lists a job as deleted by a user.
func (m *memory) callsDeleted(f *v1.Framework) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deleted[string(f.UID)]
}

// Ordered implements archive.Store.
func (*memory) Ordered(context.Context, api.OrderedQuery) (*api.OrderedPage, error) {
	return nil, errUnused
}

// Tag implements archive.Store.
func (*memory) Tag(context.Context, string, []string, []string) ([]string, error) {
	return nil, errUnused
}

// OwnsCode implements archive.Store.
func (*memory) OwnsCode(context.Context, string, string) (bool, error) { return false, errUnused }

// SaveAudit implements archive.Store.
func (*memory) SaveAudit(context.Context, []audit.Record) error { return errUnused }

// Audit implements archive.Store.
func (*memory) Audit(context.Context, audit.Query) (*audit.Page, error) { return nil, errUnused }

// PruneAudit implements archive.Store.
func (*memory) PruneAudit(context.Context, time.Time, int64) error { return errUnused }
