package archive

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
)

// Limits of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// ErrBadQuery is wrapped by the errors for invalid queries.
var ErrBadQuery = errors.New("bad query")

const jobColumns = "framework, uid, user_name, name, vc, priority, state, phrase, code, gpus, tasks, retries, submitted, started, completed, " +
	"tags, framework_state, execution_type, roles, accountable_retries, deleted"

func scanJob(scan func(...any) error, more ...any) (api.Job, error) {
	var (
		j                        api.Job
		code, started, completed sql.NullInt64
		submitted, deleted       int64
		tags                     string
	)
	err := scan(append([]any{
		&j.Framework, &j.UID, &j.User, &j.Name, &j.VirtualCluster, &j.Priority, &j.State, &j.Phrase, &code,
		&j.GPUs, &j.Tasks, &j.Retries, &submitted, &started, &completed,
		&tags, &j.FrameworkState, &j.ExecutionType, &j.Roles, &j.AccountableRetries, &deleted,
	}, more...)...)
	j.Tags, j.Deleted = readTags(tags), deleted != 0
	if code.Valid {
		c := int32(code.Int64)
		j.Code = &c
	}
	j.GPUs = api.KnownGPUs(j.GPUs) // rows of earlier versions may have overflowed numbers
	j.Submitted, j.Started, j.Completed = instant(submitted), instantOf(started), instantOf(completed)
	return j, err
}

// Jobs implements Store. Each page continues after the last job of the page before, in the order of submission and UID. Neither of them changes,
// so jobs that are added or removed between two requests don't cause other jobs to be repeated or left out.
func (d *database) Jobs(ctx context.Context, q api.JobQuery) (*api.JobPage, error) {
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	if q.Limit < 1 || q.Limit > maxLimit {
		return nil, hint.Errorf(fmt.Sprintf("request 1 to %d jobs per page", maxLimit), "%w: limit %d", ErrBadQuery, q.Limit)
	}
	query, args, err := listQuery(q, !d.dollars)
	if err != nil {
		return nil, err
	}
	rows, err := d.read.QueryContext(ctx, d.rebind(query), args...)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	page := &api.JobPage{Items: []api.Job{}}
	err = each(rows, func() error {
		j, err := scanJob(rows.Scan)
		page.Items = append(page.Items, j)
		return err
	})
	if err == nil && len(page.Items) > q.Limit {
		page.Items = page.Items[:q.Limit]
		page.Next = cursorAfter(&page.Items[q.Limit-1])
	}
	return page, err
}

// each calls f for every row, and closes the rows at the end or after an error.
func each(rows *sql.Rows, f func() error) error {
	for rows.Next() {
		if err := f(); err != nil {
			return errors.Join(fmt.Errorf("read the archive: %w", err), rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	return nil
}

// listQuery returns a query for one row more than a page has. For several states, the query merges one list for each state: each list is read in
// the order of an index, whereas a single list of several states would have to be sorted. The query names the index that covers all its filters.
// Without the name, SQLite, which has no statistics of the rows, would prefer an index with fewer filters if both Since and Before are set.
func listQuery(q api.JobQuery, sqlite bool) (string, []any, error) {
	where, args, err := conditions(q)
	if err != nil {
		return "", nil, err
	}
	const order = " ORDER BY submitted DESC, uid DESC LIMIT ?"
	list := func(conditions []string, args []any) (string, []any) {
		text := "SELECT " + jobColumns + " FROM jobs"
		if sqlite {
			text += " INDEXED BY " + indexOf(&q)
		}
		if len(conditions) > 0 {
			text += " WHERE " + strings.Join(conditions, " AND ")
		}
		return text + order, append(slices.Clone(args), q.Limit+1)
	}
	states := slices.Compact(slices.Sorted(slices.Values(q.States)))
	if len(states) == 0 {
		text, args := list(where, args)
		return text, args, nil
	}
	var parts []string
	var all []any
	for _, state := range states {
		text, args := list(append(slices.Clone(where), "state = ?"), append(slices.Clone(args), state))
		parts = append(parts, "SELECT * FROM ("+text+") AS "+"part"+fmt.Sprint(len(parts)))
		all = append(all, args...)
	}
	if len(parts) == 1 {
		text, args := list(append(where, "state = ?"), append(args, states[0]))
		return text, args, nil
	}
	return strings.Join(parts, " UNION ALL ") + order, append(all, q.Limit+1), nil
}

// indexOf returns the name of the index that covers the filters of a list and has its order.
func indexOf(q *api.JobQuery) string {
	name := "jobs"
	if q.User != "" {
		name += "_user"
	}
	if q.VirtualCluster != "" {
		name += "_vc"
	}
	if len(q.States) > 0 {
		name += "_state"
	}
	if name == "jobs" {
		return "jobs_submitted"
	}
	return name
}

// isLatest is the SQL condition that no later job has the same name.
const isLatest = `NOT EXISTS (SELECT 1 FROM jobs later WHERE later.framework = jobs.framework
	AND (later.submitted, later.uid) > (jobs.submitted, jobs.uid))`

// conditions returns the SQL conditions for a list, except the condition on states.
func conditions(q api.JobQuery) (where []string, args []any, err error) {
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	if q.User != "" {
		add("user_name = ?", q.User)
	}
	if q.VirtualCluster != "" {
		add("vc = ?", q.VirtualCluster)
	}
	if q.Keyword != "" {
		add(`keywords LIKE ? ESCAPE '\'`, likePart(q.Keyword))
	}
	if !q.Since.IsZero() {
		add("submitted >= ?", q.Since.UnixMicro())
	}
	if !q.Before.IsZero() {
		add("submitted < ?", q.Before.UnixMicro())
	}
	if q.Latest {
		add(isLatest)
	}
	if q.Cursor != "" {
		submitted, uid, err := readCursor(q.Cursor)
		if err != nil {
			return nil, nil, err
		}
		add("(submitted, uid) < (?, ?)", submitted, uid)
	}
	return where, args, nil
}

// cursorAfter returns the cursor for the page that begins after a job. Only this file parses it.
func cursorAfter(j *api.Job) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "1 %d %s", j.Submitted.UnixMicro(), j.UID))
}

func readCursor(cursor string) (submitted int64, uid string, err error) {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(data), "1 %d %s", &submitted, &uid)
	}
	if err != nil {
		return 0, "", hint.Errorf("use the cursor of the previous page, or none", "%w: the cursor %q is not valid", ErrBadQuery, cursor)
	}
	return submitted, text(uid), nil
}
