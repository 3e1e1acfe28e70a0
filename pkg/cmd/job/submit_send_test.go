package job

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job"
)

func TestADryRunPrintsTheOutlookOfTheJob(t *testing.T) {
	s := sent{File: "job.yaml", Summary: job.Summary{User: "ann", Name: "train", VirtualCluster: "B", Tasks: 1, GPUs: 2}, Outcome: job.Checked}
	assert.Equal(t, "ann/train could be submitted: 1 task with 2 GPUs in B", s.text(), "a server of an earlier version has none")
	s.Outlook = &job.Outlook{Verdict: "starts", Sentence: "It would start now on a.", Cost: "It costs 2 GPU hours for each hour that it runs.", GPUs: 2}
	assert.Equal(t, "ann/train could be submitted: 1 task with 2 GPUs in B\nIt would start now on a.\nIt costs 2 GPU hours for each hour that it runs.", s.text())
	data, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"outlook":{"verdict":"starts","sentence":"It would start now on a.","cost":"It costs 2 GPU hours for each hour that it runs.","gpus":2}`)
}
