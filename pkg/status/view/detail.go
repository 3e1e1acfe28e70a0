package view

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// facts formats pairs of labels and texts, with two pairs on each line if they fit. It skips empty texts.
func facts(d *env, w, h int, pairs ...[2]string) []string {
	label := 0
	var kept [][2]string
	for _, p := range pairs {
		if p[1] != "" && p[1] != "-" {
			kept = append(kept, [2]string{p[0], clean(p[1])})
			label = max(label, tui.Width(p[0]))
		}
	}
	one := func(p [2]string) string { return d.p.Faint.Text(tui.Pad(p[0], label)) + "  " + p[1] }
	half := (w - 4) / 2
	var out []string
	for i := 0; i < len(kept); i++ {
		l := "  " + one(kept[i])
		if w >= 76 && i+1 < len(kept) && label+2+tui.Width(kept[i][1]) < half && label+2+tui.Width(kept[i+1][1]) < half {
			l = tui.Pad(l, half+2) + one(kept[i+1])
			i++
		}
		out = append(out, tui.Cut(l, w))
	}
	out = out[:min(len(out), max(h-1, 0))]
	return append(out, "")
}

// --- a machine

type machinePage struct {
	*list[*status.GPU]
	name string
	m    *status.Machine
}

func newMachine(name string) page {
	p := &machinePage{name: name}
	type g = *status.GPU
	p.list = newList(list[g]{
		noun: "GPU",
		all: func(_ *env) []g {
			if p.m == nil {
				return nil
			}
			return pointers(p.m.GPUs)
		},
		id:   func(v g) string { return fmt.Sprint(v.Index, v.UUID) },
		text: func(v g) string { return lower(v.Model, v.Health, v.Reason, ownerText(v)) },
		head: p.facts,
		open: openOwner,
		act:  func(d *env, _ g, k string) (effect, bool) { return machineKey(d, p.m, k) },
		does: func(d *env, _ g) []binding { return machineKeys(d, p.m) },
		cols: []column[g]{
			{Column: tui.Column{Min: 1}, cell: healthSign},
			{Column: tui.Column{Title: "GPU", Min: 3, Right: true}, cell: func(_ *env, v g) tui.Cell { return text(fmt.Sprint(v.Index)) }},
			{Column: tui.Column{Title: "HEALTH", Min: 8}, cell: func(d *env, v g) tui.Cell { return tui.Cell{Text: v.Health, Style: healthSign(d, v).Style} }},
			{Column: tui.Column{Title: "USE", Min: 4, Right: true, Priority: 1}, cell: func(_ *env, v g) tui.Cell {
				if v.Use == nil {
					return text("-")
				}
				return text(fmt.Sprintf("%.0f%%", v.Use.Utilisation))
			}},
			{Column: tui.Column{Title: "MEMORY", Min: 10, Right: true, Priority: 3}, cell: func(_ *env, v g) tui.Cell { return text(gpuMemory(v)) }},
			{Column: tui.Column{Title: "TEMP", Min: 5, Right: true, Priority: 4}, cell: func(_ *env, v g) tui.Cell {
				if v.Use == nil || v.Use.Temperature == 0 {
					return text("-")
				}
				return text(fmt.Sprintf("%.0f °C", v.Use.Temperature))
			}},
			{Column: tui.Column{Title: "POWER", Min: 5, Right: true, Priority: 5}, cell: func(_ *env, v g) tui.Cell {
				if v.Use == nil || v.Use.Power == 0 {
					return text("-")
				}
				return text(fmt.Sprintf("%.0f W", v.Use.Power))
			}},
			{Column: tui.Column{Title: "VC", Min: 8, Ideal: 14, Priority: 2}, cell: func(_ *env, v g) tui.Cell {
				if v.Owner == nil {
					return text("-")
				}
				return text(v.Owner.VirtualCluster)
			}},
			{Column: tui.Column{Title: "MODEL", Min: 12, Ideal: 24, Priority: 6}, cell: func(_ *env, v g) tui.Cell { return text(v.Model) }},
			{Column: tui.Column{Title: "WHO OR WHY", Min: 16, Ideal: 30, Grows: true}, cell: func(_ *env, v g) tui.Cell {
				if v.Reason != "" {
					return text(strings.TrimPrefix(v.Reason+" · "+ownerText(v), " · "))
				}
				return text(ownerText(v))
			}},
		},
	})
	p.empty = "no GPUs"
	p.tell = func(_ *env, v g) string {
		return fmt.Sprintf("GPU %d: %s", v.Index, strings.TrimPrefix(v.Reason+" · "+ownerText(v), " · "))
	}
	return p
}

func (p *machinePage) title() string { return p.name }

func (p *machinePage) refresh(d *env) effect {
	if m := machineOf(d, p.name); m != nil {
		p.m = m
	}
	return p.list.refresh(d)
}

// key handles the machine's keys. The keys work even if the machine has no GPUs, and therefore no row under the cursor.
func (p *machinePage) key(d *env, k string) (effect, bool) {
	if e, ok := p.list.key(d, k); ok || p.m == nil {
		return e, ok
	}
	return machineKey(d, p.m, k)
}

func (p *machinePage) keys(d *env) []binding {
	if len(p.rows) > 0 || p.m == nil {
		return p.list.keys(d)
	}
	return machineKeys(d, p.m)
}

func (p *machinePage) facts(d *env, w, h int) []string {
	m := p.m
	if m == nil {
		return []string{"  " + clean(p.name) + " is no longer in the cluster", ""}
	}
	sign := machineSign(d, m)
	certificates := ""
	if !m.Certificates.IsZero() {
		certificates = "first expires in " + tui.Age(m.Certificates.Sub(d.now))
		if m.Certificates.Before(d.now) {
			certificates = "expired"
		}
	}
	note := strings.Join(slices.Concat(m.PressureWords(), compact(m.CordonText()), compact(m.Message)), ", ")
	if m.Hint != "" {
		note += " -> " + m.Hint
	}
	return append([]string{"  " + sign.Style.Text(sign.Text+" "+clean(machineState(m))) + d.p.Faint.Text("  for "+d.age(m.Since))},
		facts(d, w, h-1, [2]string{"address", m.Address}, [2]string{"roles", strings.Join(m.Roles, ", ")},
			[2]string{"CPU", amountText(m.CPU, 1000, "cores")}, [2]string{"memory", amountText(m.Memory, 1024, "GiB")},
			[2]string{"GPUs", fmt.Sprintf("%d of %d in use, %d sick", used(m), len(m.GPUs), sick(m))}, [2]string{"pods", number(m.Pods).Text},
			[2]string{"driver", m.Driver}, [2]string{"kubelet", m.Kubelet}, [2]string{"runtime", m.Runtime}, [2]string{"kernel", m.Kernel}, [2]string{"OS", m.OS}, [2]string{"SKU", m.SKU},
			[2]string{"certificates", certificates}, [2]string{"note", note})...)
}

func compact(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func amountText(a status.Amount, unit int64, name string) string {
	if a.Total == 0 {
		return ""
	}
	n := func(v int64) string {
		return strconv.FormatFloat(math.Round(float64(v)/float64(unit)*10)/10, 'f', -1, 64)
	}
	return fmt.Sprintf("pods request %s of %s %s (%s)", n(a.Used), n(a.Total), name, share(a))
}

func machineOf(d *env, name string) *status.Machine {
	i, ok := slices.BinarySearchFunc(d.cluster.Machines, name, func(m status.Machine, n string) int { return strings.Compare(m.Name, n) })
	if ok {
		return &d.cluster.Machines[i]
	}
	i = slices.IndexFunc(d.cluster.Machines, func(m status.Machine) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &d.cluster.Machines[i]
}

// machineKey handles the keys for actions on a machine. All pages use it.
func machineKey(d *env, m *status.Machine, k string) (effect, bool) {
	if m == nil {
		return effect{}, false
	}
	name, node := m.Name, m.State != "Outside"
	switch {
	case k == "c" && node && !m.Cordoned:
		text := fmt.Sprintf("Cordon %s? Its pods stay, and no new ones go there until it is uncordoned.", name)
		if slices.Contains(m.Roles, "master") {
			text = fmt.Sprintf("Cordon %s, a master? Kubernetes' DNS and the platform's services that have their place there can't start again until it is uncordoned.", name)
		}
		return effect{ask: &question{text: text, yes: func(d *env) effect {
			return start(d, func(ctx context.Context) error { return d.act.Cordon(ctx, name) },
				notice{text: "cordoned " + name + ": no new pods go there", undo: "uncordon it", do: func(d *env) effect { return uncordon(d, name) }})
		}}}, true
	case k == "c" && node:
		return uncordon(d, name), true
	case k == "D" && node:
		what := name
		if slices.Contains(m.Roles, "master") {
			what += ", a master"
		}
		text := fmt.Sprintf("Drain %s? Of its %s all except those of daemon sets are evicted; tasks of jobs fail and are retried as their jobs say.", what, plural.Of(m.Pods, "pod"))
		return effect{ask: &question{text: text, yes: func(d *env) effect {
			return newStream(d, "drain "+name, true, func(ctx context.Context, out io.Writer) error { return d.act.Drain(ctx, name, out) })
		}}}, true
	case k == "l":
		return newStream(d, "journal of "+name, false, func(ctx context.Context, out io.Writer) error { return d.act.MachineJournal(ctx, m, out) }), true
	}
	return effect{}, false
}

func uncordon(d *env, name string) effect {
	return start(d, func(ctx context.Context) error { return d.act.Uncordon(ctx, name) }, notice{text: "uncordoned " + name + ": pods go there again"})
}

func machineKeys(_ *env, m *status.Machine) []binding {
	out := []binding{{"l", "journal"}}
	switch {
	case m == nil || m.State == "Outside":
		return out
	case m.Cordoned:
		out = append(out, binding{"c", "uncordon"})
	default:
		out = append(out, binding{"c", "cordon"})
	}
	return append(out, binding{"D", "drain"})
}

// --- a virtual cluster

type vcPage struct {
	*list[*job.WaitingGang]
	name string
	v    *status.VirtualCluster
}

func newVirtualCluster(name string) page {
	p := &vcPage{name: name}
	type g = *job.WaitingGang
	p.list = newList(list[g]{
		noun: "gang",
		all: func(*env) []g {
			if p.v == nil {
				return nil
			}
			return pointers(p.v.Queue)
		},
		id:    func(v g) string { return v.Group },
		text:  func(v g) string { return lower(v.Job, v.User, v.Reason, v.State) },
		head:  p.facts,
		empty: "no job waits",
		tell:  func(_ *env, v g) string { return v.Job + ": " + v.Reason },
		open:  func(d *env, v g) effect { return openJob(d, v.Job, "") },
		cols: []column[g]{
			{Column: tui.Column{Title: "#", Min: 3, Right: true}, cell: func(_ *env, v g) tui.Cell { return text(fmt.Sprint(v.PositionInVC)) }},
			{Column: tui.Column{Title: "JOB", Min: 18, Ideal: 36}, cell: func(_ *env, v g) tui.Cell { return text(v.Job) }},
			{Column: tui.Column{Title: "GPUS", Min: 4, Right: true}, cell: func(_ *env, v g) tui.Cell { return number(v.GPUs) }},
			{Column: tui.Column{Title: "PODS", Min: 4, Right: true, Priority: 4}, cell: func(_ *env, v g) tui.Cell { return number(v.Pods) }},
			{Column: tui.Column{Title: "PRIORITY", Min: 8, Right: true, Priority: 3}, cell: func(_ *env, v g) tui.Cell { return number(v.Priority) }},
			{Column: tui.Column{Title: "WAITS", Min: 5, Right: true, Priority: 1}, cell: func(d *env, v g) tui.Cell { return text(d.age(v.Since)) }},
			{Column: tui.Column{Title: "WHY", Min: 16, Ideal: 40, Priority: 2, Grows: true}, cell: func(_ *env, v g) tui.Cell { return text(v.Reason) }},
		},
	})
	return p
}

func (p *vcPage) title() string { return p.name }

func (p *vcPage) refresh(d *env) effect {
	if i := slices.IndexFunc(d.cluster.VirtualClusters, func(v status.VirtualCluster) bool { return v.Name == p.name }); i >= 0 {
		p.v = &d.cluster.VirtualClusters[i]
	}
	return p.list.refresh(d)
}

func (p *vcPage) key(d *env, k string) (effect, bool) {
	if k == "b" {
		return effect{push: jobsOf(p.name)}, true
	}
	return p.list.key(d, k)
}

func (p *vcPage) keys(d *env) []binding {
	return append([]binding{{"b", "its jobs"}}, p.list.keys(d)...)
}

func jobsOf(vc string) page {
	return newJobs("jobs of "+vc, func(j *status.Job) bool { return j.VirtualCluster == vc })
}

func (p *vcPage) facts(d *env, w, h int) []string {
	v := p.v
	if v == nil {
		return []string{"  " + clean(p.name) + " is no longer in the cluster", ""}
	}
	bar := "  " + d.p.Accent.Text(tui.Bar(min(w-40, 60), int64(v.Used), int64(v.Guaranteed))) + fmt.Sprintf("  %d of %d GPUs in use", v.Used, v.Guaranteed)
	quota := ""
	if q := v.Quota; q != nil {
		quota = fmt.Sprintf("%s per user, %s per group", limit(q.PerUser), limit(q.PerGroup))
	}
	cells := make([]string, 0, len(v.Cells))
	for _, c := range v.Cells {
		cells = append(cells, fmt.Sprintf("%d × %s", c.CellNumber, c.CellType))
	}
	fragments := ""
	if v.Fragmentation > 0 && v.Used > 0 { // if all GPUs are free, the fragmentation only shows the size of machines
		fragments = fmt.Sprintf("%.0f %% of the free GPUs", v.Fragmentation*100)
	}
	deleted := ""
	if v.Deleted {
		deleted = "the configuration no longer has it: waiting jobs never start"
	}
	return append([]string{bar}, facts(d, w, h-1, [2]string{"deleted", deleted}, [2]string{"free", fmt.Sprint(v.Free)}, [2]string{"borrowed", number(v.Opportunistic).Text}, [2]string{"sick", number(v.Bad).Text},
		[2]string{"waiting", number(len(v.Queue)).Text}, [2]string{"policy", v.Policy}, [2]string{"quota", quota}, [2]string{"cells", strings.Join(cells, ", ")},
		[2]string{"pinned", strings.Join(v.PinnedCells, ", ")}, [2]string{"fragmented", fragments})...)
}

func limit(n int) string {
	if n == 0 {
		return "no limit"
	}
	return plural.Of(n, "GPU")
}

// --- a service

type servicePage struct {
	*list[Pod]
	name string
	s    *status.Service
	pods []Pod
	err  error
	seen [3]int // the status that they were requested for
	wait bool
}

func newService(name string) page {
	p := &servicePage{name: name}
	p.list = newList(list[Pod]{
		noun: "pod",
		all:  func(*env) []Pod { return p.pods },
		id:   func(v Pod) string { return v.Name },
		text: func(v Pod) string { return lower(v.Name, v.Node, v.State, rules.Words(v.State), v.Message) },
		head: p.facts,
		open: func(d *env, v Pod) effect {
			if machineOf(d, v.Node) == nil {
				return effect{}
			}
			return effect{push: newMachine(v.Node)}
		},
		cols: []column[Pod]{
			{Column: tui.Column{Min: 1}, cell: func(d *env, v Pod) tui.Cell {
				if v.Ready {
					return tui.Cell{Text: tui.SignGood, Style: d.p.Good}
				}
				return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
			}},
			{Column: tui.Column{Title: "POD", Min: 20, Ideal: 40}, cell: func(_ *env, v Pod) tui.Cell { return text(v.Name) }, order: func(a, b Pod) int { return strings.Compare(a.Name, b.Name) }},
			{Column: tui.Column{Title: "STATE", Min: 9, Ideal: 18}, cell: func(_ *env, v Pod) tui.Cell { return text(rules.Words(v.State)) }, order: func(a, b Pod) int { return strings.Compare(a.State, b.State) }},
			{Column: tui.Column{Title: "RESTARTS", Min: 8, Right: true, Priority: 3}, cell: func(_ *env, v Pod) tui.Cell { return number(int(v.Restarts)) }, order: func(a, b Pod) int { return int(a.Restarts) - int(b.Restarts) }, down: true},
			{Column: tui.Column{Title: "AGE", Min: 5, Right: true, Priority: 2}, cell: func(_ *env, v Pod) tui.Cell { return text(v.Age) }},
			{Column: tui.Column{Title: "MACHINE", Min: 10, Ideal: 20, Priority: 1}, cell: func(_ *env, v Pod) tui.Cell { return text(v.Node) }, order: func(a, b Pod) int { return strings.Compare(a.Node, b.Node) }},
			{Column: tui.Column{Title: "NOTE", Min: 10, Ideal: 30, Priority: 4, Grows: true}, cell: func(_ *env, v Pod) tui.Cell { return text(v.Message) }},
		},
	})
	return p
}

func (p *servicePage) title() string { return p.name }

// refresh requests the list of pods again if the service has changed.
func (p *servicePage) refresh(d *env) effect {
	if i := slices.IndexFunc(d.cluster.Services, func(s status.Service) bool { return s.Name == p.name }); i >= 0 {
		p.s = &d.cluster.Services[i]
	}
	e := p.list.refresh(d)
	if p.s == nil || p.wait {
		return e
	}
	seen := [3]int{1 + p.s.Pods, p.s.ReadyPods, p.s.Revision}
	if seen == p.seen {
		return e
	}
	p.seen, p.wait = seen, true
	s := p.s
	e.cmd = ask(d, p, func(ctx context.Context) ([]Pod, error) { return d.act.ServicePods(ctx, s) })
	return e
}

func (p *servicePage) receive(d *env, a answer) effect {
	p.wait = false
	if pods, ok := a.value.([]Pod); ok && a.err == nil {
		p.pods = pods
	}
	p.err = a.err
	return p.refresh(d)
}

func (p *servicePage) facts(d *env, w, h int) []string {
	s := p.s
	if s == nil {
		return []string{"  " + clean(p.name) + " is no longer in the cluster", ""}
	}
	p.empty = "no pods"
	switch {
	case p.err != nil:
		p.empty = problem(p.err)
	case p.wait:
		p.empty = "asking…"
	}
	sign := serviceSign(d, s)
	out := []string{"  " + sign.Style.Text(sign.Text+" "+clean(s.State)) + fmt.Sprintf("  %d of %d pods ready", s.ReadyPods, s.Pods)}
	out = append(out, facts(d, w, h-1, [2]string{"namespace", s.Namespace}, [2]string{"chart", s.Chart}, [2]string{"revision", number(s.Revision).Text}, [2]string{"updated", d.age(s.Updated)},
		[2]string{"configuration", s.Configuration}, [2]string{"start it", s.Hint})...)
	for _, pr := range s.Problems {
		if len(out) >= h-2 {
			break
		}
		l := pr.Text()
		for _, l := range tui.Wrap(clean(l), w-4) {
			out = append(out, "  "+d.p.Bad.Text(l))
		}
		if pr.Hint != "" {
			out = append(out, tui.Cut("    -> "+clean(pr.Hint), w))
		}
	}
	if len(s.Problems) > 0 {
		out = append(out, "")
	}
	return out
}

func (p *servicePage) key(d *env, k string) (effect, bool) {
	if e, ok := p.list.key(d, k); ok || p.s == nil {
		return e, ok
	}
	return serviceKey(d, p.s, k)
}

func (p *servicePage) keys(d *env) []binding {
	return append(serviceKeys(d, p.s), p.list.keys(d)...)
}

func serviceKey(d *env, s *status.Service, k string) (effect, bool) {
	switch k {
	case "l":
		return newStream(d, "logs of "+s.Name, false, func(ctx context.Context, out io.Writer) error { return d.act.ServiceLogs(ctx, s, out) }), true
	case "R":
		return effect{ask: &question{text: fmt.Sprintf("Restart service %s? Its pods are replaced, and changes to its configuration take effect.", s.Name), yes: func(d *env) effect {
			return newStream(d, "restart "+s.Name, true, func(ctx context.Context, out io.Writer) error { return d.act.RestartService(ctx, s, out) })
		}}}, true
	}
	return effect{}, false
}

func serviceKeys(*env, *status.Service) []binding { return []binding{{"l", "logs"}, {"R", "restart"}} }
