package controller

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// entry is the state of one Framework that this process keeps in addition to its caches. It can be lost at any time, because it can be restored
// from the Framework's status and pods.
type entry struct {
	uid    types.UID
	owner  prometheus.Labels   // of its metric
	status *v1.FrameworkStatus // with all tasks; nil until the first step
	rv     string              // the resource version of the Framework, as the status was last read or written
	stored bool                // the API has a status
	layout *status.Layout
	view   machine.View
	maps   mapView
	again  bool // this process has worked on the Framework before, and has lost its state

	// The changes of the status that aren't written yet, and the time of the first of these changes.
	dirty        bool
	dirtyTasks   []status.Task
	dirtyChunks  []int32
	newAttempt   bool
	decided      bool
	decisive     bool // the changes include some that can't be observed again
	dirtySince   time.Time
	window       time.Duration // for which changes are gathered; 0: not decided yet
	told         v1.State      // as it was last written
	lastWrite    time.Time
	recentWrites int            // writes in quick succession
	notes        []machine.Note // for the user, once the status is written

	accounted   holds // as they were last written to the archive
	accountedAt time.Time

	savedAttempts map[int32]bool
	savedTasks    map[savedTask]bool
	kept          bool // it has the finalizer
	released      bool // it had the finalizer, and may be deleted
	setUp         bool // Service, service account and role exist
	blocked       string
	blockedTimes  int
	state         v1.State // as counted in the metrics

	tasks       atomic.Int32
	lastAddress atomic.Int64

	mu   sync.Mutex
	last map[types.UID]*corev1.Pod // the last state of pods that have ended or are gone
}

// seen records the last known state of a pod.
func (e *entry) seen(p *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil {
		e.last = map[types.UID]*corev1.Pod{}
	}
	e.last[p.UID] = p
}

// gone removes the pods that no longer exist from last, and returns them. there contains the existing pods by name. A pod that was never recorded
// in last may disappear unnoticed.
func (e *entry) gone(there map[string]*corev1.Pod) map[types.UID]*corev1.Pod {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out map[types.UID]*corev1.Pod
	for uid, p := range e.last {
		if have := there[p.Name]; have != nil && have.UID == uid {
			continue
		}
		if out == nil {
			out = map[types.UID]*corev1.Pod{}
		}
		out[uid] = p
		delete(e.last, uid)
	}
	return out
}

type savedTask struct {
	machine.Task
	attempt int32
}

// mark records the changes that a step made, so that they are written later.
func (e *entry) mark(r *machine.Result, now time.Time) {
	e.notes = append(e.notes, r.Notes...)
	if !r.Changed {
		return
	}
	if !e.dirty {
		e.dirtySince = now
	}
	e.dirty = true
	if r.NewAttempt {
		e.newAttempt, e.decided, e.dirtyTasks = true, false, nil
		e.savedTasks, e.setUp = nil, false
		e.view.Forget()
	}
	e.decided = e.decided || r.Decided
	e.decisive = e.decisive || r.Decisive
	for _, t := range r.Tasks {
		e.dirtyTasks = append(e.dirtyTasks, status.Task(t))
	}
	n := int32(0)
	for _, role := range e.status.AttemptStatus.TaskRoleStatuses {
		n += int32(len(role.TaskStatuses))
	}
	e.tasks.Store(n)
}

func (e *entry) clean() {
	e.decisive, e.window = false, 0
	e.dirty, e.dirtyTasks, e.dirtyChunks, e.newAttempt, e.decided = false, nil, nil, false, false
}

// saved reports which attempts are already in the archive, for the package machine.
func (e *entry) saved() machine.Saved {
	return machine.Saved{
		Attempt: func(a int32) bool { return e.savedAttempts[a] },
		Task: func(role string, index, attempt int32) bool {
			return e.savedTasks[savedTask{machine.Task{Role: role, Index: index}, attempt}]
		},
	}
}

// entries contains the entries of all Frameworks. Only the worker that processes a Framework changes the Framework's entry.
type entries struct {
	mu    sync.RWMutex
	m     map[string]*entry
	begun map[string]bool // those that ever had one
}

func (e *entries) get(name string) *entry {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.m[name]
}

func (e *entries) put(name string, one *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.m[name] = one
	e.begun[name] = true
}

// known reports whether the Framework has or had an entry in this process.
func (e *entries) known(name string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.begun[name]
}

// forget removes and returns the entry of a Framework that no longer exists.
func (e *entries) forget(name string) *entry {
	one := e.drop(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.begun, name)
	return one
}

func (e *entries) drop(name string) *entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.m[name]
	delete(e.m, name)
	return one
}

// mapView holds the facts about the attempt's ConfigMap that this process knows in addition to its cache.
type mapView struct {
	made        types.UID
	madeAttempt int32
	seen        map[types.UID]bool
	gone        map[types.UID]bool
}

func (m *mapView) note(set *map[types.UID]bool, uid types.UID) {
	if *set == nil {
		*set = map[types.UID]bool{}
	}
	(*set)[uid] = true
}
