package api

// Events of /api/v3/jobs/watch. Each job is the row that a list has of it; a later one of the same uid stands for it. The id of what was
// read last, in the header Last-Event-ID, lets a watch go on at any server of the cluster.
const (
	// EventSnapshot (Snapshot) begins what the list has. What was told before counts no longer. EventReady (Ready) ends it.
	EventSnapshot = "snapshot"
	EventReady    = "ready"
	// EventJob (a row of job.Page) is a job that the list has. EventGone (Gone) is one that it hasn't any longer; it may not have been told before.
	EventJob  = "job"
	EventGone = "gone"
	// EventProblem (Error) says that the server can't hear of changes; EventBack ({}), that it can again, and tells them.
	EventProblem = "problem"
	EventBack    = "back"
	// EventEnd (Error) is the last one.
	EventEnd = "end"
)

// LastEventID is the header of a watch that goes on.
const LastEventID = "Last-Event-ID"

// Snapshot says why a watch begins with all that the list has: it is new, its place has expired, or one's grants or one's filter have changed.
type Snapshot struct {
	Why string `json:"why"` // new, expired, grants
}

// Ready is what a page of a list says beside its rows.
type Ready struct {
	Next string `json:"next,omitempty"`
	Note string `json:"note,omitempty"`
}

// Gone is a job that the list hasn't any longer.
type Gone struct {
	UID  string `json:"uid"`
	User string `json:"user"`
	Name string `json:"name"`
}
