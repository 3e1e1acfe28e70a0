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
	// TakesGPUs is the number of GPUs that the tasks which request GPUs get, if their processors or memory are the share of more GPUs
	// than they request; otherwise 0. It is also 0 for jobs that only the history has.
	TakesGPUs int `json:"takesGpus,omitempty"`
	// MilliCPU and MemoryMB are the limits of all tasks, in thousandths of a processor and MiB. They aren't known for jobs that only the
	// history has.
	MilliCPU  int64      `json:"milliCPU,omitempty"`
	MemoryMB  int64      `json:"memoryMB,omitempty"`
	Tasks     int        `json:"tasks"`
	Retries   int32      `json:"retries"`
	Submitted time.Time  `json:"submitted"`
	Started   *time.Time `json:"started,omitempty"`
	Completed *time.Time `json:"completed,omitempty"`
	// Deleted: someone deleted the job. A job whose time in Kubernetes has ended is not deleted.
	Deleted bool `json:"deleted,omitempty"`

	// Fields that only OpenPAI's lists show. They are empty for jobs that earlier versions wrote to the history.
	FrameworkState     string   `json:"frameworkState,omitempty"` // the controller's state: AttemptRunning, Completed
	ExecutionType      string   `json:"executionType,omitempty"`  // Start, Stop
	Roles              int      `json:"roles,omitempty"`          // how many task roles
	AccountableRetries int32    `json:"accountableRetries,omitempty"`
	Tags               []string `json:"tags,omitempty"` // in order
}

// JobQuery selects jobs. Empty fields select all.
type JobQuery struct {
	User, VirtualCluster, Keyword string
	States                        []string
	Since, Before                 time.Time // of submission
	Limit                         int       // 1 to 1000; 0 is 100
	Cursor                        string
	Latest                        bool // leaves out jobs whose name a later job of the history has
}

// JobPage is a part of a list, newest submission first.
type JobPage struct {
	Items []Job `json:"items"`
	// Next is the cursor of the following page, or empty. If jobs are added or removed between two requests, no other job is repeated or
	// left out.
	Next string `json:"next,omitempty"`
}

// JobDetail is all about one job.
type JobDetail struct {
	Job
	Config string `json:"config"` // the submitted text, secrets masked
	// ClonedFrom is the original of a cloned job.
	ClonedFrom *v1.ClonedFrom `json:"clonedFrom,omitempty"`
	Attempts   []Attempt      `json:"attempts"`
}

// Deletion is the result of a DELETE.
type Deletion struct {
	Jobs int `json:"jobs"`
}

// Import is the result of importing a history.
type Import struct {
	// Jobs is the number of added jobs. Known is the number of jobs that the history already had.
	Jobs  int `json:"jobs"`
	Known int `json:"known"`
	// CodeLeftOut is the number of archives of code that weren't imported because of the current limits.
	CodeLeftOut int `json:"codeLeftOut,omitempty"`
}

// Attempt is one attempt of a job, latest first.
type Attempt struct {
	ID         int32                                `json:"id"`
	Started    time.Time                            `json:"started"`
	Run        *time.Time                           `json:"run,omitempty"`
	Completed  *time.Time                           `json:"completed,omitempty"`
	Completion *v1.FrameworkAttemptCompletionStatus `json:"completion,omitempty"`
	Tasks      []TaskAttempt                        `json:"tasks"`
}

// TaskAttempt is one attempt of one task, by role, index and attempt.
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

// LogKey identifies the log of one attempt of one task.
type LogKey struct {
	Framework   string
	UID         string // the UID of the Framework; empty is the last job of that name
	Role        string // in the Framework
	Task        int32
	Attempt     int32 // the attempt of the Framework
	TaskAttempt int32
}

// CodeBusy is the Code of a temporary Error: another copy of the archive is being written or read.
const CodeBusy = "Busy"

// CodeElsewhere is the Code of an Error of an archive in a database server, which can't be copied.
const CodeElsewhere = "Elsewhere"

// Error is the body of an error response.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
