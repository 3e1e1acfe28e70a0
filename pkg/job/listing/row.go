package listing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
)

// Row is one job of a list. Its State is one of the phases.
type Row struct {
	api.Job
	Position int        `json:"position,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// Live reports whether the job's Framework exists.
	Live bool `json:"live"`
	// Unplaced: tasks have no machine yet, so the job is queued if the scheduler's queue has it. Only a server that doesn't know that
	// queue sets it.
	Unplaced bool `json:"unplaced,omitempty"`
}

// At returns the row's state as a State.
func (r *Row) At() State {
	phase := Phase(r.State)
	return State{phase, r.Position, r.RetryAt, r.Deleted && phase.Done() && phase != Deleted}
}

// NewRow returns the row of a job in a state.
func NewRow(job api.Job, s State, live bool) Row {
	job.State = string(s.Phase)
	return Row{Job: job, Position: s.Position, RetryAt: s.RetryAt, Live: live}
}

// NewArchivedRow returns the row of a job that has no Framework.
func NewArchivedRow(job api.Job) Row {
	state := State{Phase: Phase(job.State)}
	if !state.Phase.Done() {
		state.Phase = Deleted
	}
	return NewRow(job, state, false)
}

// NewestFirst compares rows in the order of lists: by submission, then by UID. The history has the same order.
func NewestFirst(a, b *Row) int {
	return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(b.UID, a.UID))
}

// Page is a part of a list, newest submission first.
type Page struct {
	Items []Row `json:"items"`
	// Next is the cursor of the following page, or "". If jobs are added, changed or removed between two requests, no other job is
	// repeated or left out.
	Next string `json:"next,omitempty"`
	// Note names the source that could not be read.
	Note string `json:"note,omitempty"`
}

// Visibility determines whose jobs a user sees.
type Visibility = api.Visibility

// Filter selects jobs. Empty fields select all.
type Filter struct {
	User, VirtualCluster string
	// Users and VirtualClusters select jobs of any of these, in addition to the fields above.
	Users, VirtualClusters []string
	// Visible leaves out jobs that the user doesn't see; nil: the user sees all.
	Visible *Visibility
	// Keyword is a part of the user's, the job's or the virtual cluster's name.
	Keyword string
	// InName is a part of the job's own name.
	InName string
	Phases []Phase
	// Priorities selects jobs with any of these priorities; api.NoPriority selects jobs without a priority.
	Priorities []string
	// TagsAny selects jobs with any of these tags. TagsNone selects jobs without these tags.
	TagsAny, TagsNone []string
	Since             time.Time // of submission
	// Earlier selects also jobs whose name a later job has.
	Earlier bool
	// Limit is how many rows a page has; 0 means all. For an ordered page 0 means no rows.
	Limit int
	// Cursor is Page.Next of the page before. Ordered pages don't have a cursor.
	Cursor string

	// The rest is only for ordered pages. Order is one of api.Orders, or "" for api.OrderSubmitted.
	Order      string
	Descending bool
	Offset     int
	// Count requests the total number of jobs.
	Count bool
}

// Fits reports whether the filter selects a job. An unplaced row sorts like a queued row.
func (o *Filter) Fits(r *Row) bool {
	switch {
	case o.User != "" && r.User != o.User, o.VirtualCluster != "" && r.VirtualCluster != o.VirtualCluster:
		return false
	case !anyOf(o.Users, r.User), !anyOf(o.VirtualClusters, r.VirtualCluster), !o.Visible.Sees(&r.Job):
		return false
	case !anyOf(o.Priorities, cmp.Or(r.Priority, api.NoPriority)):
		return false
	case len(o.TagsAny) > 0 && !tagged(r.Tags, o.TagsAny), tagged(r.Tags, o.TagsNone):
		return false
	case r.Submitted.Before(o.Since), o.InName != "" && !has(r.Name, o.InName):
		return false
	case len(o.Phases) > 0 && !slices.Contains(o.Phases, Phase(r.State)) && (!r.Unplaced || !slices.Contains(o.Phases, Queued)):
		return false
	}
	return o.Keyword == "" || has(r.User, o.Keyword) || has(r.Name, o.Keyword) || has(r.VirtualCluster, o.Keyword)
}

// anyOf reports whether a value is one of wanted, or wanted is empty.
func anyOf(wanted []string, value string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// tagged reports whether one of the tags is among some.
func tagged(tags, some []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(some, tag) })
}

// has reports whether a text contains a part, in any case.
func has(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// Select returns the rows that come after the filter's cursor and that it selects, newest first: at most one more than its
// limit.
func Select(rows []Row, f *Filter) ([]Row, error) {
	after, err := ReadCursor(f.Cursor)
	if err != nil {
		return nil, err
	}
	out := []Row{}
	for i := range rows {
		if after.Passed(&rows[i]) && f.Fits(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	slices.SortFunc(out, func(a, b Row) int { return NewestFirst(&a, &b) })
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit+1]
	}
	return out, nil
}
