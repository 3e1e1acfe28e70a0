package archive

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// pruneBatch is how many jobs one transaction removes. Other writes can happen between two transactions.
const pruneBatch = 200

// Prune implements Store.
func (d *database) Prune(ctx context.Context, before time.Time, liveCode []string) (jobs int, err error) {
	limit := before.UnixMicro()
	for {
		ended, err := d.column(ctx, "SELECT uid FROM jobs WHERE completed < ? LIMIT ?", limit, pruneBatch)
		if err != nil {
			return jobs, err
		}
		if len(ended) == 0 {
			break
		}
		marks, args := list(ended)
		// The database deletes attempts, tasks and job files together with their jobs.
		if err := d.write(ctx, statement{"DELETE FROM logs WHERE uid IN " + marks, args}, statement{"DELETE FROM jobs WHERE uid IN " + marks, args}); err != nil {
			return jobs, err
		}
		jobs += len(ended)
	}
	err = d.write(ctx,
		statement{"DELETE FROM events WHERE time < ?", []any{limit}},
		statement{"DELETE FROM logs WHERE stored < ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.uid = logs.uid)", []any{limit}})
	if err != nil {
		return jobs, err
	}
	if err := d.pruneCode(ctx, liveCode); err != nil {
		return jobs, err
	}
	if err := d.pruneUsage(ctx, before); err != nil {
		return jobs, err
	}
	return jobs, d.tidy(ctx)
}

// pruneCode removes code that no job needs, and the remains of interrupted uploads.
func (d *database) pruneCode(ctx context.Context, live []string) error {
	now := d.now()
	query := `SELECT upload FROM code WHERE NOT complete AND stored < ?
		OR complete AND stored < ? AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.code_sha256 = code.sha256)`
	candidates, err := d.column(ctx, query, now.Add(-uploadTime).UnixMicro(), now.Add(-codeGrace).UnixMicro())
	if err != nil {
		return err
	}
	keep, err := d.uploadsOf(ctx, live)
	if err != nil {
		return err
	}
	for _, upload := range candidates {
		if keep[upload] {
			continue
		}
		// The condition on the time keeps code that has been requested since the query.
		if err := d.write(ctx, statement{"DELETE FROM code WHERE upload = ? AND stored < ?", []any{upload, now.Add(-uploadTime).UnixMicro()}}); err != nil {
			return err
		}
	}
	// Owners are only written for complete uploads, so this doesn't affect uploads in progress.
	return d.write(ctx, statement{"DELETE FROM code_owners WHERE NOT EXISTS (SELECT 1 FROM code WHERE code.sha256 = code_owners.sha256)", nil})
}

// uploadsOf returns the set of uploads that contain the code with the given SHA-256 sums.
func (d *database) uploadsOf(ctx context.Context, sums []string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, sum := range sums {
		found, err := d.column(ctx, "SELECT upload FROM code WHERE sha256 = ? AND complete", sum)
		if err != nil {
			return nil, err
		}
		for _, upload := range found {
			out[upload] = true
		}
	}
	return out, nil
}

// column returns the values of a query that selects one text column.
func (d *database) column(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := d.read.QueryContext(ctx, d.rebind(query), args...)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var out []string
	err = each(rows, func() error {
		var s string
		err := rows.Scan(&s)
		out = append(out, s)
		return err
	})
	return out, err
}

// list returns placeholders in parentheses, one for each value, and the values as arguments.
func list(values []string) (marks string, args []any) {
	for _, v := range values {
		args = append(args, v)
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + ")", args
}
