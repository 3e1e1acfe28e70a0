// Package state defines the state of a service for programs that don't read releases. In: nothing. Out: types, and the texts for states.
package state

import (
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/services/ready"
)

// States of a service. The function States returns their meanings.
const (
	StateReady        = "ready"
	StateStarting     = "starting"
	StateFailed       = "failed"
	StateStopped      = "stopped"
	StateNotInstalled = "not installed"
	StateDisabled     = "disabled"
	StateOrphan       = "orphan"
	StateUnknown      = "unknown"
)

// States returns all states with their meanings.
func States() [][2]string {
	return [][2]string{
		{StateReady, "it runs as it should"},
		{StateStarting, "it may still become ready"},
		{StateFailed, "it will not become ready by waiting"},
		{StateStopped, "stopped by \"service stop\", or only its data is left"},
		{StateNotInstalled, "never started, or deleted"},
		{StateDisabled, "by the configuration"},
		{StateOrphan, "it runs, but the configuration disables it or no longer has it"},
		{StateUnknown, "the platform's server can't tell, and says why"},
	}
}

// These are the results of comparing a running service's configuration with the cluster's copy.
const (
	ConfigurationCurrent = "up to date"
	ConfigurationChanged = "changed: restart needed"
	ConfigurationChart   = "other chart: upgrade needed"
	ConfigurationUnknown = "unknown"
)

// Status is the state of a service.
type Status struct {
	Name          string    `json:"name"`
	Namespace     string    `json:"namespace"`
	State         string    `json:"state"`
	Pods          int       `json:"pods"`
	ReadyPods     int       `json:"readyPods"`
	Revision      int       `json:"revision,omitempty"`
	Chart         string    `json:"chart,omitempty"` // name and version
	Updated       time.Time `json:"updated,omitzero"`
	Configuration string    `json:"configuration,omitempty"`
	// Paictl is the version of paictl that installed the revision, or "" if the version is unknown.
	Paictl   string          `json:"paictl,omitempty"`
	Problems []ready.Problem `json:"problems,omitempty"`
	// Hint is the command that starts a stopped or missing service.
	Hint string `json:"hint,omitempty"`
}

// Report holds the states of all services.
type Report struct {
	Items []Status `json:"items"`
	// Notes explain which data in Items may be missing or wrong.
	Notes []Note `json:"notes,omitempty"`
}

// Note is a warning about a report.
type Note struct {
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Sort sorts the services by name.
func (r *Report) Sort() {
	slices.SortFunc(r.Items, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
}

// Explained returns the services for callers that don't print notes. Each service in the state unknown contains a problem with the reason.
func (r *Report) Explained() []Status {
	if len(r.Notes) == 0 {
		return r.Items
	}
	all, why := slices.Clone(r.Items), r.Notes[len(r.Notes)-1]
	for i := range all {
		if all[i].State == StateUnknown && len(all[i].Problems) == 0 {
			all[i].Problems = []ready.Problem{{Object: "release/" + all[i].Name, Reason: "Unknown", Message: why.Message, Hint: why.Remedy}}
		}
	}
	return all
}

// StartCommand returns the command that starts services.
func StartCommand(names ...string) string {
	return "paictl service start -n " + strings.Join(names, ",")
}
