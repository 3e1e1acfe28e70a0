// Package audit is who did what to what, when, from where and with which token.
// In: records of pai-server. Out: JSON lines, rows of the job controller's archive, pages of these.
package audit

import "time"

// Outcomes of a record.
const (
	Done    = "done"
	Refused = "refused" // by a rule, or since no one was signed in
	Failed  = "failed"
)

// Record is one thing that was done, or refused. It holds no secret: no token, no password, no text of a job.
type Record struct {
	// ID is chosen by who writes the record, so that it may be sent twice: 20 to 64 letters, digits, hyphens.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Request is the id of the HTTP request, which the access log has, too.
	Request string `json:"request,omitempty"`

	// Actor is the name of who did it, ActorUID the UID of their User; both are empty where none was signed in. The name
	// that was given at a sign-in is in Detail.
	Actor    string `json:"actor,omitempty"`
	ActorUID string `json:"actorUID,omitempty"`
	// Token is the id of the token's record.
	Token   string `json:"token,omitempty"`
	Address string `json:"address,omitempty"`

	// Verb and Kind are of the rule: stop, job. Object is its name, Owner whose it is, VC its virtual cluster.
	Verb   string `json:"verb"`
	Kind   string `json:"kind"`
	Object string `json:"object,omitempty"`
	Owner  string `json:"owner,omitempty"`
	VC     string `json:"vc,omitempty"`

	// Outcome is one of the above, Status the one of the answer, Reason why it was refused or failed.
	Outcome string            `json:"outcome"`
	Status  int               `json:"status,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Detail  map[string]string `json:"detail,omitempty"`
}

// Query selects records. Empty fields select all.
type Query struct {
	Actor, Object, Owner, Kind, Verb, Outcome string
	Since, Until                              time.Time // Until is the end
	// Cursor is Page.Next of the page before.
	Cursor string
	Limit  int // 1 to MaxPage; 0 is DefaultPage
}

// How many records a page has.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page is a part of the records, the latest first.
type Page struct {
	Items []Record `json:"items"`
	// Next is the cursor of the following page, or "". Records that come meanwhile don't make a page repeat or leave out others.
	Next string `json:"next,omitempty"`
}
