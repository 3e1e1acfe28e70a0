package job

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/job/api"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// RequestText returns the requests of a gang as text: its GPUs or, without GPUs, its processors and memory.
func RequestText(a schedulerapi.Request) string {
	if a.GPUs > 0 {
		return plural.Of(a.GPUs, "GPU")
	}
	return HostText(a.MilliCPU, a.MemoryMB)
}

// ShareText explains how many GPUs tasks occupy although they can't use them, and why. It returns "" if the tasks don't occupy such GPUs.
func ShareText(a schedulerapi.Request) string {
	if a.ShareOfGPUs == 0 {
		return ""
	}
	text := "the share of " + plural.Of(a.ShareOfGPUs, "GPU")
	if a.ShareReason != "" {
		text += ", because " + a.ShareReason
	}
	return text
}

// CPUCellsText explains how many CPU cells tasks take, and how many GPUs they take instead if no cell is free.
func CPUCellsText(n int, a schedulerapi.Request) string {
	text := plural.Of(n, "CPU cell")
	if a.OrShareOfGPUs > 0 {
		text += ", or the share of " + plural.Of(a.OrShareOfGPUs, "GPU") + " if no CPU cells are free where it may run"
	}
	return text
}

// ExcessText returns a message for a job that gets more GPUs than it requests, or "" for any other job.
func ExcessText(j *api.Job) string {
	if j.Taken() <= j.GPUs {
		return ""
	}
	return fmt.Sprintf("%s: its processors or memory are the share of that many", plural.Of(j.TakesGPUs, "GPU"))
}

// HostText returns processors and memory as text: "4 CPUs and 512 MiB". 0 means unlimited and isn't mentioned.
func HostText(milliCPU, memoryMB int64) string {
	var parts []string
	if milliCPU > 0 {
		unit := " CPUs"
		if milliCPU == 1000 {
			unit = " CPU"
		}
		parts = append(parts, CPUText(milliCPU)+unit)
	}
	if memoryMB > 0 {
		parts = append(parts, MemoryText(memoryMB))
	}
	if len(parts) == 0 {
		return "no GPUs"
	}
	return strings.Join(parts, " and ")
}

// CPUText returns a number of processors, which need not be whole, as text.
func CPUText(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

// MemoryText returns an amount of memory as text: "512 MiB", or "4 GiB" if that is exact.
func MemoryText(mb int64) string {
	if mb >= 1<<10 && mb%(1<<10) == 0 {
		return strconv.FormatInt(mb>>10, 10) + " GiB"
	}
	return strconv.FormatInt(mb, 10) + " MiB"
}
