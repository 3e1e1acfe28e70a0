package api

import "time"

// Visibility specifies which jobs a user sees: all jobs if All is true, and otherwise the jobs of User and the jobs in VCs. A request can combine
// Visibility with any other filter.
type Visibility struct {
	All  bool
	User string
	VCs  []string
}

// Sees reports whether the user sees a job. A nil Visibility means all jobs.
func (v *Visibility) Sees(j *Job) bool {
	if v == nil || v.All || v.User != "" && j.User == v.User {
		return true
	}
	for _, vc := range v.VCs {
		if j.VirtualCluster == vc {
			return true
		}
	}
	return false
}

// Orders of lists. Jobs that are equal in an order are sorted by their UIDs.
const (
	OrderSubmitted = "submitted"
	OrderName      = "name"
	OrderUser      = "user"
	OrderVC        = "vc"
	OrderRetries   = "retries"
	OrderTasks     = "tasks"
	OrderGPUs      = "gpus"
	OrderState     = "state"     // failed, running, stopped, stopping, succeeded, waiting, and by parts of these
	OrderCompleted = "completed" // of finished jobs; the others come after them
	OrderPriority  = "priority"  // by name; those without one come after them
)

// Orders returns the names of all orders.
func Orders() []string {
	return []string{
		OrderSubmitted, OrderName, OrderUser, OrderVC, OrderRetries, OrderTasks, OrderGPUs, OrderState, OrderCompleted, OrderPriority,
	}
}

// StateRank returns the position of a state in OrderState. Positions follow the alphabetical order of OpenPAI's names for the states.
func StateRank(state string) int {
	switch state {
	case Failed:
		return 0
	case Running, "barrier", "retry":
		return 1
	case Stopped, Deleted:
		return 2
	case Stopping, "deleting":
		return 3
	case Succeeded:
		return 4
	}
	return 5 // waiting, queued, starting
}

// NoPriority in OrderedQuery.Priorities selects jobs without a priority.
const NoPriority = "default"

// OrderedQuery selects jobs that have ended and whose Frameworks no longer exist. Only the history still has these jobs. Empty fields don't
// restrict the selection.
type OrderedQuery struct {
	Users, VirtualClusters []string
	Visible                *Visibility
	// Keyword is a part of the user's, the job's or the virtual cluster's name. InName is a part of the job's name. Both ignore case.
	Keyword, InName string
	States          []string
	Priorities      []string
	// TagsAny selects jobs with at least one of its tags. TagsNone selects jobs without any of its tags.
	TagsAny, TagsNone []string
	Since, Before     time.Time // of submission
	// Latest leaves out a job if the history contains a later job with the same name.
	Latest bool

	Order      string // "" is OrderSubmitted
	Descending bool
	Offset     int
	// Limit is the maximum number of jobs in a response, up to MaxOrdered. Zero means no jobs, for a query that only counts.
	Limit int
	// Count requests the total number of selected jobs.
	Count bool
}

// MaxOrdered is the maximum number of jobs in a response.
const MaxOrdered = 5000

// OrderedPage is one page of an ordered list.
type OrderedPage struct {
	Items []Job `json:"items"`
	// Total is the number of jobs that the query selects. It is nil unless the query has Count.
	Total *int `json:"total,omitempty"`
}

// Tags is the body of a request that changes a job's tags. The response contains the job's tags after the change.
type Tags struct {
	Tags []string `json:"tags"`
}
