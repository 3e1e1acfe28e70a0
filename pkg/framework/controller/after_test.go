package controller_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/framework/machine"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// submitAfter submits a job that waits for others.
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
	assert.Contains(t, f.Status.Message, "alice/bad has succeeded, and that job failed")
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
	assert.Contains(t, f.Status.Message, "was deleted, and nothing tells how it ended")
}

func TestAHostileListOfJobsEndsOnlyItsOwn(t *testing.T) {
	w := begin(t)
	w.annotations = map[string]string{v1.AnnotationAfter: `{"framework": [1]}`}
	w.submit("hostile", workers(1))
	w.annotations = nil
	w.submit("other", workers(1))
	f := w.reaches("hostile", v1.Completed)
	assert.Contains(t, f.Status.Message, "is no list of jobs")
	w.exits("other-worker-0", 0)
}
