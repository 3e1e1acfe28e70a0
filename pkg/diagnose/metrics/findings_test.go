package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// line returns values. For example, "20x95 5x1" means 20 times 95, and then 5 times 1. "-" means a missing measurement.
func line(text string) []*float64 {
	var out []*float64
	for word := range strings.FieldsSeq(text) {
		times, value, ok := strings.Cut(word, "x")
		if !ok {
			times, value = "1", word
		}
		one := []*float64{nil}
		if value != "-" {
			one[0] = new(parse(value))
		}
		out = append(out, slices.Repeat(one, int(parse(times)))...)
	}
	return out
}

func gpu(task, number, values string) Series {
	return Series{Name: task + " GPU " + number, Task: task, Node: "gpu-1", GPU: number, Values: line(values)}
}

func of(task string, limit float64, values string) Series {
	s := Series{Name: task, Task: task, Values: line(values)}
	if limit > 0 {
		s.Limit = &limit
	}
	return s
}

func named(name, values string) Series { return Series{Name: name, Values: line(values)} }

const gi = 1 << 30

func TestFindingsSayWhatTheFiguresShow(t *testing.T) {
	for name, c := range map[string]struct {
		charts map[string][]Series
		want   []Finding
	}{
		"nothing is measured": {},
		"too few values": {charts: map[string][]Series{
			"gpu-use": {gpu("w[0]", "0", "9x0")}, "memory": {of("w[0]", gi, "9x1073741824")}, "gpu-memory": {gpu("w[0]", "0", "9x99")}, "gpu-slowed": {gpu("w[0]", "0", "9x1")}}},
		"many times without a value": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "9x0 100x-")}}},
		"a busy job": {charts: map[string][]Series{
			"gpu-use": {gpu("w[0]", "0", "20x95"), gpu("w[0]", "1", "20x97")}, "cpu": {of("w[0]", 8, "20x8")}, "memory": {of("w[0]", 10*gi, "20x1073741824")}}},
		"the only GPU is idle": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "19x0 1x80")}},
			want: []Finding{{GPUsIdle, "The GPU was idle (below 5 %) 95 % of the time."}}},
		"all GPUs are idle": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "20x0"), gpu("w[1]", "0", "19x0 1x80")}},
			want: []Finding{{GPUsIdle, "None of the 2 GPUs was used: each was idle (below 5 %) at least 95 % of the time."}}},
		"one GPU is idle while others work": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "20x90"), gpu("w[0]", "1", "20x90"), gpu("w[0]", "2", "20x0")}},
			want: []Finding{{GPUIdle, "1 of 3 GPUs was idle (below 5 %) at least 100 % of the time, while others were busy: w[0] GPU 2. The program may not use them."}}},
		"one GPU is idle while others do little": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "20x10"), gpu("w[0]", "2", "20x0")}}},
		"more GPUs than are read, all idle": {charts: map[string][]Series{"gpu-use": {named(Lowest, "20x0"), named(Mean, "20x0"), named(Highest, "20x2")}},
			want: []Finding{{GPUsIdle, "No GPU was used: even the busiest was idle (below 5 %) 100 % of the time."}}},
		"more GPUs than are read, some busy": {charts: map[string][]Series{"gpu-use": {named(Lowest, "20x0"), named(Mean, "20x30"), named(Highest, "20x90")}}},
		"processors are full": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "3", "16x0 4x60")}, "cpu": {of("w[0]", 8, "19x7.9 1x1")}},
			want: []Finding{{DataWait, "GPU 3 of w[0] was idle (below 5 %) 80 % of the time while the processors were full (above 90 % of the limit of 8) 95 % of the time: the program probably waits for its data."}}},
		"processors are full in several tasks": {charts: map[string][]Series{
			"gpu-use": {gpu("w[0]", "0", "20x30"), gpu("w[1]", "0", "20x20"), gpu("w[2]", "0", "20x90")}, "cpu": {of("w[0]", 8, "20x8"), of("w[1]", 8, "18x8 2x1"), of("w[2]", 8, "20x8")}},
			want: []Finding{{DataWait, "The GPUs of w[0] and w[1] were busy at most 30 % on average while the processors were full (above 90 % of the limit of 8) 90 % of the time: the program probably waits for its data."}}},
		"one thread": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "20x23"), gpu("w[0]", "1", "20x23")}, "cpu": {of("w[0]", 16, "19x1.02 1x3")}},
			want: []Finding{{OneThread, "The GPUs of w[0] were busy 23 % on average while one processor of 16 was busy 95 % of the time: one thread probably prepares the data."}}},
		"processors are full, but GPUs are busy": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "20x60")}, "cpu": {of("w[0]", 8, "20x8")}}},
		"without a limit of processors":          {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", "20x40")}, "cpu": {of("w[0]", 0, "20x8")}}},
		"a saw tooth with reads": {charts: map[string][]Series{
			"gpu-use": {gpu("w[0]", "0", strings.Repeat("4x90 2x0 ", 6))}, "disk-read": {of("w[0]", 0, strings.Repeat("4x1e6 2x100e6 ", 6))}, "network-in": {of("w[0]", 0, strings.Repeat("6x1e6 ", 6))}},
			want: []Finding{{DataLoading, "The GPU use of w[0] fell from above 60 % to below 20 % 6 times, and it read 50.5 times as much while the use was low (101 MB/s): the program probably waits while it loads data."}}},
		"a saw tooth without more reads": {charts: map[string][]Series{
			"gpu-use": {gpu("w[0]", "0", strings.Repeat("4x90 2x0 ", 6))}, "disk-read": {of("w[0]", 0, strings.Repeat("6x100e6 ", 6))}}},
		"a saw tooth, and reads aren't measured": {charts: map[string][]Series{"gpu-use": {gpu("w[0]", "0", strings.Repeat("4x90 2x0 ", 6))}}},
		"memory at its limit": {charts: map[string][]Series{"memory": {of("w[0]", 64*gi, "19x1073741824 1x66000000000"), of("w[1]", 64*gi, "20x1073741824")}},
			want: []Finding{{MemoryLimit, "w[0] used up to 96 % of its memory limit of 64.0 GiB. A task that exceeds it is killed."}}},
		"memory of several tasks at its limit": {charts: map[string][]Series{"memory": {of("w[0]", gi, "20x1070000000"), of("w[1]", gi, "20x1000000000")}},
			want: []Finding{{MemoryLimit, "2 tasks used 90 % or more of their memory limit, w[0] the most: up to 99 % of 1.0 GiB. A task that exceeds it is killed."}}},
		"heat": {charts: map[string][]Series{"gpu-slowed": {gpu("w[0]", "0", "19x0 1x1"), gpu("w[0]", "1", "200x0 1x1")}},
			want: []Finding{{GPUSlowed, "Heat or the power supply slowed down w[0] GPU 0 on gpu-1 for 5 % of the time."}}},
		"GPU memory": {charts: map[string][]Series{"gpu-memory": {gpu("w[0]", "0", "10x50 10x97"), gpu("w[0]", "1", "20x80")}},
			want: []Finding{{GPUMemory, "The memory of w[0] GPU 0 was at least 95 % full for up to 50 % of the time. Some programs reserve nearly all of it when they start; others fail if they need more."}}},
		"a machine at its limits": {charts: map[string][]Series{"memory": {{Limit: new(float64(100 * gi)), Values: line("20x105000000000")}}, "cpu": {named("all", "15x99 5x20"), named("the busiest", "20x100")}},
			want: []Finding{{MemoryLimit, "The machine used up to 97 % of its memory of 100.0 GiB."}, {CPUFull, "All processors were busy (above 95 %) 75 % of the time."}}},
		"idle GPUs of a machine, which may be free": {charts: map[string][]Series{"gpu-use": {{Name: "GPU 0", GPU: "0", Values: line("20x0")}}}},
		"a virtual cluster with idle GPUs and a queue": {charts: map[string][]Series{
			"held-use": {named("", "20x12")}, "gpus": {named("guaranteed", "20x16"), named("used", "20x10")}, "waiting": {named("jobs", "8x2 12x0"), named("tasks", "20x0")}},
			want: []Finding{{HeldIdle, "The GPUs that tasks held were busy 12 % on average."},
				{WaitingFree, "Jobs waited 40 % of the time although 6 guaranteed GPUs were free on average: they may need more GPUs in one piece, or other resources. paictl job why NAME says which."}}},
		"a full virtual cluster with a queue": {charts: map[string][]Series{
			"held-use": {named("", "20x90")}, "gpus": {named("guaranteed", "20x16"), named("used", "20x16")}, "waiting": {named("jobs", "20x2")}}},
	} {
		t.Run(name, func(t *testing.T) {
			var charts []Chart
			for chart, series := range c.charts {
				one := Chart{Name: chart, Series: series}
				if series[0].Name == Lowest {
					one.Folded = -1
				}
				charts = append(charts, one)
			}
			assert.Equal(t, c.want, find(charts))
		})
	}
}

func TestThereAreFewFindings(t *testing.T) {
	found := find([]Chart{
		{Name: "gpu-use", Series: []Series{gpu("w[0]", "0", "20x10")}}, {Name: "cpu", Series: []Series{of("w[0]", 4, "20x4")}}, {Name: "memory", Series: []Series{of("w[0]", gi, "20x1070000000")}},
		{Name: "gpu-slowed", Series: []Series{gpu("w[0]", "0", "20x1")}}, {Name: "gpu-memory", Series: []Series{gpu("w[0]", "0", "20x99")}}})
	var kinds []string
	for _, f := range found {
		kinds = append(kinds, f.Kind)
	}
	assert.Equal(t, []string{MemoryLimit, DataWait, GPUSlowed}, kinds)
}
