package job

import (
	"testing"

	"github.com/stretchr/testify/assert"

	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

func TestWhatAJobAsksForIsSaidInItsOwnUnits(t *testing.T) {
	for want, asks := range map[string]schedulerapi.Request{
		"1 GPU":               {GPUs: 1, MilliCPU: 4000, MemoryMB: 512},
		"16 GPUs":             {GPUs: 16, ShareOfGPUs: 2},
		"4 CPUs and 512 MiB":  {ShareOfGPUs: 5, MilliCPU: 4000, MemoryMB: 512},
		"1 CPU and 64 GiB":    {CPUCells: 16, MilliCPU: 1000, MemoryMB: 64 << 10},
		"0.25 CPUs":           {CPUCells: 1, MilliCPU: 250},
		"1500 MiB":            {CPUCells: 1, MemoryMB: 1500},
		"no GPUs":             {CPUCells: 1},
		"2.5 CPUs and 10 GiB": {MilliCPU: 2500, MemoryMB: 10 << 10},
	} {
		assert.Equal(t, want, RequestText(asks))
	}
	assert.Empty(t, ShareText(schedulerapi.Request{GPUs: 8}))
	assert.Equal(t, "the share of 5 GPUs, because vision owns no machine without GPUs", ShareText(schedulerapi.Request{ShareOfGPUs: 5, ShareReason: "vision owns no machine without GPUs"}))
}
