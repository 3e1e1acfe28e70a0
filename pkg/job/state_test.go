package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// framework returns a job with one role of two tasks, which wait for each other.
func framework(change ...func(*v1.Framework)) *v1.Framework {
	f := &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1.ObjectName("alice", "train"), Namespace: "pai-jobs", UID: "u-1", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
			Labels:      map[string]string{v1.LabelUser: "alice", v1.LabelVC: "vision"},
			Annotations: map[string]string{v1.AnnotationJobName: "train", v1.AnnotationRuntime: v1.RuntimeV1, v1.AnnotationGPUs: "16"},
		},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: 2}}},
		Status: &v1.FrameworkStatus{
			StartTime: metav1.NewTime(noon.Add(-time.Hour)), TransitionTime: metav1.NewTime(noon), State: v1.AttemptPreparing,
			AttemptStatus: v1.FrameworkAttemptStatus{TaskRoleStatuses: []*v1.TaskRoleStatus{{Name: "worker", Counts: v1.TaskCounts{Total: 2, Waiting: 2}}}},
		},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

func state(s v1.State) func(*v1.Framework) {
	return func(f *v1.Framework) { f.Status.State = s }
}

func counts(c v1.TaskCounts) func(*v1.Framework) {
	return func(f *v1.Framework) { f.Status.AttemptStatus.TaskRoleStatuses[0].Counts = c }
}

func published(f *v1.Framework) {
	at := metav1.NewTime(noon)
	f.Status.AttemptStatus.PeersTime = &at
}

// preparing gives a job n tasks whose pods have not begun.
func preparing(n int) func(*v1.Framework) {
	return func(f *v1.Framework) {
		r := f.Status.AttemptStatus.TaskRoleStatuses[0]
		for range n {
			r.TaskStatuses = append(r.TaskStatuses, &v1.TaskStatus{State: v1.AttemptPreparing})
		}
	}
}

func noGang(f *v1.Framework) { f.Annotations[v1.AnnotationGang] = "false" }

func one(f *v1.Framework) {
	f.Spec.TaskRoles[0].TaskNumber = 1
	f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Total = 1
}

func completed(code int32) func(*v1.Framework) {
	return func(f *v1.Framework) {
		f.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{Code: code}}
	}
}

func stop(f *v1.Framework) { f.Spec.ExecutionType = v1.ExecutionStop }

func pod(node string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func TestAJobsStateTellsHowFarItIs(t *testing.T) {
	unplaced, starting, runs := pod("", corev1.PodPending), pod("gpu-1", corev1.PodPending), pod("gpu-1", corev1.PodRunning)
	added := pod("", corev1.PodPending)
	added.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute))
	queue := NewQueue(&schedulerapi.Queue{Items: []schedulerapi.Queued{
		{VC: "vision", Group: "alice~train/default", Position: 5, PositionInVC: 3},
		{VC: "vision", Group: "bob~other/default", Position: 6, PositionInVC: 4},
	}})
	inFour := func(f *v1.Framework) { d := int64(240); f.Status.RetryPolicyStatus.RetryDelaySec = &d }
	for name, c := range map[string]struct {
		f     *v1.Framework
		pods  []corev1.Pod
		queue Queue
		want  string
	}{
		"not seen by the controller":          {framework(func(f *v1.Framework) { f.Status = nil }), nil, nil, "waiting"},
		"stopped before it was seen":          {framework(stop, func(f *v1.Framework) { f.Status = nil }), nil, nil, "stopping"},
		"before its objects are made":         {framework(state(v1.AttemptCreationPending)), nil, nil, "waiting"},
		"pods not made yet":                   {framework(), nil, nil, "waiting"},
		"no machine, and no scheduler to ask": {framework(), []corev1.Pod{unplaced, unplaced}, nil, "waiting"},
		"in the queue":                        {framework(), []corev1.Pod{unplaced, unplaced}, queue, "queued (3rd)"},
		"in the queue, pods not read":         {framework(), nil, queue, "queued (3rd)"},
		"some pods placed, some in the queue": {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Waiting: 1, Running: 1})), []corev1.Pod{runs, unplaced}, queue, "queued (3rd)"},
		"images come":                         {framework(), []corev1.Pod{starting, starting}, nil, "starting"},
		"images come to one of two":           {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Waiting: 1, Running: 1})), []corev1.Pod{runs, starting}, nil, "starting"},
		"all run, none knows the others":      {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Running: 2})), []corev1.Pod{runs, runs}, nil, "waiting for other tasks"},
		"addresses are known, one image not":  {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Waiting: 1, Running: 1}), published), []corev1.Pod{runs, starting}, nil, "starting"},
		"all know each other":                 {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Running: 2}), published), []corev1.Pod{runs, runs}, nil, "running"},
		"a task was added later":              {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 3, Waiting: 1, Running: 2}), published), []corev1.Pod{runs, runs, added}, queue, "running"},
		"no gang: the first one counts":       {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Waiting: 1, Running: 1}), noGang), []corev1.Pod{runs, unplaced}, queue, "running"},
		"no gang: the first one's image":      {framework(noGang), []corev1.Pod{unplaced, starting}, nil, "starting"},
		"no gang: none has a machine":         {framework(noGang), []corev1.Pod{unplaced, unplaced}, nil, "waiting"},
		"begun, and the Framework is late":    {framework(one, preparing(1)), []corev1.Pod{}, queue, "starting"},
		"the same, with all pods at hand":     {framework(one, preparing(1)), []corev1.Pod{runs}, nil, "starting"},
		"pods not known":                      {framework(one, preparing(1)), nil, nil, "waiting"},
		"one of two begun, and it is late":    {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Waiting: 1, Running: 1}), preparing(1)), []corev1.Pod{}, queue, "starting"},
		"one of two begun, the other unmade":  {framework(state(v1.AttemptRunning), counts(v1.TaskCounts{Total: 2, Waiting: 1, Running: 1})), []corev1.Pod{}, nil, "waiting"},
		"late, and the other has no machine":  {framework(preparing(2)), []corev1.Pod{unplaced}, nil, "waiting"},
		"one task waits for nobody":           {framework(state(v1.AttemptRunning), one, counts(v1.TaskCounts{Total: 1, Running: 1})), []corev1.Pod{runs}, nil, "running"},
		"one task's image comes":              {framework(one), []corev1.Pod{starting}, nil, "starting"},
		"waits for the next attempt":          {framework(state(v1.AttemptCompleted), completed(251), inFour), nil, nil, "retry in 4m"},
		"the next attempt is due":             {framework(state(v1.AttemptCompleted), completed(137)), nil, nil, "retry"},
		"a failed attempt is cleaned up":      {framework(state(v1.AttemptDeleting), completed(137)), nil, nil, "stopping"},
		"asked to stop":                       {framework(state(v1.AttemptRunning), stop), []corev1.Pod{runs, runs}, nil, "stopping"},
		"stopped while it waited to retry":    {framework(state(v1.AttemptCompleted), completed(251), inFour, stop), nil, nil, "stopping"},
		"succeeded":                           {framework(state(v1.Completed), completed(0)), nil, nil, "succeeded"},
		"failed":                              {framework(state(v1.Completed), completed(226)), nil, nil, "failed"},
		"stopped":                             {framework(state(v1.Completed), completed(-210), stop), nil, nil, "stopped"},
		"deleted just after a retry":          {framework(state(v1.Completed), completed(-240), stop), nil, nil, "stopped"},
		"succeeded before it was stopped":     {framework(state(v1.Completed), completed(0), stop), nil, nil, "succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, StateOf(c.f, c.pods, c.queue).Text(noon))
		})
	}
}

func TestAGangIsTracedToItsJob(t *testing.T) {
	train := v1.ObjectName("alice", "train")
	assert.Equal(t, train, ObjectOfGroup("alice~train/default"))
	assert.Equal(t, train, ObjectOfGroup("alice~train/ring/a"))
	assert.Equal(t, train, ObjectOfGroup("pai-jobs/"+v1.PodName(train, "worker", 3)))
	q := NewQueue(&schedulerapi.Queue{Items: []schedulerapi.Queued{
		{Group: "alice~train/a", Position: 2, PositionInVC: 2}, {Group: "alice~train/b", Position: 9, PositionInVC: 4}, {Group: "alice~train/c", Position: 3, PositionInVC: 3}}})
	assert.Equal(t, 9, q[train].Position, "a job starts with its last gang")
}

func TestPositionsAndDurationsReadWell(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		assert.Equal(t, want, listing.Ordinal(n))
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m1s", 12*time.Minute + 30*time.Second: "12m",
		3 * time.Hour: "3h", 3*time.Hour + 5*time.Minute: "3h5m", 25 * time.Hour: "1d1h", 400 * 24 * time.Hour: "400d",
	} {
		assert.Equal(t, want, Duration(d))
	}
}

func TestEveryPhaseSaysWhatItMeans(t *testing.T) {
	for _, p := range Phases() {
		assert.NotEmpty(t, p.Means(), p)
	}
}

// The controller writes the state of a pod into the Framework seconds after the pod changes.
func TestAPodIsAheadOfItsTask(t *testing.T) {
	f := &v1.Framework{Status: &v1.FrameworkStatus{}}
	placed := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
	ended := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}} // of the attempt before
	for _, state := range []v1.State{v1.AttemptCreationPending, v1.AttemptCreationRequested, v1.AttemptPreparing} {
		assert.Equal(t, Starting, taskPhase(f, &v1.TaskStatus{State: state}, placed, true), state)
		assert.Equal(t, Queued, taskPhase(f, &v1.TaskStatus{State: state}, &corev1.Pod{}, true), state)
		assert.Equal(t, Waiting, taskPhase(f, &v1.TaskStatus{State: state}, ended, false), state)
	}
	w := &Why{}
	d := &Detail{}
	d.State = string(Starting)
	(&evidence{Detail: d}).onItsWay(w)
	assert.NotEmpty(t, w.Sentence)
}
