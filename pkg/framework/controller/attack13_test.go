package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/framework/archive"
	"github.com/openpai/paictl/pkg/framework/status"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

func (w *cluster) loseChunk(name string, k int32) {
	w.t.Helper()
	require.NoError(w.t, w.c.Delete(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: status.Name(name, k), Namespace: w.namespace}}))
}

// The archive was damaged while the controller was away: jobs whose time has run out are removed before they
// are written into the archive that took its place.
func TestAttack13JobsAreKeptUntilTheArchiveHasThemAgain(t *testing.T) {
	w := begin(t)
	w.submit("ended", workers(1))
	w.exits("ended-worker-0", 0)
	w.until("ended", "is archived", func(f *v1.Framework) bool { return f.Status.ArchivedTime != nil })
	w.stop()
	w.store = newMemory() // begins empty
	w.store.setDown(true) // a disk that is slow, or full for a moment
	w.o.Store, w.o.Replaced, w.o.TTL = w.store, &archive.Replaced{Aside: "x"}, time.Millisecond
	w.start()
	gone := false
	deadline := time.Now().Add(8 * time.Second)
	for time.Now().Before(deadline) && !gone {
		gone = !w.get(&v1.Framework{}, "ended")
		time.Sleep(50 * time.Millisecond)
	}
	assert.False(t, gone, "its history is in no archive yet")
	w.store.setDown(false)
	deadline = time.Now().Add(15 * time.Second)
	for time.Now().Before(deadline) && w.store.job("ended") == nil {
		time.Sleep(50 * time.Millisecond)
	}
	assert.NotNil(t, w.store.job("ended"), "it is in no history any more")
}

// A task that has succeeded, and whose pod is gone with its machine, runs again where its state is lost,
// although the header still counts one success.
func TestAttack13ASucceededTaskDoesNotRunAgain(t *testing.T) {
	const tasks = 101
	w := begin(t)
	w.submit("large", workers(tasks))
	w.until("large", "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == tasks })
	w.exits("large-worker-0", 0)
	w.until("large", "counts it", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Succeeded == 1 })
	w.stop()
	zero := int64(0)
	require.NoError(t, w.c.Delete(t.Context(), w.pod("large-worker-0"), &client.DeleteOptions{GracePeriodSeconds: &zero}))
	w.eventually("the pod is gone", func() bool { return !w.get(&corev1.Pod{}, "large-worker-0") })
	w.loseChunk("large", 0)
	w.start()
	w.eventually("the states are written again", func() bool { return w.get(&corev1.ConfigMap{}, status.Name("large", 0)) })
	again := false
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) && !again {
		again = w.get(&corev1.Pod{}, "large-worker-0")
		time.Sleep(50 * time.Millisecond)
	}
	assert.False(t, again, "the task has succeeded, and runs a second time")
}

// What should hold: a job that was deleted, or made smaller, while its states were lost.
func TestAttack13LostStatesOfAJobThatLeavesOrShrinks(t *testing.T) {
	const tasks = 120
	for _, name := range []string{"leaves", "shrinks"} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			w.submit(name, workers(tasks))
			w.until(name, "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == tasks })
			w.stop()
			before := w.uids()
			w.loseChunk(name, 0)
			w.loseChunk(name, 1)
			f := &v1.Framework{}
			require.True(t, w.get(f, name))
			if name == "leaves" {
				require.NoError(t, w.c.Delete(t.Context(), f))
				w.start()
				w.eventually("it leaves", func() bool { return !w.get(&v1.Framework{}, name) })
				assert.NotNil(t, w.store.job(name))
			} else {
				f.Spec.TaskRoles[0].TaskNumber = 5
				require.NoError(t, w.c.Update(t.Context(), f))
				w.start()
				w.until(name, "is small", func(f *v1.Framework) bool {
					r := f.Status.AttemptStatus.TaskRoleStatuses[0]
					return r.Counts.Total == 5 && r.Counts.Running == 5 && len(r.TaskStatuses) == 5
				})
			}
			for pod, uid := range w.uids() {
				assert.Equal(t, before[pod], uid, pod)
			}
		})
	}
}
