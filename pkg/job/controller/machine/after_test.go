package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestAJobBeginsAfterThoseThatItWaitsFor(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.after = machine.After{Waits: []string{"ann/one", "ann/two"}}
	w.run()
	assert.Equal(t, v1.AttemptCreationPending, w.status.State)
	assert.Equal(t, "The job starts after ann/one, ann/two.", w.status.Message)
	assert.False(t, w.last.Wake.IsZero(), "an end that is missed is found all the same")
	assert.Empty(t, w.pods)
	w.after = machine.After{}
	w.run()
	assert.NotEmpty(t, w.pods)
	assert.Empty(t, w.status.Message)
}

func TestAJobEndsWhereOneThatMustSucceedDidNot(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.f.Spec.RetryPolicy.MaxRetryCount = -2
	w.after = machine.After{Waits: []string{"ann/one"}, Failed: "it was to start after ann/two had succeeded, but that job failed"}
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	assert.Equal(t, int32(machine.CodeDependency), w.status.AttemptStatus.CompletionStatus.Code)
	assert.Equal(t, "A job that had to succeed first did not. The job was not started: it was to start after ann/two had succeeded, but that job failed.", w.status.Message)
	assert.Zero(t, w.status.RetryPolicyStatus.TotalRetriedCount, "another attempt would end as this one")
	assert.Zero(t, w.creates)
}

func TestAJobThatWaitsForOthersCanBeStopped(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.after = machine.After{Waits: []string{"ann/one"}}
	w.run()
	w.f.Spec.ExecutionType = v1.ExecutionStop
	w.f.Annotations = map[string]string{v1.AnnotationStopped: "its GPUs are idle (policy idle-jobs)"}
	w.run()
	assert.Equal(t, "The job was stopped. its GPUs are idle (policy idle-jobs)", w.status.Message)
	assert.Equal(t, int32(machine.CodeStopped), w.status.AttemptStatus.CompletionStatus.Code)
	assert.Equal(t, v1.Completed, w.status.State)
}
