package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openpai/paictl/pkg/job/controller/status"
	"github.com/openpai/paictl/pkg/job/controller/status/stored"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// writers is a Framework with several replicas of the controller that all consider themselves the leader.
type writers struct {
	t   *testing.T
	api client.Client
	f   *v1.Framework
}

func newWriters(t *testing.T) *writers {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(s))
	require.NoError(t, v1.AddToScheme(s))
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Namespace: "jobs", UID: "u"}}
	w := &writers{t, fake.NewClientBuilder().WithScheme(s).WithObjects(f).WithStatusSubresource(&v1.Framework{}).Build(), f}
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(f), f))
	return w
}

func frameworks(all ...*v1.Framework) *caches {
	c := &caches{namespace: "jobs", frameworks: toolscache.NewSharedIndexInformer(nil, &v1.Framework{}, 0, toolscache.Indexers{})}
	for _, f := range all {
		_ = c.frameworks.GetIndexer().Add(f)
	}
	return c
}

// replica returns a replica that has read the current state.
func (w *writers) replica() (*reconciler, *entry) {
	w.t.Helper()
	r := &reconciler{api: w.api, now: time.Now, entries: entries{m: map[string]*entry{}, begun: map[string]bool{}}, cache: frameworks()}
	live := w.live()
	e := &entry{uid: w.f.UID, rv: live.ResourceVersion, layout: &status.Layout{}}
	if live.Status != nil {
		layout, lost, err := stored.Complete(w.t.Context(), w.api, live)
		require.NoError(w.t, err)
		e.status, e.layout, e.stored, e.dirty = live.Status, layout, true, len(lost) > 0
		for _, one := range lost {
			e.dirtyChunks = append(e.dirtyChunks, one.Chunk)
		}
	}
	r.entries.put("f", e)
	return r, e
}

func (w *writers) live() *v1.Framework {
	w.t.Helper()
	live := &v1.Framework{}
	require.NoError(w.t, w.api.Get(w.t.Context(), client.ObjectKeyFromObject(w.f), live))
	return live
}

// stored writes a status and returns the replica that wrote it.
func (w *writers) stored(st *v1.FrameworkStatus) (*reconciler, *entry) {
	w.t.Helper()
	r, e := w.replica()
	e.status, e.dirty = st, true
	require.NoError(w.t, r.persist(w.t.Context(), w.f, e))
	return r, e
}

func running(n int) *v1.FrameworkStatus {
	role := &v1.TaskRoleStatus{Name: "r"}
	for i := range n {
		role.TaskStatuses = append(role.TaskStatuses, &v1.TaskStatus{Index: int32(i), State: v1.AttemptRunning})
	}
	st := &v1.FrameworkStatus{State: v1.AttemptPreparing}
	st.AttemptStatus.TaskRoleStatuses = []*v1.TaskRoleStatus{role}
	return st
}

func TestAChunkThatNoReaderFindsIsWrittenAgain(t *testing.T) {
	w := newWriters(t)
	r, e := w.stored(running(120))
	e.dirtyChunks = []int32{1}
	require.NoError(t, r.writeChunks(t.Context(), w.f, e)) // and killed before the header
	cm := &corev1.ConfigMap{}
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: "jobs", Name: "f-tasks-1"}, cm))
	delete(cm.Labels, status.LabelPart)
	require.NoError(t, w.api.Update(t.Context(), cm))
	r, e = w.replica()
	require.NoError(t, r.persist(t.Context(), w.f, e), "it would be a conflict for ever")
	_, lost, err := stored.Complete(t.Context(), w.api, w.live())
	require.NoError(t, err)
	assert.Empty(t, lost)
}

// One of the first chunks of a new attempt isn't written because a write fails. The next try must not mistake the other chunks for those of
// another replica.
func TestANewAttemptWhoseTasksAreHalfWrittenIsWrittenByTheNextTry(t *testing.T) {
	w := newWriters(t)
	r, e := w.stored(running(250))
	failed := false
	r.api = interceptor.NewClient(w.api.(client.WithWatch), interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if o.GetName() == "f-tasks-1" && !failed {
			failed = true
			return errKilled
		}
		return c.Update(ctx, o, opts...)
	}})
	e.status = running(250)
	e.status.AttemptStatus.ID = 1
	e.dirty, e.newAttempt = true, true
	for i := range int32(250) {
		e.dirtyTasks = append(e.dirtyTasks, status.Task{Role: "r", Index: i})
	}
	require.ErrorIs(t, r.persist(t.Context(), w.f, e), errKilled)
	require.NoError(t, r.persist(t.Context(), w.f, e))
	_, lost, err := stored.Complete(t.Context(), w.api, w.live())
	require.NoError(t, err)
	assert.Empty(t, lost)
}

func TestAFinalizerIsAddedOnlyToWhatWasRead(t *testing.T) {
	w := newWriters(t)
	late, old := w.replica()
	r, e := w.replica()
	require.NoError(t, r.keep(t.Context(), w.f, e))
	e.status, e.dirty = running(3), true
	require.NoError(t, r.persist(t.Context(), w.f, e))
	assert.True(t, apierrors.IsConflict(late.keep(t.Context(), w.f, old)), "it would write on top of what the other one has written")
}

// A job with 90 tasks grows, and its attempt is decided in the same step. The decision must be written first.
func TestTasksAreNotLostBetweenADecisionAndTheirFirstChunks(t *testing.T) {
	w := newWriters(t)
	r, e := w.stored(running(90))
	role := e.status.AttemptStatus.TaskRoleStatuses[0]
	role.TaskStatuses[7].State = v1.Completed
	for i := int32(90); i < 350; i++ {
		role.TaskStatuses = append(role.TaskStatuses, &v1.TaskStatus{Index: i, State: v1.AttemptCreationPending})
		e.dirtyTasks = append(e.dirtyTasks, status.Task{Role: "r", Index: i})
	}
	e.dirtyChunks = e.layout.Update(e.status, e.dirtyTasks)
	require.NoError(t, r.writeHeader(t.Context(), w.f, e, false)) // and killed
	require.Len(t, w.live().Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 90, "no more than lay there before")

	r, e = w.replica()
	tasks := e.status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
	require.Len(t, tasks, 90)
	assert.Equal(t, v1.Completed, tasks[7].State)
	require.NoError(t, r.persist(t.Context(), w.f, e))
	assert.Empty(t, w.live().Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, "they lie in chunks now")
	_, e = w.replica()
	assert.Len(t, e.status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 90)
}

func TestAJobCountsAsArchivedOnceItsTasksAreWritten(t *testing.T) {
	w := newWriters(t)
	r, e := w.replica()
	now := metav1.Now()
	e.status, e.dirty, e.decided = running(120), true, true
	e.status.State, e.status.ArchivedTime = v1.Completed, &now
	require.NoError(t, w.api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "f-tasks-1", Namespace: "jobs",
		Labels:          map[string]string{v1.LabelFramework: "f", status.LabelPart: status.PartTasks},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.f, v1.GroupVersion.WithKind(v1.Kind))}},
		Data: map[string]string{"attemptID": "0", "generation": "9"}}))
	require.Error(t, r.persist(t.Context(), w.f, e), "it is cut off at its chunks")
	assert.Nil(t, w.live().Status.ArchivedTime)
	_, e = w.stored(e.status)
	assert.NotNil(t, w.live().Status.ArchivedTime)
	assert.NotNil(t, e.status.ArchivedTime)
}
