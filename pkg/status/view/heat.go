package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// shade is the property that the colors of the heat map show.
type shade int

const (
	byVC shade = iota
	byUser
	byUse
	byHealth
	shades
)

func (s shade) String() string {
	return [...]string{"virtual cluster", "user", "use", "health"}[s]
}

// heatPage shows all GPUs by machine. It draws as many machines per line as fit. The last lines describe the GPU under
// the cursor.
type heatPage struct {
	shade  shade
	search string

	machines []*status.Machine // that have GPUs and fit the filter
	total    int
	gpus     int // the largest number of GPUs of a machine
	name     int // columns of the longest name
	groups   map[string]int
	legend   []string // names of groups, the largest first
	counts   map[string]int

	win     tui.Window // the visible lines of machines
	beside  int        // machines in a line
	block   int        // columns of one
	pitch   int        // columns of a GPU
	shown   int        // GPUs of a machine that are on the screen
	left    int        // the first of them
	at      string     // the machine under the cursor
	machine int
	gpu     int
	top     int
}

func newHeat() page { return &heatPage{} }

func (p *heatPage) title() string { return "GPUs by " + p.shade.String() }

func (p *heatPage) count() string {
	s := plural.Of(p.total, "machine")
	if p.search != "" {
		s = fmt.Sprintf("%d of %s", len(p.machines), s)
	}
	return s
}

func (p *heatPage) refresh(d *env) effect {
	p.machines, p.total, p.gpus, p.name = p.machines[:0], 0, 0, 4
	w := parseFilter(p.search)
	p.counts = map[string]int{}
	for i := range d.cluster.Machines {
		m := &d.cluster.Machines[i]
		if len(m.GPUs) == 0 {
			continue
		}
		p.total++
		if !w.empty() && !w.match(heatText(m)) {
			continue
		}
		p.machines = append(p.machines, m)
		p.gpus, p.name = max(p.gpus, len(m.GPUs)), max(p.name, tui.Width(m.Name))
		for k := range m.GPUs {
			if g := p.group(&m.GPUs[k]); g != "" {
				p.counts[g]++
			}
		}
	}
	p.rank()
	if p.machine < len(p.machines) && p.machines[p.machine].Name != p.at || p.machine >= len(p.machines) {
		p.machine = max(slices.IndexFunc(p.machines, func(m *status.Machine) bool { return m.Name == p.at }), 0)
	}
	p.place()
	return effect{}
}

// rank assigns letters to the groups. A group keeps its letter while the page is open, so its color doesn't change.
func (p *heatPage) rank() {
	if p.groups == nil {
		p.groups = map[string]int{}
	}
	fresh := slices.DeleteFunc(slices.Collect(maps.Keys(p.counts)), func(g string) bool { _, ok := p.groups[g]; return ok })
	slices.SortFunc(fresh, func(a, b string) int { return cmp.Or(p.counts[b]-p.counts[a], cmp.Compare(a, b)) })
	for _, g := range fresh {
		p.groups[g] = len(p.groups)
	}
	p.legend = slices.SortedFunc(maps.Keys(p.counts), func(a, b string) int { return cmp.Or(p.counts[b]-p.counts[a], cmp.Compare(a, b)) })
}

// group returns the group of a GPU. It returns "" if the map isn't colored by group.
func (p *heatPage) group(g *status.GPU) string {
	if g.Owner == nil {
		return ""
	}
	switch p.shade {
	case byVC:
		return cmp.Or(g.Owner.VirtualCluster, "no virtual cluster")
	case byUser:
		return cmp.Or(g.Owner.User, "no user")
	}
	return ""
}

// heatText returns the searchable text of a machine: name and state, and the jobs and users of its GPUs.
func heatText(m *status.Machine) string {
	parts := []string{m.Name, m.SKU, machineState(m)}
	last := ""
	for k := range m.GPUs {
		g := &m.GPUs[k]
		if bad(g) {
			parts = append(parts, g.Health)
		}
		if o := g.Owner; o != nil && o.Job+o.Pod != last {
			last = o.Job + o.Pod
			parts = append(parts, o.Job, o.User, o.VirtualCluster)
		}
	}
	return lower(parts...)
}

func (p *heatPage) filter() string { return p.search }

func (p *heatPage) setFilter(d *env, text string) {
	p.search = text
	p.refresh(d)
}

func (p *heatPage) key(d *env, k string) (effect, bool) {
	m, g := p.current()
	beside := max(p.beside, 1)
	switch k {
	case "m":
		p.shade = (p.shade + 1) % shades
		p.groups = nil
		p.refresh(d)
		return effect{}, true
	case "M":
		p.shade = (p.shade + shades - 1) % shades
		p.groups = nil
		p.refresh(d)
		return effect{}, true
	}
	if m == nil {
		return effect{}, false
	}
	switch k {
	case "left", "h":
		if p.gpu--; p.gpu < 0 && p.machine > 0 {
			p.machine--
			p.gpu = len(p.machines[p.machine].GPUs) - 1
		}
	case "right":
		if p.gpu++; p.gpu >= len(m.GPUs) && p.machine < len(p.machines)-1 {
			p.machine, p.gpu = p.machine+1, 0
		}
	case "up", "k":
		if p.machine >= beside {
			p.machine -= beside
		}
	case "down", "j":
		if p.machine+beside < len(p.machines) {
			p.machine += beside
		} else if p.machine/beside < (len(p.machines)-1)/beside {
			p.machine = len(p.machines) - 1
		}
	case "pgup", "ctrl+b":
		p.machine = max(p.machine-beside*max(p.win.Height-1, 1), p.machine%beside)
	case "pgdown", "ctrl+f", " ":
		p.machine = min(p.machine+beside*max(p.win.Height-1, 1), len(p.machines)-1)
	case "wheelup":
		p.machine = max(p.machine-beside, 0)
	case "wheeldown":
		p.machine = min(p.machine+beside, len(p.machines)-1)
	case "home", "g":
		p.machine, p.gpu = 0, 0
	case "end", "G":
		p.machine = len(p.machines) - 1
	case "enter":
		return effect{push: newMachine(m.Name)}, true
	case "b":
		return openOwner(d, g), true
	default:
		return machineKey(d, m, k)
	}
	p.place()
	return effect{}, true
}

// place moves the cursor to an existing GPU, and scrolls to the line of the cursor.
func (p *heatPage) place() {
	p.machine = min(max(p.machine, 0), max(len(p.machines)-1, 0))
	if len(p.machines) == 0 {
		return
	}
	m := p.machines[p.machine]
	p.at = m.Name
	p.gpu = min(max(p.gpu, 0), len(m.GPUs)-1)
	beside := max(p.beside, 1)
	p.win.Len = (len(p.machines) + beside - 1) / beside
	p.win.Move(p.machine / beside)
}

func (p *heatPage) click(_ *env, x, y int) effect {
	line := p.win.Top + y - p.top
	if p.block == 0 || line >= p.win.End() || x/p.block >= p.beside {
		return effect{}
	}
	i := line*p.beside + x/p.block
	if i >= len(p.machines) {
		return effect{}
	}
	k := x%p.block - 1 - min(p.name, nameMax) - 1
	if p.pitch == 2 {
		k = (k + 1) / 2
	} else if i == p.machine && k > p.gpu-p.left {
		k -= 2 // the brackets
	}
	k = min(max(k, 0)+p.left, len(p.machines[i].GPUs)-1)
	if i == p.machine && k == p.gpu {
		return effect{push: newMachine(p.machines[i].Name)}
	}
	p.machine, p.gpu = i, k
	p.place()
	return effect{}
}

func (p *heatPage) keys(d *env) []binding {
	m, _ := p.current()
	out := []binding{{"m", "colours: " + ((p.shade + 1) % shades).String()}, {"enter", "machine"}, {"b", "its job"}}
	if m != nil {
		out = append(out, machineKeys(d, m)...)
	}
	return append(out, binding{"/", "filter"}, binding{"←→", "GPU"})
}
