package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

func (m *memory) holds(uid string) *v1.Framework {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held[uid]
}

func TestWhatATaskHoldsSurvivesTheController(t *testing.T) {
	w := begin(t)
	f := w.submit("train", workers(1))
	w.eventually("its pod is told its GPUs, as the scheduler does", func() bool {
		p := &corev1.Pod{}
		return w.get(p, "train-worker-0") && w.c.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation.IsolationKey+`":"1,2"}}}`))) == nil
	})
	gpus := func(f *v1.Framework) *v1.TaskGPUs {
		if len(f.Status.AttemptStatus.TaskRoleStatuses) == 0 {
			return nil
		}
		return f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.GPUs
	}
	running := w.until("train", "holds GPUs", func(f *v1.Framework) bool { return gpus(f) != nil })
	first := gpus(running)
	assert.Equal(t, int32(2), first.Count)
	assert.False(t, first.Since.IsZero())
	w.eventually("the archive knows it while it runs", func() bool { return w.store.holds(string(f.UID)) != nil })

	w.stop()
	w.exits("train-worker-0", 0)
	w.start()
	w.reaches("train", v1.Completed)
	saved := w.store.job("train")
	require.NotNil(t, saved)
	assert.True(t, first.Since.Equal(&gpus(saved).Since), "when it got them is not forgotten")
	assert.NotNil(t, saved.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.CompletionTime)
}
