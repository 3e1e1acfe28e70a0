// Package api is the HTTP API of the job controller: history, logs of finished tasks, code.
// In: nothing. Out: types that the controller, its archive and paictl share.
//
//	GET  /v1/jobs?user=&vc=&state=&keyword=&since=&before=&latest=true&limit=&cursor=   JobPage
//	GET  /v1/jobs?live=true&user=&vc=&state=&keyword=&name=&since=&earlier=true&limit=&cursor=   listing.Page
//	GET  /v1/jobs?order=&desc=true&offset=&limit=&count=true&user=&vc=&visible=some&visibleUser=&visibleVC=…   OrderedPage: jobs that are gone; see OrderedQuery
//	PUT, DELETE /v1/jobs/{uid}/tags                                        Tags to Tags; of jobs that are gone
//	GET  /v1/jobs/{framework}                                              JobDetail; also by UID
//	DELETE /v1/jobs/{framework}                                            Deletion; of finished jobs
//	GET  /v1/jobs/{framework}/events                                       []Event
//	GET  /v1/usage?user=&vc=&type=&since=&until=&by=                       Usage; by: vc, user, type, hour, day, month, with commas
//	GET  /v1/machines/{node}/gpus                                          []GPU
//	GET  /v1/jobs/{framework}/logs?uid=&role=&task=&attempt=&taskAttempt=   text; header X-Pai-Truncated: true
//	HEAD, PUT, GET /v1/code/{sha256}?user=                                 a gzipped tar archive; with a user only if that user has sent it
//	POST, GET /v1/audit                                                    []audit.Record, audit.Page; by AuditTokenHeader
//
// Clients send the token of the Secret TokenSecret in TokenHeader. Errors are {"code": "NotFound", "message": "…"};
// the codes are BadRequest, Forbidden, NotFound, Conflict, TooLarge, Unavailable and Internal.
package api

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Job is one row of a list.
type Job struct {
	Framework      string `json:"framework"` // name of the object
	UID            string `json:"uid"`       // distinguishes jobs that had the same name
	User           string `json:"user"`
	Name           string `json:"name"`
	VirtualCluster string `json:"virtualCluster"`
	Priority       string `json:"priority,omitempty"`
	State          string `json:"state"` // waiting, running, stopping, succeeded, failed, stopped, deleted
	Phrase         string `json:"phrase,omitempty"`
	Code           *int32 `json:"code,omitempty"`
	GPUs           int    `json:"gpus"` // or UnknownGPUs
	// TakesGPUs is how many GPUs are occupied by the tasks that request GPUs, if these tasks need the processors or memory of more GPUs than they
	// request. Otherwise it is 0. It is also 0 for jobs that only the history has.
	TakesGPUs int `json:"takesGpus,omitempty"`
	// MilliCPU and MemoryMB are the limits of all tasks together, in thousandths of a processor and in MiB. They are 0 for jobs that only the
	// history has.
	MilliCPU  int64      `json:"milliCPU,omitempty"`
	MemoryMB  int64      `json:"memoryMB,omitempty"`
	Tasks     int        `json:"tasks"`
	Retries   int32      `json:"retries"`
	Submitted time.Time  `json:"submitted"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	// Deleted means that a user deleted the job. It is false if the Framework was removed because its retention time had expired.
	Deleted bool `json:"deleted,omitempty"`

	// Fields for OpenPAI's lists. They are empty for jobs that earlier versions wrote to the history.
	FrameworkState     string   `json:"frameworkState,omitempty"` // the controller's state: AttemptRunning, Completed
	ExecutionType      string   `json:"executionType,omitempty"`  // Start, Stop
	Roles              int      `json:"roles,omitempty"`          // how many task roles
	AccountableRetries int32    `json:"accountableRetries,omitempty"`
	Tags               []string `json:"tags,omitempty"` // in order
}

// JobQuery selects jobs. Empty fields don't restrict the selection.
type JobQuery struct {
	User, VirtualCluster, Keyword string
	States                        []string
	Since, Before                 time.Time // of submission
	Limit                         int       // 1 to 1000; 0 is 100
	Cursor                        string
	Latest                        bool // leaves out jobs whose name a later job of the history has
}

// JobPage is one page of a list of jobs, starting with the latest submission.
type JobPage struct {
	Items []Job `json:"items"`
	// Next is the cursor for the following page, or empty if this page is the last. Jobs that are added or removed between two requests don't
	// cause other jobs to be repeated or left out.
	Next string `json:"next,omitempty"`
}

// JobDetail is a job with its configuration and attempts.
type JobDetail struct {
	Job
	Config string `json:"config"` // the submitted text, secrets masked
	// ClonedFrom is the original of a cloned job. It is nil if this job isn't a clone.
	ClonedFrom *v1.ClonedFrom `json:"clonedFrom,omitempty"`
	Attempts   []Attempt      `json:"attempts"`
}

// Deletion is the response to a DELETE request. Jobs is the number of deleted jobs.
type Deletion struct {
	Jobs int `json:"jobs"`
}

// Import is the result of importing a history.
type Import struct {
	// Jobs is the number of added jobs. Known is the number of jobs that the history already had.
	Jobs  int `json:"jobs"`
	Known int `json:"known"`
	// CodeLeftOut is the number of code archives that weren't imported because they exceed the current limits.
	CodeLeftOut int `json:"codeLeftOut,omitempty"`
}

// Attempt is one attempt of a job. Lists start with the latest attempt.
type Attempt struct {
	ID         int32                                `json:"id"`
	Started    time.Time                            `json:"started"`
	Run        *time.Time                           `json:"run,omitempty"`
	Completed  *time.Time                           `json:"completed,omitempty"`
	Completion *v1.FrameworkAttemptCompletionStatus `json:"completion,omitempty"`
	Tasks      []TaskAttempt                        `json:"tasks"`
}

// TaskAttempt is one attempt of one task. Lists are sorted by role, index and attempt.
type TaskAttempt struct {
	Role       string                          `json:"role"` // as the user spells it
	RoleObject string                          `json:"roleObject"`
	Index      int32                           `json:"index"`
	ID         int32                           `json:"id"`
	State      v1.State                        `json:"state"`
	Pod        string                          `json:"pod"`
	PodUID     string                          `json:"podUID,omitempty"`
	Node       string                          `json:"node,omitempty"`
	Started    time.Time                       `json:"started"`
	Run        *time.Time                      `json:"run,omitempty"`
	Completed  *time.Time                      `json:"completed,omitempty"`
	Completion *v1.TaskAttemptCompletionStatus `json:"completion,omitempty"`
	HasLog     bool                            `json:"hasLog,omitempty"`
}

// Event is a Kubernetes event of a job or its pods.
type Event struct {
	UID     string    `json:"uid"`
	Time    time.Time `json:"time"` // last
	Type    string    `json:"type"` // Normal, Warning
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Object  string    `json:"object"` // Pod/NAME, Framework/NAME
	Count   int32     `json:"count"`
	Source  string    `json:"source,omitempty"`
}

// LogKey identifies the log for one attempt of one task.
type LogKey struct {
	Framework   string
	UID         string // the UID of the Framework; empty is the last job of that name
	Role        string // in the Framework
	Task        int32
	Attempt     int32 // the attempt of the Framework
	TaskAttempt int32
}

// CodeBusy is the Code of a temporary Error. It means that another copy of the archive is being written or read.
const CodeBusy = "Busy"

// CodeElsewhere is the Code of an Error that means that the history is in a database server, so that the controller can't export it.
const CodeElsewhere = "Elsewhere"

// Error is the body of an error response.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
