package listing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
)

// Phase is the state of a job in one word.
type Phase string

// The phases in their usual order. The method Means explains each phase.
const (
	Waiting   Phase = "waiting"
	Queued    Phase = "queued"
	Starting  Phase = "starting"
	Barrier   Phase = "barrier"
	Running   Phase = "running"
	Stopping  Phase = "stopping"
	Retry     Phase = "retry"
	Succeeded Phase = "succeeded"
	Failed    Phase = "failed"
	Stopped   Phase = "stopped"
	// Deleting means that a user has deleted the job, and its objects still exist.
	Deleting Phase = "deleting"
	// Deleted means that the Framework was removed before the job had finished. Only the history has such jobs. They get this phase when the job
	// controller finds that the Framework is gone.
	Deleted Phase = api.Deleted
)

// Phases returns all phases.
func Phases() []Phase {
	return []Phase{Waiting, Queued, Starting, Barrier, Running, Stopping, Retry, Succeeded, Failed, Stopped, Deleting, Deleted}
}

// Means returns an explanation of the phase for help texts.
func (p Phase) Means() string {
	switch p {
	case Waiting:
		return "waits for its pods to be created, or for a machine"
	case Queued:
		return "waits for GPUs; shown with its position in the virtual cluster"
	case Starting:
		return "has its machines; volumes are mounted, images pulled, containers started"
	case Barrier:
		return "the tasks that run wait until all have started"
	case Running:
		return "its tasks run"
	case Stopping:
		return "its tasks are being stopped"
	case Retry:
		return "failed, and will be retried"
	case Succeeded:
		return "finished successfully"
	case Failed:
		return "failed, and will not be retried"
	case Stopped:
		return "stopped on request"
	case Deleting:
		return "deleted; its objects are being removed"
	case Deleted:
		return "removed before it had finished"
	}
	return ""
}

// Done reports whether the phase is final.
func (p Phase) Done() bool {
	return p == Succeeded || p == Failed || p == Stopped || p == Deleted
}

// Verb returns the phase as the predicate of a sentence about a job: "has failed", "was stopped", "is running".
func (p Phase) Verb() string {
	switch p {
	case Succeeded, Failed:
		return "has " + string(p)
	case Stopped, Deleted:
		return "was " + string(p)
	case Retry:
		return "waits for its next attempt"
	case Barrier:
		return "waits for its last tasks"
	case Deleting:
		return "is being deleted"
	}
	return "is " + string(p)
}

// State is the state of a job: its phase with details.
type State struct {
	Phase Phase
	// Position is the position of a queued job in the queue of its virtual cluster, beginning with 1. For other jobs it is 0.
	Position int
	// RetryAt is when the next attempt begins, if the job waits for a retry.
	RetryAt *time.Time
	// Removed means that a user has deleted a job that had finished.
	Removed bool
}

// Text returns the state for display, such as "queued (3rd)", "retry in 4m", "waiting for other tasks" or "succeeded (deleted)".
func (s State) Text(now time.Time) string {
	switch {
	case s.Phase == Queued && s.Position > 0:
		return fmt.Sprintf("queued (%s)", Ordinal(s.Position))
	case s.Phase == Barrier:
		return "waiting for other tasks"
	case s.Phase == Retry && s.RetryAt != nil && s.RetryAt.After(now):
		return "retry in " + Duration(s.RetryAt.Sub(now))
	case s.Removed:
		return string(s.Phase) + " (deleted)"
	}
	return string(s.Phase)
}

// Ordinal formats a position, such as 1st.
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// ReadPhases parses the names of phases. It ignores case.
func ReadPhases(names []string) ([]Phase, error) {
	var out []Phase
	for _, n := range names {
		p := Phase(strings.ToLower(strings.TrimSpace(n)))
		if !slices.Contains(Phases(), p) {
			return nil, hint.Errorf("the states are: "+strings.Join(PhaseNames(), ", "), "there is no state %q", n)
		}
		out = append(out, p)
	}
	return out, nil
}

// PhaseNames returns the names of all phases.
func PhaseNames() []string {
	var out []string
	for _, p := range Phases() {
		out = append(out, string(p))
	}
	return out
}

// Duration formats a duration in at most two units, such as 3m5s.
func Duration(d time.Duration) string {
	switch d = max(d, 0).Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "m", int(d.Seconds())%60, "s", 10)
	case d < 24*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "m", 10)
	}
	return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h", 10)
}

// two formats a number of two units. It leaves out the smaller unit if its number is zero, or if the larger number is at least enough.
func two(a int, unitA string, b int, unitB string, enough int) string {
	if b == 0 || a >= enough {
		return fmt.Sprintf("%d%s", a, unitA)
	}
	return fmt.Sprintf("%d%s%d%s", a, unitA, b, unitB)
}
