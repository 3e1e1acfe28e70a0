package alerthandler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/job/api"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// The record is stored in the chart's ConfigMap. The API server rejects a write if another replica has written the record since it was read.
func TestTheRecord(t *testing.T) {
	core := fake.NewClientset()
	r := &record{core: core, namespace: kube.SystemNamespace}
	_, err := r.Load(t.Context())
	require.ErrorContains(t, err, "pai-alert-handler-notices of the service is missing")
	_, err = core.CoreV1().ConfigMaps(kube.SystemNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RecordName, Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	l, err := r.Load(t.Context())
	require.NoError(t, err)
	require.Nil(t, l)
	l = notify.NewLedger(time.Unix(1_800_000_000, 0))
	require.NoError(t, r.Save(t.Context(), l))
	m, err := core.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), RecordName, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "b", m.Labels["a"])
	other := &record{core: core, namespace: kube.SystemNamespace}
	read, err := other.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, l, read)
	core.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, RecordName, nil)
	})
	require.ErrorIs(t, other.Save(t.Context(), l), notify.ErrReplaced)
}

func TestNewsOfAJob(t *testing.T) {
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 30, 8, minute, 0, 0, time.UTC))
	}
	ran, ended := at(1), at(9)
	f := &jobv1.Framework{ObjectMeta: metav1.ObjectMeta{UID: "u", Labels: map[string]string{jobv1.LabelUser: "ann"}, Annotations: map[string]string{
		jobv1.AnnotationJobName: "train", jobv1.AnnotationNotify: "failed,evil\r\n,retried,failed", jobv1.AnnotationStopped: "maintenance",
	}}, Spec: jobv1.FrameworkSpec{ExecutionType: jobv1.ExecutionStart}}
	of := func() *notify.Job {
		row := api.Summary(f)
		return news(f, &row)
	}
	submitted := at(0)
	f.CreationTimestamp = submitted
	want := &notify.Job{UID: "u", User: "ann", Name: "train", Selects: true, Notify: []jobv1.NotifyState{jobv1.NotifyFailed, jobv1.NotifyRetried}, State: "waiting", Waits: submitted.Time, Stopped: "maintenance"}
	require.Equal(t, want, of(), "it has no status")
	f.Status = &jobv1.FrameworkStatus{State: jobv1.AttemptRunning, RunTime: &ran, RetryPolicyStatus: jobv1.RetryPolicyStatus{TotalRetriedCount: 1}}
	f.Status.AttemptStatus.ID, f.Status.AttemptStatus.StartTime = 1, at(5)
	f.Status.PreviousAttempt = &jobv1.PreviousAttempt{Code: jobv1.CodePreempted, Phrase: "PodPreemptedForCriticalPod"}
	want.State, want.Waits, want.Started, want.Retried, want.Retries, want.Preempted = jobv1.NotifyRunning, time.Time{}, ran.Time, at(5).Time, 1, true
	want.Why = "PodPreemptedForCriticalPod (exit code -1003)"
	require.Equal(t, want, of())
	text, err := jobv1.WriteRequeues(nil, jobv1.Requeue{Restart: "action-a1", Action: "broken-1", Reason: "GPU 3 is broken (policy broken)"})
	require.NoError(t, err)
	f.Annotations[jobv1.AnnotationRequeues], f.Status.AttemptStatus.Restart = text, "action-a1"
	want.Requests = []string{"broken-1"}
	require.Equal(t, want, of(), "it was preempted in the attempt that was requested")
	f.Status.PreviousAttempt.Code, want.Preempted = jobv1.CodeRestart, false
	want.Requeued, want.Why = "broken-1", "GPU 3 is broken (policy broken)"
	require.Equal(t, want, of())
	f.Status.State, f.Status.Message = jobv1.AttemptPreparing, "8 GPUs are not free"
	want.State, want.Waits, want.Why = "waiting", at(5).Time, "8 GPUs are not free"
	require.Equal(t, want, of())
	f.Status.Message = ""
	f.Status.State, f.Status.CompletionTime = jobv1.Completed, &ended
	f.Status.AttemptStatus.CompletionStatus = &jobv1.FrameworkAttemptCompletionStatus{CompletionStatus: &jobv1.CompletionStatus{Code: 137, Phrase: "ContainerOOMKilled", Type: jobv1.CompletionType{Name: "Failed"}}}
	want.State, want.Waits, want.Completed, want.Why = jobv1.NotifyFailed, time.Time{}, ended.Time, "ContainerOOMKilled (exit code 137)"
	require.Equal(t, want, of())
	delete(f.Annotations, jobv1.AnnotationNotify)
	require.False(t, of().Selects)
	delete(f.Labels, jobv1.LabelUser)
	require.Nil(t, of(), "no one would get its notices")
}
