package api

// Events of /api/v3/jobs/watch. Each job is a row as in a list; a later one with the same uid replaces it. With the id of the
// last event in the header Last-Event-ID, a watch resumes at any server of the cluster.
const (
	// EventSnapshot (Snapshot) begins the whole list, which replaces all earlier rows. EventReady (Ready) ends it.
	EventSnapshot = "snapshot"
	EventReady    = "ready"
	// EventJob (a row of job.Page) is a job in the list. EventGone (RemovedJob) is a job that is no longer in it; clients may not
	// have received it before.
	EventJob  = "job"
	EventGone = "gone"
	// EventProblem (Error) means that the server can't read changes for now. EventBack ({}) means that it can again; the
	// changes follow.
	EventProblem = "problem"
	EventBack    = "back"
	// EventEnd (Error) is the last event.
	EventEnd = "end"
)

// EventChange (status.Delta) is a change of /api/v3/status/watch, whose EventSnapshot has a status.Cluster.
const EventChange = "change"

// LastEventID is the header with the place where a watch resumes.
const LastEventID = "Last-Event-ID"

// Snapshot explains why a watch begins with the whole list: it is new, its place has expired, or the caller's grants or filter have
// changed.
type Snapshot struct {
	Why string `json:"why"` // new, expired, grants
}

// Ready holds the fields of a page of a list, without its rows.
type Ready struct {
	Next string `json:"next,omitempty"`
	Note string `json:"note,omitempty"`
}

// RemovedJob is a job that is no longer in the list.
type RemovedJob struct {
	UID  string `json:"uid"`
	User string `json:"user"`
	Name string `json:"name"`
}
