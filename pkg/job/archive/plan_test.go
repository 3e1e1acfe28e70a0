package archive_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// many inserts n finished jobs of a hundred users in five virtual clusters, one second apart. It is faster than saving them with the store.
const many = `INSERT INTO jobs (framework, uid, user_name, name, vc, priority, state, phrase, code, gpus, tasks, retries, submitted, started, completed, keywords, code_sha256)
WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
SELECT 'f' || i, 'u' || i, 'user' || (i %% 100), 'experiment-' || i, 'team' || ((i / 100) %% 5), '', CASE (i / 500) %% 4 WHEN 0 THEN 'failed' WHEN 1 THEN 'stopped' ELSE 'succeeded' END,
	'', 0, 8, 1, 0, %[2]d + i * 1000000, %[2]d + i * 1000000, %[2]d + i * 1000000, 'user' || (i %% 100), '' FROM n`

// A page is read from the index that covers its filters and has its order. The database doesn't sort, and doesn't read rows that aren't on the
// page. So the cost of a page depends only on its number of rows.
func TestAPageIsReadFromAnIndexWhateverTheFilter(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		p.open(t)
		db, err := sql.Open(p.driver, p.dsn)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		rows := 20_000
		if p.driver != "pgx" {
			rows = 100 // SQLite plans without looking at the rows
		}
		_, err = db.ExecContext(t.Context(), fmt.Sprintf(many, rows, epoch.UnixMicro()))
		require.NoError(t, err)
		if p.driver == "pgx" {
			_, err = db.ExecContext(t.Context(), "ANALYZE jobs")
			require.NoError(t, err)
		}
		for i := range 128 {
			q := api.JobQuery{Limit: 50}
			for bit, set := range []func(){
				func() { q.User = "user42" }, func() { q.VirtualCluster = "team3" }, func() { q.States = []string{api.Failed} },
				func() { q.Since, q.Before = epoch.Add(time.Hour), epoch.Add(2*time.Hour) },
				func() { q.States = append(q.States, api.Failed, api.Stopped) },
				func() { q.Keyword = "experiment" },
				func() { q.Cursor = "MSAxNzcyMzcxODAwMDAwMDAwIHUx" }, // 1 1772371800000000 u1
			} {
				if i&(1<<bit) != 0 {
					set()
				}
			}
			if p.driver == "pgx" && q.Keyword != "" {
				continue // PostgreSQL rightly reads all rows if it takes a word for rare
			}
			plan := explain(t, db, p, q)
			if p.driver == "pgx" {
				for _, sorted := range regexp.MustCompile(`->  Sort .* rows=(\d+)`).FindAllStringSubmatch(plan, -1) {
					n, err := strconv.Atoi(sorted[1])
					require.NoError(t, err)
					assert.LessOrEqual(t, n, 2*q.Limit, "more than a page is sorted for %+v:\n%s", q, plan)
				}
				assert.NotContains(t, plan, "Seq Scan", "%+v:\n%s", q, plan)
				continue
			}
			var columns []string
			if q.User != "" {
				columns = append(columns, "user_name=?")
			}
			if q.VirtualCluster != "" {
				columns = append(columns, "vc=?")
			}
			if q.States != nil {
				columns = append(columns, "state=?")
			}
			if len(q.States) < 2 { // the lists of several states, a page each, are merged
				assert.NotContains(t, plan, "TEMP B-TREE", "%+v", q)
			}
			assert.Contains(t, plan, strings.Join(columns, " AND "), "%+v: the index has all filters", q)
		}
	})
}

func explain(t *testing.T, db *sql.DB, p place, q api.JobQuery) string {
	t.Helper()
	text, args, err := archive.ListQuery(q, p.driver == "sqlite")
	require.NoError(t, err)
	word := "EXPLAIN QUERY PLAN "
	if p.driver == "pgx" {
		word = "EXPLAIN "
		for i := range args {
			text = strings.Replace(text, "?", fmt.Sprintf("$%d", i+1), 1)
		}
	}
	rows, err := db.QueryContext(t.Context(), word+text, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var out []string
	for rows.Next() {
		var line string
		if p.driver == "pgx" {
			require.NoError(t, rows.Scan(&line))
		} else {
			var id, parent, unused int
			require.NoError(t, rows.Scan(&id, &parent, &unused, &line))
		}
		out = append(out, line)
	}
	require.NoError(t, rows.Err())
	return strings.Join(out, "\n")
}
