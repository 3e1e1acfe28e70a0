package view

import (
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// overviewPage shows the figures, the problems and the virtual clusters of the cluster.
type overviewPage struct {
	*list[*status.Problem]
}

func newOverview() page {
	p := &overviewPage{}
	type pr = *status.Problem
	p.list = newList(list[pr]{
		noun: "problem",
		all:  func(d *env) []pr { return pointers(d.cluster.Verdict.Problems) },
		id:   func(v pr) string { return v.Kind + "\x00" + v.Name + "\x00" + v.Message },
		text: func(v pr) string { return lower(v.Kind, v.Name, v.Message, v.Hint) },
		head: p.figures,
		tell: func(_ *env, v pr) string { return withHint(v.Message, v.Hint) },
		open: openProblem,
		cols: []column[pr]{
			{Column: tui.Column{Min: 1}, cell: func(d *env, v pr) tui.Cell { return d.level(v.Level) }},
			{Column: tui.Column{Title: "WHAT IS WRONG", Min: 16, Ideal: 28}, cell: func(_ *env, v pr) tui.Cell {
				s := v.Kind + " " + v.Name
				if v.Others > 0 {
					s += fmt.Sprintf(" +%d", v.Others)
				}
				return text(s)
			}},
			{Column: tui.Column{Title: "WHY", Min: 24, Ideal: 60}, cell: func(_ *env, v pr) tui.Cell { return text(v.Message) }},
			{Column: tui.Column{Title: "WHAT TO DO", Min: 16, Ideal: 30, Priority: 1, Grows: true}, cell: func(_ *env, v pr) tui.Cell { return text(v.Hint) }},
		},
	})
	p.empty = tui.SignGood + " nothing is wrong"
	return p
}

func (*overviewPage) title() string { return "overview" }

// draw draws the page. The virtual clusters are below the problems if they fit.
func (p *overviewPage) draw(d *env, w, h int) []string {
	if h < toldRoom+4 {
		return p.list.draw(d, w, h)
	}
	foot := []string{"", p.sources(d, w)}
	const others = 8 + 1 + 1 + toldMax // figures, titles, details
	if room := h - len(foot) - others - max(len(p.rows), 1); room > 2 {
		foot = append(p.virtualClusters(d, w, room-2), foot...)
	}
	out := p.list.draw(d, w, h-len(foot))
	for len(out) < h-len(foot) {
		out = append(out, "")
	}
	return append(out, foot...)
}

// virtualClusters returns a title and at most rows lines.
func (*overviewPage) virtualClusters(d *env, w, rows int) []string {
	vcs := d.cluster.VirtualClusters
	if len(vcs) == 0 {
		return nil
	}
	if len(vcs) > rows {
		rows--
	}
	out := []string{"", d.p.Faint.Text("  VIRTUAL CLUSTERS")}
	for i := range vcs[:min(len(vcs), max(rows, 0))] {
		v := &vcs[i]
		waits := ""
		if n := len(v.Queue); n > 0 {
			waits = d.p.Warn.Text(fmt.Sprintf("%d wait", n))
		}
		sign := vcSign(d, v)
		out = append(out, fmt.Sprintf("  %s %s  %s  %s  %s", sign.Style.Text(sign.Text), tui.Pad(clean(v.Name), 16), d.p.Accent.Text(tui.Bar(min(max(w-60, 10), 40), int64(v.Used), int64(v.Guaranteed))),
			tui.PadLeft(fmt.Sprintf("%d/%d GPUs", v.Used, v.Guaranteed), 14), waits))
	}
	if more := len(vcs) - max(rows, 0); more > 0 {
		out = append(out, d.p.Faint.Text(fmt.Sprintf("  … and %d more (4 shows them)", more)))
	}
	return out
}

// sources returns a line with the state of each source and the age of stale sources.
func (*overviewPage) sources(d *env, w int) string {
	parts := make([]string, 0, len(d.cluster.Sources))
	for i := range d.cluster.Sources {
		s, name := &d.cluster.Sources[i], clean(d.cluster.Sources[i].Name)
		switch s.State {
		case status.StateCurrent:
			parts = append(parts, d.p.Good.Text(tui.SignGood)+" "+name)
		case status.StateAbsent:
			parts = append(parts, d.p.Faint.Text(tui.SignSkipped+" "+name+" not there"))
		case status.StateLoading:
			parts = append(parts, d.p.Faint.Text("… "+name))
		case status.StateStale:
			parts = append(parts, d.p.Warn.Text(tui.SignWarn+" "+name+" of "+d.age(s.Since)+" ago"))
		default:
			parts = append(parts, d.p.Bad.Text(tui.SignBad+" "+name))
		}
	}
	return tui.Cut("  "+strings.Join(parts, "   "), w)
}

// figures returns lines with the number of machines, GPUs, services, jobs and alerts. Some lines contain bars.
func (*overviewPage) figures(d *env, w, h int) []string {
	n := d.cluster.Counts
	bar := min(max((w-56)/2, 8), 40)
	half := (w - 2) / 2
	line := func(name string, used, total int, rest string, style tui.Style) string {
		return "  " + d.p.Faint.Text(tui.Pad(name, 9)) + style.Text(tui.Bar(bar, int64(used), int64(total))) + "  " + rest
	}
	ready := d.p.Good
	if n.MachinesReady < n.Machines {
		ready = d.p.Warn
	}
	services := d.p.Good
	if n.ServicesReady < n.Services {
		services = d.p.Warn
	}
	sick := ""
	if n.GPUsSick > 0 {
		sick = "  " + d.p.Bad.Text(fmt.Sprintf("%s %d sick", tui.SignBad, n.GPUsSick))
	}
	failed := ""
	if n.Failed > 0 {
		failed = "  " + d.p.Bad.Text(fmt.Sprintf("%s %d failed today", tui.SignBad, n.Failed))
	}
	jobs := fmt.Sprintf("%d running  %d waiting%s", n.Running, n.Waiting, failed)
	if !d.cluster.Knows(status.SourceJobs) {
		jobs = "not known"
	}
	alerts := "no alerts"
	if !d.cluster.Knows(status.SourceAlerts) {
		alerts = "not known"
	}
	if n.Alerts > 0 {
		alerts = d.p.Warn.Text(fmt.Sprintf("%s %d firing", tui.SignWarn, n.Alerts))
	}
	left := []string{line("machines", n.MachinesReady, n.Machines, fmt.Sprintf("%d/%d ready", n.MachinesReady, n.Machines), ready), line("GPUs", n.GPUsUsed, n.GPUs, fmt.Sprintf("%d/%d in use%s", n.GPUsUsed, n.GPUs, sick), d.p.Accent)}
	right := []string{line("services", n.ServicesReady, n.Services, fmt.Sprintf("%d/%d ready", n.ServicesReady, n.Services), services),
		"  " + d.p.Faint.Text(tui.Pad("jobs", 9)) + jobs}
	last := "  " + d.p.Faint.Text(tui.Pad("alerts", 9)) + alerts
	out := []string{"  " + d.p.Faint.Text(tui.Pad("cluster", 9)) + clean(fmt.Sprintf("%s · %s · Kubernetes %s", d.cluster.Name, d.cluster.Server, d.cluster.Kubernetes))}
	if w >= 100 {
		for i := range left {
			out = append(out, tui.Pad(left[i], half)+right[i])
		}
	} else {
		out = append(append(out, left...), right...)
	}
	out = append(out, last, "")
	return out[:min(len(out), max(h, 0))]
}

// openProblem opens the page of the object that has the problem. If the object has no page, it opens a text about the
// problem.
func openProblem(d *env, v *status.Problem) effect {
	name, _, _ := strings.Cut(v.Name, "/")
	switch v.Kind {
	case "machine", "gpu":
		if machineOf(d, name) != nil {
			return effect{push: newMachine(name)}
		}
	case "service":
		return effect{push: newService(v.Name)}
	case "vc":
		return effect{push: newVirtualCluster(v.Name)}
	case "job":
		return openJob(d, v.Name, "")
	case "alert":
		p := newAlerts().(filtered)
		p.setFilter(d, v.Name)
		return effect{push: p.(page)}
	}
	lines := []string{v.Kind + " " + v.Name, "", v.Message}
	if v.Hint != "" {
		lines = append(lines, "-> "+v.Hint)
	}
	return effect{push: newText(v.Kind+" "+v.Name, lines)}
}
