package engine

import "time"

// The kinds of events.
const (
	EventRunStarted   = "run-started"   // Message is the command; Hosts and Phases are set
	EventPhaseStarted = "phase-started" // on a host
	EventProgress     = "progress"      // Message, Done/Total in bytes or steps
	EventChanged      = "changed"       // Change is set; it was applied
	EventPlanned      = "planned"       // Change is set; a real run would apply it
	EventPhaseDone    = "phase-done"    // Changes counts the applied changes
	EventPhaseSkipped = "phase-skipped" // nothing to do for that host
	EventPhaseFailed  = "phase-failed"  // Error and Hint are set
	EventHostSetAside = "host-set-aside"
	EventHostDone     = "host-done"
	EventWarning      = "warning"
	EventNote         = "note"     // Message is a step of the run that concerns no particular host
	EventRunDone      = "run-done" // Summary is set
)

// Event is one step of a run. The plain output, the JSON output and the live table all show these events. No field contains a secret.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Host    string    `json:"host,omitempty"`
	Phase   string    `json:"phase,omitempty"`
	Message string    `json:"message,omitempty"`
	Change  *Change   `json:"change,omitempty"`
	Changes int       `json:"changes,omitempty"`
	Done    int64     `json:"done,omitempty"`
	Total   int64     `json:"total,omitempty"`
	Error   string    `json:"error,omitempty"`
	Hint    string    `json:"hint,omitempty"`
	// Elapsed is the duration of the phase or of the run.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	Hosts   []string      `json:"hosts,omitempty"`
	Phases  []string      `json:"phases,omitempty"`
	Summary *Summary      `json:"summary,omitempty"`
}

// Summary is the content of a run's last event.
type Summary struct {
	Command string   `json:"command"`
	DryRun  bool     `json:"dryRun,omitempty"`
	Hosts   int      `json:"hosts"`
	Changed int      `json:"changed"` // hosts with at least one change
	Changes int      `json:"changes"` // changes applied, or planned in a dry run
	Failed  []Failed `json:"failed,omitempty"`
	// Retry is the command that continues with the failed hosts.
	Retry string `json:"retry,omitempty"`
	// RoundTrips is the largest number of round trips to one host, without the dial.
	RoundTrips int `json:"roundTrips"`
	// Traffic counts the bytes of transferred files; nil if no file was transferred.
	Traffic *Traffic      `json:"traffic,omitempty"`
	Elapsed time.Duration `json:"elapsed"`
}

// Failed is a host that the run has skipped, with the reason.
type Failed struct {
	Host  string `json:"host"`
	Phase string `json:"phase"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Untouched means that the host stays unchanged. The same change failed on another host, or a task on the host has to end first.
	Untouched bool `json:"untouched,omitempty"`
}

// Change is one difference between a host and the configuration.
type Change struct {
	Host  string `json:"host"`
	Phase string `json:"phase"`
	// Action is create, update, delete, load, set, enable, start, restart, import, restore or run.
	Action string `json:"action"`
	// Target is the file, unit, module, kernel setting, image or command.
	Target string `json:"target"`
	Detail string `json:"detail,omitempty"`
	// Diff is a unified diff of a text file. It is empty for files with secrets.
	Diff string `json:"diff,omitempty"`
}

// Sink receives the events of a run. Emit is never called concurrently.
type Sink interface{ Emit(Event) }
