package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// few limits the number of rows in a table without --all.
const few = 20

// Write prints a model in the chosen output format. In the format name, it prints each problem as kind/name.
func Write(w io.Writer, out *cmdutil.Output, c *status.Cluster, all bool) error {
	if !out.IsTable() {
		names := cmdutil.Table{}
		for i := range c.Verdict.Problems {
			names.Rows = append(names.Rows, []string{c.Verdict.Problems[i].Kind + "/" + c.Verdict.Problems[i].Name})
		}
		return out.Write(w, c, names)
	}
	p := &page{w: w, out: out, c: c, all: all}
	p.line(fmt.Sprintf("%s: %s (%s)", c.Name, levelText(c.Verdict.Level), place(c)))
	p.line("  " + summary(c))
	p.problems()
	p.machines()
	p.virtualClusters()
	p.services()
	p.jobs()
	p.alerts()
	p.absent()
	return p.err
}

// page prints sections one after the other, and keeps the first write error.
type page struct {
	w   io.Writer
	out *cmdutil.Output
	c   *status.Cluster
	all bool
	err error
}

func (p *page) line(text string) {
	if p.err == nil {
		indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
		_, p.err = fmt.Fprintln(p.w, indent+terminal.Line(text))
	}
}

// table prints a blank line, the table, and the text below. It prints nothing if the table is empty.
func (p *page) table(t cmdutil.Table, below string) {
	if len(t.Rows) > 0 {
		p.line("")
		if p.err == nil {
			p.err = p.out.WriteTable(p.w, t)
		}
	} else if below != "" {
		p.line("")
	}
	if below != "" {
		p.line(below)
	}
}

func levelText(level string) string {
	if level == status.LevelOK {
		return "healthy"
	}
	return level
}

func place(c *status.Cluster) string {
	if c.Kubernetes == "" {
		return c.Server
	}
	return c.Server + ", Kubernetes " + c.Kubernetes
}

// summary describes a cluster in one line. It omits unknown values.
func summary(c *status.Cluster) string {
	n := &c.Counts
	var parts []string
	if n.Machines > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s ready", n.MachinesReady, plural.Of(n.Machines, "machine")))
	}
	if n.GPUs > 0 {
		text := fmt.Sprintf("%d of %s in use", n.GPUsUsed, plural.Of(n.GPUs, "GPU"))
		if n.GPUsSick > 0 {
			text += fmt.Sprintf(", %d not usable", n.GPUsSick)
		}
		parts = append(parts, text)
	}
	if c.Knows(status.SourceJobs) {
		text := fmt.Sprintf("jobs: %d running, %d waiting", n.Running, n.Waiting)
		if n.Failed > 0 {
			text += fmt.Sprintf(", %d failed in a day", n.Failed)
		}
		parts = append(parts, text)
	}
	if n.Services > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s ready", n.ServicesReady, plural.Of(n.Services, "service")))
	}
	if c.Knows(status.SourceAlerts) {
		parts = append(parts, plural.Of(n.Alerts, "alert"))
	}
	if len(parts) == 0 {
		return "nothing is known yet"
	}
	return strings.Join(parts, "; ")
}

func (p *page) problems() {
	for i := range p.c.Verdict.Problems {
		x := &p.c.Verdict.Problems[i]
		if i == 0 {
			p.line("")
		}
		text := x.Text()
		if x.Kind == "source" {
			text += p.staleSince(x.Name)
		}
		p.line(x.Level + ": " + text)
		if x.Hint != "" {
			p.line("  -> " + x.Hint)
		}
	}
}

// staleSince returns a text about the age of the data from a source, or "" if the data isn't stale.
func (p *page) staleSince(name string) string {
	for i := range p.c.Sources {
		if s := &p.c.Sources[i]; s.Name == name && s.State == status.StateStale {
			return "; the data shown is " + job.Duration(p.c.At.Sub(s.Since)) + " old"
		}
	}
	return ""
}

func (p *page) machines() {
	t := cmdutil.Table{Header: []string{"MACHINE", "STATE", "ROLES", "GPUS USED", "CPU REQ", "MEM REQ", "PODS", "KUBELET", "WHAT IS WRONG"}}
	fine, more := 0, 0
	for i := range p.c.Machines {
		m := &p.c.Machines[i]
		wrong := trouble(m)
		if !p.all && len(p.c.Machines) > few {
			if wrong == "" && m.State == status.MachineReady {
				fine++
				continue
			}
			if len(t.Rows) == few {
				more++
				continue
			}
		}
		state := m.State
		if m.Cordoned {
			state += ",cordoned"
		}
		t.Rows = append(t.Rows, []string{m.Name, state, roles(m.Roles), gpus(m), percent(m.CPU), percent(m.Memory), fmt.Sprint(m.Pods), cmp.Or(m.Kubelet, "-"), wrong})
	}
	below := ""
	switch {
	case more > 0:
		below = fmt.Sprintf("(%s more with trouble, %d that work: --all)", plural.Of(more, "machine"), fine)
	case fine > 0:
		below = fmt.Sprintf("(%s that work: --all)", plural.Of(fine, "machine"))
	}
	p.table(t, below)
}

// roles lists roles without the prefix that they all share.
func roles(all []string) string {
	var out []string
	for _, r := range all {
		out = append(out, strings.TrimPrefix(r, "pai-"))
	}
	return cmp.Or(strings.Join(out, ","), "-")
}

func gpus(m *status.Machine) string {
	used := 0
	for i := range m.GPUs {
		if m.GPUs[i].Owner != nil {
			used++
		}
	}
	if len(m.GPUs) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", used, len(m.GPUs))
}

func percent(a status.Amount) string {
	if a.Total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", 100*a.Used/a.Total)
}

// trouble returns the problems of a machine and of its GPUs in one text, or "" if there are no problems.
func trouble(m *status.Machine) string {
	var out []string
	if m.State != status.MachineReady && m.Message != "" {
		out = append(out, m.Message)
	}
	if text := m.CordonText(); text != "" {
		out = append(out, text)
	}
	out = append(out, m.PressureWords()...)
	var reason string
	var sick []string
	for i := range m.GPUs {
		if g := &m.GPUs[i]; g.Health == status.GPUSick || g.Health == status.GPUMissing {
			sick = append(sick, fmt.Sprint(g.Index))
			if reason == "" {
				reason = g.Reason
			}
		}
	}
	if len(sick) > 0 {
		text := plural.Noun(len(sick), "GPU") + " " + strings.Join(sick, ",") + " not usable"
		if reason != "" {
			text += ": " + reason
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (p *page) virtualClusters() {
	t := cmdutil.Table{Header: []string{"VIRTUAL CLUSTER", "GUARANTEED", "USED", "OPPORTUNISTIC", "FREE", "BAD", "WAITING"}}
	for i := range p.c.VirtualClusters {
		v := &p.c.VirtualClusters[i]
		name := v.Name
		if v.Deleted {
			name += " (deleted)"
		}
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(v.Guaranteed), fmt.Sprint(v.Used), fmt.Sprint(v.Opportunistic), fmt.Sprint(v.Free), fmt.Sprint(v.Bad), fmt.Sprint(v.WaitingGangs)})
	}
	p.table(t, "")
}

func (p *page) services() {
	t := cmdutil.Table{Header: []string{"SERVICE", "STATE", "PODS", "REVISION", "WHY"}}
	var absent []string
	for i := range p.c.Services {
		s := &p.c.Services[i]
		if !p.all && (s.State == services.StateReady || s.State == services.StateDisabled) {
			continue
		}
		if !p.all && s.State == services.StateNotInstalled {
			absent = append(absent, s.Name)
			continue
		}
		why := ""
		if len(s.Problems) > 0 {
			why = s.Problems[0].Text()
		}
		row := []string{s.Name, s.State, "-", "-", why}
		if s.Revision > 0 {
			row[2], row[3] = fmt.Sprintf("%d/%d", s.ReadyPods, s.Pods), fmt.Sprint(s.Revision)
		}
		t.Rows = append(t.Rows, row)
	}
	below := ""
	if len(absent) > 0 {
		below = "not installed: " + strings.Join(absent, ", ")
	}
	p.table(t, below)
	if below != "" {
		p.line("  -> paictl service start")
	}
}

func (p *page) jobs() {
	t := cmdutil.Table{Header: []string{"JOB", "STATE", "VC", "GPUS", "TASKS", "AGE", "WHY"}}
	left := 0
	for _, j := range p.c.Jobs {
		at := j.At()
		if !p.all && at.Phase.Done() {
			continue
		}
		if !p.all && len(t.Rows) == few {
			left++
			continue
		}
		gpus := fmt.Sprint(j.Taken())
		if j.GPUs < 0 {
			gpus = "?"
		}
		t.Rows = append(t.Rows, []string{j.Title(), at.Text(p.c.At), cmp.Or(j.VirtualCluster, "-"), gpus, fmt.Sprint(j.Tasks), cmdutil.Age(p.c.At.Sub(j.Submitted)), j.Why})
	}
	below := ""
	if left > 0 {
		below = fmt.Sprintf("(%s more: --all, or paictl job list)", plural.Of(left, "job"))
	}
	p.table(t, below)
}

func (p *page) alerts() {
	t := cmdutil.Table{Header: []string{"ALERT", "SEVERITY", "AGE", "WHAT"}}
	for i := range p.c.Alerts {
		a := &p.c.Alerts[i]
		severity := a.Severity
		if a.Silenced {
			if !p.all {
				continue
			}
			severity += ",silenced"
		}
		t.Rows = append(t.Rows, []string{a.Name, cmp.Or(severity, "-"), cmdutil.Age(p.c.At.Sub(a.Since)), a.Summary})
	}
	left := 0
	if !p.all && len(t.Rows) > few {
		left, t.Rows = len(t.Rows)-few, t.Rows[:few]
	}
	below := ""
	if left > 0 {
		below = fmt.Sprintf("(%s more: --all)", plural.Of(left, "alert"))
	}
	p.table(t, below)
}

// absent lists the parts that the cluster doesn't have, each with the way to add it.
func (p *page) absent() {
	told := map[string]bool{}
	for i := range p.c.Sources {
		s := &p.c.Sources[i]
		// The server removes the messages for people who aren't administrators.
		if s.State != status.StateAbsent || s.Message == "" || told[s.Message] {
			continue
		}
		if len(told) == 0 {
			p.line("")
		}
		told[s.Message] = true
		p.line("not shown: " + s.Message)
		p.line("  -> " + s.Hint)
	}
}
