package metrics

import (
	"fmt"
	"strings"
)

type figures struct {
	charts map[string]*Chart
	tasks  []*task // in order
}

type task struct {
	name string
	gpus []*Series
	// use is the mean use of the task's GPUs at each time.
	use        []*float64
	cpu        *Series
	disk, net  *Series
	explained  bool // there is a known reason why its GPUs are little used
	busy, idle float64
}

// all returns the series of a chart, or nil if the chart is folded.
func (f *figures) all(name string) []Series {
	if c := f.charts[name]; c != nil && c.Folded == 0 {
		return c.Series
	}
	return nil
}

func (f *figures) ofTasks() {
	byName := map[string]*task{}
	gpus := f.all("gpu-use")
	for i := range gpus {
		s := &gpus[i]
		if s.Task == "" {
			continue
		}
		t := byName[s.Task]
		if t == nil {
			t = &task{name: s.Task}
			byName[s.Task], f.tasks = t, append(f.tasks, t)
		}
		t.gpus = append(t.gpus, s)
	}
	one := func(chart string, set func(*task, *Series)) {
		list := f.all(chart)
		for i := range list {
			if t := byName[list[i].Task]; t != nil {
				set(t, &list[i])
			}
		}
	}
	one("cpu", func(t *task, s *Series) { t.cpu = s })
	one("disk-read", func(t *task, s *Series) { t.disk = s })
	one("network-in", func(t *task, s *Series) { t.net = s })
	for _, t := range f.tasks {
		t.use = make([]*float64, len(t.gpus[0].Values))
		for at := range t.use {
			sum, n := 0.0, 0
			for _, g := range t.gpus {
				if v := g.Values[at]; v != nil {
					sum, n = sum+*v, n+1
				}
			}
			if n > 0 {
				t.use[at] = new(sum / float64(n))
			}
		}
		t.busy = mean(t.use)
		t.idle, _ = share(t.use, func(v float64) bool { return v < idleUse })
	}
}

// share returns the share of the measured values for which fits returns true, and the number of measured values.
func share(values []*float64, fits func(float64) bool) (part float64, n int) {
	fit := 0
	for _, v := range values {
		if v == nil {
			continue
		}
		n++
		if fits(*v) {
			fit++
		}
	}
	return float64(fit) / float64(max(n, 1)), n
}

func measured(values []*float64) bool {
	_, n := share(values, func(float64) bool { return false })
	return n >= minMeasured
}

func mean(values []*float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if v != nil {
			sum, n = sum+*v, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// percent formats a share between 0 and 1 in percent. It rounds down, so that "at least" is correct.
func percent(part float64) string { return fmt.Sprintf("%d %%", int(100*part+1e-9)) }

func some(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n <= most:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
}

// gib formats a number of bytes in GiB.
func gib(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }

// saw returns how often the use of a task's GPUs falls from high to low. The result reads is the read rate in bytes per second while the use is
// low. The result times is the ratio of this rate to the rate while the use is high. Both results are 0 if too little was measured.
func (t *task) saw() (falls int, reads, times float64) {
	high := false
	var low, up []*float64
	for at, v := range t.use {
		if v == nil {
			continue
		}
		switch {
		case *v >= highUse:
			high = true
			up = append(up, t.reads(at))
		case *v <= lowUse:
			if high {
				falls++
			}
			high = false
			low = append(low, t.reads(at))
		}
	}
	_, n := share(low, func(float64) bool { return true })
	_, m := share(up, func(float64) bool { return true })
	if n < minFalls || m < minFalls {
		return falls, 0, 0
	}
	reads = mean(low)
	return falls, reads, reads / max(mean(up), 1)
}

// reads returns the rate, in bytes per second, at which a task reads from disks and the network at one time. It returns nil without a measurement.
func (t *task) reads(at int) (out *float64) {
	for _, s := range []*Series{t.disk, t.net} {
		if s == nil || s.Values[at] == nil {
			continue
		}
		if out == nil {
			out = new(float64)
		}
		*out += *s.Values[at]
	}
	return out
}
