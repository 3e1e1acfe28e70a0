package view

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/job"
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
