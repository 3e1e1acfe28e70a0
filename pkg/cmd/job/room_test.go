package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

func TestTheQueueShowsProcessorsWhereJobsWithoutGPUsWait(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	gpu := job.WaitingGang{Job: "ann/train", Queued: schedulerapi.Queued{VC: "a", Group: "ann~train/default", PositionInVC: 1, Pods: 2, Since: now, Request: schedulerapi.Request{GPUs: 16, MilliCPU: 8000}, Reason: "full"}}
	share := job.WaitingGang{Job: "bob/prep", Queued: schedulerapi.Queued{VC: "a", Group: "bob~prep/default", PositionInVC: 2, Pods: 4, Since: now,
		Request: schedulerapi.Request{ShareOfGPUs: 20, ShareReason: "a owns no machine without GPUs", MilliCPU: 4000, MemoryMB: 512}, Reason: "full"}}
	cells := job.WaitingGang{Job: "eve/prep", Queued: schedulerapi.Queued{VC: "b", Group: "eve~prep/default", PositionInVC: 1, Pods: 1, Since: now, Request: schedulerapi.Request{CPUCells: 1, MilliCPU: 250}}}
	assert.Equal(t, []string{"JOB", "VC", "POSITION", "PRIORITY", "GPUS", "PODS", "WAITS", "REASON"}, queueTable(&job.WaitingList{Items: []job.WaitingGang{gpu}}, now).Header)
	table := queueTable(&job.WaitingList{Items: []job.WaitingGang{gpu, share, cells}}, now)
	assert.Equal(t, []string{"JOB", "VC", "POSITION", "PRIORITY", "GPUS", "CPUS", "MEMORY", "PODS", "WAITS", "REASON"}, table.Header)
	assert.Equal(t, [][]string{
		{"ann/train", "a", "1", "0", "16", "8", "-", "2", "0s", "full"},
		{"bob/prep", "a", "2", "0", "0", "4", "512 MiB", "4", "0s", "full; it takes the share of 20 GPUs, because a owns no machine without GPUs"},
		{"eve/prep", "b", "1", "0", "0", "0.25", "-", "1", "0s", "not checked yet"},
	}, table.Rows)
}

func TestAPageOfAJobWithoutGPUsSaysItsProcessors(t *testing.T) {
	for want, j := range map[string]api.Job{
		"4 tasks, 4 CPUs and 512 MiB": {Tasks: 4, MilliCPU: 4000, MemoryMB: 512},
		"1 task, 8 GPUs":              {Tasks: 1, GPUs: 8, MilliCPU: 4000},
		"2 tasks":                     {Tasks: 2},
	} {
		assert.Equal(t, want, askLine(&job.Detail{Row: job.Row{Job: j}}))
	}
}
