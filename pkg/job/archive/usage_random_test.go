package archive_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
)

// usageRow is a row of GPU time in the database, either a hold or a sum for an hour.
type usageRow struct {
	vc, user, typ string
	opportunistic int64
	// Fields for holds: the number of GPUs, times in µs, and the outcome.
	gpus, started, seen int64
	ended               *int64
	outcome             string
	// Fields for hours: the beginning of the hour in µs, and GPU seconds.
	hour, held, preempted, failed int64
}

// randomUsage returns random GPU time between two times in seconds. About half of it is in holds, and the rest in hours.
func randomUsage(r *rand.Rand, n int, from, to int64) (holds, hours []usageRow) {
	seen := map[string]bool{}
	for range n {
		row := usageRow{
			vc: fmt.Sprint("vc", r.IntN(4)), user: fmt.Sprint("user", r.IntN(3)), typ: []string{"", "H100"}[r.IntN(2)], opportunistic: int64(r.IntN(2)),
			gpus: 1 + r.Int64N(8), outcome: []string{"", "preempted", "failed"}[r.IntN(3)],
		}
		if r.IntN(2) == 0 {
			row.hour = (from + r.Int64N(to-from)) / 3600 * 3600 * 1e6
			row.held = 1 + r.Int64N(100_000)
			row.preempted = r.Int64N(row.held)
			row.failed = r.Int64N(row.held - row.preempted)
			if key := fmt.Sprint(row.hour, row.vc, row.user, row.typ, row.opportunistic); !seen[key] {
				seen[key] = true
				hours = append(hours, row)
			}
			continue
		}
		row.started = (from + r.Int64N(to-from)) * 1e6
		row.seen = row.started + r.Int64N([]int64{10, 3600, 40 * 3600, 90 * 86400}[r.IntN(4)])*1e6
		if r.IntN(8) == 0 { // to the hour
			row.started, row.seen = row.started/3600e6*3600e6, row.seen/3600e6*3600e6+3600e6
		}
		if r.IntN(2) == 0 {
			ended := row.seen
			row.ended = &ended
		}
		holds = append(holds, row)
	}
	return holds, hours
}

// put writes rows directly to the database, without the store.
func (p place) put(t testing.TB, holds, hours []usageRow) {
	t.Helper()
	db, err := sql.Open(p.driver, p.dsn)
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	insert := func(table string, columns int, rows [][]any) {
		const most = 500
		for _, per := range []int{most, 1} {
			var values []string
			for i := range per {
				var one []string
				for c := range columns {
					one = append(one, fmt.Sprintf("$%d", i*columns+c+1))
				}
				values = append(values, "("+strings.Join(one, ", ")+")")
			}
			add, err := tx.PrepareContext(t.Context(), "INSERT INTO "+table+" VALUES "+strings.Join(values, ", "))
			require.NoError(t, err)
			for ; len(rows) >= per; rows = rows[per:] {
				_, err = add.ExecContext(t.Context(), slices.Concat(rows[:per]...)...)
				require.NoError(t, err)
			}
		}
	}
	var rows [][]any
	for i, r := range holds {
		rows = append(rows, []any{fmt.Sprint("pod", i), "job", "job", "pod", r.user, r.vc, r.typ, r.opportunistic, r.gpus, r.started, r.seen, r.ended, r.outcome})
	}
	insert("gpu_holds", 13, rows)
	rows = nil
	for _, r := range hours {
		rows = append(rows, []any{r.hour, r.vc, r.user, r.typ, r.opportunistic, r.held, r.preempted, r.failed})
	}
	insert("gpu_hours", 8, rows)
	require.NoError(t, tx.Commit())
}

// sumUp computes the result of a query in the simplest way, row by row and hour by hour.
func sumUp(q api.UsageQuery, now int64, holds, hours []usageRow) (items map[string]api.GPUTime, total api.GPUTime) {
	items = map[string]api.GPUTime{}
	from, to := q.Since.Unix()/3600*3600, (q.Until.Unix()+3599)/3600*3600
	count := func(r usageRow, hour, held, preempted, failed int64) {
		if held == 0 || q.User != "" && q.User != r.user || q.VirtualCluster != "" && q.VirtualCluster != r.vc || q.Type != "" && q.Type != r.typ {
			return
		}
		at := time.Unix(hour, 0).UTC()
		var key []string
		for _, by := range q.By {
			switch by {
			case api.ByVC:
				key = append(key, r.vc)
			case api.ByUser:
				key = append(key, r.user)
			case api.ByType:
				key = append(key, r.typ)
			case api.ByHour:
				key = append(key, at.Format("2006-01-02T15"))
			case api.ByDay:
				key = append(key, at.Format("2006-01-02T00"))
			case api.ByMonth:
				key = append(key, at.Format("2006-01")+"-01T00")
			}
		}
		one := api.GPUTime{Guaranteed: held, Preempted: preempted, Failed: failed}
		if r.opportunistic != 0 {
			one.Guaranteed, one.Opportunistic = 0, held
		}
		name := strings.Join(key, " ")
		of := items[name]
		of.Add(one)
		total.Add(one)
		items[name] = of
	}
	for _, r := range hours {
		if r.hour/1e6 >= from && r.hour/1e6 < to {
			count(r, r.hour/1e6, r.held, r.preempted, r.failed)
		}
	}
	for _, r := range holds {
		end := r.seen
		if r.ended != nil {
			end = *r.ended
		}
		end = min(end/1e6, to, now)
		for start := max(r.started/1e6, from); start < end; {
			next := min((start/3600+1)*3600, end)
			held := (next - start) * r.gpus
			lost := map[string]int64{r.outcome: held}
			count(r, start, held, lost["preempted"], lost["failed"])
			start = next
		}
	}
	return items, total
}

// byOf formats the dimensions of an item in the same way as sumUp.
func byOf(q api.UsageQuery, i api.UsageItem) string {
	var key []string
	for _, by := range q.By {
		switch by {
		case api.ByVC:
			key = append(key, i.VirtualCluster)
		case api.ByUser:
			key = append(key, i.User)
		case api.ByType:
			key = append(key, i.Type)
		default:
			key = append(key, i.Period.UTC().Format("2006-01-02T15"))
		}
	}
	return strings.Join(key, " ")
}

func TestGPUTimeIsTheSumOfItsHours(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		l.now = 100 * 86400
		r := rand.New(rand.NewPCG(3, 5))
		begin := epoch.Unix() - 40*86400
		end := epoch.Unix() + int64(l.now) + 86400 // past now, as a wrong clock writes
		holds, hours := randomUsage(r, 1500, begin, end)
		p.put(t, holds, hours)
		for n := range 60 {
			q := api.UsageQuery{Since: time.Unix(begin-86400, 0).UTC(), Until: time.Unix(end+86400, 0).UTC()}
			if n%3 > 0 {
				q.Since = time.Unix(begin+r.Int64N(end-begin), 0).UTC()
				q.Until = q.Since.Add(time.Duration(1+r.Int64N(40*86400)) * time.Second)
			}
			periods := [][]string{nil, {api.ByHour}, {api.ByDay}, {api.ByMonth}}
			q.By = append(q.By, periods[n%4]...)
			for _, by := range []string{api.ByVC, api.ByUser, api.ByType} {
				if r.IntN(2) == 0 {
					q.By = append(q.By, by)
				}
			}
			if r.IntN(3) == 0 {
				q.User = "user1"
			}
			if r.IntN(3) == 0 {
				q.VirtualCluster = "vc2"
			}
			if r.IntN(4) == 0 {
				q.Type = "H100"
			}
			want, total := sumUp(q, epoch.Unix()+int64(l.now), holds, hours)
			u, err := l.Usage(t.Context(), q)
			require.NoError(t, err)
			got := map[string]api.GPUTime{}
			for _, i := range u.Items {
				got[byOf(q, i)] = i.GPUTime
			}
			require.Equal(t, want, got, "%+v", q)
			assert.Equal(t, total, u.Total)
			assert.Len(t, u.Items, len(want), "one row for each")
		}
	})
}
