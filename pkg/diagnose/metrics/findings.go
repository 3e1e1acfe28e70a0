package metrics

import (
	"fmt"
	"strings"
)

// Finding is a sentence about measurements. It contains the measured values, and draws no further conclusions.
type Finding struct {
	Kind string `json:"kind"` // one of the constants
	Text string `json:"text"`
}

// Kinds of findings.
const (
	MemoryLimit = "memory-limit" // the memory is nearly at its limit
	DataWait    = "data-wait"    // GPUs are little used while all processors of their task are full
	OneThread   = "one-thread"   // GPUs are little used while exactly one processor of their task is full
	GPUsIdle    = "gpus-idle"    // no GPU is used
	GPUIdle     = "gpu-idle"     // some GPUs are used and others aren't
	DataLoading = "data-loading" // the use of GPUs falls again and again, and the task reads then
	GPUSlowed   = "gpu-slowed"   // heat or the power supply slows GPUs down
	GPUMemory   = "gpu-memory"   // the memory of GPUs is nearly full
	CPUFull     = "cpu-full"     // all processors of a machine are busy
	HeldIdle    = "held-idle"    // the GPUs that the tasks of a virtual cluster hold are little used
	WaitingFree = "waiting-free" // jobs wait although guaranteed GPUs are free
)

// MaxFindings is the maximum number of findings of a report.
const MaxFindings = 3

// Limits of findings. Uses are in percent, shares are parts of the measured times.
const (
	minMeasured = 10   // with fewer values, there is no finding
	idleUse     = 5    // as in the alert JobGpusIdle
	idleShare   = 0.9  // a GPU that is idle for less time is used
	busyUse     = 30   // the mean of a GPU that is used
	littleUse   = 50   // the mean of GPUs that wait for something
	fullCPU     = 0.9  // of the limit
	fullShare   = 0.8  // of the time
	highUse     = 60   // the teeth of a saw tooth, and the gaps between them
	lowUse      = 20   //
	minFalls    = 4    // from a spike into a gap
	moreReads   = 2    // times as much is read in the gaps
	minReads    = 1e6  // bytes/s
	fullMemory  = 0.9  // of the limit of a task
	fullMachine = 0.95 // of the memory of a machine
	fullGPU     = 95   // percent of its memory
	rareShare   = 0.05 // of the time that a GPU is slowed down
	oftenShare  = 0.1  //
	waitShare   = 0.2  //
)

// find returns the most important findings about charts. The charts must contain all series, unless too many exist.
func find(charts []Chart) []Finding {
	f := &figures{charts: map[string]*Chart{}}
	for i := range charts {
		f.charts[charts[i].Name] = &charts[i]
	}
	f.ofTasks()
	var out []Finding
	for _, say := range []func() []Finding{f.memory, f.waits, f.idle, f.loading, f.slowed, f.gpuMemory, f.machine, f.virtualCluster} {
		out = append(out, say()...)
	}
	return out[:min(len(out), MaxFindings)]
}

// memory finds tasks or machines whose memory use is near the limit.
func (f *figures) memory() []Finding {
	var worst *Series
	var part float64
	var names []string
	list := f.all("memory")
	for i := range list {
		s := &list[i]
		high := highest(s.Values)
		if s.Limit == nil || *s.Limit <= 0 || high == nil || !measured(s.Values) {
			continue
		}
		bound := fullMemory
		if s.Task == "" {
			bound = fullMachine
		}
		p := *high / *s.Limit
		if p < bound {
			continue
		}
		names = append(names, s.Name)
		if worst == nil || p > part {
			worst, part = s, p
		}
	}
	switch {
	case worst == nil:
		return nil
	case worst.Task == "":
		return []Finding{{MemoryLimit, fmt.Sprintf("The machine used up to %s of its memory of %s.", percent(part), gib(*worst.Limit))}}
	case len(names) == 1:
		return []Finding{{MemoryLimit, fmt.Sprintf("%s used up to %s of its memory limit of %s. A task that exceeds it is killed.", worst.Name, percent(part), gib(*worst.Limit))}}
	}
	return []Finding{{MemoryLimit, fmt.Sprintf("%d tasks used %s or more of their memory limit, %s the most: up to %s of %s. A task that exceeds it is killed.",
		len(names), percent(fullMemory), worst.Name, percent(part), gib(*worst.Limit))}}
}

// waits finds tasks whose GPUs are little used while all of their processors, or exactly one processor, are fully used.
func (f *figures) waits() []Finding {
	all := map[string][]*task{}
	least := map[string]float64{}
	for _, t := range f.tasks {
		if t.cpu == nil || t.cpu.Limit == nil || !measured(t.use) || !measured(t.cpu.Values) || t.busy >= littleUse {
			continue
		}
		limit := *t.cpu.Limit
		full, _ := share(t.cpu.Values, func(v float64) bool { return v >= fullCPU*limit })
		one, _ := share(t.cpu.Values, func(v float64) bool { return v >= 0.9 && v <= 1.1 })
		kind, part := DataWait, full
		if limit >= 2 && one > full {
			kind, part = OneThread, one
		}
		if part < fullShare {
			continue
		}
		t.explained = true
		if len(all[kind]) == 0 || part < least[kind] {
			least[kind] = part
		}
		all[kind] = append(all[kind], t)
	}
	var out []Finding
	for _, kind := range []string{DataWait, OneThread} {
		tasks := all[kind]
		if len(tasks) == 0 {
			continue
		}
		t := tasks[0]
		subject := someTasks(tasks)
		text := fmt.Sprintf("%s %s while ", gpusOf(subject, t), unused(tasks))
		if kind == DataWait {
			text += fmt.Sprintf("the processors were full (above %s of the limit of %s) %s of the time: the program probably waits for its data.", percent(fullCPU), number(*t.cpu.Limit), percent(least[kind]))
		} else {
			text += fmt.Sprintf("one processor of %s was busy %s of the time: one thread probably prepares the data.", number(*t.cpu.Limit), percent(least[kind]))
		}
		out = append(out, Finding{kind, text})
	}
	return out
}

// gpusOf returns the beginning of a sentence about the GPUs of tasks, including the verb.
func gpusOf(subject string, t *task) string {
	if len(t.gpus) == 1 && !strings.Contains(subject, " and ") {
		return "GPU " + t.gpus[0].GPU + " of " + subject + " was"
	}
	return "The GPUs of " + subject + " were"
}

// unused returns text about the low use of tasks' GPUs. For several tasks, it contains limits that apply to each task.
func unused(tasks []*task) string {
	idle, busy, least, most := 1.0, 0.0, "", ""
	for _, t := range tasks {
		idle, busy = min(idle, t.idle), max(busy, t.busy)
	}
	if len(tasks) > 1 {
		least, most = "at least ", "at most "
	}
	if idle >= 0.5 {
		return fmt.Sprintf("idle (below %d %%) %s%s of the time", idleUse, least, percent(idle))
	}
	return fmt.Sprintf("busy %s%.0f %% on average", most, busy)
}

func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func number(v float64) string { return fmt.Sprintf("%.4g", v) }

func someTasks(tasks []*task) string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.name)
	}
	return some(names)
}

// idle finds GPUs of a job that aren't used.
func (f *figures) idle() []Finding {
	if c := f.charts["gpu-use"]; c != nil && c.Folded < 0 {
		for i := range c.Series {
			s := &c.Series[i]
			part, _ := share(s.Values, func(v float64) bool { return v < idleUse })
			if s.Name == Highest && measured(s.Values) && part >= idleShare {
				return []Finding{{GPUsIdle, fmt.Sprintf("No GPU was used: even the busiest was idle (below %d %%) %s of the time.", idleUse, percent(part))}}
			}
		}
		return nil
	}
	var idle []string
	least, total, busy := 1.0, 0, 0
	for _, t := range f.tasks {
		for _, g := range t.gpus {
			if !measured(g.Values) {
				continue
			}
			total++
			part, _ := share(g.Values, func(v float64) bool { return v < idleUse })
			switch {
			case t.explained:
			case part >= idleShare:
				idle, least = append(idle, g.Name), min(least, part)
			case mean(g.Values) >= busyUse:
				busy++
			}
		}
	}
	switch {
	case len(idle) == 0:
		return nil
	case total == 1:
		return []Finding{{GPUsIdle, fmt.Sprintf("The GPU was idle (below %d %%) %s of the time.", idleUse, percent(least))}}
	case len(idle) == total:
		return []Finding{{GPUsIdle, fmt.Sprintf("None of the %d GPUs was used: each was idle (below %d %%) at least %s of the time.", total, idleUse, percent(least))}}
	case busy > 0:
		return []Finding{{GPUIdle, fmt.Sprintf("%d of %d GPUs %s idle (below %d %%) at least %s of the time, while others were busy: %s. The program may not use them.",
			len(idle), total, was(len(idle)), idleUse, percent(least), some(idle))}}
	}
	return nil
}

// loading finds tasks whose GPUs repeatedly become idle while the tasks read data.
func (f *figures) loading() []Finding {
	var found []*task
	text := ""
	for _, t := range f.tasks {
		if t.explained || !measured(t.use) {
			continue
		}
		falls, reads, times := t.saw()
		if falls < minFalls || reads < minReads || times < moreReads {
			continue
		}
		if found = append(found, t); text == "" {
			text = fmt.Sprintf("fell from above %d %% to below %d %% %d times, and it read %.1f times as much while the use was low (%.0f MB/s): the program probably waits while it loads data.",
				highUse, lowUse, falls, times, reads/1e6)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return []Finding{{DataLoading, "The GPU use of " + found[0].name + " " + text}}
	}
	return []Finding{{DataLoading, fmt.Sprintf("The GPU use of %d tasks falls again and again while they read. That of %s %s", len(found), found[0].name, text)}}
}

// slowed finds GPUs that run slower because of heat or the power supply.
func (f *figures) slowed() []Finding {
	var names []string
	most := 0.0
	list := f.all("gpu-slowed")
	for i := range list {
		s := &list[i]
		part, n := share(s.Values, func(v float64) bool { return v >= 1 })
		if n < minMeasured || part < rareShare {
			continue
		}
		name := s.Name
		if s.Node != "" && !strings.HasSuffix(name, " on "+s.Node) {
			name += " on " + s.Node
		}
		names, most = append(names, name), max(most, part)
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return []Finding{{GPUSlowed, fmt.Sprintf("Heat or the power supply slowed down %s for %s of the time.", names[0], percent(most))}}
	}
	return []Finding{{GPUSlowed, fmt.Sprintf("Heat or the power supply slowed down %d GPUs for up to %s of the time: %s.", len(names), percent(most), some(names))}}
}

// gpuMemory finds GPUs of a job whose memory is nearly full.
func (f *figures) gpuMemory() []Finding {
	var names []string
	most := 0.0
	list := f.all("gpu-memory")
	for i := range list {
		part, n := share(list[i].Values, func(v float64) bool { return v >= fullGPU })
		if list[i].Task != "" && n >= minMeasured && part >= oftenShare {
			names, most = append(names, list[i].Name), max(most, part)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{GPUMemory, fmt.Sprintf("The memory of %s was at least %d %% full for up to %s of the time. Some programs reserve nearly all of it when they start; others fail if they need more.",
		some(names), fullGPU, percent(most))}}
}

// machine finds a machine whose processors are all busy.
func (f *figures) machine() []Finding {
	list := f.all("cpu")
	for i := range list {
		s := &list[i]
		part, n := share(s.Values, func(v float64) bool { return v >= 100*fullMachine })
		if s.Task == "" && s.Name == "all" && n >= minMeasured && part >= 0.5 {
			return []Finding{{CPUFull, fmt.Sprintf("All processors were busy (above %s) %s of the time.", percent(fullMachine), percent(part))}}
		}
	}
	return nil
}

// virtualCluster finds GPUs that tasks occupy but use little. It also finds jobs that wait although GPUs are free.
func (f *figures) virtualCluster() (out []Finding) {
	named := func(chart, name string) []*float64 {
		list := f.all(chart)
		for i := range list {
			if s := &list[i]; s.Name == name && s.Task == "" && s.GPU == "" {
				return s.Values
			}
		}
		return nil
	}
	if use := named("held-use", ""); measured(use) && mean(use) < busyUse {
		out = append(out, Finding{HeldIdle, fmt.Sprintf("The GPUs that tasks held were busy %.0f %% on average.", mean(use))})
	}
	owned, used, waits := named("gpus", "guaranteed"), named("gpus", "used"), named("waiting", "jobs")
	if owned == nil || used == nil {
		return out
	}
	free := make([]*float64, len(waits))
	for at := range waits {
		if waits[at] != nil && owned[at] != nil && used[at] != nil {
			free[at] = new(0.0)
			if *waits[at] >= 1 {
				*free[at] = *owned[at] - *used[at]
			}
		}
	}
	part, n := share(free, func(v float64) bool { return v >= 1 })
	if n < minMeasured || part < waitShare {
		return out
	}
	var values []*float64
	for _, v := range free {
		if v != nil && *v >= 1 {
			values = append(values, v)
		}
	}
	return append(out, Finding{WaitingFree, fmt.Sprintf("Jobs waited %s of the time although %.0f guaranteed GPUs were free on average: they may need more GPUs in one piece, or other resources. paictl job why NAME says which.", percent(part), mean(values))})
}
