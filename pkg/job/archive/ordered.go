package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// ErrNotGone means that the Framework of a job still exists, so that the job's tags must be changed in the Framework.
var ErrNotGone = errors.New("its Framework is still there")

// MarkDeleted implements Store.
func (d *database) MarkDeleted(ctx context.Context, f *v1.Framework) error {
	j, deleted := api.Summary(f), 0
	if j.Deleted {
		deleted = 1
	}
	return d.write(ctx, statement{"UPDATE jobs SET gone = 1, tags = ?, deleted = ? WHERE uid = ?", []any{tagsColumn(j.Tags), deleted, j.UID}})
}

// Unreleased implements Store.
func (d *database) Unreleased(ctx context.Context, after string, limit int) ([]api.Job, error) {
	rows, err := d.read.QueryContext(ctx, d.rebind("SELECT uid, framework FROM jobs WHERE gone = 0 AND completed IS NOT NULL AND uid > ? ORDER BY uid LIMIT ?"), after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var out []api.Job
	err = each(rows, func() error {
		var j api.Job
		err := rows.Scan(&j.UID, &j.Framework)
		out = append(out, j)
		return err
	})
	return out, err
}

// Ordered implements Store.
func (d *database) Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error) {
	switch {
	case q.Limit < 0 || q.Limit > api.MaxOrdered:
		return nil, hint.Errorf(fmt.Sprintf("request 0 to %d jobs at a time", api.MaxOrdered), "%w: limit %d", ErrBadQuery, q.Limit)
	case q.Offset < 0:
		return nil, fmt.Errorf("%w: offset %d", ErrBadQuery, q.Offset)
	}
	order, err := d.orderBy(q.Order, q.Descending)
	if err != nil {
		return nil, err
	}
	where, args := d.endedConditions(&q)
	out := &api.OrderedPage{Items: []api.Job{}}
	if q.Count {
		n := 0
		if err := d.read.QueryRowContext(ctx, d.rebind("SELECT COUNT(*) FROM jobs WHERE "+where), args...).Scan(&n); err != nil {
			return nil, fmt.Errorf("count the archive: %w", err)
		}
		out.Total = &n
	}
	if q.Limit == 0 {
		return out, nil
	}
	rows, err := d.read.QueryContext(ctx, d.rebind("SELECT "+jobColumns+" FROM jobs WHERE "+where+" ORDER BY "+order+" LIMIT ? OFFSET ?"), append(args, q.Limit, q.Offset)...)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	err = each(rows, func() error {
		j, err := scanJob(rows.Scan)
		out.Items = append(out.Items, j)
		return err
	})
	return out, err
}

// orderBy returns the ORDER BY clause for an order. Its result is the same as that of listing.Filter: strings are compared by their bytes, rows
// without a value are last, and equal rows are sorted by UID.
func (d *database) orderBy(order string, descending bool) (string, error) {
	direction := ""
	if descending {
		direction = " DESC"
	}
	bytes := func(column string) string {
		if d.dollars {
			return column + ` COLLATE "C"` // a database may have any collation
		}
		return column
	}
	var by []string
	switch order {
	case "", api.OrderSubmitted:
		by = []string{"submitted"}
	case api.OrderName:
		by = []string{bytes("name")}
	case api.OrderUser:
		by = []string{bytes("user_name")}
	case api.OrderVC:
		by = []string{bytes("vc")}
	case api.OrderRetries, api.OrderTasks, api.OrderGPUs, api.OrderCompleted:
		by = []string{order} // a column of that name; each job that is gone has ended
	case api.OrderState:
		by = []string{stateRank()}
	case api.OrderPriority:
		by = []string{"CASE WHEN priority = '' THEN 1 ELSE 0 END", bytes("priority")}
	default:
		return "", hint.Errorf("the orders are: "+strings.Join(api.Orders(), ", "), "%w: there is no order %q", ErrBadQuery, order)
	}
	return strings.Join(append(by, bytes("uid")), direction+", ") + direction, nil
}

// stateRank returns an SQL expression for api.StateRank, for the states of finished jobs.
func stateRank() string {
	var b strings.Builder
	b.WriteString("CASE state")
	for _, state := range []string{api.Failed, api.Stopped, api.Deleted, api.Succeeded} {
		fmt.Fprintf(&b, " WHEN '%s' THEN %d", state, api.StateRank(state))
	}
	return b.String() + " END"
}

// endedConditions returns the SQL conditions for an ordered list.
func (d *database) endedConditions(q *api.OrderedQuery) (where string, args []any) {
	all := []string{"gone = 1"}
	add := func(condition string, values ...any) {
		all, args = append(all, condition), append(args, values...)
	}
	among := func(column string, values []string) {
		if len(values) > 0 {
			marks, some := list(values)
			add(column+" IN "+marks, some...)
		}
	}
	among("user_name", q.Users)
	among("vc", q.VirtualClusters)
	among("state", q.States)
	if len(q.Priorities) > 0 {
		marks, some := list(slices.Clone(q.Priorities))
		for i := range some {
			if some[i] == api.NoPriority {
				some[i] = ""
			}
		}
		add("priority IN "+marks, some...)
	}
	if v := q.Visible; v != nil && !v.All {
		marks, some := list(append([]string{}, v.VCs...))
		switch {
		case len(v.VCs) == 0 && v.User == "":
			add("1 = 0")
		case len(v.VCs) == 0:
			add("user_name = ?", v.User)
		case v.User == "":
			add("vc IN "+marks, some...)
		default:
			add("(user_name = ? OR vc IN "+marks+")", append([]any{v.User}, some...)...)
		}
	}
	for _, part := range []struct{ column, text string }{{"keywords", q.Keyword}, {"LOWER(name)", q.InName}} {
		if part.text != "" {
			add(part.column+` LIKE ? ESCAPE '\'`, likePart(part.text))
		}
	}
	if len(q.TagsAny) > 0 {
		condition, some := d.tagged(q.TagsAny)
		add(condition, some...)
	}
	if len(q.TagsNone) > 0 {
		condition, some := d.tagged(q.TagsNone)
		add("NOT "+condition, some...)
	}
	if q.Latest {
		add(isLatest)
	}
	if !q.Since.IsZero() {
		add("submitted >= ?", q.Since.UnixMicro())
	}
	if !q.Before.IsZero() {
		add("submitted < ?", q.Before.UnixMicro())
	}
	return strings.Join(all, " AND "), args
}

// tagged returns the SQL condition that a job has at least one of the tags.
func (d *database) tagged(some []string) (condition string, args []any) {
	find := "INSTR(tags, ?) > 0"
	if d.dollars {
		find = "STRPOS(tags, ?) > 0"
	}
	var ways []string
	for _, tag := range some {
		ways, args = append(ways, find), append(args, tagsColumn([]string{text(tag)}))
	}
	return "(" + strings.Join(ways, " OR ") + ")", args
}

// likePart returns the LIKE pattern that matches lowercase strings which contain part in lower case.
func likePart(part string) string {
	literal := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	return "%" + literal.Replace(text(strings.ToLower(part))) + "%"
}
