package archive

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
)

// ErrImporting means that another import into this archive is still running.
var ErrImporting = errors.New("another import is running")

const (
	// importSuffix is the suffix of a file that is being imported.
	importSuffix = ".import"
	// importJobs is the maximum number of jobs that are imported, with all their rows, in one transaction. importTasks is the maximum number of
	// task attempts of these jobs together.
	importJobs  = 50
	importTasks = 5000
	// importRows and importBytes limit a transaction with rows of other tables.
	importRows  = 500
	importBytes = 4 << 20

	sqliteMagic = "SQLite format 3\x00"
)

// Import implements Store. It adds rows in transactions of a few jobs each, and doesn't change existing rows. So after an interrupted import, a
// second import adds the missing rows.
func (d *database) Import(ctx context.Context, r io.Reader, size int64, withAudit bool) (*api.Import, error) {
	if !d.importing.TryLock() {
		return nil, ErrImporting
	}
	defer d.importing.Unlock()
	file := filepath.Join(d.scratch, "archive.db"+importSuffix)
	if d.path != "" {
		file = d.path + importSuffix
	}
	if err := forgetImport(file); err != nil { // of a process that was killed
		return nil, fmt.Errorf("import: %w", err)
	}
	out := &api.Import{}
	err := d.importFile(ctx, file, r, size, withAudit, out)
	if err = errors.Join(err, forgetImport(file)); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return out, nil
}

func forgetImport(file string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (d *database) importFile(ctx context.Context, file string, r io.Reader, size int64, withAudit bool, out *api.Import) error {
	if err := receiveFile(file, r, size); err != nil {
		return err
	}
	from := &database{now: d.now}
	// The file may have an older version. Opening it migrates its tables to the current version.
	if err := from.openFile(ctx, file); err != nil {
		if damaged(err) {
			return fmt.Errorf("%w: %w", ErrMismatch, err)
		}
		return err
	}
	defer func() { _ = from.Close() }()
	if err := check(ctx, from.read); err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	i := &importer{database: d, from: from, out: out}
	// The code is imported first, because jobs that are restarted wait for their code.
	steps := []func(context.Context) error{i.code, i.jobs, i.events, i.logs, i.same, i.folded, i.hours, i.holds}
	if withAudit {
		steps = append(steps, i.audit)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receiveFile writes a stream to a file. It returns an error if the disk doesn't have enough room for both the file and the archive with the
// imported rows.
func receiveFile(file string, r io.Reader, size int64) error {
	begin := make([]byte, len(sqliteMagic))
	if n, err := io.ReadFull(r, begin); err != nil || string(begin) != sqliteMagic {
		if err != nil && n == len(begin) {
			return err
		}
		return fmt.Errorf("%w: it isn't a history of jobs, a file of SQLite", ErrMismatch)
	}
	free, err := freeBeside(file)
	if err != nil {
		return err
	}
	if free < size*5/2 {
		return hint.Errorf("make room on the volume of the archive", "%d MiB are free, and this history has %d: it needs two and a half times as many", free>>20, size>>20)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.MultiReader(bytes.NewReader(begin), io.LimitReader(r, size+1-int64(len(begin)))))
	if err == nil && n != size {
		err = fmt.Errorf("%w: expected %d bytes, but received %d", ErrMismatch, size, n)
	}
	return errors.Join(err, f.Close())
}

// importer adds the rows of the archive from to the database.
type importer struct {
	*database
	from *database
	out  *api.Import
}

// kept is the end of the ON CONFLICT clause for tables whose existing rows an import doesn't change.
const kept = " DO NOTHING"

// code imports all complete archives of code that the limits allow.
func (i *importer) code(ctx context.Context) error {
	type one struct {
		owner, sum string
		size       int64
	}
	var all []one
	rows, err := i.from.read.QueryContext(ctx, "SELECT owner, sha256, size FROM code WHERE complete")
	if err != nil {
		return fmt.Errorf("read the import: %w", err)
	}
	err = each(rows, func() error {
		var c one
		err := rows.Scan(&c.owner, &c.sum, &c.size)
		all = append(all, c)
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range all {
		data, _, err := i.from.Code(ctx, c.sum)
		if err != nil {
			return err
		}
		err = errors.Join(i.PutCode(ctx, c.owner, c.sum, c.size, data), data.Close())
		if errors.Is(err, ErrTooLarge) { // the limits have changed in the meantime; the rest is still useful
			i.out.CodeLeftOut++
			continue
		}
		if err != nil {
			return err
		}
	}
	// Owners aren't needed for code that was left out.
	return i.add(ctx, &upsert{"code_owners", []string{"sha256", "owner"}, "(sha256, owner)" + kept},
		"DELETE FROM code_owners WHERE NOT EXISTS (SELECT 1 FROM code WHERE code.sha256 = code_owners.sha256)")
}

// jobs adds jobs with their job files, attempts and tasks. It doesn't change existing jobs, because the cluster wrote them and has more data. The
// only exception is a job whose end was assumed because its Framework was gone. If the import contains the observed end, the observed end
// replaces the assumed end.
func (i *importer) jobs(ctx context.Context) error {
	groups, err := i.groups(ctx)
	if err != nil {
		return err
	}
	head := jobRow()
	head.columns = append(head.columns, "deleted")
	head.conflict = replace(head.columns[:1], head.columns, "jobs.phrase = '"+api.PhraseGone+"' AND excluded.phrase <> '"+api.PhraseGone+"' AND excluded.completed IS NOT NULL")
	attempts, tasks := attemptRow(), taskRow()
	attempts.conflict = "(uid, id)" + kept
	tasks.conflict = "(uid, attempt, role, task, id)" + kept
	for _, some := range groups {
		marks, args := list(some)
		here, err := i.column(ctx, "SELECT uid FROM jobs WHERE uid IN "+marks, args...)
		if err != nil {
			return err
		}
		var statements []statement
		for _, u := range []*upsert{head, configRow(), attempts, tasks} {
			err := i.read(ctx, u, " WHERE uid IN "+marks, args, func(rows [][]any) error {
				statements = append(statements, u.rows(rows)...)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if err := i.write(ctx, statements...); err != nil {
			return err
		}
		i.out.Known += len(here)
		i.out.Jobs += len(some) - len(here)
	}
	return nil
}

// groups returns the UIDs of the jobs to import, in one group for each transaction.
func (i *importer) groups(ctx context.Context) (out [][]string, err error) {
	rows, err := i.from.read.QueryContext(ctx, "SELECT uid, (SELECT COUNT(*) FROM tasks WHERE tasks.uid = jobs.uid) FROM jobs ORDER BY uid")
	if err != nil {
		return nil, fmt.Errorf("read the import: %w", err)
	}
	tasks := importTasks + 1 // the first job begins a group
	err = each(rows, func() error {
		var uid string
		var n int
		if err := rows.Scan(&uid, &n); err != nil {
			return err
		}
		if last := len(out) - 1; tasks+n <= importTasks && len(out[last]) < importJobs {
			out[last], tasks = append(out[last], uid), tasks+n
			return nil
		}
		out, tasks = append(out, []string{uid}), n
		return nil
	})
	return out, err
}

func (i *importer) audit(ctx context.Context) error { return i.add(ctx, auditRow(), "") }

func (i *importer) events(ctx context.Context) error {
	return i.add(ctx, eventRow(), "")
}

func (i *importer) logs(ctx context.Context) error {
	u := &upsert{"logs", []string{"truncated", "uid", "role", "task", "attempt", "task_attempt", "stored", "data"}, "(uid, attempt, role, task, task_attempt)" + kept}
	return i.read(ctx, u, "", nil, func(rows [][]any) error {
		for _, r := range rows {
			if n, ok := r[0].(int64); ok { // SQLite has no booleans, and PostgreSQL doesn't accept numbers for them
				r[0] = n != 0
			}
		}
		return i.write(ctx, u.rows(rows)...)
	})
}

// same sums up holds in the imported archive: those of jobs that this archive has already summed up by hours. After that, the hours of the
// imported archive are complete, and the function hours can compare the sums. The imported archive only has sums of jobs that finished days
// before, and knows which other jobs held GPUs at that time. It doesn't know later outcomes, such as a failure.
func (i *importer) same(ctx context.Context) error {
	jobs, err := i.from.column(ctx, "SELECT DISTINCT uid FROM gpu_holds WHERE NOT EXISTS (SELECT 1 FROM gpu_folded WHERE gpu_folded.uid = gpu_holds.uid)")
	if err != nil {
		return err
	}
	for some := range slices.Chunk(jobs, importRows) {
		marks, args := list(some)
		here, err := i.column(ctx, "SELECT uid FROM gpu_folded WHERE uid IN "+marks, args...)
		if err != nil {
			return err
		}
		for _, uid := range here {
			if err := i.from.foldJob(ctx, uid); err != nil {
				return fmt.Errorf("sum up the GPU time of job %s: %w", uid, err)
			}
		}
	}
	return nil
}

// folded copies the list of jobs whose GPU time is already summed up by hours. It deletes the holds of these jobs, because they would count
// twice.
func (i *importer) folded(ctx context.Context) error {
	u := &upsert{"gpu_folded", []string{"uid", "folded"}, "(uid)" + kept}
	return i.read(ctx, u, "", nil, func(rows [][]any) error {
		uids := make([]string, 0, len(rows))
		for _, r := range rows {
			uids = append(uids, fmt.Sprint(r[0]))
		}
		marks, args := list(uids)
		return i.write(ctx, append(u.rows(rows), statement{"DELETE FROM gpu_holds WHERE uid IN " + marks, args})...)
	})
}

// hours keeps the larger of the two sums for each hour. Either this archive doesn't know all jobs of the hour, or it has added further jobs to
// the imported sum.
func (i *importer) hours(ctx context.Context) error {
	larger := func(column string) string {
		return fmt.Sprintf("%[1]s = CASE WHEN excluded.%[1]s > gpu_hours.%[1]s THEN excluded.%[1]s ELSE gpu_hours.%[1]s END", column)
	}
	return i.add(ctx, &upsert{"gpu_hours", []string{"hour", "vc", "user_name", "type", "opportunistic", "held", "preempted", "failed"},
		"(hour, vc, user_name, type, opportunistic) DO UPDATE SET " + larger("held") + ", " + larger("preempted") + ", " + larger("failed")}, "")
}

// holds adds holds of GPUs, except holds of jobs that are already summed up by hours.
func (i *importer) holds(ctx context.Context) error {
	return i.add(ctx, holdRow(), "DELETE FROM gpu_holds WHERE EXISTS (SELECT 1 FROM gpu_folded WHERE gpu_folded.uid = gpu_holds.uid)")
}

// add copies a table. If after isn't empty, each transaction ends with this statement.
func (i *importer) add(ctx context.Context, u *upsert, after string) error {
	return i.read(ctx, u, "", nil, func(rows [][]any) error {
		statements := u.rows(rows)
		if after != "" {
			statements = append(statements, statement{after, nil})
		}
		return i.write(ctx, statements...)
	})
}

// read reads rows of the imported archive, and passes them to give in batches.
func (i *importer) read(ctx context.Context, u *upsert, where string, args []any, give func(rows [][]any) error) error {
	rows, err := i.from.read.QueryContext(ctx, i.from.rebind("SELECT "+strings.Join(u.columns, ", ")+" FROM "+u.table+where), args...)
	if err != nil {
		return fmt.Errorf("read the import: %w", err)
	}
	var batch [][]any
	bytes := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := give(batch)
		batch, bytes = nil, 0
		return err
	}
	err = each(rows, func() error {
		row, size, err := scanRow(rows, len(u.columns))
		if err != nil {
			return err
		}
		batch, bytes = append(batch, row), bytes+size
		if len(batch) < importRows && bytes < importBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// scanRow reads a row with a number of columns of any types. size is the approximate size of the row in bytes.
func scanRow(rows *sql.Rows, columns int) (row []any, size int, err error) {
	row = make([]any, columns)
	to := make([]any, columns)
	for n := range row {
		to[n] = &row[n]
	}
	if err := rows.Scan(to...); err != nil {
		return nil, 0, err
	}
	for _, v := range row {
		switch v := v.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		default:
			size += 8
		}
	}
	return row, size, nil
}
