package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// readers is how many lists may be read at the same time. In WAL mode, readers don't wait for the writer.
const readers = 4

// openFile opens a file. Commits are synced to the disk. Otherwise the controller might delete a Framework whose rows are then lost in a power
// failure.
func (d *database) openFile(ctx context.Context, path string) error {
	// Only the controller's own account may read the file, because the file shows which jobs each user ran.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	write, err := sql.Open("sqlite", sqliteName(path, "auto_vacuum(incremental)", "journal_mode(wal)", "synchronous(full)", "foreign_keys(on)"))
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	write.SetMaxOpenConns(1)
	if err := migrate(ctx, goose.DialectSQLite3, write); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), write.Close())
	}
	if d.read, err = sql.Open("sqlite", sqliteName(path, "query_only(on)")); err != nil {
		return errors.Join(fmt.Errorf("open the archive: %w", err), write.Close())
	}
	d.read.SetMaxOpenConns(readers)
	d.read.SetMaxIdleConns(readers)
	d.writer = newSerial(write)
	d.tidy = func(ctx context.Context) error {
		if _, err := write.ExecContext(ctx, "PRAGMA incremental_vacuum"); err != nil {
			return fmt.Errorf("shrink the archive: %w", err)
		}
		return nil
	}
	return nil
}

// sqliteName returns the data source name for a file. Connections wait for a while if another process, such as a backup, holds a lock.
func sqliteName(path string, pragmas ...string) string {
	v := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{"busy_timeout(10000)", "temp_store(memory)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: v.Encode()}).String()
}
