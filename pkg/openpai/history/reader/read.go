package reader

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// pageJobs is the maximum number of jobs that are read at a time. pageBytes is the maximum total size of their texts.
	pageJobs  = 200
	pageBytes = 64 << 20
	// maxObject is the maximum size in bytes of a job's object that is read. Kubernetes itself has a lower limit.
	maxObject = 32 << 20
	// maxText is the maximum size in bytes of a job file that is read. OpenPAI itself had a lower limit.
	maxText = 1 << 20
)

// row is a row of the table of jobs.
type row struct {
	name, user, job, vc, priority, state string
	submitted                            pgtype.Timestamptz
	size, text                           int64 // of the snapshot and of the config, in bytes
	snapshot, config                     string
}

// ended reports whether the job has reached its final state.
func (r *row) ended() bool { return r.state == "Completed" }

// count returns the number of jobs in the database.
func (s *Source) count(ctx context.Context) (n int, err error) {
	if err := s.conn.QueryRow(ctx, "SELECT COUNT(*) FROM "+frameworks).Scan(&n); err != nil {
		return 0, reading(err)
	}
	return n, nil
}

// page reads the jobs whose names follow the name after, in the order of their names. The page after the last job is empty. Other pages may be
// short, too.
func (s *Source) page(ctx context.Context, after string) ([]row, error) {
	rows, err := s.conn.Query(ctx, `SELECT name, COALESCE("userName", ''), COALESCE("jobName", ''), COALESCE("virtualCluster", ''), COALESCE("jobPriority", ''),
		COALESCE("subState", ''), "submissionTime", COALESCE(octet_length(snapshot), 0), COALESCE(octet_length("jobConfig"), 0) FROM frameworks WHERE name > $1 ORDER BY name LIMIT $2`, after, pageJobs)
	if err != nil {
		return nil, reading(err)
	}
	out, err := pgx.CollectRows(rows, func(from pgx.CollectableRow) (r row, err error) {
		return r, from.Scan(&r.name, &r.user, &r.job, &r.vc, &r.priority, &r.state, &r.submitted, &r.size, &r.text)
	})
	if err != nil {
		return nil, reading(err)
	}
	total := int64(0)
	for i := range out {
		if total += min(out[i].size, maxObject) + min(out[i].text, maxText); total > pageBytes && i > 0 {
			out = out[:i]
			break
		}
	}
	return out, s.fill(ctx, out)
}

// fill reads the large columns for those jobs of a page that have ended.
func (s *Source) fill(ctx context.Context, page []row) error {
	at, names := map[string]*row{}, []string{}
	for i := range page {
		if r := &page[i]; r.ended() {
			at[r.name], names = r, append(names, r.name)
		}
	}
	return s.each(ctx, fmt.Sprintf(`SELECT name, %s, %s FROM frameworks WHERE name = ANY ($1)`, within("snapshot", maxObject), within(`"jobConfig"`, maxText)), names,
		func(scan func(...any) error) error {
			var name, snapshot, config string
			err := scan(&name, &snapshot, &config)
			if r := at[name]; r != nil {
				r.snapshot, r.config = snapshot, config
			}
			return err
		})
}

// within returns an SQL expression for the value of a text column. The expression is "" if the value has more bytes than limit.
func within(column string, limit int) string {
	return fmt.Sprintf("CASE WHEN octet_length(%[1]s) <= %[2]d THEN %[1]s ELSE '' END", column, limit)
}

// latest reads the last rows of a table for each of the named jobs, up to limit rows for each job. The rows aren't sorted, because the database
// would need space for all of their texts.
func (s *Source) latest(ctx context.Context, table, columns, order string, limit int, names []string, take func(scan func(...any) error) error) error {
	query := fmt.Sprintf(`SELECT %s FROM (SELECT *, row_number() OVER (PARTITION BY "frameworkName" ORDER BY %s) AS place FROM %s WHERE "frameworkName" = ANY ($1)) l
		WHERE place <= %d`, columns, order, table, limit)
	return s.each(ctx, query, names, take)
}

func (s *Source) each(ctx context.Context, query string, names []string, take func(scan func(...any) error) error) error {
	rows, err := s.conn.Query(ctx, query, names)
	if err != nil {
		return reading(err)
	}
	defer rows.Close()
	scan := func(to ...any) error {
		if err := rows.Scan(to...); err != nil {
			return reading(err)
		}
		return nil
	}
	for rows.Next() {
		if err := take(scan); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return reading(err)
	}
	return nil
}

// instant converts a time of the database. It returns the zero time for NULL and for infinite times.
func instant(t pgtype.Timestamptz) time.Time {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return t.Time.UTC()
}
