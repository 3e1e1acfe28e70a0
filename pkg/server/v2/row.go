package v2

import (
	"time"

	"github.com/openpai/paictl/pkg/job/listing"
)

// row is a job in a list. Times are in milliseconds since 1970, or null.
type row struct {
	DebugID string   `json:"debugId"`
	Name    string   `json:"name"`
	Tags    []string `json:"tags"`
	progress
	GPUs  int `json:"totalGpuNumber"`
	Tasks int `json:"totalTaskNumber"`
	Roles int `json:"totalTaskRoleNumber"`
}

// progress holds the fields that are both in lists and in details of jobs.
type progress struct {
	Username       string       `json:"username"`
	State          string       `json:"state"`
	SubState       string       `json:"subState"`
	ExecutionType  string       `json:"executionType"`
	Retries        int32        `json:"retries"`
	RetryDetails   retryDetails `json:"retryDetails"`
	RetryDelay     *int64       `json:"retryDelayTime"`
	Submitted      *int64       `json:"submissionTime"`
	Created        *int64       `json:"createdTime"`
	Launched       *int64       `json:"launchedTime"`
	Completed      *int64       `json:"completedTime"`
	ExitCode       *int32       `json:"appExitCode"`
	VirtualCluster string       `json:"virtualCluster"`
	Priority       string       `json:"jobPriority,omitempty"`
	// Phase is the phase of the job as paictl shows it. Position is the job's position in the queue of its virtual cluster.
	Phase    string `json:"phase"`
	Position int    `json:"position,omitempty"`
}

type retryDetails struct {
	User     int32 `json:"user"`
	Platform int32 `json:"platform"`
	Resource int32 `json:"resource"`
}

func newRow(r *listing.Row) row {
	return row{DebugID: r.Framework, Name: r.Name, Tags: append([]string{}, r.Tags...), progress: newProgress(r), GPUs: max(0, r.GPUs), Tasks: r.Tasks, Roles: r.Roles}
}

func newProgress(r *listing.Row) progress {
	out := progress{
		Username: r.User, State: word(listing.Phase(r.State)), SubState: r.FrameworkState, ExecutionType: executionType(r.ExecutionType), Retries: r.Retries,
		RetryDetails: retryDetails{User: r.AccountableRetries, Platform: max(0, r.Retries-r.AccountableRetries)}, RetryDelay: milliseconds(r.RetryAt),
		Submitted: milliseconds(&r.Submitted), Created: milliseconds(&r.Submitted), Launched: milliseconds(r.Started), Completed: milliseconds(r.Completed),
		ExitCode: r.Code, VirtualCluster: r.VirtualCluster, Priority: r.Priority, Phase: r.State, Position: r.Position,
	}
	if out.Launched == nil {
		out.Launched = out.Completed // for a job that never ran
	}
	return out
}

func executionType(s string) string {
	if s == "Stop" {
		return "STOP"
	}
	return "START"
}

func milliseconds(t *time.Time) *int64 {
	if t == nil || t.IsZero() {
		return nil
	}
	n := t.UnixMilli()
	return &n
}

// States that clients accept. Clients reject other states.
const (
	waiting   = "WAITING"
	running   = "RUNNING"
	stopping  = "STOPPING"
	succeeded = "SUCCEEDED"
	failed    = "FAILED"
	stopped   = "STOPPED"
)

// words maps each state to its phases.
var words = map[string][]listing.Phase{
	waiting:   {listing.Waiting, listing.Queued, listing.Starting},
	running:   {listing.Barrier, listing.Running, listing.Retry},
	stopping:  {listing.Stopping, listing.Deleting},
	succeeded: {listing.Succeeded},
	failed:    {listing.Failed},
	stopped:   {listing.Stopped, listing.Deleted},
}

// phasesOf returns the phases of a state, or no phases for an unknown state.
func phasesOf(word string) []listing.Phase { return words[word] }

// word returns the state for a phase.
func word(p listing.Phase) string {
	for w, phases := range words {
		for _, one := range phases {
			if one == p {
				return w
			}
		}
	}
	return "UNKNOWN"
}
