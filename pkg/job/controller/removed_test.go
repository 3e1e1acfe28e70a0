package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// inArchive submits a job and waits until its second attempt runs, because the archive then contains a row of the job.
func (w *cluster) inArchive(name string) *v1.Framework {
	w.t.Helper()
	w.submit(name, workers(1))
	w.reaches(name, v1.AttemptRunning)
	w.exits(name+"-worker-0", 200)
	// There may be more attempts: KWOK deletes pods by name, so it may delete the successor of a pod that is already gone.
	f := w.until(name, "runs again", func(f *v1.Framework) bool {
		return f.Status.AttemptStatus.ID >= 1 && f.Status.State == v1.AttemptRunning
	})
	require.NotNil(w.t, w.store.attempt(name, 0))
	return f
}

// tearOut removes a Framework without waiting for its finalizer, as a restore of its namespace does.
func (w *cluster) tearOut(name string) {
	w.t.Helper()
	f := &v1.Framework{}
	require.True(w.t, w.get(f, name))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(w.t, w.c.Patch(w.t.Context(), f, patch))
	require.NoError(w.t, client.IgnoreNotFound(w.c.Delete(w.t.Context(), f)))
	w.eventually(name+" is gone", func() bool { return !w.get(&v1.Framework{}, name) })
}

func TestAJobThatVanishedWhileNoControllerRanIsEndedInTheArchive(t *testing.T) {
	w := begin(t)
	lost, replaced, stays := w.inArchive("lost"), w.inArchive("replaced"), w.inArchive("stays")
	w.stop()
	w.tearOut("lost")
	w.tearOut("replaced")
	again := w.submit("replaced", workers(1)) // another has its name
	w.store.setDown(true)
	w.start()
	w.submit("new", workers(1))
	w.reaches("new", v1.AttemptRunning)
	assert.False(t, w.store.isGone(lost))
	w.store.setDown(false)
	w.eventually("the lost ones are ended when the archive answers", func() bool { return w.store.isGone(lost) && w.store.isGone(replaced) })
	assert.False(t, w.store.isGone(stays))
	assert.False(t, w.store.isGone(again))

	// Another replica takes over. Running jobs continue and finish normally.
	w.stop()
	w.start()
	w.exits("stays-worker-0", 0)
	w.reaches("stays", v1.Completed)
	assert.False(t, w.store.isGone(stays))
}

func TestAJobThatIsRemovedByForceIsEndedInTheArchiveAtOnce(t *testing.T) {
	w := simulate(t)
	w.o.LeaderElection, w.o.Identity = true, "a"
	w.start()
	f := w.inArchive("forced")
	w.o.Identity = "b"
	w.start() // warm, and not the leader
	w.tearOut("forced")
	w.eventually("its end is in the archive", func() bool { return w.store.isGone(f) })
}

// No list omits the job, because the archive lists it before it disappears from the API.
func TestTheArchiveListsAJobBeforeItsFrameworkGoes(t *testing.T) {
	w := begin(t)
	w.submit("done", workers(1))
	w.reaches("done", v1.AttemptRunning)
	w.exits("done-worker-0", 0)
	f := w.reaches("done", v1.Completed)
	w.eventually("its end is in the archive", func() bool { return w.store.job("done") != nil })
	assert.False(t, w.store.lists(f), "the API has it")
	w.store.setDown(true)
	require.NoError(t, w.c.Delete(t.Context(), f))
	w.eventually("its deletion is seen", func() bool {
		got := &v1.Framework{}
		return w.get(got, "done") && got.DeletionTimestamp != nil
	})
	assert.True(t, w.get(&v1.Framework{}, "done"), "it stays while the archive is unavailable")
	w.store.setDown(false)
	w.eventually("it is gone", func() bool { return !w.get(&v1.Framework{}, "done") })
	assert.True(t, w.store.lists(f))
}

func TestAJobThatEndedAndWasRemovedByForceIsListedByTheArchive(t *testing.T) {
	w := begin(t)
	w.submit("done", workers(1))
	w.reaches("done", v1.AttemptRunning)
	w.exits("done-worker-0", 0)
	f := w.reaches("done", v1.Completed)
	w.eventually("its end is in the archive", func() bool { return w.store.job("done") != nil })
	w.tearOut("done")
	w.eventually("it is listed", func() bool { return w.store.lists(f) })
	assert.False(t, w.store.isGone(f), "its end is known")
}
