package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

func packed(t *testing.T, p *corev1.Pod) any {
	t.Helper()
	out, err := packPod(p)
	require.NoError(t, err)
	return out
}

func TestACachedPodIsTheSlimOne(t *testing.T) {
	now, yes := metav1.NewTime(time.Unix(1700000000, 0)), true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "job-worker-0", Namespace: "jobs", UID: "u", ResourceVersion: "17", CreationTimestamp: now, DeletionTimestamp: &now,
			Labels: map[string]string{v1.LabelFramework: "job", v1.LabelTaskRole: "worker", v1.LabelTaskIndex: "0", "other": "x"},
			Annotations: map[string]string{
				v1.AnnotationFrameworkAttempt: "0", v1.AnnotationTaskAttempt: "1", machine.AnnotationTaskUID: "t", annotation.IsolationKey: "0,1", "other": "x",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1.GroupVersion.String(), Kind: "Framework", Name: "job", UID: "f", Controller: &yes}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{Name: "app", Image: "i"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk", PodIP: "10.1.0.1", HostIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.PodReady}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "app", Image: "i", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Message: "\x01\xff not UTF-8"}}},
				{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
			},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
		},
	}
	o := packed(t, p)
	got := podFrom(o)
	assert.Equal(t, slimPod(p), got)
	assert.Equal(t, got, podFrom(toolscache.DeletedFinalStateUnknown{Key: "jobs/job-worker-0", Obj: o}))
	assert.Len(t, got.Labels, 3)
	assert.Len(t, got.Status.ContainerStatuses, 1)
	assert.NotSame(t, got, podFrom(o))

	key, err := toolscache.MetaNamespaceKeyFunc(o)
	require.NoError(t, err)
	assert.Equal(t, "jobs/job-worker-0", key)
	assert.Equal(t, "17", o.(*packedPod).GetObjectMeta().GetResourceVersion())

	assert.Nil(t, podFrom(&corev1.ConfigMap{}))
	assert.Nil(t, podFrom(nil))
}
