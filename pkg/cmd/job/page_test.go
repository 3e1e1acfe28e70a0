package job

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	exit "github.com/openpai/paictl/pkg/runtime/report"
)

func TestAJobThatIsGoneIsNotSaidToHaveRunUntilThatWasFound(t *testing.T) {
	started, found := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	row := job.Row{Job: api.Job{Name: "train", User: "ann", State: api.Deleted, Phrase: api.PhraseGone, Submitted: started, Started: &started, Completed: &found}}
	now := found.Add(time.Hour)
	var out bytes.Buffer
	require.NoError(t, writePage(&out, &cmdutil.Output{}, &job.Detail{Row: row}, now, false))
	assert.Regexp(t, `(?m)^State +deleted$`, out.String())
	assert.Regexp(t, `(?m)^Found missing +.*\(1h ago\)$`, out.String())
	assert.Contains(t, out.String(), "why: paictl job why ann/train")
	table := (&ListOptions{Columns: []string{"state", "duration", "exit"}}).table(&job.Page{Items: []job.Row{row}}, now)
	assert.Equal(t, []string{"deleted", "-", "its Framework was removed"}, table.Rows[0])
}

func TestReasonsOfEventsAreInWords(t *testing.T) {
	at := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	events := []api.Event{{Time: at, Type: "Warning", Reason: "FailedScheduling", Object: "Pod/f-worker-0", Count: 2, Message: "no GPU is free"}}
	table := eventTable(&job.Job{Object: "f"}, events, at.Add(time.Minute))
	assert.Equal(t, [][]string{{"1m", "Warning", "not scheduled", "Pod/worker-0", "2", "no GPU is free"}}, table.Rows)
}

func TestAPageNamesTheSickGPUsOfTasksThatFailed(t *testing.T) {
	d := &job.Detail{Row: job.Row{Job: api.Job{Name: "train", User: "ann", State: "failed"}}}
	for i := range int32(5) {
		text := string(exit.Encode(exit.Report{ExitCode: 116, UserExitCode: 1, GPUFault: "GPU 3 (GPU-1a2b): XID 79"}))
		if i == 0 {
			text = string(exit.Encode(exit.Report{ExitCode: 255, UserExitCode: 1}))
		}
		d.Tasks = append(d.Tasks, job.Task{Phase: job.Failed, TaskAttempt: api.TaskAttempt{Role: "worker", Index: i, Node: "gpu-2", Completion: &v1.TaskAttemptCompletionStatus{
			CompletionStatus: &v1.CompletionStatus{Code: 116}, Pod: &v1.PodCompletionStatus{Containers: []v1.ContainerCompletionStatus{{Name: "app", Code: 116, Message: text}}}}}})
	}
	var out bytes.Buffer
	require.NoError(t, writePage(&out, &cmdutil.Output{}, d, time.Now(), false))
	assert.Regexp(t, `(?m)^GPU fault +worker\[1\] on gpu-2: GPU 3 \(GPU-1a2b\): XID 79$`, out.String())
	assert.Contains(t, out.String(), "worker[3] on gpu-2")
	assert.NotContains(t, out.String(), "worker[0] on gpu-2")
	assert.NotContains(t, out.String(), "worker[4] on gpu-2")
	assert.Regexp(t, `(?m)^GPU fault +and of more tasks$`, out.String())
}

func TestAPageAndAListSayThatAJobTakesMoreGPUsThanItAsksFor(t *testing.T) {
	row := job.Row{Job: api.Job{Name: "train", User: "ann", State: "running", Tasks: 1, GPUs: 4, TakesGPUs: 5}}
	var out bytes.Buffer
	require.NoError(t, writePage(&out, &cmdutil.Output{}, &job.Detail{Row: row}, time.Now(), false))
	assert.Regexp(t, `(?m)^Asks for +1 task, 4 GPUs$`, out.String())
	assert.Regexp(t, `(?m)^Takes +5 GPUs: its processors or memory are the share of that many$`, out.String())
	table := (&ListOptions{Columns: []string{"gpus"}}).table(&job.Page{Items: []job.Row{row}}, time.Now())
	assert.Equal(t, []string{"5"}, table.Rows[0])

	row.TakesGPUs, out = 0, bytes.Buffer{}
	require.NoError(t, writePage(&out, &cmdutil.Output{}, &job.Detail{Row: row}, time.Now(), false))
	assert.NotContains(t, out.String(), "Takes")
}

func TestAPageNamesTheJobThatAJobWasClonedFrom(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	page := func(from *v1.ClonedFrom) string {
		var out bytes.Buffer
		d := &job.Detail{Row: job.Row{Job: api.Job{Name: "train-2", User: "ann", State: "running"}}, ClonedFrom: from}
		require.NoError(t, writePage(&out, &cmdutil.Output{}, d, at.Add(time.Hour), false))
		return out.String()
	}
	assert.Regexp(t, `(?m)^Cloned from +bob/train, submitted .*\(1h ago\)$`, page(&v1.ClonedFrom{User: "bob", Name: "train", UID: "u", Submitted: at}))
	assert.Regexp(t, `(?m)^Cloned from +a job that you don't see$`, page(&v1.ClonedFrom{}))
	assert.NotContains(t, page(nil), "Cloned from")
}
