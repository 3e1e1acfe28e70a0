package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrNotEnded means that a job can't be removed from the archive because it has not ended.
var ErrNotEnded = errors.New("has not ended")

// lateEvents is how long after a job's end events of the job may still arrive. A later job with the same name begins after this time.
const lateEvents = 2 * time.Second

// Delete implements Store. It doesn't remove the job's code; Prune removes the code when no job needs it.
func (d *database) Delete(ctx context.Context, framework string) (jobs int, err error) {
	rows, err := d.read.QueryContext(ctx, d.rebind(`SELECT uid, framework, submitted, completed,
		(SELECT MIN(next.submitted) FROM jobs next WHERE next.framework = jobs.framework AND next.submitted > jobs.submitted)
		FROM jobs WHERE framework = ? OR uid = ?`), framework, framework)
	if err != nil {
		return 0, fmt.Errorf("read the archive: %w", err)
	}
	open := 0
	var statements []statement
	err = each(rows, func() error {
		var (
			uid, name       string
			submitted       int64
			completed, next sql.NullInt64
		)
		if err := rows.Scan(&uid, &name, &submitted, &completed, &next); err != nil {
			return err
		}
		if !completed.Valid {
			open++
			return nil
		}
		jobs++
		end := completed.Int64 + lateEvents.Microseconds()
		if next.Valid {
			end = min(end, next.Int64)
		}
		statements = append(statements,
			statement{"DELETE FROM events WHERE framework = ? AND time >= ? AND time < ?", []any{name, submitted, end}},
			statement{"DELETE FROM logs WHERE uid = ?", []any{uid}},
			statement{"DELETE FROM jobs WHERE uid = ?", []any{uid}}) // with attempts, tasks and text
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case jobs == 0 && open > 0:
		return 0, fmt.Errorf("job %s %w", framework, ErrNotEnded)
	case jobs == 0:
		return 0, fmt.Errorf("job %s: %w", framework, ErrNotFound)
	}
	return jobs, d.write(ctx, statements...)
}
