package status

import (
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/job"
)

// View says which parts of a cluster a reader may see who isn't an administrator.
type View struct {
	// VC reports whether the reader may use a virtual cluster.
	VC func(name string) bool
	// Names shows the jobs that the reader may see.
	Names job.NameOf
}

// OnlyAdministrators is the message of parts that only administrators see.
const OnlyAdministrators = "only administrators see services and alerts"

const (
	askAdministrator = "ask an administrator to run: paictl status"
	notRead          = "it can't be read"
)

// Cutter removes from models the parts that a reader may not see. It reuses the parts that two models share.
type Cutter struct {
	View View

	was, cut *Cluster
}

// Cut returns a model without the parts that the reader may not see: of machines their addresses and the versions of their programs, of a GPU a holder that the reader
// may not know, other virtual clusters, services, and events and alerts about other jobs.
func (t *Cutter) Cut(c *Cluster) *Cluster {
	if c == t.was {
		return t.cut
	}
	out := &Cluster{Name: c.Name, At: c.At, Sources: slices.Clone(c.Sources), Services: []Service{}, Jobs: []*Job{}, Alerts: []Alert{}, VirtualClusters: []VirtualCluster{}}
	for i := range out.Sources {
		t.source(&out.Sources[i])
	}
	if t.was != nil && same(t.was.Machines, c.Machines) {
		out.Machines = t.cut.Machines
	} else {
		out.Machines = make([]Machine, len(c.Machines))
		for i := range c.Machines {
			out.Machines[i] = t.machine(&c.Machines[i])
		}
	}
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
			out.Events = append(out.Events, c.Events[i])
		}
	}
	for i := range c.Alerts {
		if a := &c.Alerts[i]; t.View.Names(a.Labels[alerts.LabelUser], a.Labels[alerts.LabelJob]) != "" {
			out.Alerts = append(out.Alerts, *a)
		}
	}
	Complete(out)
	t.was, t.cut = c, out
	return out
}

// same reports whether two lists are one in memory.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (t *Cutter) sees(title string) bool {
	user, name, ok := strings.Cut(title, "/")
	return ok && t.View.Names(user, name) != ""
}

// source removes messages: they have addresses and names of the cluster's inside.
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

func (t *Cutter) machine(m *Machine) Machine {
	out := Machine{Name: m.Name, Roles: m.Roles, SKU: m.SKU, State: m.State, Since: m.Since, Cordoned: m.Cordoned, Pressure: m.Pressure, Message: m.Message, Driver: m.Driver,
		CPU: m.CPU, Memory: m.Memory, Pods: m.Pods, GPUs: slices.Clone(m.GPUs)}
	for i := range out.GPUs {
		g := &out.GPUs[i]
		g.UUID = ""
		if o := g.Owner; o != nil && !t.sees(o.Job) {
			g.Owner = &Owner{}
			if t.View.VC(o.VirtualCluster) {
				g.Owner.VirtualCluster, g.Owner.Opportunistic = o.VirtualCluster, o.Opportunistic
			}
		}
	}
	return out
}

// job hides the names of other jobs in an explanation.
func (t *Cutter) job(j *Job) *Job {
	if why := t.View.Names.Told(j.Why); why != j.Why {
		other := *j
		other.Why = why
		return &other
	}
	return j
}
