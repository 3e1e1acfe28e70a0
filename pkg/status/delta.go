package status

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Names of the parts of a model. A reader can select parts by name.
const (
	PartMachines        = "machines"
	PartVirtualClusters = "virtualClusters"
	PartServices        = "services"
	PartJobs            = "jobs"
	PartEvents          = "events"
	PartAlerts          = "alerts"
)

// Parts returns the names of all parts of a model.
func Parts() []string {
	return []string{PartMachines, PartVirtualClusters, PartServices, PartJobs, PartEvents, PartAlerts}
}

// CheckParts returns an error if a name isn't one of Parts.
func CheckParts(parts []string) error {
	for _, p := range parts {
		if !slices.Contains(Parts(), p) {
			return fmt.Errorf("no part of the status is called %q; the parts are %s", p, strings.Join(Parts(), ", "))
		}
	}
	return nil
}

// Only returns a copy of the model without the lists of unselected parts. If parts is empty, it returns the whole
// model. Verdict and counts always describe the whole model.
func (c *Cluster) Only(parts []string) *Cluster {
	if len(parts) == 0 {
		return c
	}
	out := *c
	keep(parts, PartMachines, &out.Machines)
	keep(parts, PartVirtualClusters, &out.VirtualClusters)
	keep(parts, PartServices, &out.Services)
	keep(parts, PartJobs, &out.Jobs)
	keep(parts, PartEvents, &out.Events)
	keep(parts, PartAlerts, &out.Alerts)
	return &out
}

func keep[T any](parts []string, name string, list *[]T) {
	if !slices.Contains(parts, name) {
		*list = []T{}
	}
}

// Delta is the difference between two models of a cluster. A nil field means that this part hasn't changed.
type Delta struct {
	At      time.Time `json:"at"`
	Verdict *Verdict  `json:"verdict,omitempty"`
	Counts  *Counts   `json:"counts,omitempty"`
	// Machines and Jobs are the new and changed elements. GoneMachines (names) and GoneJobs (UIDs) are the removed
	// elements.
	Machines     []Machine `json:"machines,omitempty"`
	Jobs         []*Job    `json:"jobs,omitempty"`
	GoneMachines []string  `json:"goneMachines,omitempty"`
	GoneJobs     []string  `json:"goneJobs,omitempty"`
	// The lists below are complete lists, not differences.
	Sources         *[]Source         `json:"sources,omitempty"`
	VirtualClusters *[]VirtualCluster `json:"virtualClusters,omitempty"`
	Services        *[]Service        `json:"services,omitempty"`
	Events          *[]Event          `json:"events,omitempty"`
	Alerts          *[]Alert          `json:"alerts,omitempty"`
}

// NewDelta returns the changes from the first model to the second, or nil if the models are equal.
func NewDelta(was, is *Cluster) *Delta {
	d := &Delta{At: is.At}
	d.Verdict = whole(&was.Verdict, &is.Verdict)
	d.Counts = whole(&was.Counts, &is.Counts)
	d.Sources = changed(was.Sources, is.Sources)
	d.VirtualClusters = changed(was.VirtualClusters, is.VirtualClusters)
	d.Services = changed(was.Services, is.Services)
	d.Events = changed(was.Events, is.Events)
	d.Alerts = changed(was.Alerts, is.Alerts)
	d.Machines, d.GoneMachines = each(was.Machines, is.Machines, func(m *Machine) string { return m.Name })
	d.Jobs, d.GoneJobs = each(was.Jobs, is.Jobs, func(j **Job) string { return (*j).UID })
	if reflect.DeepEqual(d, &Delta{At: is.At}) {
		return nil
	}
	return d
}

func whole[T any](was, is *T) *T {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return is
}

func changed[T any](was, is []T) *[]T {
	if same(was, is) || len(was) == 0 && len(is) == 0 || reflect.DeepEqual(was, is) {
		return nil
	}
	is = list(is)
	return &is
}

// each returns the new and changed elements, and the keys of the removed elements.
func each[T any](was, is []T, key func(*T) string) (news []T, gone []string) {
	if same(was, is) {
		return nil, nil
	}
	known := make(map[string]*T, len(was))
	for i := range was {
		known[key(&was[i])] = &was[i]
	}
	for i := range is {
		k := key(&is[i])
		if old := known[k]; old == nil || !reflect.DeepEqual(old, &is[i]) {
			news = append(news, is[i])
		}
		delete(known, k)
	}
	for i := range was {
		if k := key(&was[i]); known[k] != nil {
			gone = append(gone, k)
		}
	}
	return news, gone
}
