package v1_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/templates"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// open returns a client for a real API server with the CustomResourceDefinition installed.
func open(t *testing.T) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(s))
	require.NoError(t, v1.AddToScheme(s))
	c, err := client.New(kubetest.Start(t).Config, client.Options{Scheme: s})
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(templates.JobDefinition, &crd.Object))
	if err := c.Create(t.Context(), crd); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, &v1.FrameworkList{}) == nil, nil
	}))
	return c
}

func framework(name string) *v1.Framework {
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox"}}}}
	return &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: v1.FrameworkSpec{
			ExecutionType: v1.ExecutionStart,
			TaskRoles:     []v1.TaskRole{{Name: "worker", TaskNumber: 2, Task: v1.Task{Pod: pod}}},
		},
	}
}

func TestTheAPIServerTakesTheDefinitionAndKeepsAllOfAFramework(t *testing.T) {
	c := open(t)
	f := framework("whole")
	f.Spec.TaskRoles[0].Task.Pod.Annotations = map[string]string{"a": "b"}
	want := f.Spec.DeepCopy()
	require.NoError(t, c.Create(t.Context(), f))
	got := &v1.Framework{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(f), got))
	assert.Equal(t, *want, got.Spec, "nothing of the pod template is pruned")
	assert.Nil(t, got.Status)
}

func TestAStatusIsWrittenWithoutTheSpecAndOnlyOnWhatWasRead(t *testing.T) {
	c := open(t)
	f := framework("status")
	require.NoError(t, c.Create(t.Context(), f))
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	bare := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace, ResourceVersion: f.ResourceVersion}}
	bare.Status = &v1.FrameworkStatus{StartTime: now, TransitionTime: now, State: v1.AttemptCreationPending,
		AttemptStatus: v1.FrameworkAttemptStatus{StartTime: now, ConfigMapName: "x"}}
	stale := bare.DeepCopy()
	require.NoError(t, c.Status().Update(t.Context(), bare))
	assert.True(t, apierrors.IsConflict(c.Status().Update(t.Context(), stale)), "a replica that lost its lease can't overwrite")
	got := &v1.Framework{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(f), got))
	assert.Equal(t, f.Spec, got.Spec)
	assert.Equal(t, v1.AttemptCreationPending, got.Status.State)
	assert.Equal(t, got.ResourceVersion, bare.ResourceVersion)
}

func TestWrongFrameworksAreRefusedWithTheField(t *testing.T) {
	c := open(t)
	for name, test := range map[string]struct {
		change func(*v1.Framework)
		says   string
	}{
		"a name with a dash":        {func(f *v1.Framework) { f.Name = "a-b" }, "a-z and 0-9"},
		"an unknown execution type": {func(f *v1.Framework) { f.Spec.ExecutionType = "Run" }, "executionType"},
		"a role with capitals":      {func(f *v1.Framework) { f.Spec.TaskRoles[0].Name = "Worker" }, "taskRoles[0].name"},
		"two roles of one name":     {func(f *v1.Framework) { f.Spec.TaskRoles = append(f.Spec.TaskRoles, f.Spec.TaskRoles[0]) }, "Duplicate value"},
		"too many tasks":            {func(f *v1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 10001 }, "taskNumber"},
		"a retry count below -2":    {func(f *v1.Framework) { f.Spec.RetryPolicy.MaxRetryCount = -3 }, "maxRetryCount"},
		"a threshold below -1": {func(f *v1.Framework) {
			f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = -2
		}, "minFailedTaskCount"},
	} {
		t.Run(name, func(t *testing.T) {
			f := framework("wrong")
			test.change(f)
			err := c.Create(t.Context(), f)
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

func TestAFrameworkThatWasStoppedCannotBeStarted(t *testing.T) {
	c := open(t)
	f := framework("moves")
	f.Spec.ExecutionType = v1.ExecutionCreate
	require.NoError(t, c.Create(t.Context(), f))
	for _, move := range []v1.ExecutionType{v1.ExecutionStart, v1.ExecutionStop} {
		f.Spec.ExecutionType = move
		require.NoError(t, c.Update(t.Context(), f))
	}
	f.Spec.ExecutionType = v1.ExecutionStart
	assert.ErrorContains(t, c.Update(t.Context(), f), "can only be stopped")
}
