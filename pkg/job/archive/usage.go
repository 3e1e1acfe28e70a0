package archive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
)

const (
	// UsageTime is how long GPU time is kept at least, even if its jobs are removed before.
	UsageTime = 400 * 24 * time.Hour
	// foldAfter is how long a finished job must not have been seen before its holds are summed up by hours.
	foldAfter = 7 * 24 * time.Hour
	// foldBatch is the maximum number of jobs that one query selects.
	foldBatch = 500
	// maxUsage is the maximum number of rows in a response.
	maxUsage = 100_000
)

// share identifies the GPU time of one user in one hour, in one virtual cluster, on GPUs of one type.
type share struct {
	hour          int64 // its beginning, in seconds since 1970
	vc, user, typ string
	opportunistic bool
}

// spent is GPU time in seconds, with the parts that were lost.
type spent struct{ held, preempted, failed int64 }

func (s *spent) add(o spent) { s.held += o.held; s.preempted += o.preempted; s.failed += o.failed }

func (s spent) time(opportunistic bool) api.GPUTime {
	t := api.GPUTime{Guaranteed: s.held, Preempted: s.preempted, Failed: s.failed}
	if opportunistic {
		t.Guaranteed, t.Opportunistic = 0, s.held
	}
	return t
}

// hold is a row of gpu_holds. Its times are in microseconds.
type hold struct {
	share
	gpus, started, ended int64
	outcome              string
}

const hourSeconds = 3600

// hours splits the part of a hold between two times into hours, and calls give for each of these hours. The times are in seconds.
func (h *hold) hours(from, to int64, give func(hour int64, s spent)) {
	start, end := max(h.started/1e6, from), min(h.ended/1e6, to)
	for start < end {
		hour := start - start%hourSeconds
		next := min(hour+hourSeconds, end)
		s := spent{held: (next - start) * h.gpus}
		switch h.outcome {
		case outcomePreempted:
			s.preempted = s.held
		case outcomeFailed:
			s.failed = s.held
		}
		give(hour, s)
		start = next
	}
}

// holdColumns returns the list of a share's columns, followed by the columns own.
func holdColumns(own ...string) string {
	return "vc, user_name, type, opportunistic, " + strings.Join(own, ", ")
}

func scanHold(scan func(...any) error) (h hold, err error) {
	var opportunistic int64
	err = scan(&h.vc, &h.user, &h.typ, &opportunistic, &h.gpus, &h.started, &h.ended, &h.outcome)
	h.opportunistic = opportunistic != 0
	return h, err
}

// Usage implements Store. The database computes most sums; see usagequery.go.
func (d *database) Usage(ctx context.Context, q api.UsageQuery) (*api.Usage, error) {
	now := seconds(d.now()).UTC()
	from, to, err := span(&q, now)
	if err != nil {
		return nil, err
	}
	sums := map[api.UsageItem]*api.GPUTime{}
	out := &api.Usage{Since: time.Unix(from, 0).UTC(), Until: time.Unix(to, 0).UTC(), Items: []api.UsageItem{}}
	periods := map[int64]*time.Time{} // one pointer each, so that rows are equal
	count := func(s share, t spent) error {
		key := rowOf(q.By, s, periods)
		if sums[key] == nil {
			if len(sums) == maxUsage {
				return hint.Errorf("request a shorter time, or longer periods", "%w: the answer would have more than %d rows", ErrBadQuery, maxUsage)
			}
			sums[key] = &api.GPUTime{}
		}
		one := t.time(s.opportunistic)
		sums[key].Add(one)
		out.Total.Add(one)
		return nil
	}
	if err := d.readUsage(ctx, q, from, to, now.Unix(), count); err != nil {
		return nil, err
	}
	for key, t := range sums {
		key.GPUTime = *t
		out.Items = append(out.Items, key)
	}
	slices.SortFunc(out.Items, func(a, b api.UsageItem) int {
		return cmp.Or(comparePeriods(a.Period, b.Period), cmp.Compare(a.VirtualCluster, b.VirtualCluster), cmp.Compare(a.User, b.User), cmp.Compare(a.Type, b.Type))
	})
	return out, nil
}

func comparePeriods(a, b *time.Time) int {
	if a == nil || b == nil {
		return 0
	}
	return a.Compare(*b)
}

// span checks a query. It returns the query's period, widened to whole hours, in seconds.
func span(q *api.UsageQuery, now time.Time) (from, to int64, err error) {
	periods := 0
	for _, by := range q.By {
		if !slices.Contains(api.Dimensions(), by) {
			return 0, 0, hint.Errorf("there are "+strings.Join(api.Dimensions(), ", "), "%w: GPU hours can't be grouped by %q", ErrBadQuery, by)
		}
		if by == api.ByHour || by == api.ByDay || by == api.ByMonth {
			periods++
		}
	}
	if periods > 1 {
		return 0, 0, hint.Errorf("choose one of hour, day and month", "%w: several periods", ErrBadQuery)
	}
	if q.Until.IsZero() {
		q.Until = now
	}
	if q.Since.IsZero() {
		q.Since = time.Unix(0, 0)
	}
	if !q.Since.Before(q.Until) {
		return 0, 0, fmt.Errorf("%w: nothing is between %s and %s", ErrBadQuery, q.Since.UTC().Format(time.RFC3339), q.Until.UTC().Format(time.RFC3339))
	}
	from, to = q.Since.Unix(), q.Until.Unix()
	if to%hourSeconds > 0 || q.Until.Nanosecond() > 0 {
		to += hourSeconds
	}
	return max(0, from-from%hourSeconds), max(0, to-to%hourSeconds), nil
}

// rowOf returns the row that includes a share's GPU time.
func rowOf(by []string, s share, periods map[int64]*time.Time) (out api.UsageItem) {
	at := time.Unix(s.hour, 0).UTC()
	for _, b := range by {
		switch b {
		case api.ByVC:
			out.VirtualCluster = s.vc
			continue
		case api.ByUser:
			out.User = s.user
			continue
		case api.ByType:
			out.Type = s.typ
			continue
		case api.ByDay:
			at = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		case api.ByMonth:
			at = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		}
		if periods[at.Unix()] == nil {
			periods[at.Unix()] = &at
		}
		out.Period = periods[at.Unix()]
	}
	return out
}

// fold sums up holds by hours, for jobs that finished days ago. For each job, one transaction writes the sums and the record that the job is
// summed up, so a killed process has written both or neither. If two processes sum up the same job at the same time, one of them fails.
func (d *database) fold(ctx context.Context) error {
	limit := d.now().Add(-foldAfter).UnixMicro()
	for {
		jobs, err := d.column(ctx, `SELECT uid FROM gpu_holds WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.uid = gpu_holds.uid AND jobs.completed IS NULL)
			GROUP BY uid HAVING MAX(seen) < ? LIMIT ?`, limit, foldBatch)
		if err != nil {
			return err
		}
		for _, uid := range jobs {
			if err := d.foldJob(ctx, uid); err != nil {
				return fmt.Errorf("sum up the GPU time of job %s: %w", uid, err)
			}
		}
		if len(jobs) < foldBatch {
			return nil
		}
	}
}

func (d *database) foldJob(ctx context.Context, uid string) error {
	rows, err := d.read.QueryContext(ctx, d.rebind("SELECT "+holdColumns("gpus", "started", "COALESCE(ended, seen)", "outcome")+" FROM gpu_holds WHERE uid = ?"), uid)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	sums := map[share]*spent{}
	err = each(rows, func() error {
		h, err := scanHold(rows.Scan)
		// No job holds GPUs for longer than UsageTime. Without this limit, a time from a wrong clock would create a huge number of rows.
		h.hours(h.ended/1e6-int64(UsageTime/time.Second), h.ended/1e6, func(hour int64, t spent) {
			h.hour = hour
			if sums[h.share] == nil {
				sums[h.share] = &spent{}
			}
			sums[h.share].add(t)
		})
		return err
	})
	if err != nil {
		return err
	}
	u := &upsert{"gpu_hours", []string{"hour", "vc", "user_name", "type", "opportunistic", "held", "preempted", "failed"},
		`(hour, vc, user_name, type, opportunistic) DO UPDATE SET held = gpu_hours.held + excluded.held,
		preempted = gpu_hours.preempted + excluded.preempted, failed = gpu_hours.failed + excluded.failed`}
	var hours [][]any
	for _, s := range slices.SortedFunc(maps.Keys(sums), func(a, b share) int { return cmp.Compare(a.hour, b.hour) }) {
		t := sums[s]
		hours = append(hours, []any{s.hour * 1e6, s.vc, s.user, s.typ, number(s.opportunistic), t.held, t.preempted, t.failed})
	}
	out := []statement{{"INSERT INTO gpu_folded (uid, folded) VALUES (?, ?)", []any{uid, d.now().UnixMicro()}}}
	out = append(out, u.rows(hours)...)
	return d.write(ctx, append(out, statement{"DELETE FROM gpu_holds WHERE uid = ?", []any{uid}})...)
}

// pruneUsage removes GPU time from before a time, but keeps the GPU time of jobs that are still in the archive.
func (d *database) pruneUsage(ctx context.Context, before time.Time) error {
	if err := d.fold(ctx); err != nil {
		return err
	}
	if before.IsZero() {
		return nil
	}
	limit := min(before.UnixMicro(), d.now().Add(-UsageTime).UnixMicro())
	return d.write(ctx,
		statement{"DELETE FROM gpu_hours WHERE hour < ?", []any{limit - hourSeconds*1e6}},
		statement{"DELETE FROM gpu_folded WHERE folded < ?", []any{limit}})
}
