package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestGPUsAreRecordedOnceWithTheMachineAndAskedForAgainUntilTheyAreKnown(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	known := false
	told := &v1.TaskGPUs{Count: 8, Since: metav1.NewTime(w.now.Add(-time.Hour))} // by a clock that is behind
	w.gpus = func(*corev1.Pod) (*v1.TaskGPUs, bool) { g := *told; return &g, known }
	w.run()
	require.Nil(t, w.task("worker", 0).AttemptStatus.GPUs, "it has no machine yet")
	w.pods["f-worker-0"].Spec.NodeName = "node-1"
	w.starts("f-worker-0")
	w.run()
	assert.Nil(t, w.task("worker", 0).AttemptStatus.GPUs)
	assert.False(t, w.last.Wake.IsZero(), "it is looked at again by itself")
	known = true
	w.now = w.now.Add(10 * time.Second)
	w.run()
	a := &w.task("worker", 0).AttemptStatus
	require.NotNil(t, a.GPUs)
	assert.Equal(t, a.StartTime, a.GPUs.Since, "no attempt holds GPUs before it begins")
	told.Count = 1
	w.run()
	assert.Equal(t, int32(8), w.task("worker", 0).AttemptStatus.GPUs.Count, "it never changes")
	require.NotNil(t, w.persisted)
	w.exits("f-worker-0", 0)
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	assert.Equal(t, int32(8), w.task("worker", 0).AttemptStatus.GPUs.Count)
}

func TestATaskWhosePodWasGoneBeforeItWasSeenHeldGPUsAllTheSame(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.gpus = func(p *corev1.Pod) (*v1.TaskGPUs, bool) {
		return &v1.TaskGPUs{Count: 2, Since: p.CreationTimestamp}, true
	}
	w.run()
	w.pods["f-worker-0"].Spec.NodeName = "node-1"
	w.starts("f-worker-0")
	w.exits("f-worker-0", 0)
	w.run()
	g := w.task("worker", 0).AttemptStatus.GPUs
	require.NotNil(t, g)
	assert.False(t, g.Since.IsZero(), "where no one says since when, it is now")
}
