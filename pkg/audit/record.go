// Package audit records the actions of users, with their time, address and token.
// In: records of pai-server. Out: JSON lines, rows of the job controller's archive, pages of records.
package audit

import (
	"net/url"
	"strconv"
	"time"
)

// Outcomes of a record.
const (
	Done    = "done"
	Refused = "refused" // by a rule, or because the client wasn't signed in
	Failed  = "failed"
)

// Record is one action that was done or denied. It contains no secrets: neither tokens nor passwords nor the text of a job.
type Record struct {
	// ID is 20 to 64 letters, digits and hyphens. The writer of the record chooses it, so that sending the record twice stores it once.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Request is the ID of the HTTP request, which is also in the access log.
	Request string `json:"request,omitempty"`

	// Actor is the name of the person who acted, and ActorUID is the UID of that person's User; both are empty if the client wasn't signed in. Detail
	// holds the name that a client entered to sign in.
	Actor    string `json:"actor,omitempty"`
	ActorUID string `json:"actorUID,omitempty"`
	// Token is the ID of the token's record.
	Token   string `json:"token,omitempty"`
	Address string `json:"address,omitempty"`

	// Verb and Kind are the verb and the kind of the access rule, such as stop and job. Object is the object's name, Owner its owner, and VC its
	// virtual cluster.
	Verb   string `json:"verb"`
	Kind   string `json:"kind"`
	Object string `json:"object,omitempty"`
	Owner  string `json:"owner,omitempty"`
	VC     string `json:"vc,omitempty"`

	// Outcome is Done, Refused or Failed. Status is the status code of the response. Reason says why the action was denied or failed.
	Outcome string            `json:"outcome"`
	Status  int               `json:"status,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Detail  map[string]string `json:"detail,omitempty"`
}

// Query selects records. An empty field doesn't restrict the selection.
type Query struct {
	Actor, Object, Owner, Kind, Verb, Outcome string
	Since, Until                              time.Time // Until is exclusive
	// Cursor is the Next field of the previous page, or "" for the first page.
	Cursor string
	Limit  int // 1 to MaxPage; 0 is DefaultPage
}

// Values returns the query as the parameters of a URL.
func (q *Query) Values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"actor": q.Actor, "object": q.Object, "owner": q.Owner, "kind": q.Kind, "verb": q.Verb, "outcome": q.Outcome, "cursor": q.Cursor,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Limits of the number of records on a page.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// Page is one page of records, starting with the latest record.
type Page struct {
	Items []Record `json:"items"`
	// Next is the cursor of the following page, or "". New records don't cause a page to repeat or omit others.
	Next string `json:"next,omitempty"`
}
