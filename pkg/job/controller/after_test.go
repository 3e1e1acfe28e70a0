package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// submitAfter submits a job that waits for other jobs.
func (w *cluster) submitAfter(name string, after ...v1.After) {
	w.t.Helper()
	text, err := json.Marshal(after)
	require.NoError(w.t, err)
	w.annotations = map[string]string{v1.AnnotationAfter: string(text)}
	w.submit(name, workers(1))
	w.annotations = nil
}

func after(f *v1.Framework) v1.After {
	return v1.After{Framework: f.Name, UID: f.UID, Job: "alice/" + f.Name}
}

func (w *cluster) held(name string) {
	w.t.Helper()
	f := w.until(name, "waits for others", func(f *v1.Framework) bool { return f.Status.Message != "" })
	assert.Equal(w.t, v1.AttemptCreationPending, f.Status.State)
	assert.False(w.t, w.get(&corev1.Pod{}, name+"-worker-0"))
}

func TestAJobStartsAfterAnotherHasSucceeded(t *testing.T) {
	w := begin(t)
	first := w.submit("first", workers(1))
	w.submitAfter("second", after(first))
	w.held("second")
	w.exits("first-worker-0", 0)
	w.exits("second-worker-0", 0) // waits until it runs
	w.reaches("second", v1.Completed)
	w.submitAfter("third", after(first))
	w.exits("third-worker-0", 0) // the other has ended long ago
}

func TestAJobIsNotStartedAfterOneThatFailed(t *testing.T) {
	w := begin(t)
	first := w.submit("bad", workers(1))
	ended := after(first)
	ended.Ended = true
	w.submitAfter("second", after(first))
	w.submitAfter("anyway", ended)
	w.held("second")
	w.held("anyway")
	w.exits("bad-worker-0", 210)
	f := w.reaches("second", v1.Completed)
	assert.Equal(t, int32(machine.CodeDependency), f.Status.AttemptStatus.CompletionStatus.Code)
	assert.Contains(t, f.Status.Message, "alice/bad had succeeded, but that job failed")
	w.exits("anyway-worker-0", 0)
}

func TestAnEndThatNoControllerSawStartsTheNextJob(t *testing.T) {
	w := begin(t)
	first := w.submit("late", workers(1))
	w.submitAfter("second", after(first))
	w.held("second")
	w.eventually("the first has its pod", func() bool { return w.get(&corev1.Pod{}, "late-worker-0") })
	w.stop()
	w.exits("late-worker-0", 0)
	w.start()
	w.exits("second-worker-0", 0)
}

func TestANameThatWasUsedAgainIsAnotherJob(t *testing.T) {
	w := begin(t)
	first := w.submit("name", workers(1))
	w.exits("name-worker-0", 0)
	w.reaches("name", v1.Completed)
	w.until("name", "lies in the archive", func(f *v1.Framework) bool { return f.Status.ArchivedTime != nil })
	require.NoError(t, w.c.Delete(t.Context(), first))
	w.eventually("it is gone", func() bool { return !w.get(&v1.Framework{}, "name") })
	second := w.submit("name", workers(1))
	w.submitAfter("offirst", after(first))
	w.exits("offirst-worker-0", 0) // it runs at once: the archive has the first one's success
	w.submitAfter("ofsecond", after(second))
	w.held("ofsecond")
	lost := after(first)
	lost.UID = types.UID("never-was")
	w.submitAfter("ofnone", lost)
	f := w.reaches("ofnone", v1.Completed)
	assert.Contains(t, f.Status.Message, "was deleted, and its result is unknown")
}

func TestAHostileListOfJobsEndsOnlyItsOwn(t *testing.T) {
	w := begin(t)
	w.annotations = map[string]string{v1.AnnotationAfter: `{"framework": [1]}`}
	w.submit("hostile", workers(1))
	w.annotations = nil
	w.submit("other", workers(1))
	f := w.reaches("hostile", v1.Completed)
	assert.Contains(t, f.Status.Message, "is not a list of jobs")
	w.exits("other-worker-0", 0)
}

// patch changes a job in the same way as "paictl job retry" and "paictl job stop".
func (w *cluster) patch(name, body string) {
	w.t.Helper()
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	require.NoError(w.t, w.c.Patch(w.t.Context(), f, client.RawPatch(types.MergePatchType, []byte(body))))
}

func TestARetryOfAJobThatWaitsWaits(t *testing.T) {
	w := begin(t)
	first := w.submit("first", workers(1))
	w.submitAfter("second", after(first))
	w.held("second")
	w.patch("second", `{"metadata": {"annotations": {"`+v1.AnnotationRestart+`": "now"}}}`)
	f := w.until("second", "has another attempt", func(f *v1.Framework) bool { return f.Status.AttemptStatus.ID == 1 && f.Status.Message != "" })
	assert.Equal(t, v1.AttemptCreationPending, f.Status.State)
	w.exits("first-worker-0", 0)
	w.exits("second-worker-0", 0)
}

func TestAJobWithAHostileListCanBeStoppedAndRemoved(t *testing.T) {
	w := begin(t)
	for i, other := range []string{"", "a/b", "..", "Not a name"} {
		name := fmt.Sprintf("hostile%d", i)
		w.submitAfter(name, v1.After{Framework: other, UID: "x", Job: "a/b"})
		w.reaches(name, v1.Completed)
		require.NoError(t, w.c.Delete(t.Context(), &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}))
		w.eventually("it is gone", func() bool { return !w.get(&v1.Framework{}, name) })
	}
}

// archiveOf is an archive that hangs or has no jobs if the test sets this.
type archiveOf struct {
	*memory
	hangs, empty atomic.Bool
}

// Job implements Store.
func (a *archiveOf) Job(ctx context.Context, uid string) (*api.JobDetail, error) {
	if a.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if a.empty.Load() {
		uid = "nothing has this"
	}
	return a.memory.Job(ctx, uid)
}

func TestAnEndThatWasSeenIsNotForgottenWithItsHistory(t *testing.T) {
	w := simulate(t)
	archive := &archiveOf{memory: w.store}
	w.o.Store = archive
	w.start()
	one, two := w.submit("one", workers(1)), w.submit("two", workers(1))
	w.submitAfter("third", after(one), after(two))
	w.held("third")
	w.exits("one-worker-0", 0)
	w.until("third", "waits only for the other", func(f *v1.Framework) bool { return f.Status.Message == "The job starts after alice/two." })
	w.until("one", "is archived", func(f *v1.Framework) bool { return f.Status.ArchivedTime != nil })
	archive.empty.Store(true)
	w.stop()
	require.NoError(t, w.c.Delete(t.Context(), one))
	w.start()
	w.eventually("it is gone", func() bool { return !w.get(&v1.Framework{}, "one") })
	w.exits("two-worker-0", 0)
	w.exits("third-worker-0", 0)
}

func TestAnArchiveThatHangsDelaysOnlyThoseWhoNeedIt(t *testing.T) {
	w := simulate(t)
	archive := &archiveOf{memory: w.store}
	archive.hangs.Store(true)
	w.o.Store, w.o.Workers = archive, 2
	w.start()
	gone := v1.After{Framework: "gone", UID: "gone", Job: "alice/gone"}
	for i := range 3 {
		w.submitAfter(fmt.Sprintf("waits%d", i), gone)
	}
	w.submit("plain", workers(1))
	w.exits("plain-worker-0", 0)
	archive.hangs.Store(false)
}

// Only annotations that were written by hand can make jobs wait for each other.
func TestJobsThatWaitForEachOtherEnd(t *testing.T) {
	w := begin(t)
	other := w.submit("other", workers(1))
	w.submitAfter("one", after(other))
	w.held("one")
	one := &v1.Framework{}
	require.True(t, w.get(one, "one"))
	w.submitAfter("two", after(one))
	w.held("two")
	two := &v1.Framework{}
	require.True(t, w.get(two, "two"))
	text, err := json.Marshal([]v1.After{after(two)})
	require.NoError(t, err)
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1.AnnotationAfter: string(text)}}})
	require.NoError(t, err)
	w.stop()
	w.patch("one", string(body))
	w.start()
	f := w.reaches("one", v1.Completed)
	assert.Contains(t, f.Status.Message+w.reaches("two", v1.Completed).Status.Message, "which waits for this job itself")
}
