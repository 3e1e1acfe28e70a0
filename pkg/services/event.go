package services

import (
	"time"

	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// These are the kinds of events.
const (
	EventRunStarted = "run-started" // Message: the command; Services are set, in their order
	EventAdded      = "added"       // Service is a prerequisite that was not named; Message: the services that need it
	EventChanged    = "changed"     // Message: a change outside of the releases: a label, a Secret
	EventWaiting    = "waiting"     // Message: the services that this service waits for
	EventStarted    = "started"     // work on a service begins
	EventApplied    = "applied"     // Action and Revision are set
	EventPlanned    = "planned"     // Plan is set: a dry run would do it
	EventProgress   = "progress"    // State is set
	EventProblem    = "problem"     // Problem is set: the reason why the service isn't ready yet
	EventReady      = "ready"       // the service is done; Action, Revision and Elapsed are set
	EventStopped    = "stopped"     // the service is gone; Elapsed is set
	EventFailed     = "failed"      // Error and Hint are set
	EventNotStarted = "not-started" // Message: the failed services that it waits for
	EventReverted   = "reverted"    // Message: the action on a failed release
	EventWarning    = "warning"
	EventRunDone    = "run-done" // Summary is set
)

// These are the actions of events and results. Package release defines further actions.
const (
	ActionStopped   = "stopped"
	ActionDeleted   = "deleted"
	ActionRestarted = "restarted" // the values have not changed, and the pods were replaced
)

// Event is an event of a run. The text output, the JSON lines and the live table show the same events. Events contain no secrets.
type Event struct {
	Time     time.Time      `json:"time"`
	Kind     string         `json:"kind"`
	Service  string         `json:"service,omitempty"`
	Message  string         `json:"message,omitempty"`
	Action   string         `json:"action,omitempty"`
	Revision int            `json:"revision,omitempty"`
	Problem  *ready.Problem `json:"problem,omitempty"`
	State    *ready.State   `json:"state,omitempty"`
	Plan     *release.Plan  `json:"plan,omitempty"`
	Error    string         `json:"error,omitempty"`
	Hint     string         `json:"hint,omitempty"`
	// Elapsed is the duration of the work on the service. For the event of a whole run, Elapsed is the duration of the run.
	Elapsed  time.Duration `json:"elapsed,omitempty"`
	Services []string      `json:"services,omitempty"`
	Summary  *Summary      `json:"summary,omitempty"`
}

// Summary is the result of a run.
type Summary struct {
	Command  string   `json:"command"`
	DryRun   bool     `json:"dryRun,omitempty"`
	Services int      `json:"services"`
	Changed  []string `json:"changed,omitempty"` // the services that the run changed, or would change
	// Changes is the number of changed releases, labels and Secrets. In a dry run, Changes counts the planned changes.
	Changes int      `json:"changes"`
	Failed  []Failed `json:"failed,omitempty"`
	// NotStarted lists the services that weren't started because a required service failed.
	NotStarted []string `json:"notStarted,omitempty"`
	// Error is the reason if the run ended before it had processed all services.
	Error string `json:"error,omitempty"`
	// Retry is the command that repeats the run for the services in Failed and NotStarted.
	Retry   string        `json:"retry,omitempty"`
	Elapsed time.Duration `json:"elapsed"`
}

// Failed is a service that didn't reach the desired state.
type Failed struct {
	Service string `json:"service"`
	Error   string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// Sink receives the events of a run. Emit isn't called concurrently.
type Sink interface{ Emit(Event) }

// SinkFunc is a function that implements Sink.
type SinkFunc func(Event)

// Emit implements Sink.
func (f SinkFunc) Emit(e Event) { f(e) }
