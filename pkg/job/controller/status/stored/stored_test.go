package stored_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openpai/paictl/pkg/job/controller/status"
	"github.com/openpai/paictl/pkg/job/controller/status/stored"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestLoadPutsAFrameworkTogether(t *testing.T) {
	t.Parallel()
	types := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(types))
	require.NoError(t, scheme.AddToScheme(types))
	const tasks = 150
	role := &v1.TaskRoleStatus{Name: "r"}
	for i := range int32(tasks) {
		role.TaskStatuses = append(role.TaskStatuses, &v1.TaskStatus{Index: i, State: v1.AttemptPreparing, AttemptStatus: v1.TaskAttemptStatus{PodName: fmt.Sprintf("f-r-%d", i)}})
	}
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Namespace: "jobs", UID: "u"}, Status: &v1.FrameworkStatus{State: v1.AttemptPreparing}}
	f.Status.AttemptStatus.TaskRoleStatuses = []*v1.TaskRoleStatus{role}
	layout := &status.Layout{}
	numbers := layout.Update(f.Status, nil)
	chunks, err := layout.Encode(f, f.Status, numbers)
	require.NoError(t, err)
	require.Len(t, chunks, 2)
	b := fake.NewClientBuilder().WithScheme(types)
	for i, cm := range chunks {
		b.WithObjects(cm.DeepCopy())
		layout.Wrote(numbers[i], cm)
	}
	header := f.DeepCopy()
	header.Status = layout.Header(f.Status).DeepCopy()
	c := b.WithObjects(header).Build()
	got, err := stored.Load(t.Context(), c, "jobs", "f")
	require.NoError(t, err)
	require.Len(t, got.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, tasks)
	assert.Equal(t, "f-r-149", got.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[149].AttemptStatus.PodName)
	_, err = stored.Load(t.Context(), c, "jobs", "other")
	assert.ErrorContains(t, err, "other")
}
