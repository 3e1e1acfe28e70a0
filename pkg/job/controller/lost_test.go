package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/test/tier"
)

func (w *cluster) loseChunk(name string, k int32) {
	w.t.Helper()
	require.NoError(w.t, w.c.Delete(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: status.Name(name, k), Namespace: w.namespace}}))
}

// The archive was damaged while the controller didn't run. Jobs whose TTL has expired must not be removed before they are written into the new
// archive.
func TestJobsAreKeptUntilTheArchiveHasThemAgain(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	w := begin(t)
	w.submit("ended", workers(1))
	w.exits("ended-worker-0", 0)
	w.until("ended", "is archived", func(f *v1.Framework) bool { return f.Status.ArchivedTime != nil })
	w.stop()
	w.store = newMemory() // begins empty
	w.store.setDown(true) // a disk that is slow, or full for a moment
	w.o.Store, w.o.Replaced, w.o.TTL = w.store, &archive.Replaced{Aside: "x"}, time.Millisecond
	w.start()
	assert.Never(t, func() bool { return !w.get(&v1.Framework{}, "ended") }, 3*time.Second, 50*time.Millisecond, "its history is in no archive yet")
	w.store.setDown(false)
	w.eventually("it is in the history again", func() bool { return w.store.job("ended") != nil })
	w.eventually("it is removed after its time", func() bool { return !w.get(&v1.Framework{}, "ended") })
}

// A job is deleted or scaled down after the states of its tasks were lost.
func TestLostStatesOfAJobThatLeavesOrShrinks(t *testing.T) {
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
