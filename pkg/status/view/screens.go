package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

func text(s string) tui.Cell { return tui.Cell{Text: s} }

func number(n int) tui.Cell {
	if n == 0 {
		return text("-")
	}
	return text(fmt.Sprint(n))
}

// share returns the used percentage of an amount.
func share(a status.Amount) string {
	if a.Total <= 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", a.Used*100/a.Total)
}

// machineSign returns the sign for the worst problem of a machine, or for its state.
func machineSign(d *env, m *status.Machine) tui.Cell {
	switch {
	case m.State == "NotReady" || m.State == "Unknown":
		return tui.Cell{Text: tui.SignBad, Style: d.p.Bad}
	case m.State != "Ready":
		return tui.Cell{Text: tui.SignUnknown, Style: d.p.Faint}
	case len(m.Pressure) > 0 || sick(m) > 0:
		return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
	case m.Cordoned:
		return tui.Cell{Text: tui.SignSkipped, Style: d.p.Warn}
	}
	return tui.Cell{Text: tui.SignGood, Style: d.p.Good}
}

func machineState(m *status.Machine) string {
	s := m.State
	if m.Cordoned {
		s += ", cordoned"
	}
	return s
}

// shortState returns a machine's state in few words. It always shows a cordon, because the sign shows only the worst
// problem.
func shortState(m *status.Machine) string {
	if m.State == status.MachineReady && m.Cordoned {
		return "cordoned"
	}
	return machineState(m)
}

func sick(m *status.Machine) int {
	n := 0
	for i := range m.GPUs {
		if bad(&m.GPUs[i]) {
			n++
		}
	}
	return n
}

func bad(g *status.GPU) bool { return g.Health == status.GPUSick || g.Health == status.GPUMissing }

func used(m *status.Machine) int {
	n := 0
	for i := range m.GPUs {
		if m.GPUs[i].Owner != nil {
			n++
		}
	}
	return n
}

func machineNote(m *status.Machine) string {
	parts := m.PressureWords()
	if n := sick(m); n > 0 {
		parts = append(parts, plural.Of(n, "sick GPU"))
	}
	parts = append(parts, compact(m.CordonText())...)
	parts = append(parts, compact(m.Message)...)
	return strings.Join(parts, ", ")
}

func pointers[T any](s []T) []*T {
	out := make([]*T, len(s))
	for i := range s {
		out[i] = &s[i]
	}
	return out
}

func newMachines() page {
	type m = *status.Machine
	return newList(list[m]{
		noun: "machine",
		all:  func(d *env) []m { return pointers(d.cluster.Machines) },
		id:   func(v m) string { return v.Name },
		text: func(v m) string {
			return lower(v.Name, v.Address, v.SKU, machineState(v), strings.Join(v.Roles, " "), machineNote(v))
		},
		open: func(_ *env, v m) effect { return effect{push: newMachine(v.Name)} },
		act:  machineKey, does: machineKeys,
		tell: func(_ *env, v m) string {
			return v.Name + ": " + cmp.Or(withHint(machineNote(v), v.Hint), machineState(v))
		},
		cols: []column[m]{
			{Column: tui.Column{Title: "", Min: 1}, cell: machineSign},
			{Column: tui.Column{Title: "NAME", Min: 12, Ideal: 24}, cell: func(_ *env, v m) tui.Cell { return text(v.Name) }, order: func(a, b m) int { return cmp.Compare(a.Name, b.Name) }},
			{Column: tui.Column{Title: "STATE", Min: 9, Ideal: 18}, cell: func(d *env, v m) tui.Cell {
				return tui.Cell{Text: shortState(v), Style: machineSign(d, v).Style}
			}, order: func(a, b m) int { return cmp.Compare(machineState(a), machineState(b)) }},
			{Column: tui.Column{Title: "GPUS", Min: 5, Right: true, Priority: 1}, cell: func(_ *env, v m) tui.Cell {
				return text(fmt.Sprintf("%d/%d", used(v), len(v.GPUs)))
			}, order: func(a, b m) int { return cmp.Compare(used(a), used(b)) }, down: true},
			{Column: tui.Column{Title: "SICK", Min: 4, Right: true, Priority: 2}, cell: func(d *env, v m) tui.Cell {
				c := number(sick(v))
				if c.Text != "-" {
					c.Style = d.p.Bad
				}
				return c
			}, order: func(a, b m) int { return cmp.Compare(sick(a), sick(b)) }, down: true},
			{Column: tui.Column{Title: "CPU REQ", Min: 7, Right: true, Priority: 4}, cell: func(_ *env, v m) tui.Cell { return text(share(v.CPU)) }, order: func(a, b m) int { return cmp.Compare(a.CPU.Used*b.CPU.Total, b.CPU.Used*a.CPU.Total) }, down: true},
			{Column: tui.Column{Title: "MEM REQ", Min: 7, Right: true, Priority: 4}, cell: func(_ *env, v m) tui.Cell { return text(share(v.Memory)) }, order: func(a, b m) int { return cmp.Compare(a.Memory.Used*b.Memory.Total, b.Memory.Used*a.Memory.Total) }, down: true},
			{Column: tui.Column{Title: "PODS", Min: 4, Right: true, Priority: 5}, cell: func(_ *env, v m) tui.Cell { return number(v.Pods) }, order: func(a, b m) int { return cmp.Compare(a.Pods, b.Pods) }, down: true},
			{Column: tui.Column{Title: "SINCE", Min: 5, Right: true, Priority: 3}, cell: func(d *env, v m) tui.Cell { return text(d.age(v.Since)) }, order: func(a, b m) int { return b.Since.Compare(a.Since) }},
			{Column: tui.Column{Title: "ADDRESS", Min: 10, Ideal: 15, Priority: 6}, cell: func(_ *env, v m) tui.Cell { return text(v.Address) }},
			{Column: tui.Column{Title: "SKU", Min: 6, Ideal: 12, Priority: 7}, cell: func(_ *env, v m) tui.Cell { return text(v.SKU) }, order: func(a, b m) int { return cmp.Compare(a.SKU, b.SKU) }},
			{Column: tui.Column{Title: "ROLES", Min: 10, Ideal: 22, Priority: 9}, cell: func(_ *env, v m) tui.Cell { return text(strings.Join(v.Roles, ",")) }},
			{Column: tui.Column{Title: "DRIVER", Min: 11, Priority: 8}, cell: func(_ *env, v m) tui.Cell { return text(v.Driver) }, order: func(a, b m) int { return cmp.Compare(a.Driver, b.Driver) }},
			{Column: tui.Column{Title: "NOTE", Min: 16, Ideal: 24, Priority: 2, Grows: true}, cell: func(_ *env, v m) tui.Cell { return text(machineNote(v)) }},
		},
	})
}

func serviceSign(d *env, s *status.Service) tui.Cell {
	switch s.State {
	case services.StateReady:
		return tui.Cell{Text: tui.SignGood, Style: d.p.Good}
	case services.StateFailed:
		return tui.Cell{Text: tui.SignBad, Style: d.p.Bad}
	case services.StateStarting:
		return tui.Cell{Text: "…", Style: d.p.Busy}
	case services.StateOrphan:
		return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
	}
	return tui.Cell{Text: tui.SignNone, Style: d.p.Faint}
}

func serviceNote(s *status.Service) string {
	switch {
	case len(s.Problems) > 0:
		return s.Problems[0].Text()
	case s.Configuration == services.ConfigurationChanged:
		return s.Configuration
	}
	return s.Hint
}

func newServices() page {
	type s = *status.Service
	return newList(list[s]{
		noun: "service",
		all:  func(d *env) []s { return pointers(d.cluster.Services) },
		id:   func(v s) string { return v.Name },
		text: func(v s) string { return lower(v.Name, v.Namespace, v.State, v.Chart, serviceNote(v)) },
		open: func(_ *env, v s) effect { return effect{push: newService(v.Name)} },
		act:  serviceKey, does: serviceKeys,
		tell: func(_ *env, v s) string {
			if len(v.Problems) > 0 {
				return withHint(serviceNote(v), v.Problems[0].Hint)
			}
			return serviceNote(v)
		},
		empty:  "no services; start them with: paictl service start",
		source: status.SourceServices,
		cols: []column[s]{
			{Column: tui.Column{Min: 1}, cell: serviceSign},
			{Column: tui.Column{Title: "NAME", Min: 16, Ideal: 26}, cell: func(_ *env, v s) tui.Cell { return text(v.Name) }, order: func(a, b s) int { return cmp.Compare(a.Name, b.Name) }},
			{Column: tui.Column{Title: "STATE", Min: 9, Ideal: 13}, cell: func(d *env, v s) tui.Cell { return tui.Cell{Text: v.State, Style: serviceSign(d, v).Style} }, order: func(a, b s) int { return cmp.Compare(a.State, b.State) }},
			{Column: tui.Column{Title: "PODS", Min: 7, Right: true, Priority: 1}, cell: func(_ *env, v s) tui.Cell { return text(fmt.Sprintf("%d/%d", v.ReadyPods, v.Pods)) }, order: func(a, b s) int { return cmp.Compare(a.Pods, b.Pods) }, down: true},
			{Column: tui.Column{Title: "UPDATED", Min: 7, Right: true, Priority: 3}, cell: func(d *env, v s) tui.Cell { return text(d.age(v.Updated)) }, order: func(a, b s) int { return b.Updated.Compare(a.Updated) }},
			{Column: tui.Column{Title: "CHART", Min: 14, Ideal: 26, Priority: 5}, cell: func(_ *env, v s) tui.Cell { return text(v.Chart) }},
			{Column: tui.Column{Title: "NAMESPACE", Min: 10, Ideal: 14, Priority: 6}, cell: func(_ *env, v s) tui.Cell { return text(v.Namespace) }},
			{Column: tui.Column{Title: "NOTE", Min: 10, Ideal: 20, Priority: 2, Grows: true}, cell: func(_ *env, v s) tui.Cell { return text(serviceNote(v)) }},
		},
	})
}

func jobSign(d *env, j *status.Job) tui.Cell {
	switch job.Phase(j.State) {
	case job.Running:
		return tui.Cell{Text: "▶", Style: d.p.Busy}
	case job.Succeeded:
		return tui.Cell{Text: tui.SignGood, Style: d.p.Good}
	case job.Failed:
		return tui.Cell{Text: tui.SignBad, Style: d.p.Bad}
	case job.Stopped, job.Deleted:
		return tui.Cell{Text: tui.SignSkipped, Style: d.p.Faint}
	case job.Retry:
		return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
	case job.Stopping, job.Deleting:
		return tui.Cell{Text: "■", Style: d.p.Faint}
	}
	return tui.Cell{Text: "…", Style: d.p.Warn} // it waits
}

// took returns how long a job ran, or how long it has been running.
func took(d *env, j *status.Job) string {
	switch {
	case j.Started == nil:
		return "-"
	case j.Completed != nil:
		return tui.Clock(j.Completed.Sub(*j.Started))
	}
	return tui.Clock(d.now.Sub(*j.Started))
}

func jobNote(j *status.Job) string {
	switch {
	case j.Why != "":
		return j.Why
	case job.Phase(j.State) == job.Succeeded:
		return ""
	}
	return rules.Words(j.Phrase)
}

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + " -> " + hint
}

func gpus(n int) string {
	if n < 0 {
		return "?"
	}
	return number(n).Text
}

// gpusOf returns the number of GPUs that a job gets. If the job requests fewer GPUs, the text contains both numbers.
func gpusOf(j *status.Job) string {
	if j.TakesGPUs > j.GPUs {
		return fmt.Sprintf("%d (asks for %s)", j.TakesGPUs, gpus(j.GPUs))
	}
	return gpus(j.GPUs)
}

// newJobs returns a list of the jobs for which of returns true, or of all jobs if of is nil.
func newJobs(title string, of func(j *status.Job) bool) *jobList {
	type j = *status.Job
	return &jobList{name: title, list: newList(list[j]{
		noun: "job",
		all: func(d *env) []j {
			if of == nil {
				return d.cluster.Jobs
			}
			var out []j
			for _, v := range d.cluster.Jobs {
				if of(v) {
					out = append(out, v)
				}
			}
			return out
		},
		id: func(v j) string { return v.UID },
		text: remembered(func(v j) string {
			return lower(v.Title(), v.VirtualCluster, v.State, v.Priority, v.Why, v.Phrase, rules.Words(v.Phrase), strings.Join(v.Nodes, " "))
		}),
		open: func(_ *env, v j) effect { return effect{push: newJob(v)} },
		act:  jobKey, does: jobKeys,
		tell:   func(_ *env, v j) string { return v.Title() + ": " + cmp.Or(jobNote(v), v.State) },
		empty:  "no jobs; submit one with: paictl job submit",
		source: status.SourceJobs,
		cols: []column[j]{
			{Column: tui.Column{Min: 1}, cell: jobSign},
			{Column: tui.Column{Title: "JOB", Min: 18, Ideal: 36}, cell: func(_ *env, v j) tui.Cell { return text(v.Title()) }, order: func(a, b j) int { return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Name, b.Name)) }},
			{Column: tui.Column{Title: "STATE", Min: 13, Ideal: 14}, cell: func(d *env, v j) tui.Cell { return tui.Cell{Text: v.At().Text(d.now), Style: jobSign(d, v).Style} }, order: func(a, b j) int { return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Position, b.Position)) }},
			{Column: tui.Column{Title: "VC", Min: 7, Ideal: 14, Priority: 2}, cell: func(_ *env, v j) tui.Cell { return text(v.VirtualCluster) }, order: func(a, b j) int { return cmp.Compare(a.VirtualCluster, b.VirtualCluster) }},
			{Column: tui.Column{Title: "GPUS", Min: 4, Right: true, Priority: 1}, cell: func(_ *env, v j) tui.Cell { return text(gpus(v.Taken())) }, order: func(a, b j) int { return cmp.Compare(a.Taken(), b.Taken()) }, down: true},
			{Column: tui.Column{Title: "TASKS", Min: 5, Right: true, Priority: 5}, cell: func(_ *env, v j) tui.Cell { return number(v.Tasks) }, order: func(a, b j) int { return cmp.Compare(a.Tasks, b.Tasks) }, down: true},
			{Column: tui.Column{Title: "AGE", Min: 4, Right: true, Priority: 1}, cell: func(d *env, v j) tui.Cell { return text(d.age(v.Submitted)) }, order: func(a, b j) int { return b.Submitted.Compare(a.Submitted) }},
			{Column: tui.Column{Title: "RAN", Min: 6, Right: true, Priority: 4}, cell: func(d *env, v j) tui.Cell { return text(took(d, v)) }},
			{Column: tui.Column{Title: "RETRIES", Min: 7, Right: true, Priority: 6}, cell: func(_ *env, v j) tui.Cell { return number(int(v.Retries)) }, order: func(a, b j) int { return cmp.Compare(a.Retries, b.Retries) }, down: true},
			{Column: tui.Column{Title: "PRIORITY", Min: 8, Ideal: 10, Priority: 7}, cell: func(_ *env, v j) tui.Cell { return text(v.Priority) }, order: func(a, b j) int { return cmp.Compare(a.Priority, b.Priority) }},
			{Column: tui.Column{Title: "WHY", Min: 18, Ideal: 30, Priority: 3, Grows: true}, cell: func(_ *env, v j) tui.Cell { return text(jobNote(v)) }},
		},
	})}
}

// rememberedMax is the maximum number of cached texts. Texts of removed jobs also count. When the cache is full, all
// texts are dropped.
const rememberedMax = 50_000

// remembered returns a function that caches the text of each value. Models share unchanged jobs, so a cached text
// remains valid.
func remembered[T comparable](text func(T) string) func(T) string {
	known := map[T]string{}
	return func(v T) string {
		s, ok := known[v]
		if !ok {
			if len(known) >= rememberedMax {
				clear(known)
			}
			s = text(v)
			known[v] = s
		}
		return s
	}
}

type jobList struct {
	*list[*status.Job]
	name string
}

func (l *jobList) title() string { return l.name }

func newVirtualClusters() page {
	type v = *status.VirtualCluster
	return newList(list[v]{
		noun: "virtual cluster",
		all:  func(d *env) []v { return pointers(d.cluster.VirtualClusters) },
		id:   func(c v) string { return c.Name },
		text: func(c v) string { return lower(c.Name, c.Policy) },
		open: func(_ *env, c v) effect { return effect{push: newVirtualCluster(c.Name)} },
		act: func(_ *env, c v, k string) (effect, bool) {
			if k == "b" {
				return effect{push: jobsOf(c.Name)}, true
			}
			return effect{}, false
		},
		does: func(*env, v) []binding { return []binding{{"b", "its jobs"}} },
		tell: func(_ *env, c v) string {
			if n := nextOf(c); n != "" {
				return "next in " + c.Name + ": " + n
			}
			return ""
		},
		cols: []column[v]{
			{Column: tui.Column{Min: 1}, cell: vcSign},
			{Column: tui.Column{Title: "NAME", Min: 12, Ideal: 24}, cell: func(_ *env, c v) tui.Cell { return text(c.Name) }, order: func(a, b v) int { return cmp.Compare(a.Name, b.Name) }},
			{Column: tui.Column{Title: "OWNS", Min: 5, Right: true}, cell: func(_ *env, c v) tui.Cell { return number(c.Guaranteed) }, order: func(a, b v) int { return cmp.Compare(a.Guaranteed, b.Guaranteed) }, down: true},
			{Column: tui.Column{Title: "USED", Min: 5, Right: true}, cell: func(_ *env, c v) tui.Cell { return number(c.Used) }, order: func(a, b v) int { return cmp.Compare(a.Used, b.Used) }, down: true},
			{Column: tui.Column{Title: "", Min: 10, Ideal: 20, Priority: 4}, cell: func(d *env, c v) tui.Cell {
				return tui.Cell{Text: tui.Bar(10, int64(c.Used), int64(c.Guaranteed)), Style: d.p.Accent}
			}},
			{Column: tui.Column{Title: "FREE", Min: 5, Right: true, Priority: 1}, cell: func(_ *env, c v) tui.Cell { return number(c.Free) }, order: func(a, b v) int { return cmp.Compare(a.Free, b.Free) }, down: true},
			{Column: tui.Column{Title: "BORROWED", Min: 8, Right: true, Priority: 3}, cell: func(_ *env, c v) tui.Cell { return number(c.Opportunistic) }, order: func(a, b v) int { return cmp.Compare(a.Opportunistic, b.Opportunistic) }, down: true},
			{Column: tui.Column{Title: "SICK", Min: 4, Right: true, Priority: 3}, cell: func(_ *env, c v) tui.Cell { return number(c.Bad) }, order: func(a, b v) int { return cmp.Compare(a.Bad, b.Bad) }, down: true},
			{Column: tui.Column{Title: "WAIT", Min: 4, Right: true, Priority: 1}, cell: func(_ *env, c v) tui.Cell { return number(len(c.Queue)) }, order: func(a, b v) int { return cmp.Compare(len(a.Queue), len(b.Queue)) }, down: true},
			{Column: tui.Column{Title: "POLICY", Min: 8, Ideal: 14, Priority: 6}, cell: func(_ *env, c v) tui.Cell { return text(c.Policy) }},
			{Column: tui.Column{Title: "NEXT", Min: 10, Ideal: 30, Priority: 5, Grows: true}, cell: func(_ *env, c v) tui.Cell { return text(nextOf(c)) }},
		},
	})
}

// vcSign returns the sign of a virtual cluster. The sign shows bad GPUs and waiting jobs.
func vcSign(d *env, c *status.VirtualCluster) tui.Cell {
	switch {
	case c.Deleted:
		return tui.Cell{Text: tui.SignUnknown, Style: d.p.Warn}
	case c.Bad > 0:
		return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
	case len(c.Queue) > 0:
		return tui.Cell{Text: "…", Style: d.p.Busy}
	}
	return tui.Cell{Text: tui.SignGood, Style: d.p.Good}
}

// nextOf returns the first gang of the queue, and the reason why the gang waits.
func nextOf(c *status.VirtualCluster) string {
	if c.Deleted {
		return "no longer in the configuration: waiting jobs never start"
	}
	if len(c.Queue) == 0 {
		return ""
	}
	g := c.Queue[0]
	return g.Job + ": " + g.Reason
}

func newAlerts() page {
	type a = *status.Alert
	return newList(list[a]{
		noun:   "alert",
		all:    func(d *env) []a { return pointers(d.cluster.Alerts) },
		id:     func(v a) string { return v.Name + v.Since.String() + labels(v) },
		text:   func(v a) string { return lower(v.Name, v.Severity, v.Summary, labels(v)) },
		open:   func(d *env, v a) effect { return effect{push: newText("alert "+v.Name, alertText(d, v))} },
		tell:   func(_ *env, v a) string { return v.Summary },
		empty:  "no alert fires",
		source: status.SourceAlerts,
		cols: []column[a]{
			{Column: tui.Column{Min: 1}, cell: func(d *env, v a) tui.Cell {
				if v.Silenced {
					return tui.Cell{Text: tui.SignSkipped, Style: d.p.Faint}
				}
				if v.Level() == status.LevelOK { // no action is needed, but the state isn't good
					return tui.Cell{Text: tui.SignInfo, Style: d.p.Faint}
				}
				return d.level(v.Level())
			}},
			{Column: tui.Column{Title: "ALERT", Min: 18, Ideal: 32}, cell: func(_ *env, v a) tui.Cell { return text(v.Name) }, order: func(x, y a) int { return cmp.Compare(x.Name, y.Name) }},
			{Column: tui.Column{Title: "SEVERITY", Min: 8, Ideal: 10, Priority: 2}, cell: func(_ *env, v a) tui.Cell { return text(v.Severity) }},
			{Column: tui.Column{Title: "SINCE", Min: 5, Right: true, Priority: 1}, cell: func(d *env, v a) tui.Cell { return text(d.age(v.Since)) }, order: func(x, y a) int { return y.Since.Compare(x.Since) }},
			{Column: tui.Column{Title: "ABOUT", Min: 12, Ideal: 30, Priority: 4}, cell: func(_ *env, v a) tui.Cell { return text(labels(v)) }},
			{Column: tui.Column{Title: "SUMMARY", Min: 20, Ideal: 60, Grows: true}, cell: func(_ *env, v a) tui.Cell { return text(v.Summary) }},
		},
	})
}

// objectOrder lists the alert labels that identify the object of an alert, in display order.
var objectOrder = []string{"node", "instance", "job_name", "pod", "service", "namespace", "gpu", "minor_number"}

func labels(a *status.Alert) string {
	var out []string
	for _, k := range objectOrder {
		if v := a.Labels[k]; v != "" {
			out = append(out, v)
		}
	}
	return strings.Join(out, " ")
}

func newEvents() page {
	type e = *status.Event
	return newList(list[e]{
		noun: "event",
		all:  func(d *env) []e { return pointers(d.cluster.Events) },
		id:   func(v e) string { return v.Namespace + v.Object + v.Reason + v.Message },
		text: func(v e) string {
			return lower(v.Type, v.Reason, rules.Words(v.Reason), v.Object, v.Namespace, v.Job, v.Message)
		},
		open:  openEvent,
		tell:  func(_ *env, v e) string { return v.Object + ": " + v.Message },
		empty: "no events in the last hour",
		cols: []column[e]{
			{Column: tui.Column{Min: 1}, cell: func(d *env, v e) tui.Cell {
				if v.Type == "Warning" {
					return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
				}
				return tui.Cell{Text: tui.SignNone, Style: d.p.Faint}
			}},
			{Column: tui.Column{Title: "AGE", Min: 4, Right: true}, cell: func(d *env, v e) tui.Cell { return text(d.age(v.At)) }, order: func(x, y e) int { return y.At.Compare(x.At) }},
			{Column: tui.Column{Title: "REASON", Min: 12, Ideal: 20}, cell: func(_ *env, v e) tui.Cell { return text(rules.Words(v.Reason)) }, order: func(x, y e) int { return cmp.Compare(x.Reason, y.Reason) }},
			{Column: tui.Column{Title: "OBJECT", Min: 16, Ideal: 36, Priority: 1}, cell: func(_ *env, v e) tui.Cell { return text(v.Object) }, order: func(x, y e) int { return cmp.Compare(x.Object, y.Object) }},
			{Column: tui.Column{Title: "JOB", Min: 12, Ideal: 24, Priority: 4}, cell: func(_ *env, v e) tui.Cell { return text(v.Job) }, order: func(x, y e) int { return cmp.Compare(x.Job, y.Job) }},
			{Column: tui.Column{Title: "COUNT", Min: 5, Right: true, Priority: 3}, cell: func(_ *env, v e) tui.Cell { return number(v.Count) }, order: func(x, y e) int { return cmp.Compare(x.Count, y.Count) }, down: true},
			{Column: tui.Column{Title: "MESSAGE", Min: 20, Ideal: 60, Grows: true}, cell: func(_ *env, v e) tui.Cell { return text(v.Message) }},
		},
	})
}

func openEvent(_ *env, v *status.Event) effect {
	lines := []string{"at       " + v.At.Local().Format("2006-01-02 15:04:05"), "type     " + v.Type, "reason   " + rules.WithTerm(v.Reason), "object   " + v.Object}
	if v.Namespace != "" {
		lines = append(lines, "in       "+v.Namespace)
	}
	if v.Job != "" {
		lines = append(lines, "job      "+v.Job+"   (: "+v.Job+" goes there)")
	}
	lines = append(lines, "count    "+fmt.Sprint(v.Count), "", v.Message)
	return effect{push: newText("event", lines)}
}

func alertText(d *env, v *status.Alert) []string {
	lines := []string{v.Summary, "", "severity  " + v.Severity, "since     " + v.Since.Local().Format("2006-01-02 15:04:05") + " (" + d.age(v.Since) + ")"}
	if v.Silenced {
		lines = append(lines, "silenced  yes")
	}
	if v.Runbook != "" {
		lines = append(lines, "runbook   "+v.Runbook)
	}
	lines = append(lines, "", "labels")
	for _, k := range sortedKeys(v.Labels) {
		lines = append(lines, "  "+k+" = "+v.Labels[k])
	}
	return lines
}
