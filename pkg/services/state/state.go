// Package state has the state of a service as paictl shows it, for programs that don't read releases themselves.
// In: nothing. Out: types, and the words for states.
package state

import (
	"time"

	"github.com/openpai/paictl/pkg/services/ready"
)

// States of a service; States says what they mean.
const (
	StateReady        = "ready"
	StateStarting     = "starting"
	StateFailed       = "failed"
	StateStopped      = "stopped"
	StateNotInstalled = "not installed"
	StateDisabled     = "disabled"
	StateOrphan       = "orphan"
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
	}
}

// The configuration of a running service compared with the cluster's copy.
const (
	ConfigurationCurrent = "up to date"
	ConfigurationChanged = "changed: restart needed"
	ConfigurationChart   = "other chart: upgrade needed"
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
	// Paictl is the version that installed the revision, or "" if it wasn't recorded.
	Paictl   string          `json:"paictl,omitempty"`
	Problems []ready.Problem `json:"problems,omitempty"`
	// Hint is the command that starts a service that is stopped or not installed.
	Hint string `json:"hint,omitempty"`
}
