package status_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openpai/paictl/pkg/framework/status"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

func job(counts ...int) *v1.Framework {
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Namespace: "jobs", UID: "u"},
		Status: &v1.FrameworkStatus{StartTime: now, State: v1.AttemptPreparing, AttemptStatus: v1.FrameworkAttemptStatus{ID: 3, StartTime: now}}}
	for i, n := range counts {
		r := &v1.TaskRoleStatus{Name: fmt.Sprintf("r%d", i)}
		f.Status.AttemptStatus.TaskRoleStatuses = append(f.Status.AttemptStatus.TaskRoleStatuses, r)
		grow(r, n)
	}
	return f
}

func grow(r *v1.TaskRoleStatus, n int) (added []status.Task) {
	for i := len(r.TaskStatuses); i < n; i++ {
		r.TaskStatuses = append(r.TaskStatuses, &v1.TaskStatus{Index: int32(i), State: v1.AttemptPreparing,
			AttemptStatus: v1.TaskAttemptStatus{PodName: fmt.Sprintf("f-%s-%d", r.Name, i)}})
		added = append(added, status.Task{Role: r.Name, Index: int32(i)})
	}
	return added
}

// store keeps what was written, as the API does.
type store map[string]*corev1.ConfigMap

func (s store) write(t *testing.T, l *status.Layout, f *v1.Framework, chunks []int32) *v1.FrameworkStatus {
	t.Helper()
	cms, err := l.Encode(f, f.Status, chunks)
	require.NoError(t, err)
	for _, cm := range cms {
		s[cm.Name] = cm
	}
	return l.Header(f.Status).DeepCopy()
}

func (s store) fill(t *testing.T, header *v1.FrameworkStatus) *status.Layout {
	t.Helper()
	var all []*corev1.ConfigMap
	for _, cm := range s {
		all = append(all, cm)
	}
	l, err := status.Fill(header, all)
	require.NoError(t, err)
	return l
}

func TestAHundredTasksLieInTheStatusAndMoreInChunks(t *testing.T) {
	small := &status.Layout{}
	f := job(60, 40)
	assert.Empty(t, small.Update(f.Status, nil))
	assert.Len(t, small.Header(f.Status).AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 60)

	f = job(150, 101)
	l, s := &status.Layout{}, store{}
	chunks := l.Update(f.Status, nil)
	assert.Equal(t, []int32{0, 1, 2}, chunks)
	header := s.write(t, l, f, chunks)
	assert.Equal(t, int32(3), header.AttemptStatus.TaskChunks)
	for _, r := range header.AttemptStatus.TaskRoleStatuses {
		assert.Empty(t, r.TaskStatuses)
	}
	assert.Len(t, f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 150, "the whole status is left as it is")
	s.fill(t, header)
	f.Status.AttemptStatus.TaskChunks = 3
	assert.Equal(t, f.Status, header)
}

func TestOnlyChunksOfTasksThatChangedAreWritten(t *testing.T) {
	f := job(1000)
	l := &status.Layout{}
	require.Len(t, l.Update(f.Status, nil), 10)
	assert.Empty(t, l.Update(f.Status, nil))
	assert.Equal(t, []int32{1, 9}, l.Update(f.Status, []status.Task{{Role: "r0", Index: 150}, {Role: "r0", Index: 199}, {Role: "r0", Index: 999}}))
}

func TestATaskStaysInItsChunkWhenOthersComeAndGo(t *testing.T) {
	f := job(50, 100)
	l, s := &status.Layout{}, store{}
	s.write(t, l, f, l.Update(f.Status, nil))
	before := s["f-tasks-1"]
	added := grow(f.Status.AttemptStatus.TaskRoleStatuses[0], 80)
	dirty := l.Update(f.Status, added)
	assert.Equal(t, []int32{1}, dirty, "new ones go where there is room")
	s.write(t, l, f, dirty)
	assert.NotEqual(t, before, s["f-tasks-1"])

	r := f.Status.AttemptStatus.TaskRoleStatuses[1]
	gone := status.Task{Role: "r1", Index: 99}
	r.TaskStatuses = r.TaskStatuses[:99]
	dirty = l.Update(f.Status, []status.Task{gone})
	require.Len(t, dirty, 1)
	header := s.write(t, l, f, dirty)
	again := s.fill(t, header)
	assert.Len(t, header.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 80)
	assert.Len(t, header.AttemptStatus.TaskRoleStatuses[1].TaskStatuses, 99)
	assert.Equal(t, dirty, again.Update(header, []status.Task{{Role: "r1", Index: 98}}), "a new process finds the same layout")
}

func TestChunksOfAnotherAttemptAreNotRead(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	header := s.write(t, l, f, l.Update(f.Status, nil))
	header.AttemptStatus.ID++
	s.fill(t, header)
	assert.Empty(t, header.AttemptStatus.TaskRoleStatuses[0].TaskStatuses)
}

func TestTenThousandTasksAreSmall(t *testing.T) {
	f := job(10000)
	l, s := &status.Layout{}, store{}
	s.write(t, l, f, l.Update(f.Status, nil))
	assert.Len(t, s, 100)
	for name, cm := range s {
		assert.Less(t, len(cm.BinaryData["tasks"]), 20_000, name)
	}
}

func TestLoadPutsAFrameworkTogether(t *testing.T) {
	scheme := func() *runtime.Scheme {
		s := runtime.NewScheme()
		require.NoError(t, v1.AddToScheme(s))
		require.NoError(t, scheme.AddToScheme(s))
		return s
	}()
	f := job(150)
	l, s := &status.Layout{}, store{}
	b := fake.NewClientBuilder().WithScheme(scheme)
	header := s.write(t, l, f, l.Update(f.Status, nil))
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range s {
			if !yield(k) {
				return
			}
		}
	}) {
		b.WithObjects(s[name])
	}
	whole := f.DeepCopy()
	f.Status = header
	c := b.WithObjects(f).Build()
	got, err := status.Load(t.Context(), c, "jobs", "f")
	require.NoError(t, err)
	require.Len(t, got.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 150)
	assert.Equal(t, whole.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[149].AttemptStatus, got.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[149].AttemptStatus)
	_, err = status.Load(t.Context(), c, "jobs", "other")
	assert.ErrorContains(t, err, "other")
}

func TestAChunkOfGarbageIsAnErrorAndNoPanic(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	header := s.write(t, l, f, l.Update(f.Status, nil))
	s["f-tasks-0"].BinaryData["tasks"] = []byte("no gzip")
	_, err := status.Fill(header, []*corev1.ConfigMap{s["f-tasks-0"], s["f-tasks-1"]})
	assert.ErrorContains(t, err, "f-tasks-0")
}
