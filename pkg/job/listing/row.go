package listing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
)

// Row is a job in a list. Its State is one of the phases.
type Row struct {
	api.Job
	Position int        `json:"position,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// Live reports whether the job's Framework exists.
	Live bool `json:"live"`
	// Unplaced means that tasks have no machine yet, so that the job is queued if the scheduler's queue contains it. It is set only by a server
	// that doesn't know the queue.
	Unplaced bool `json:"unplaced,omitempty"`
}

// At returns the job's state as a State.
func (r *Row) At() State {
	phase := Phase(r.State)
	return State{phase, r.Position, r.RetryAt, r.Deleted && phase.Done() && phase != Deleted}
}

// NewRow returns the row for a job in a state.
func NewRow(job api.Job, s State, live bool) Row {
	job.State = string(s.Phase)
	return Row{Job: job, Position: s.Position, RetryAt: s.RetryAt, Live: live}
}

// NewArchivedRow returns the row for a job whose Framework doesn't exist.
func NewArchivedRow(job api.Job) Row {
	state := State{Phase: Phase(job.State)}
	if !state.Phase.Done() {
		state.Phase = Deleted
	}
	return NewRow(job, state, false)
}

// NewestFirst compares two rows in the order of lists, which is by submission and then by UID. The history has the same order.
func NewestFirst(a, b *Row) int {
	return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(b.UID, a.UID))
}

// Page is one page of a list, starting with the latest submission.
type Page struct {
	Items []Row `json:"items"`
	// Next is the cursor for the following page, or "" if this page is the last. Jobs that are added, changed or removed between two requests
	// don't cause other jobs to be repeated or left out.
	Next string `json:"next,omitempty"`
	// Note names the source that could not be read.
	Note string `json:"note,omitempty"`
}

// Visibility specifies which jobs a user sees.
type Visibility = api.Visibility

// Filter selects jobs. Empty fields don't restrict the selection.
type Filter struct {
	User, VirtualCluster string
	// Users and VirtualClusters select jobs of any of these users and virtual clusters. They restrict the selection in addition to User and
	// VirtualCluster.
	Users, VirtualClusters []string
	// Visible leaves out jobs that the requesting user may not see. If it is nil, no job is left out.
	Visible *Visibility
	// Keyword is a part of the user's, the job's or the virtual cluster's name.
	Keyword string
	// InName is a part of the job's own name.
	InName string
	Phases []Phase
	// Priorities selects jobs with any of these priorities; api.NoPriority selects jobs without a priority.
	Priorities []string
	// TagsAny selects jobs with at least one of its tags. TagsNone selects jobs without any of its tags.
	TagsAny, TagsNone []string
	Since             time.Time // of submission
	// Earlier also selects a job if a later job has the same name.
	Earlier bool
	// Limit is the maximum number of rows on a page. Zero means all rows, or no rows for an ordered page.
	Limit int
	// Cursor is Page.Next of the previous page. Ordered pages use Offset instead.
	Cursor string

	// The other fields are only for ordered pages. Order is one of api.Orders, or "" for api.OrderSubmitted.
	Order      string
	Descending bool
	Offset     int
	// Count requests the total number of selected jobs.
	Count bool
}

// Selects reports whether the filter selects a job. An unplaced job counts as queued, too.
func (o *Filter) Selects(r *Row) bool {
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

// anyOf reports whether a value is in wanted. It returns true if wanted is empty.
func anyOf(wanted []string, value string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// tagged reports whether at least one of the tags is in some.
func tagged(tags, some []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(some, tag) })
}

// has reports whether a text contains a part. It ignores case.
func has(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// Select returns the rows after the filter's cursor that the filter selects, starting with the newest row. It returns at most one row more than
// the filter's limit.
func Select(rows []Row, f *Filter) ([]Row, error) {
	after, err := ReadCursor(f.Cursor)
	if err != nil {
		return nil, err
	}
	out := []Row{}
	for i := range rows {
		if after.Passed(&rows[i]) && f.Selects(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	slices.SortFunc(out, func(a, b Row) int { return NewestFirst(&a, &b) })
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit+1]
	}
	return out, nil
}
