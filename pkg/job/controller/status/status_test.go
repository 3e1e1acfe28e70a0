package status_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
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

// store keeps written ConfigMaps, like the API.
type store map[string]*corev1.ConfigMap

func (s store) write(t *testing.T, l *status.Layout, f *v1.Framework, chunks []int32) *v1.FrameworkStatus {
	t.Helper()
	cms, err := l.Encode(f, f.Status, chunks)
	require.NoError(t, err)
	for i, cm := range cms {
		s[cm.Name] = cm.DeepCopy()
		l.Wrote(chunks[i], cm)
	}
	return l.Header(f.Status).DeepCopy()
}

// lost returns the status that is read with a header, and the chunks that are lost.
func (s store) lost(f *v1.Framework, header *v1.FrameworkStatus) (*v1.FrameworkStatus, []status.Lost) {
	f = f.DeepCopy()
	f.Status = header.DeepCopy()
	_, lost := status.Fill(f, slices.Collect(maps.Values(s)))
	return f.Status, lost
}

func (s store) fill(t *testing.T, header *v1.FrameworkStatus) *status.Layout {
	t.Helper()
	f := job()
	f.Status = header
	l, lost := status.Fill(f, slices.Collect(maps.Values(s)))
	require.Empty(t, lost)
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
	require.Len(t, header.AttemptStatus.TaskParts, 3)
	f.Status.AttemptStatus.TaskParts = header.AttemptStatus.TaskParts
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

func TestChunksThatAreNotOfTheHeaderAreLost(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	all := l.Update(f.Status, nil)
	s.write(t, l, f, all)
	old := s["f-tasks-1"]
	f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[150].State = v1.AttemptRunning
	header := s.write(t, l, f, all)
	recent := s["f-tasks-1"]
	for name, test := range map[string]struct {
		change func()
		says   string
	}{
		"missing":            {func() { delete(s, "f-tasks-1") }, "f-tasks-1 is missing"},
		"older":              {func() { s["f-tasks-1"] = old }, "generation 1, but 2 was written"},
		"changed":            {func() { s["f-tasks-1"].BinaryData = old.BinaryData }, "changed by something else"},
		"no gzip":            {func() { s["f-tasks-1"].BinaryData = nil; s["f-tasks-1"].Data["generation"] = "3" }, "EOF"},
		"of another attempt": {func() { s["f-tasks-1"].Data["attemptID"] = "2" }, `of attempt "2"`},
		"of no number":       {func() { s["f-tasks-1"].Data["generation"] = "x" }, `generation "x"`},
		"of another job":     {func() { s["f-tasks-1"].OwnerReferences[0].UID = "of before" }, "belongs to something else"},
		"of nothing":         {func() { s["f-tasks-1"].OwnerReferences = nil }, "belongs to something else"},
	} {
		t.Run(name, func(t *testing.T) {
			s["f-tasks-1"] = recent.DeepCopy()
			test.change()
			got, lost := s.lost(f, header)
			require.Len(t, lost, 1)
			assert.Equal(t, int32(1), lost[0].Chunk)
			assert.True(t, lost[0].Written)
			assert.Contains(t, lost[0].Why, test.says)
			assert.Len(t, got.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 100, "what is there is read")
		})
	}
}

func TestChunksAreRightThatAreNewerThanTheHeader(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	all := l.Update(f.Status, nil)
	header := s.write(t, l, f, all)
	f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[150].State = v1.AttemptRunning
	s.write(t, l, f, all) // the process was killed before it wrote the header
	got, lost := s.lost(f, header)
	assert.Empty(t, lost)
	assert.Equal(t, v1.AttemptRunning, got.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[150].State)
}

func TestAnAttemptWhoseChunksWereNeverWrittenHasLostNothing(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	l.Update(f.Status, nil)
	_, lost := s.lost(f, l.Header(f.Status))
	require.Len(t, lost, 2)
	assert.False(t, lost[0].Written)
}

// A small job grows beyond the capacity of its status. The process is killed between the writes that move its tasks to chunks.
func TestTasksThatWereNotMovedYetAreRead(t *testing.T) {
	f := job(90)
	l, s := &status.Layout{}, store{}
	first := f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
	first[7].State, first[80].State = v1.AttemptRunning, v1.AttemptRunning
	header := l.Header(f.Status).DeepCopy()
	grow(f.Status.AttemptStatus.TaskRoleStatuses[0], 150)
	chunks := l.Update(f.Status, nil)
	assert.True(t, l.Unlisted())
	header.AttemptStatus.TaskChunks, header.AttemptStatus.TaskParts = l.Chunks(), l.Parts() // as it is reserved
	first[7].State = v1.Completed
	s.write(t, l, f, chunks)
	delete(s, "f-tasks-1")
	got, lost := s.lost(f, header)
	require.Len(t, lost, 1)
	assert.False(t, lost[0].Written)
	assert.Len(t, got.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 100, "none twice")
	assert.Equal(t, v1.Completed, got.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[7].State, "the chunk is later")

	delete(s, "f-tasks-0")
	f.Status = header
	again, lost := status.Fill(f, slices.Collect(maps.Values(s)))
	require.Len(t, lost, 2)
	require.Len(t, f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 90)
	assert.Equal(t, v1.AttemptRunning, f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[80].State)
	assert.False(t, again.Unlisted())
	assert.Equal(t, []int32{0}, again.Update(f.Status, nil), "they are written with the next change")
	assert.Empty(t, again.Update(f.Status, nil))
}

func TestAChunkThatAnotherWroteIsKnownByItsAge(t *testing.T) {
	of := func(attempt, generation string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"attemptID": attempt, "generation": generation}}
	}
	mine := of("3", "2")
	for _, later := range []*corev1.ConfigMap{of("3", "2"), of("3", "9"), of("4", "1"), of("4", "")} {
		assert.True(t, status.Overtaken(mine, later), "%v", later.Data)
	}
	for _, earlier := range []*corev1.ConfigMap{of("3", "1"), of("2", "9"), of("3", ""), of("3", "x"), of("", "9"), {}} {
		assert.False(t, status.Overtaken(mine, earlier), "%v", earlier.Data)
	}
}

func TestStatusesOfEarlierVersionsAreRead(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	header := s.write(t, l, f, l.Update(f.Status, nil))
	header.AttemptStatus.TaskParts = nil
	for _, cm := range s {
		delete(cm.Data, "generation")
	}
	got, lost := s.lost(f, header)
	assert.Empty(t, lost)
	assert.Len(t, got.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 200)
}

func TestAChunkIsWrittenOnTheVersionThatWasRead(t *testing.T) {
	f := job(200)
	l, s := &status.Layout{}, store{}
	header := s.write(t, l, f, l.Update(f.Status, nil))
	s["f-tasks-0"].ResourceVersion = "17"
	again := s.fill(t, header)
	cms, err := again.Encode(f, f.Status, []int32{0})
	require.NoError(t, err)
	assert.Equal(t, "17", cms[0].ResourceVersion)
	assert.Equal(t, "2", cms[0].Data["generation"])
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
