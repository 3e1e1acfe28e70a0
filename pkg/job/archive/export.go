package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
)

// Errors of Export.
var (
	// ErrElsewhere means that the archive is in a database server, which has separate backups.
	ErrElsewhere = errors.New("the archive is in PostgreSQL, which is backed up separately")
	// ErrExporting means that an earlier export of this archive hasn't been closed yet.
	ErrExporting = errors.New("the archive is being exported already")
)

// exportSuffix is the suffix of the temporary file for an export.
const exportSuffix = ".export"

// Export implements Store.
func (d *database) Export(ctx context.Context, withAudit bool) (io.ReadCloser, int64, error) {
	if d.path == "" {
		return nil, 0, ErrElsewhere
	}
	if !d.exporting.TryLock() {
		return nil, 0, ErrExporting
	}
	f, size, err := d.export(ctx, withAudit)
	if err != nil {
		d.exporting.Unlock()
		return nil, 0, fmt.Errorf("export the archive: %w", err)
	}
	return &exported{File: f, end: d.exporting.Unlock}, size, nil
}

func (d *database) export(ctx context.Context, withAudit bool) (_ *os.File, size int64, err error) {
	to := d.path + exportSuffix
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) { // of a process that was killed
		return nil, 0, err
	}
	if err := roomFor(d.path); err != nil {
		return nil, 0, err
	}
	db, err := sql.Open("sqlite", sqliteName(d.path))
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = db.Close() }()
	// Other requests may write at the same time. The export contains the state of the database at one moment.
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	if err == nil && !withAudit {
		err = withoutAudit(ctx, to)
	}
	f, openErr := os.Open(to)
	// An open file can still be read after its name is removed. So no file is left behind if the program stops.
	if gone := os.Remove(to); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err = errors.Join(err, openErr); err != nil {
		if f != nil {
			_ = f.Close()
		}
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// withoutAudit deletes the audit from an exported file, and overwrites the deleted records, so that they can't be recovered from the file.
func withoutAudit(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", sqliteName(file, "secure_delete(on)"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM audit")
	return errors.Join(err, db.Close())
}

// exported is the temporary file of an export, which can be read once. Closing it calls end.
type exported struct {
	*os.File
	end func()
}

// Close implements io.Closer.
func (e *exported) Close() error {
	if e.end != nil {
		e.end()
		e.end = nil
	}
	return e.File.Close()
}
