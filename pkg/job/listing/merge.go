package listing

import (
	"context"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
)

// archivePage is the maximum number of rows that are read from the history at once.
const archivePage = 1000

// Archive is the part of the history that Merge needs.
type Archive interface {
	Jobs(ctx context.Context, q api.JobQuery) (*api.JobPage, error)
	// Job returns the job with a UID.
	Job(ctx context.Context, uid string) (*api.JobDetail, error)
}

// Live describes the jobs whose Frameworks exist.
type Live struct {
	// Rows are the live jobs after the cursor that the filter selects, starting with the newest job. Rows has one row more than a page, or all
	// rows if there are fewer.
	Rows []Row
	// Exists reports whether the Framework of the job with a UID exists, whether or not the filter selects the job.
	Exists func(uid string) bool
	// Named reports whether a Framework with a name exists. If it is nil, no Framework exists.
	Named func(framework string) bool
	// Deleted is called for a job that There didn't find. It reports whether the job's Framework is gone; otherwise the Framework may have been
	// created after the live jobs were read.
	Deleted func(ctx context.Context, job *api.Job) (bool, error)
}

// Merge returns a page of live jobs and of jobs that only the history has. The live jobs were read before the history, so both may contain a job
// that finished in between. Merge lists such a job once. missing is the reason if the page doesn't include the history.
func Merge(ctx context.Context, f Filter, live Live, a Archive) (page *Page, missing, err error) {
	m := &merge{filter: &f, live: live, archive: a}
	if m.after, err = ReadCursor(f.Cursor); err != nil {
		return nil, nil, err
	}
	old, missing, err := m.ended(ctx)
	if err != nil {
		return nil, nil, err
	}
	page = &Page{Items: append(slices.Clone(live.Rows), old...)}
	slices.SortFunc(page.Items, func(a, b Row) int { return NewestFirst(&a, &b) })
	if page.Items == nil {
		page.Items = []Row{}
	}
	if f.Limit > 0 && len(page.Items) > f.Limit {
		page.Items = page.Items[:f.Limit]
		page.Next = NewCursor(&page.Items[f.Limit-1])
	}
	return page, missing, nil
}

// Without returns the note for a page that doesn't include the history, with the reason.
func Without(why error) string { return "jobs that finished long ago are not shown: " + why.Error() }

type merge struct {
	filter  *Filter
	after   Cursor
	live    Live
	archive Archive
}

// ended reads the jobs that only the history has, up to the number that the page needs.
func (m *merge) ended(ctx context.Context) (out []Row, missing, err error) {
	q, asks := m.query()
	if !asks {
		return nil, nil, nil
	}
	there := map[string]bool{} // of a page that was read before some of it ended
	for i := range m.live.Rows {
		there[m.live.Rows[i].UID] = true
	}
	for {
		page, err := m.archive.Jobs(ctx, q)
		if err != nil {
			return nil, err, nil
		}
		for i := range page.Items {
			job := page.Items[i]
			if at := (&Row{Job: job}); !m.after.Passed(at) || there[job.UID] || m.live.Exists(job.UID) {
				continue
			}
			if !m.filter.Earlier && m.live.Named != nil && m.live.Named(job.Framework) {
				continue // a later job has its name
			}
			row, known, err := m.row(ctx, job)
			if err != nil {
				return nil, nil, err
			}
			if known && m.filter.Selects(&row) {
				out = append(out, row)
			}
		}
		if page.Next == "" || len(page.Items) == 0 || m.enough(len(out), &page.Items[len(page.Items)-1]) {
			return out, nil, nil
		}
		q.Cursor, q.Limit = page.Next, min(archivePage, 2*q.Limit)
	}
}

// query returns the query for the jobs of the history that may be on the page. asks is false if the page can contain only live jobs.
func (m *merge) query() (q api.JobQuery, asks bool) {
	f := m.filter
	q = api.JobQuery{User: f.User, VirtualCluster: f.VirtualCluster, Keyword: f.Keyword, Since: f.Since, Limit: archivePage, Latest: !f.Earlier}
	if v := f.Visible; v != nil && !v.All && !narrow(v, &q) {
		return q, false
	}
	if f.Limit > 0 {
		q.Limit = min(archivePage, f.Limit+1)
		if len(m.live.Rows) > f.Limit && m.live.Rows[f.Limit].Submitted.After(q.Since) {
			q.Since = m.live.Rows[f.Limit].Submitted // older jobs aren't in this page
		}
	}
	if !m.after.submitted.IsZero() {
		// Submission times are whole seconds. The caller removes the jobs from the cursor's second that come before the cursor.
		q.Before = m.after.submitted.Add(time.Second)
	}
	for _, p := range f.Phases {
		switch {
		case p == Deleted:
			// Also query jobs whose end isn't in the history yet.
			q.States = append(q.States, api.Deleted, api.Waiting, api.Running, api.Stopping)
		case p.Done():
			q.States = append(q.States, string(p))
		}
	}
	return q, len(f.Phases) == 0 || len(q.States) > 0
}

// narrow restricts a query to jobs that the user may see, as far as the history has an index for this restriction. The caller filters the result
// further. narrow returns false if no job can be visible.
func narrow(v *Visibility, q *api.JobQuery) bool {
	switch {
	case q.User == v.User && v.User != "":
		return true
	case len(v.VCs) == 0 && q.User == "" && v.User != "":
		q.User = v.User
		return true
	case q.User == "":
		return v.User != "" || len(v.VCs) > 0
	case q.VirtualCluster != "":
		return slices.Contains(v.VCs, q.VirtualCluster)
	case len(v.VCs) == 1:
		q.VirtualCluster = v.VCs[0] // of another user, only jobs in this virtual cluster are visible
	}
	return len(v.VCs) > 0
}

// enough reports whether the rows that come before the last job read are enough for a page.
func (m *merge) enough(kept int, last *api.Job) bool {
	if m.filter.Limit == 0 {
		return false
	}
	at := Row{Job: *last}
	n, _ := slices.BinarySearchFunc(m.live.Rows, &at, func(r Row, last *Row) int { return NewestFirst(&r, last) })
	return n+kept > m.filter.Limit
}

// row returns the row of a job whose Framework isn't in the index. If the history had no end of the job when it was read, there are two cases.
// Either the job has finished and its Framework has been removed since then; or the job was created after the live jobs were read, and known is
// false, because the job belongs before the beginning of this list.
func (m *merge) row(ctx context.Context, job api.Job) (row Row, known bool, err error) {
	if Phase(job.State).Done() {
		return NewArchivedRow(job), true, nil
	}
	if d, err := m.archive.Job(ctx, job.UID); err == nil {
		job = d.Job
	}
	if Phase(job.State).Done() {
		return NewArchivedRow(job), true, nil
	}
	gone, err := m.live.Deleted(ctx, &job)
	return NewArchivedRow(job), gone, err
}
