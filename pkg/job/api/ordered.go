package api

import "time"

// Visibility specifies which jobs a person sees: all jobs, or the jobs of User and the jobs in VCs. Visibility can be
// combined with any other filter in one request.
type Visibility struct {
	All  bool
	User string
	VCs  []string
}

// Sees reports whether the person sees a job.
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

// Orders of lists. Jobs that are equal in an order are sorted by UID.
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

// Orders returns all orders.
func Orders() []string {
	return []string{
		OrderSubmitted, OrderName, OrderUser, OrderVC, OrderRetries, OrderTasks, OrderGPUs, OrderState, OrderCompleted, OrderPriority,
	}
}

// StateRank returns the position of a state in OrderState, which sorts OpenPAI's names of states alphabetically.
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

// NoPriority selects jobs without a priority among OrderedQuery.Priorities.
const NoPriority = "default"

// OrderedQuery selects jobs of the history that have ended and whose Frameworks are gone, in any order: no other source has them. Empty
// fields select all.
type OrderedQuery struct {
	Users, VirtualClusters []string
	Visible                *Visibility
	// Keyword is a part of the name of the user, the job or the virtual cluster; InName is a part of the job's name. Case doesn't matter.
	Keyword, InName string
	States          []string
	Priorities      []string
	// TagsAny selects jobs with any of these tags. TagsNone selects jobs without these tags.
	TagsAny, TagsNone []string
	Since, Before     time.Time // of submission
	// Latest leaves out jobs whose name a later job of the history has.
	Latest bool

	Order      string // "" is OrderSubmitted
	Descending bool
	Offset     int
	// Limit is the maximum number of jobs in a response, up to MaxOrdered; 0: no jobs.
	Limit int
	// Count requests the total number of jobs.
	Count bool
}

// MaxOrdered is the maximum number of jobs in a response.
const MaxOrdered = 5000

// OrderedPage is a part of an ordered list.
type OrderedPage struct {
	Items []Job `json:"items"`
	// Total is how many jobs the query selects, if it has Count.
	Total *int `json:"total,omitempty"`
}

// Tags is the body of a change of a job's tags. The response has the tags that the job has then.
type Tags struct {
	Tags []string `json:"tags"`
}
