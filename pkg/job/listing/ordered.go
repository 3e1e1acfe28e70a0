package listing

import (
	"cmp"
	"context"
	"slices"

	"github.com/openpai/paictl/pkg/job/api"
)

// Ended is the part of the history that Ordered needs: the jobs that have ended and whose Frameworks no longer exist.
type Ended interface {
	Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error)
}

// OrderedPage is one page of an ordered list.
type OrderedPage struct {
	Items []Row `json:"items"`
	// Total is the number of jobs that the filter selects, or 0 if Filter.Count is false.
	Total int `json:"total"`
	// Note names the source that could not be read.
	Note string `json:"note,omitempty"`
}

// Compare compares two jobs in the filter's order. It returns 0 only for the same job.
func (o *Filter) Compare(a, b *Row) int {
	c := cmp.Or(o.key(a, b), cmp.Compare(a.UID, b.UID))
	if o.Descending {
		return -c
	}
	return c
}

// key compares two jobs by the field that determines the order. Rows without a value come last, or first if the order is descending.
func (o *Filter) key(a, b *Row) int {
	switch o.Order {
	case api.OrderName:
		return cmp.Compare(a.Name, b.Name)
	case api.OrderUser:
		return cmp.Compare(a.User, b.User)
	case api.OrderVC:
		return cmp.Compare(a.VirtualCluster, b.VirtualCluster)
	case api.OrderRetries:
		return cmp.Compare(a.Retries, b.Retries)
	case api.OrderTasks:
		return cmp.Compare(a.Tasks, b.Tasks)
	case api.OrderGPUs:
		return cmp.Compare(a.GPUs, b.GPUs)
	case api.OrderState:
		return cmp.Compare(api.StateRank(a.State), api.StateRank(b.State))
	case api.OrderCompleted:
		return atEnd(a.Completed == nil, b.Completed == nil, func() int { return a.Completed.Compare(*b.Completed) })
	case api.OrderPriority:
		return atEnd(a.Priority == "", b.Priority == "", func() int { return cmp.Compare(a.Priority, b.Priority) })
	}
	return a.Submitted.Compare(b.Submitted)
}

// atEnd compares two rows so that rows without a value come after rows with a value. If both have a value, it calls compare.
func atEnd(noA, noB bool, compare func() int) int {
	switch {
	case noA && noB:
		return 0
	case noA:
		return 1
	case noB:
		return -1
	}
	return compare()
}

// Sort sorts rows in the filter's order.
func (o *Filter) Sort(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int { return o.Compare(&a, &b) })
}

// Ordered returns a page, in any order, of live jobs and of jobs that only the history has. live contains all jobs that have a Framework and that
// the filter selects, in the filter's order. The live jobs were read before the history. there reports whether a job is live, whether or not the
// filter selects it, so that a job that became part of the history in between is listed only once. missing is the reason if the page doesn't
// include the history.
//
// The history doesn't know live jobs, so it can't return exactly the rows of the page. But at most len(live) of the rows before the page are live
// jobs. So Ordered reads the history from a position that is len(live) rows earlier than the page. The position of the first of these rows among
// all rows is its position in the history plus the number of live jobs before it.
func Ordered(ctx context.Context, f Filter, live []Row, there func(uid string) bool, history Ended) (page *OrderedPage, missing error) {
	page = &OrderedPage{Items: []Row{}}
	first := max(0, f.Offset-len(live))
	old, total, missing := f.ended(ctx, first, there, history)
	if missing != nil {
		old, total, first = nil, 0, 0
	}
	if f.Count {
		page.Total = len(live) + total
	}
	place, rest := 0, live
	if first > 0 {
		if len(old) == 0 {
			return page, missing // the page is behind all rows of both
		}
		before, _ := slices.BinarySearchFunc(live, &old[0], func(r Row, to *Row) int { return f.Compare(&r, to) })
		place, rest = first+before, live[before:]
	}
	for ; len(page.Items) < f.Limit && len(rest)+len(old) > 0; place++ {
		from := &old
		if len(old) == 0 || len(rest) > 0 && f.Compare(&rest[0], &old[0]) < 0 {
			from = &rest
		}
		if place >= f.Offset {
			page.Items = append(page.Items, (*from)[0])
		}
		*from = (*from)[1:]
	}
	return page, missing
}

// ended reads the rows of the history from the position first to the end of the page. It also returns the total number of rows.
func (o *Filter) ended(ctx context.Context, first int, there func(uid string) bool, history Ended) (out []Row, total int, err error) {
	q, asks := o.endedQuery()
	if !asks {
		return nil, 0, nil
	}
	q.Offset = first
	for wanted := o.Offset + o.Limit - first; ; q.Count = false {
		if o.Limit > 0 {
			q.Limit = min(wanted, api.MaxOrdered)
		} else if !q.Count {
			return out, total, nil
		}
		page, err := history.Ordered(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if page.Total != nil {
			total = *page.Total
		}
		for i := range page.Items {
			if !there(page.Items[i].UID) {
				out = append(out, NewArchivedRow(page.Items[i]))
			}
		}
		n := len(page.Items)
		if wanted -= n; wanted <= 0 || n < q.Limit || o.Limit == 0 {
			return out, total, nil
		}
		q.Offset += n
	}
}

// endedQuery returns the query for the jobs of the history that may be on the page. asks is false if the page can contain only live jobs.
func (o *Filter) endedQuery() (q api.OrderedQuery, asks bool) {
	q = api.OrderedQuery{
		Visible: o.Visible, Keyword: o.Keyword, InName: o.InName, Priorities: o.Priorities, TagsAny: o.TagsAny, TagsNone: o.TagsNone, Since: o.Since,
		Order: o.Order, Descending: o.Descending, Count: o.Count, Latest: !o.Earlier,
	}
	for _, p := range o.Phases {
		if p.Done() {
			q.States = append(q.States, string(p))
		}
	}
	var some, others bool
	q.Users, some = both(o.User, o.Users)
	q.VirtualClusters, others = both(o.VirtualCluster, o.VirtualClusters)
	return q, some && others && (len(o.Phases) == 0 || len(q.States) > 0)
}

// both returns the values that are selected by both one and some. An empty argument doesn't restrict the selection. found is false if no value is
// selected.
func both(one string, some []string) (out []string, found bool) {
	switch {
	case one == "":
		return some, true
	case anyOf(some, one):
		return []string{one}, true
	}
	return nil, false
}
