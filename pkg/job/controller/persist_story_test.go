package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// In a story, two replicas both consider themselves the leader. Each replica may be killed before or after any write, or may lose only the
// response. After that it reads the state again. At the same time the job grows, is retried, and its attempts are decided. In this test, the
// attempts of tasks only increase, so an attempt that is older than a written attempt means that a write was lost.
const storySteps = 60

var errKilled = errors.New("killed")

func TestTwoWritersThatAreKilledAnywhereLoseNothing(t *testing.T) {
	stories, err := strconv.ParseUint(os.Getenv("PAICTL_TEST_WRITERS"), 10, 32)
	if err != nil {
		stories = 4
	}
	for seed := range stories {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := &story{writers: newWriters(t), random: rand.New(rand.NewPCG(seed, 1)), attempt: -1}
			var both sync.WaitGroup
			for range 2 {
				both.Go(s.write)
			}
			both.Wait()
			assert.Positive(t, s.written)
		})
	}
}

type story struct {
	*writers
	mu     sync.Mutex // of random
	random *rand.Rand
	one    sync.Mutex // one write at a time, as in the API
	writes int        // how many there were

	promise sync.Mutex
	version int // the version of the Framework, as it was acted upon last
	attempt int32
	tasks   map[int32]int32 // their attempts
	written int
}

func (s *story) n(most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(most)
}

// life holds the writes that a replica knows between two reads of the state.
type life struct {
	writes int // of all replicas, when it began to read
	known  int // its own since then whose answer it got
}

// maybe carries out a write. The replica may be killed before or after the write.
func (s *story) maybe(l *life, write func() error) error {
	time.Sleep(time.Duration(s.n(300)) * time.Microsecond)
	fate := s.n(12)
	if fate == 0 {
		return errKilled
	}
	s.one.Lock()
	err := write()
	// A write that was cancelled because another write of the same step failed may still have been carried out.
	if err == nil || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		s.writes++
	}
	if err == nil && fate != 1 {
		l.known++
	}
	s.one.Unlock()
	if fate == 1 {
		return errKilled
	}
	return err
}

// unreliable returns the API as one replica sees it, with random failures.
func (s *story) unreliable(l *life) client.Client {
	return interceptor.NewClient(s.api.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return s.maybe(l, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return s.maybe(l, func() error { return c.Update(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return s.maybe(l, func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.maybe(l, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// write simulates one replica.
func (s *story) write() {
	var r *reconciler
	var e *entry
	l := &life{}
	for range storySteps {
		if e == nil {
			r, e = s.begin(l)
		}
		acts := s.step(e)
		switch err := r.persist(s.t.Context(), s.f, e); {
		case err == nil:
			s.wrote(e, acts)
		case apierrors.IsConflict(err):
			e = nil
			assert.True(s.t, s.othersWrote(l), "a conflict with itself: %v", err)
		case s.n(2) == 0: // it was killed; otherwise it retries
			e = nil
		}
		if s.t.Failed() {
			return
		}
	}
}

// othersWrote reports whether there were writes since a replica's read that the replica doesn't know. These are writes of the other replica, or
// own writes whose responses were lost.
func (s *story) othersWrote(l *life) bool {
	s.one.Lock()
	defer s.one.Unlock()
	return s.writes > l.writes+l.known
}

// begin makes a replica that reads the state. As in rebuild, missing tasks have not begun.
func (s *story) begin(l *life) (*reconciler, *entry) {
	s.one.Lock()
	*l = life{writes: s.writes}
	s.one.Unlock()
	s.promise.Lock()
	attempt, tasks := s.attempt, s.tasks
	s.promise.Unlock()
	r, e := s.replica()
	r.api = s.unreliable(l)
	if e.status == nil {
		e.status, e.dirty = &v1.FrameworkStatus{State: v1.AttemptCreationPending}, true
		return r, e
	}
	s.keeps(e.status, attempt, tasks)
	for _, role := range e.status.AttemptStatus.TaskRoleStatuses {
		total := role.Counts.Total
		if n := len(role.TaskStatuses); n > 0 {
			total = max(total, role.TaskStatuses[n-1].Index+1)
		}
		have := role.TaskStatuses
		role.TaskStatuses = nil
		for i := range total {
			if len(have) > 0 && have[0].Index == i {
				role.TaskStatuses, have = append(role.TaskStatuses, have[0]), have[1:]
				continue
			}
			s.add(e, role, i)
		}
	}
	return r, e
}

func (*story) add(e *entry, role *v1.TaskRoleStatus, i int32) {
	role.TaskStatuses = append(role.TaskStatuses, &v1.TaskStatus{Index: i, State: v1.AttemptCreationPending})
	e.dirtyTasks, e.dirty = append(e.dirtyTasks, status.Task{Role: role.Name, Index: i}), true
}

// step makes a random change. It reports whether the controller acts after the next write. After a decision, it acts only when the tasks are
// written, too.
func (s *story) step(e *entry) (acts bool) {
	a := &e.status.AttemptStatus
	what := s.n(12)
	if what == 0 && e.stored {
		*a = v1.FrameworkAttemptStatus{ID: a.ID + 1}
		e.newAttempt, e.decided, e.dirtyTasks = true, false, nil
	}
	if len(a.TaskRoleStatuses) == 0 {
		a.TaskRoleStatuses = []*v1.TaskRoleStatus{{Name: "r", TaskStatuses: []*v1.TaskStatus{}}}
	}
	role := a.TaskRoleStatuses[0]
	if what <= 3 {
		want := []int{60, 90, 99, 100, 101, 120, 201, 330}[s.n(8)]
		for i := len(role.TaskStatuses); i < want; i++ {
			s.add(e, role, int32(i))
		}
		role.Counts.Total = int32(len(role.TaskStatuses))
	}
	for range min(len(role.TaskStatuses), 3) {
		task := role.TaskStatuses[s.n(len(role.TaskStatuses))]
		task.AttemptStatus.ID++
		e.dirtyTasks = append(e.dirtyTasks, status.Task{Role: "r", Index: task.Index})
	}
	e.dirty, e.decided = true, e.decided || what == 4
	return e.newAttempt || !e.stored || !e.decided
}

// wrote records the written state. From now on, a replica may act on this state.
func (s *story) wrote(e *entry, acts bool) {
	s.promise.Lock()
	defer s.promise.Unlock()
	version, err := strconv.Atoi(e.rv)
	if !assert.NoError(s.t, err) || version <= s.version {
		return
	}
	s.keeps(e.status, s.attempt, s.tasks)
	s.written++
	if !acts {
		return
	}
	s.version, s.attempt, s.tasks = version, e.status.AttemptStatus.ID, map[int32]int32{}
	for _, task := range e.status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		s.tasks[task.Index] = task.AttemptStatus.ID
	}
}

// keeps checks that a status isn't older than the state on which a replica has acted.
func (s *story) keeps(st *v1.FrameworkStatus, attempt int32, tasks map[int32]int32) {
	a := &st.AttemptStatus
	if !assert.GreaterOrEqual(s.t, a.ID, attempt, "attempt") || a.ID > attempt {
		return
	}
	have := map[int32]int32{}
	for _, role := range a.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			assert.NotContains(s.t, have, task.Index, "a task occurs twice")
			have[task.Index] = task.AttemptStatus.ID
		}
	}
	for i, id := range tasks {
		got, ok := have[i]
		assert.True(s.t, ok && got >= id, "task %d: attempt %d, %v, and %d was acted upon", i, got, ok, id)
	}
}
