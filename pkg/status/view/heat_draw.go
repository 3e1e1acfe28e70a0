package view

import (
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// cell returns the sign and color of a GPU. Problems are shown in every color mode.
func (p *heatPage) cell(d *env, g *status.GPU) tui.Cell {
	if p.shade == byHealth || bad(g) || g.Health == status.GPUUnknown {
		return healthSign(d, g)
	}
	switch {
	case p.shade == byUse && g.Use != nil && (g.Owner != nil || g.Use.Utilisation >= 1):
		share := g.Use.Utilisation / 100
		i := min(int(share*float64(len(d.p.Heat))), len(d.p.Heat)-1)
		return tui.Cell{Text: tui.Level(share), Style: d.p.Heat[max(i, 0)]}
	case p.shade == byUse && g.Owner != nil:
		return tui.Cell{Text: "o", Style: d.p.Faint}
	case g.Owner == nil && g.ForPods:
		return tui.Cell{Text: "p", Style: d.p.Faint}
	case g.Owner == nil || p.shade == byUse:
		return tui.Cell{Text: tui.SignNone, Style: d.p.Faint}
	}
	i := p.groups[p.group(g)]
	return tui.Cell{Text: tui.Letter(i), Style: d.p.Group(i)}
}

func healthSign(d *env, g *status.GPU) tui.Cell {
	switch g.Health {
	case status.GPUHealthy:
		if g.Owner != nil {
			return tui.Cell{Text: "•", Style: d.p.Good}
		}
		return tui.Cell{Text: tui.SignNone, Style: d.p.Good}
	case status.GPUIgnored:
		return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
	case status.GPUSick:
		return tui.Cell{Text: tui.SignBad, Style: d.p.Bad}
	case status.GPUMissing:
		return tui.Cell{Text: tui.SignSkipped, Style: d.p.Bad}
	}
	return tui.Cell{Text: tui.SignUnknown, Style: d.p.Faint}
}

const (
	nameMax   = 20 // columns of a machine's name
	explained = 5  // lines: a blank, three of the cell, the legend
)

func (p *heatPage) draw(d *env, w, h int) []string {
	if len(p.machines) == 0 {
		text := "no machine has reported a GPU"
		if p.search != "" {
			text = fmt.Sprintf("no machine matches %q; esc shows all", clean(p.search))
		}
		return []string{"  " + d.p.Faint.Text(text)}
	}
	name, room := min(p.name, nameMax), max(h-explained, 1)
	for p.pitch = 2; p.pitch > 0; p.pitch-- { // cells have gaps if all machines fit
		p.block = 1 + name + 1 + p.pitch*p.gpus + 3
		p.beside = max((w+2)/p.block, 1) // no gap after the last one
		if len(p.machines) <= p.beside*room && p.block <= w+2 {
			break
		}
	}
	p.pitch = max(p.pitch, 1)
	p.shown = p.gpus
	if p.block > w+2 { // even one machine is too wide: show a part of its cells
		p.shown = max((w-6-name)/p.pitch, 1) // leave room for the cursor's brackets and the sign for further cells
		p.block = 1 + name + 1 + p.pitch*p.shown + 3
	}
	p.top = 0
	p.win.Height = room
	p.place()
	p.left = max(min(p.left, p.gpu, p.gpus-p.shown), p.gpu-p.shown+1, 0)
	var out []string
	for line := p.win.Top; line < p.win.End(); line++ {
		var b strings.Builder
		for i := line * p.beside; i < min((line+1)*p.beside, len(p.machines)); i++ {
			p.drawMachine(d, &b, i, name)
		}
		out = append(out, b.String())
	}
	out = append(out, "")
	out = append(out, p.explain(d, w)...)
	return append(out, p.legendLine(d, w))
}

func (p *heatPage) drawMachine(d *env, b *strings.Builder, i, name int) {
	m := p.machines[i]
	here := i == p.machine
	style := tui.Style{}
	if s := machineSign(d, m); m.State != "Ready" || m.Cordoned {
		style = s.Style
	}
	if here {
		b.WriteString(">")
		style = style.With(d.p.Bold)
	} else {
		b.WriteString(" ")
	}
	b.WriteString(style.Text(tui.Pad(clean(m.Name), name)))
	used := 0
	put := func(text string, columns int) {
		b.WriteString(text)
		used += columns
	}
	if p.pitch == 1 && (!here || p.gpu != p.left) {
		put(" ", 1)
	}
	for k := p.left; k < p.left+p.shown; k++ {
		selected, after := here && k == p.gpu, here && k == p.gpu+1
		switch {
		case selected:
			put("[", 1)
		case p.pitch == 2 && !after: // the last GPU's bracket takes this column
			put(" ", 1)
		}
		if k >= len(m.GPUs) {
			put(" ", 1)
			continue
		}
		c := p.cell(d, &m.GPUs[k])
		if selected {
			put(c.Style.With(d.p.Selected).Text(c.Text)+"]", 2)
		} else {
			put(c.Style.Text(c.Text), 1)
		}
	}
	if p.left+p.shown < len(m.GPUs) {
		put(" …", 2)
	}
	b.WriteString(tui.Spaces(p.block - 1 - name - used))
}

func (p *heatPage) current() (*status.Machine, *status.GPU) {
	if p.machine >= len(p.machines) {
		return nil, nil
	}
	m := p.machines[p.machine]
	return m, &m.GPUs[min(p.gpu, len(m.GPUs)-1)]
}

func (p *heatPage) explain(d *env, w int) []string {
	m, g := p.current()
	sign := healthSign(d, g)
	parts := []string{d.p.Bold.Text(fmt.Sprintf("%s/%d", clean(m.Name), g.Index)), sign.Style.Text(sign.Text + " " + clean(g.Health))}
	if g.Reason != "" {
		parts = append(parts, clean(g.Reason))
	}
	if m.State != "Ready" || m.Cordoned {
		parts = append(parts, machineSign(d, m).Style.Text(clean(machineState(m))))
	}
	if g.Model != "" {
		parts = append(parts, clean(g.Model))
	}
	if g.Simulated {
		parts = append(parts, "simulated")
	}
	second := []string{ownerText(g)}
	if u := g.Use; u != nil {
		second = append(second, fmt.Sprintf("%.0f %% busy", u.Utilisation), gpuMemory(g))
		if u.Temperature > 0 {
			second = append(second, fmt.Sprintf("%.0f °C", u.Temperature))
		}
		if u.Power > 0 {
			second = append(second, fmt.Sprintf("%.0f W", u.Power))
		}
		second = append(second, "measured "+d.age(u.At)+" ago")
	} else {
		second = append(second, "utilization not measured")
	}
	first := tui.Wrap(strings.Join(parts, " · "), w-4)
	out := make([]string, 0, explained-2)
	for _, l := range append(first, tui.Wrap(clean(strings.Join(second, " · ")), w-4)...) {
		out = append(out, "  "+l)
	}
	for len(out) < explained-2 {
		out = append(out, "")
	}
	return out[:explained-2]
}

func ownerText(g *status.GPU) string {
	o := g.Owner
	switch {
	case o == nil && g.ForPods:
		return "free, for ordinary pods"
	case o == nil:
		return "free"
	}
	s := o.Job
	if s == "" {
		s = "pod " + o.Pod
	}
	if o.Task != "" {
		s += " " + o.Task
	}
	if o.VirtualCluster != "" {
		s += " in " + o.VirtualCluster
	}
	if o.Opportunistic {
		s += ", borrowed"
	}
	return s
}

func gpuMemory(g *status.GPU) string {
	switch {
	case g.Use != nil && g.Memory > 0:
		return fmt.Sprintf("%d/%d GiB", g.Use.MemoryUsed/1024, g.Memory/1024)
	case g.Memory > 0:
		return fmt.Sprintf("%d GiB", g.Memory/1024)
	}
	return "-"
}

func (p *heatPage) legendLine(d *env, w int) string {
	l := "  "
	sign := func(c tui.Cell, name string) {
		part := c.Style.Text(c.Text) + " " + name
		if tui.Width(l)+tui.Width(part) < w-2 {
			l += part + "   "
		}
	}
	switch p.shade {
	case byUse:
		for i, name := range []string{"idle", "", "half", "", "busy"} {
			sign(tui.Cell{Text: tui.Level(float64(i) / 4), Style: d.p.Heat[i]}, name)
		}
		sign(tui.Cell{Text: "o", Style: d.p.Faint}, "in use, not measured")
	case byHealth:
		sign(tui.Cell{Text: "•", Style: d.p.Good}, "healthy, in use")
		sign(tui.Cell{Text: tui.SignNone, Style: d.p.Good}, "healthy, free")
		sign(tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}, "sick, but in use")
	}
	if p.shade != byHealth {
		sign(tui.Cell{Text: tui.SignNone, Style: d.p.Faint}, "free")
	}
	sign(tui.Cell{Text: tui.SignBad, Style: d.p.Bad}, "sick")
	sign(tui.Cell{Text: tui.SignUnknown, Style: d.p.Faint}, "unknown")
	if p.shade == byHealth {
		sign(tui.Cell{Text: tui.SignSkipped, Style: d.p.Bad}, "missing")
	}
	for _, g := range p.legend { // the largest first, as many as fit
		i := p.groups[g]
		sign(tui.Cell{Text: tui.Letter(i), Style: d.p.Group(i)}, fmt.Sprintf("%s %d", clean(g), p.counts[g]))
	}
	return l
}
