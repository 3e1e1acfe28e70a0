package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func pods(p *corev1.Pod) map[string]*corev1.Pod { return map[string]*corev1.Pod{p.Name: p} }

func TestTasksThatAreLostTakeTheirPodsBack(t *testing.T) {
	w := newWorld(t, role("worker", 4))
	w.run()
	for _, p := range []string{"f-worker-0", "f-worker-1", "f-worker-2", "f-worker-3"} {
		w.starts(p)
	}
	w.run()
	uid := w.pods["f-worker-2"].UID
	lost := w.persisted.AttemptStatus.TaskRoleStatuses[0]
	before := lost.TaskStatuses
	lost.TaskStatuses = lost.TaskStatuses[:1]
	delete(w.pods, "f-worker-3") // of this one nothing is left
	w.restart()
	w.status = w.persisted.DeepCopy()
	added := machine.Rebuild(machine.Input{Framework: w.f, Status: w.status, Pods: machine.Pods{ByName: w.pods}, Now: w.now, Rules: rules{}})
	assert.Equal(t, []machine.Task{{Role: "worker", Index: 1}, {Role: "worker", Index: 2}, {Role: "worker", Index: 3}}, added)
	w.persisted = w.status.DeepCopy()
	w.run()
	require.Len(t, w.status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 4)
	assert.Equal(t, v1.AttemptRunning, w.task("worker", 2).State)
	assert.Equal(t, before[2].InstanceUID, w.task("worker", 2).InstanceUID)
	assert.Equal(t, uid, w.pods["f-worker-2"].UID)
	assert.Nil(t, w.pods["f-worker-1"].DeletionTimestamp)
	assert.NotNil(t, w.pods["f-worker-3"], "it is made again")
}

func TestPodsThatAreNotOfTheAttemptRebuildNothing(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	p := w.pods["f-worker-0"].DeepCopy()
	p.Name, p.Labels[v1.LabelTaskIndex] = "f-worker-7", "7"
	forged := p.DeepCopy()
	forged.OwnerReferences = nil
	misnamed := p.DeepCopy()
	misnamed.Name = "other"
	huge := p.DeepCopy()
	huge.Name, huge.Labels[v1.LabelTaskIndex] = "f-worker-2000000000", "2000000000"
	for name, one := range map[string]*machine.Pods{
		"forged":   {ByName: pods(forged)},
		"misnamed": {ByName: pods(misnamed)},
		"huge":     {ByName: pods(huge)},
	} {
		assert.Empty(t, machine.Rebuild(machine.Input{Framework: w.f, Status: w.status.DeepCopy(), Pods: *one, Now: w.now, Rules: rules{}}), name)
	}
}

func TestAFrameworkThatIsInvalidEnds(t *testing.T) {
	w := newWorld(t, role("worker", 2))
	w.run()
	w.starts("f-worker-0")
	w.run()
	w.f.Spec.RetryPolicy.MaxRetryCount = -2
	w.invalid = "The job's object can't be read."
	w.run()
	w.reap()
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	assert.Equal(t, int32(machine.CodeInvalid), w.status.AttemptStatus.CompletionStatus.Code)
	assert.Equal(t, "The job can't be run as it was submitted. The job's object can't be read.", w.status.Message)
	assert.Empty(t, w.pods)
	assert.Zero(t, w.status.RetryPolicyStatus.TotalRetriedCount)
}
