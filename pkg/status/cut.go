package status

import (
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/job"
)

// View selects the parts of a cluster that a reader may see. Administrators see all parts.
type View struct {
	// VC reports whether the reader may use a virtual cluster.
	VC func(name string) bool
	// Names returns the job name that the reader sees, or "" if the reader may not see the job.
	Names job.NameOf
}

// OnlyAdministrators is the message that readers get instead of services and alerts.
const OnlyAdministrators = "only administrators see services and alerts"

const (
	askAdministrator = "ask an administrator to run: paictl status"
	notRead          = "it can't be read"
)

// Cutter removes the parts of a model that a reader may not see. It reuses results for parts that two models share.
type Cutter struct {
	View View

	was, cut *Cluster
	// owners records whether the reader could see each job that holds a GPU. It is set when the machines are cut.
	owners map[string]bool
}

// Cut returns a copy of a model without the parts that the reader may not see. It removes the addresses, program
// versions and kubelet messages of machines, and the UUIDs of GPUs. It also removes services, other virtual clusters,
// hidden holders of GPUs, and hidden jobs with their events and alerts.
func (t *Cutter) Cut(c *Cluster) *Cluster {
	if c == t.was {
		return t.cut
	}
	out := &Cluster{Name: c.Name, At: c.At, Sources: slices.Clone(c.Sources), Services: []Service{}, Jobs: []*Job{}, Alerts: []Alert{}, VirtualClusters: []VirtualCluster{}}
	for i := range out.Sources {
		t.source(&out.Sources[i])
	}
	out.Machines = t.machines(c.Machines)
	for i := range c.VirtualClusters {
		if v := &c.VirtualClusters[i]; !v.Deleted && t.View.VC(v.Name) {
			out.VirtualClusters = append(out.VirtualClusters, VirtualCluster{VirtualCluster: v.VirtualCluster, Queue: t.View.Names.Waiting(v.Queue)})
		}
	}
	for _, j := range c.Jobs {
		if t.View.Names(j.User, j.Name) != "" {
			out.Jobs = append(out.Jobs, t.job(j))
		}
	}
	for i := range c.Events {
		if t.sees(c.Events[i].Job) {
			e := c.Events[i]
			e.Message = t.View.Names.Redact(e.Message)
			out.Events = append(out.Events, e)
		}
	}
	for i := range c.Alerts {
		if t.seesAlert(&c.Alerts[i]) {
			out.Alerts = append(out.Alerts, withoutAddress(c.Alerts[i]))
		}
	}
	Complete(out)
	t.was, t.cut = c, out
	return out
}

// same reports whether two lists share the same memory, which is faster than comparing elements.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (t *Cutter) sees(title string) bool {
	user, name, ok := strings.Cut(title, "/")
	return ok && t.View.Names(user, name) != ""
}

// ownersAsCut reports whether the reader still sees the same owners of GPUs. The owners also depend on the list of
// jobs, which may change while the machines stay the same.
func (t *Cutter) ownersAsCut() bool {
	for title, saw := range t.owners {
		if t.sees(title) != saw {
			return false
		}
	}
	return true
}

// seesAlert reports whether an alert is about a job that the reader sees. All other alerts are about machines and
// services. They are hidden even from readers who see every job.
func (t *Cutter) seesAlert(a *Alert) bool {
	user, name := a.Labels[alerts.LabelUser], a.Labels[alerts.LabelJob]
	return user != "" && name != "" && t.View.Names(user, name) != ""
}

// labelInstance is the label with the address of a scraped target.
const labelInstance = "instance"

func withoutAddress(a Alert) Alert {
	if a.Labels[labelInstance] != "" {
		a.Labels = maps.Clone(a.Labels)
		delete(a.Labels, labelInstance)
	}
	return a
}

// source removes the messages of a source, because messages contain internal addresses and names.
func (t *Cutter) source(s *Source) {
	switch {
	case s.Name == SourceServices, s.Name == SourceAlerts:
		s.State, s.Message, s.Hint, s.Refused = StateAbsent, OnlyAdministrators, askAdministrator, false
	case s.State == StateAbsent:
		s.Message, s.Hint = "", ""
	case s.Message != "" || s.Hint != "":
		s.Message, s.Hint = notRead, askAdministrator
	}
}

// machines cuts a list of machines. It keeps the last cut of the GPUs that haven't changed.
func (t *Cutter) machines(list []Machine) []Machine {
	seen := t.was != nil && t.ownersAsCut()
	if seen && same(t.was.Machines, list) {
		return t.cut.Machines
	}
	known := t.owners
	t.owners = make(map[string]bool, len(known))
	out := make([]Machine, len(list))
	var was, cut []Machine
	if seen {
		was, cut = t.was.Machines, t.cut.Machines
	}
	for i, k := 0, 0; i < len(list); i++ {
		m := &list[i]
		for k < len(was) && was[k].Name < m.Name { // both are sorted
			k++
		}
		out[i] = t.machine(m)
		if k == len(was) || was[k].Name != m.Name || !same(was[k].GPUs, m.GPUs) {
			out[i].GPUs = t.gpus(m.GPUs)
			continue
		}
		out[i].GPUs = cut[k].GPUs
		for n := range m.GPUs {
			if o := m.GPUs[n].Owner; o != nil {
				t.owners[o.Job] = known[o.Job]
			}
		}
	}
	return out
}

// machine returns a machine without its GPUs.
func (t *Cutter) machine(m *Machine) Machine {
	out := Machine{Name: m.Name, Roles: m.Roles, SKU: m.SKU, State: m.State, Since: m.Since, Cordoned: m.Cordoned, CordonReason: m.CordonReason, Pressure: m.Pressure, Driver: m.Driver,
		CPU: m.CPU, Memory: m.Memory, Pods: m.Pods}
	if m.State != MachineReady {
		out.Message, _, _ = strings.Cut(m.Message, ": ") // the reason, without the kubelet's text, which has addresses
	}
	return out
}

func (t *Cutter) gpus(list []GPU) []GPU {
	out := slices.Clone(list)
	for i := range out {
		g := &out[i]
		g.UUID = ""
		if o := g.Owner; o != nil && !t.holds(o) {
			g.Owner = &Owner{}
			if t.View.VC(o.VirtualCluster) {
				g.Owner.VirtualCluster, g.Owner.Opportunistic = o.VirtualCluster, o.Opportunistic
			}
		}
	}
	return out
}

// holds reports whether the reader sees the job that holds a GPU. It records the result in owners.
func (t *Cutter) holds(o *Owner) bool {
	saw, asked := t.owners[o.Job]
	if !asked {
		saw = t.sees(o.Job)
		t.owners[o.Job] = saw
	}
	return saw
}

// job returns a copy of a job in which the explanation doesn't name hidden jobs.
func (t *Cutter) job(j *Job) *Job {
	if why := t.View.Names.Redact(j.Why); why != j.Why {
		other := *j
		other.Why = why
		return &other
	}
	return j
}
