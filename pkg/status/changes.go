package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// Change is a difference between an earlier model and a later model.
type Change struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // job, machine, gpu, vc, service, alert, source, cluster
	Name string    `json:"name"`
	// From and To are states. From is "" for a new object. To is "" for a removed object.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Message explains To.
	Message string `json:"message,omitempty"`
}

// Text returns the change as one line, without its time.
func (c *Change) Text() string {
	out := c.Kind + " " + c.Name + " "
	switch {
	case c.From == "":
		out += "-> " + c.To
	case c.To == "":
		out += c.From + " -> gone"
	default:
		out += c.From + " -> " + c.To
	}
	if c.Message != "" {
		out += ": " + c.Message
	}
	return out
}

// differ collects the changes between two models. All changes get the same time.
type differ struct {
	at  time.Time
	out []Change
}

func (d *differ) add(kind, name, from, to, message string) {
	if from != to {
		d.out = append(d.out, Change{d.at, kind, name, from, to, message})
	}
}

// Changes returns the differences between two models. It ignores numbers that change constantly, such as usage, pods
// and positions in a queue.
func Changes(was, is *Cluster) []Change {
	d := &differ{at: is.At}
	d.sources(was.Sources, is.Sources)
	walk(was.Machines, is.Machines, func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) }, d.machine)
	walk(was.VirtualClusters, is.VirtualClusters, func(a, b *VirtualCluster) int { return strings.Compare(a.Name, b.Name) }, d.virtualCluster)
	walk(was.Services, is.Services, func(a, b *Service) int { return strings.Compare(a.Name, b.Name) }, d.service)
	d.jobs(was.Jobs, is.Jobs)
	d.alerts(was.Alerts, is.Alerts)
	if was.Verdict.Level != is.Verdict.Level {
		why := ""
		if len(is.Verdict.Problems) > 0 {
			p := &is.Verdict.Problems[0]
			if why = p.Kind + " " + p.Name; len(is.Verdict.Problems) > 1 {
				why += fmt.Sprintf(", and %d more", len(is.Verdict.Problems)-1)
			}
		}
		d.add("cluster", is.Name, was.Verdict.Level, is.Verdict.Level, why)
	}
	return d.out
}

// Text returns a problem as one line.
func (p *Problem) Text() string {
	out := fmt.Sprintf("%s %s: %s", p.Kind, p.Name, p.Message)
	if p.Others > 0 {
		out += fmt.Sprintf(" (and %d more)", p.Others)
	}
	return out
}

// walk calls f with each pair of equal elements of two sorted lists. If only one list contains an element, the other
// argument of f is nil.
func walk[T any](was, is []T, compare func(a, b *T) int, f func(was, is *T)) {
	for i, k := 0, 0; i < len(was) || k < len(is); {
		c := 0
		switch {
		case i == len(was):
			c = 1
		case k == len(is):
			c = -1
		default:
			c = compare(&was[i], &is[k])
		}
		switch {
		case c < 0:
			f(&was[i], nil)
			i++
		case c > 0:
			f(nil, &is[k])
			k++
		default:
			f(&was[i], &is[k])
			i, k = i+1, k+1
		}
	}
}

func (d *differ) sources(was, is []Source) {
	for i := range is {
		at := slices.IndexFunc(was, func(s Source) bool { return s.Name == is[i].Name })
		from := ""
		if at >= 0 {
			from = was[at].State
		}
		d.add("source", is[i].Name, from, is[i].State, is[i].Message)
	}
}

func (d *differ) machine(was, is *Machine) {
	switch {
	case was == nil:
		d.add("machine", is.Name, "", is.state(), is.Message)
		d.gpus(is.Name, nil, is.GPUs)
		return
	case is == nil:
		d.add("machine", was.Name, was.state(), "", "")
		return
	}
	d.add("machine", is.Name, was.state(), is.state(), is.Message)
	d.gpus(is.Name, was.GPUs, is.GPUs)
}

// CordonText returns who cordoned the machine and why. It returns "" if neither is known.
func (m *Machine) CordonText() string { return actionsv1.Cordoned(m.CordonedBy, m.CordonReason) }

// state returns the state of a machine with its conditions.
func (m *Machine) state() string {
	words := []string{m.State}
	if m.Cordoned {
		words = append(words, "cordoned")
	}
	return strings.Join(append(words, m.PressureWords()...), ", ")
}

// gpus adds the GPUs whose health changed. It skips machines that don't respond, because the change of the machine is
// already listed.
func (d *differ) gpus(machine string, was, is []GPU) {
	walk(was, is, func(a, b *GPU) int { return cmp.Compare(a.Index, b.Index) }, func(was, is *GPU) {
		switch {
		case is == nil:
			d.add("gpu", fmt.Sprintf("%s/%d", machine, was.Index), was.Health, "", "")
		case is.Health == GPUUnknown, was == nil && is.Health == GPUHealthy, was != nil && was.Health == GPUUnknown && is.Health == GPUHealthy:
		case was == nil:
			d.add("gpu", fmt.Sprintf("%s/%d", machine, is.Index), "", is.Health, is.Reason)
		default:
			d.add("gpu", fmt.Sprintf("%s/%d", machine, is.Index), was.Health, is.Health, is.Reason)
		}
	})
}

func (d *differ) virtualCluster(was, is *VirtualCluster) {
	owns := func(v *VirtualCluster) string {
		switch {
		case v == nil:
			return ""
		case v.Deleted:
			return "deleted"
		}
		return fmt.Sprintf("%d GPUs", v.Guaranteed)
	}
	name := ""
	if is != nil {
		name = is.Name
	} else {
		name = was.Name
	}
	d.add("vc", name, owns(was), owns(is), "")
}

func (d *differ) service(was, is *Service) {
	switch {
	case was == nil:
		d.add("service", is.Name, "", is.State, is.trouble())
	case is == nil:
		d.add("service", was.Name, was.State, "", "")
	default:
		d.add("service", is.Name, was.State, is.State, is.trouble())
	}
}

// trouble returns the first problem of a service, or "".
func (s *Service) trouble() string {
	if len(s.Problems) == 0 {
		return ""
	}
	return s.Problems[0].Text()
}

// PressureWords returns the machine's conditions as readable words.
func (m *Machine) PressureWords() []string {
	out := make([]string, len(m.Pressure))
	for i, p := range m.Pressure {
		out[i] = rules.Words(p)
	}
	return out
}

func (d *differ) jobs(was, is []*Job) {
	now := d.at
	walk(was, is, func(a, b **Job) int {
		if *a == *b {
			return 0
		}
		return newestFirst(*a, *b)
	}, func(a, b **Job) {
		switch {
		case a == nil:
			at := (*b).At()
			d.add("job", (*b).Title(), "", at.Text(now), (*b).Why)
		case b == nil:
			d.add("job", (*a).Title(), (*a).State, "", "")
		case *a != *b && (*a).State != (*b).State:
			from, to := (*a).At(), (*b).At()
			why := (*b).Why
			if job.Phase((*b).State) == job.Running {
				why = ""
			}
			d.add("job", (*b).Title(), from.Text(now), to.Text(now), why)
		}
	})
}

// alerts adds the alerts that began or ended, and the alerts that changed between firing and silenced. The name and all
// labels identify an alert.
func (d *differ) alerts(was, is []Alert) {
	state := func(a *Alert) string {
		if a.Silenced {
			return "silenced"
		}
		return "firing"
	}
	before := map[string]*Alert{}
	for i := range was {
		before[fmt.Sprint(was[i].Name, was[i].Labels)] = &was[i]
	}
	for i := range is {
		a := &is[i]
		key, from := fmt.Sprint(a.Name, a.Labels), ""
		if old := before[key]; old != nil {
			from = state(old)
		}
		delete(before, key)
		d.add("alert", a.Name, from, state(a), a.Summary)
	}
	for i := range was {
		if before[fmt.Sprint(was[i].Name, was[i].Labels)] != nil {
			d.add("alert", was[i].Name, state(&was[i]), "over", was[i].Summary)
		}
	}
}
