package machine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// chaos plays one random story. Pods start, end, are deleted and are evicted. The cache lags behind, and writes are lost. The controller is
// killed between any two steps, and states of tasks are lost with it. The user rescales, restarts and stops the job.
func chaos(t *testing.T, seed uint64) {
	w := newWorld(t)
	w.random = rand.New(rand.NewPCG(seed, seed))
	r := w.random
	for i := range 1 + r.IntN(3) {
		one := role(string(rune('a'+i)), r.Int32N(4))
		one.FrameworkAttemptCompletionPolicy = v1.CompletionPolicy{MinFailedTaskCount: r.Int32N(4) - 1, MinSucceededTaskCount: r.Int32N(5) - 1}
		one.Task.RetryPolicy = v1.RetryPolicy{FancyRetryPolicy: r.IntN(2) == 0, MaxRetryCount: r.Int32N(3)}
		one.Task.PodGracefulDeletionTimeoutSec = nil
		w.f.Spec.TaskRoles = append(w.f.Spec.TaskRoles, one)
	}
	w.f.Spec.RetryPolicy = v1.RetryPolicy{FancyRetryPolicy: r.IntN(2) == 0, MaxRetryCount: r.Int32N(4)}
	if r.IntN(2) == 0 {
		w.f.Annotations[v1.AnnotationRuntime] = v1.RuntimeV2
	}
	w.lag, w.rescales, w.forgets = true, seed%2 == 0, seed%3 == 0
	w.crash = func() bool { return r.IntN(40) == 0 }
	w.lose = func() bool { return r.IntN(20) == 0 }
	for range 150 {
		w.event()
		w.reconcile()
		w.invariants()
	}
	// From here on, nothing fails, so the job must finish.
	w.crash, w.lose, w.lag = nil, nil, false
	if len(w.f.Spec.TaskRoles) == 0 || w.total() == 0 {
		w.f.Spec.ExecutionType = v1.ExecutionStop
	}
	for i := 0; w.persisted.State != v1.Completed; i++ {
		require.Less(t, i, 300, "the job doesn't end: %+v, %d pods", w.last, len(w.pods))
		w.pass(20 * time.Minute)
		w.reap()
		for _, name := range w.names() {
			if p := w.pods[name]; p.DeletionTimestamp == nil && !done(p) {
				if _, ran := w.ran[w.identity(p)]; !ran {
					w.starts(name)
				}
				w.exits(name, 0)
			}
		}
		w.run()
		w.invariants()
	}
	w.final()
}

func (w *world) total() int32 {
	n := int32(0)
	for _, r := range w.f.Spec.TaskRoles {
		n += r.TaskNumber
	}
	return n
}

func (w *world) names() []string { return slices.Sorted(mapKeys(w.pods)) }

// event makes one random change, by a user, a pod, time, or the cluster.
func (w *world) event() {
	r := w.random
	w.pass(time.Duration(r.IntN(30)) * time.Second)
	names := w.names()
	switch n := r.IntN(40); {
	case n == 0:
		w.f.Spec.ExecutionType = v1.ExecutionStop
	case n < 3 && w.rescales && len(w.f.Spec.TaskRoles) > 0:
		w.f.Spec.TaskRoles[r.IntN(len(w.f.Spec.TaskRoles))].TaskNumber = r.Int32N(5)
	case n == 3:
		w.f.Annotations[v1.AnnotationRestart] = fmt.Sprint(r.IntN(1000))
	case n == 4:
		w.restart()
	case n == 5 && w.cm.UID != "":
		w.cm.UID = w.uid() // deleted and replaced
		for _, p := range w.pods {
			w.took[p.UID] = true // Kubernetes removes the pods that it owned
		}
	case n == 6:
		w.pass(20 * time.Minute)
	case n < 9 && len(names) > 0: // someone deletes a pod
		name := names[r.IntN(len(names))]
		w.took[w.pods[name].UID] = true
		w.remove(name)
	case n < 12 && len(names) > 0:
		p := w.pods[names[r.IntN(len(names))]]
		w.took[p.UID] = true
		w.deletePod(p)
	case n < 18:
		w.reap()
	case n < 34 && len(names) > 0:
		w.kubelet(names[r.IntN(len(names))])
	}
	// The watch delivers some of the changes.
	for _, name := range slices.Sorted(mapKeys(w.cache)) {
		if _, ok := w.pods[name]; !ok && r.IntN(3) == 0 {
			delete(w.cache, name)
		}
	}
	for _, name := range names {
		if p := w.pods[name]; p != nil && r.IntN(3) > 0 {
			w.cache[name] = p
		}
	}
	w.cached = w.cached || r.IntN(2) == 0
}

func (w *world) kubelet(name string) {
	p := w.pods[name]
	if done(p) {
		return
	}
	if _, ran := w.ran[w.identity(p)]; !ran || w.ran[w.identity(p)] != p.UID {
		w.starts(name)
		return
	}
	codes := []int32{0, 0, 0, exitTransient, exitConflict, exitPermanent, exitUnknown, exitBadNode}
	w.exits(name, codes[w.random.IntN(len(codes))])
}

// invariants checks what must be true at any time.
func (w *world) invariants() {
	w.t.Helper()
	s := w.persisted
	if s == nil {
		return
	}
	assert.Equal(w.t, s.AttemptStatus.ID, s.RetryPolicyStatus.TotalRetriedCount)
	assert.LessOrEqual(w.t, s.RetryPolicyStatus.AccountableRetriedCount, s.RetryPolicyStatus.TotalRetriedCount)
	for a := range s.AttemptStatus.ID {
		assert.True(w.t, w.attempts[a], "attempt %d is forgotten before it is archived", a)
	}
	if s.State == v1.Completed && w.crash != nil {
		for _, p := range w.pods {
			assert.True(w.t, done(p), "%s runs after the job's end", p.Name)
		}
	}
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		for i, t := range r.TaskStatuses {
			assert.Equal(w.t, int32(i), t.Index)
			if t.State == v1.Completed {
				p := w.pods[t.AttemptStatus.PodName]
				assert.True(w.t, p == nil || done(p) || t.DeletionPending, "%s runs after its task's end", t.AttemptStatus.PodName)
			}
			if (t.State == v1.Completed || t.State == v1.AttemptCompleted) != (t.AttemptStatus.CompletionTime != nil) {
				w.t.Errorf("%s is %s with completion time %v", t.AttemptStatus.PodName, t.State, t.AttemptStatus.CompletionTime)
			}
		}
	}
}

// final checks what must be true at the end.
func (w *world) final() {
	s := w.persisted
	assert.NotNil(w.t, s.CompletionTime)
	assert.NotNil(w.t, s.AttemptStatus.CompletionStatus)
	for _, r := range s.AttemptStatus.TaskRoleStatuses {
		counted := r.Counts.Succeeded + r.Counts.Failed
		assert.Equal(w.t, r.Counts.Total, counted, "role %s", r.Name)
		for _, t := range r.TaskStatuses {
			assert.Equal(w.t, v1.Completed, t.State)
		}
	}
	for name, p := range w.pods {
		assert.True(w.t, done(p), "%s runs after the job's end", name)
	}
	before := s.DeepCopy()
	w.pass(time.Hour)
	w.restart()
	w.run()
	assert.Equal(w.t, before.CompletionTime, w.persisted.CompletionTime, "nothing happens to a job that has ended")
}

// TestNoStoryBreaksThePromises plays a number of random stories, which PAICTL_TEST_STORIES can set.
func TestNoStoryBreaksThePromises(t *testing.T) {
	stories := uint64(1000)
	if testing.Short() {
		stories = 200
	}
	if n, err := strconv.ParseUint(os.Getenv("PAICTL_TEST_STORIES"), 10, 64); err == nil {
		stories = n
	}
	for seed := range stories {
		if !t.Run(fmt.Sprintf("story %d", seed), func(t *testing.T) { chaos(t, seed) }) {
			return
		}
	}
}
