package archive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/job/api"
)

// The query for GPU time is one statement, which is the same for SQLite and PostgreSQL.
//
// A hold can last for many hours, and making a row for each of these hours would be slow. So each hold contributes only two rows, one for each of
// its ends. The row for its beginning adds the GPU time from there to the end of that period, and adds the hold's GPUs to the GPUs that are held
// in all later periods. The row for its end subtracts the GPU time for the rest of that period, and subtracts these GPUs again. Summed up by
// period, these are few rows. The code in this file then adds the time of the GPUs that are still held in later periods.

// daySeconds is the longest period that the database uses for sums. Months are computed from days.
const daySeconds = 24 * hourSeconds

// period returns the length in seconds of the periods that the database uses for sums. It returns 0 if the query doesn't group by periods.
func period(by []string) int64 {
	switch {
	case slices.Contains(by, api.ByHour):
		return hourSeconds
	case slices.Contains(by, api.ByDay), slices.Contains(by, api.ByMonth):
		return daySeconds
	}
	return 0
}

// whose returns the SQL conditions for a query's user, virtual cluster and type.
func whose(q api.UsageQuery) (where string, args []any) {
	for _, c := range []struct{ column, value string }{{"user_name", q.User}, {"vc", q.VirtualCluster}, {"type", q.Type}} {
		if c.value != "" {
			where, args = where+" AND "+c.column+" = ?", append(args, text(c.value))
		}
	}
	return where, args
}

// usageQuery returns the statement for the GPU time between two times. Holds count only until holdsTo. Each row contains the sums for one period,
// and the number of GPUs that are still held after the period. A single statement reads both hours and holds, because a job could move from holds
// to hours between two statements. The two databases have different names for the function that returns the smaller of two values.
func usageQuery(q api.UsageQuery, from, to, holdsTo int64) (string, []any) {
	var of []string // the dimensions that rows are grouped by
	for _, c := range []struct{ by, column string }{{api.ByVC, "vc"}, {api.ByUser, "user_name"}, {api.ByType, "type"}} {
		if slices.Contains(q.By, c.by) {
			of = append(of, c.column)
		} else {
			of = append(of, "'' AS "+c.column)
		}
	}
	columns := strings.Join(of, ", ") + ", opportunistic"
	where, args := whose(q)
	begin, ends, held, gpus := "0", "", "(b - a) * gpus", "0" // without periods, no GPUs are held at the end
	hour := "0"
	if length := period(q.By); length > 0 {
		hour = fmt.Sprintf("hour / 1000000 - hour / 1000000 %% %d", length)
		ends = " CROSS JOIN (SELECT 1 AS sign UNION ALL SELECT -1 AS sign) AS ends"
		const moment = "(CASE WHEN sign = 1 THEN a ELSE b END)"
		begin = fmt.Sprintf("%s - %s %% %d", moment, moment, length)
		held = fmt.Sprintf("sign * (%d - %s %% %d) * gpus", length, moment, length)
		gpus = "sign * gpus"
	}
	const key = "vc, user_name, type, opportunistic, period, outcome"
	sum := func(names ...string) string {
		var out []string
		for _, n := range names {
			out = append(out, "CAST(SUM("+n+") AS BIGINT) AS "+n)
		}
		return strings.Join(out, ", ")
	}
	hours := fmt.Sprintf("SELECT %s, %s, 0 AS gpus FROM (SELECT %s, %s AS period, '' AS outcome, held, preempted, failed FROM gpu_hours WHERE hour >= %d AND hour < %d%s) AS hours GROUP BY %s",
		key, sum("held", "preempted", "failed"), columns, hour, from*1e6, to*1e6, where, key)
	clipped := fmt.Sprintf(`SELECT vc, user_name, type, opportunistic, gpus, outcome,
		CASE WHEN started < %[3]d THEN %[1]d ELSE started / 1000000 END AS a,
		CASE WHEN COALESCE(ended, seen) > %[4]d THEN %[2]d ELSE COALESCE(ended, seen) / 1000000 END AS b
		FROM gpu_holds WHERE seen > %[3]d AND started < %[4]d%[5]s`, from, holdsTo, from*1e6, holdsTo*1e6, where)
	holds := fmt.Sprintf("SELECT %s, %s, 0 AS preempted, 0 AS failed, %s FROM (SELECT %s, %s AS period, outcome, %s AS held, %s AS gpus FROM (%s) AS clipped%s WHERE a < b) AS holds GROUP BY %s",
		key, sum("held"), sum("gpus"), columns, begin, held, gpus, clipped, ends, key)
	return hours + " UNION ALL " + holds + " ORDER BY vc, user_name, type, opportunistic, outcome, period", slices.Concat(args, args)
}

// readUsage calls count with the GPU time that a query selects, period by period. If count returns an error, readUsage stops.
func (d *database) readUsage(ctx context.Context, q api.UsageQuery, from, to, now int64, count func(share, spent) error) error {
	query, args := usageQuery(q, from, to, min(to, now)) // a wrong clock may have written times in the future
	rows, err := d.read.QueryContext(ctx, d.rebind(query), args...)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	sums := carry{length: period(q.By), count: count}
	return each(rows, func() error {
		var s share
		var t spent
		var opportunistic, gpus int64
		var outcome string
		if err := rows.Scan(&s.vc, &s.user, &s.typ, &opportunistic, &s.hour, &outcome, &t.held, &t.preempted, &t.failed, &gpus); err != nil {
			return err
		}
		s.opportunistic = opportunistic != 0
		return sums.add(s, outcome, t, gpus)
	})
}

// carry tracks how many GPUs are still held from one period to the next.
type carry struct {
	length  int64 // of a period, in seconds
	count   func(share, spent) error
	last    share // the row before
	outcome string
	gpus    int64
}

// add processes the next row. Rows that differ only in their periods must come in the order of the periods.
func (h *carry) add(s share, outcome string, t spent, gpus int64) error {
	t.add(lost(outcome, t.held))
	if h.last.at(s.hour) != s || h.outcome != outcome {
		h.gpus = 0 // all holds of earlier periods have ended
	}
	if h.gpus != 0 {
		on := lost(outcome, h.gpus*h.length)
		on.held = h.gpus * h.length
		for hour := h.last.hour + h.length; hour < s.hour; hour += h.length {
			if err := h.count(h.last.at(hour), on); err != nil {
				return err
			}
		}
		if s.hour > h.last.hour { // sums of hours and of holds may belong to one period
			t.add(on)
		}
	}
	h.last, h.outcome = s, outcome
	h.gpus += gpus
	if t == (spent{}) {
		return nil
	}
	return h.count(s, t)
}

// lost returns the parts of held time that were lost because of an outcome.
func lost(outcome string, held int64) (s spent) {
	switch outcome {
	case outcomePreempted:
		s.preempted = held
	case outcomeFailed:
		s.failed = held
	}
	return s
}

// at returns the same share for another hour.
func (s share) at(hour int64) share {
	s.hour = hour
	return s
}
