package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/status"
)

func TestTheEndOfAJobIsInWords(t *testing.T) {
	ended := func(state job.Phase, phrase string) string {
		return jobNote(&status.Job{Row: job.Row{Job: api.Job{State: string(state), Phrase: phrase}}})
	}
	assert.Equal(t, "stopped", ended(job.Stopped, "StopFrameworkRequested"))
	assert.Equal(t, "container memory OOM killed", ended(job.Failed, "ContainerMemoryOOMKilled"))
	assert.Empty(t, ended(job.Succeeded, "Succeeded"))
}

func TestTheStateOfATaskIsInWords(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	later := now.Add(4 * time.Minute)
	assert.Equal(t, "waiting for other tasks", taskState(&job.Task{Phase: job.Barrier}, now))
	assert.Equal(t, "retry in 4m", taskState(&job.Task{Phase: job.Retry, RetryAt: &later}, now))
	assert.Equal(t, "running", taskState(&job.Task{Phase: job.Running}, now))
}
