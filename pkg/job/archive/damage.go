package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/openpai/paictl/pkg/hint"
)

// Suffixes of the files beside an SQLite archive.
const (
	copySuffix    = ".copy"     // the last output of Copy
	damagedSuffix = ".damaged"  // an empty file: an operation found damage, so the next start checks the database
	brokenSuffix  = ".broken-"  // followed by the time: an archive that was put aside
	replacedName  = ".replaced" // a Replaced in JSON, until the missing rows are written again

	// maxBroken is how many damaged archives are kept. It is limited so that a bad disk isn't filled up as well.
	maxBroken = 3
)

// Replaced describes how a damaged archive was replaced. Each start of the program reports it until Done is called.
type Replaced struct {
	// Aside is the new name of the damaged archive's file.
	Aside string `json:"aside"`
	// Copied is when the copy that replaced the archive was made. It is zero if the new archive is empty.
	Copied time.Time `json:"copied"`
	Cause  string    `json:"cause"`
	// Restored is true once the copy, or an empty archive, has taken the place of the damaged archive.
	Restored bool `json:"restored"`

	path string
}

// Done records that all rows that could be restored from the cluster have been written to the new archive.
func (r *Replaced) Done() error {
	if err := os.Remove(r.path + replacedName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

func (r *Replaced) write() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	next := r.path + replacedName + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	if err := errors.Join(syncFile(next), os.Rename(next, r.path+replacedName)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(r.path))
}

// readReplaced returns the Replaced for an archive, or nil if the archive wasn't replaced. If the file can't be parsed, Cause says that the rest
// is unknown.
func readReplaced(path string) *Replaced {
	text, err := os.ReadFile(path + replacedName)
	if err != nil {
		return nil
	}
	r := &Replaced{}
	if err := json.Unmarshal(text, r); err != nil || r.Aside == "" {
		r.Cause, r.Restored = "the rest is not known", true
	}
	r.path = path
	return r
}

// String returns sentences for a log or an event that describe the replacement.
func (r *Replaced) String() string {
	text := fmt.Sprintf("The archive of jobs was damaged (%v) and is now %s. ", r.Cause, filepath.Base(r.Aside))
	if r.Copied.IsZero() {
		return text + "A new, empty archive was started; jobs that the cluster still has are written into it again."
	}
	return text + fmt.Sprintf("It was replaced by the copy of %s; jobs that the cluster still has are written into it again.", r.Copied.UTC().Format(time.RFC3339))
}

// damaged reports whether an error means that the database file is damaged.
func damaged(err error) bool {
	var found *unsound
	if errors.As(err, &found) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff // the other parts are more specific
	return code == lib.SQLITE_CORRUPT || code == lib.SQLITE_NOTADB
}

// openSQLite opens a file. If the file is damaged, openSQLite replaces it first.
func (d *database) openSQLite(ctx context.Context, o Options) error {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	d.path = path
	if err := forgetImport(path + importSuffix); err != nil { // of a process that was killed
		return fmt.Errorf("archive: %w", err)
	}
	if err := finish(ctx, path); err != nil {
		return err
	}
	cause := d.openSound(ctx, path)
	if damaged(cause) {
		if err := putAside(ctx, path, o.Now(), cause); err != nil {
			return hint.Wrap(errors.Join(cause, err), "make room beside "+path+", or move it and the files beside it elsewhere, and start the job controller again")
		}
		cause = d.openFile(ctx, path)
	}
	if cause != nil {
		return cause
	}
	if r := readReplaced(path); r != nil && o.Replaced != nil {
		o.Replaced(r)
	}
	return nil
}

// openSound opens a file. If an operation found damage in the file before, openSound also checks the whole file.
func (d *database) openSound(ctx context.Context, path string) error {
	mark := path + damagedSuffix
	_, err := os.Stat(mark)
	marked := err == nil
	if err := d.openFile(ctx, path); err != nil {
		return err
	}
	if !marked {
		return nil
	}
	if err := repair(ctx, path); err != nil {
		return errors.Join(err, d.Close())
	}
	return os.Remove(mark) // the damage was temporary, or someone has repaired the file
}

// repair checks the whole database. If it finds damage, repair rebuilds the indexes and checks again, because the damage may be limited to the
// indexes.
func repair(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", sqliteName(path))
	if err != nil {
		return fmt.Errorf("check the archive: %w", err)
	}
	defer func() { _ = db.Close() }()
	found := check(ctx, db)
	if !damaged(found) {
		return found
	}
	if _, err := db.ExecContext(ctx, "REINDEX"); err != nil {
		return errors.Join(found, err)
	}
	return check(ctx, db)
}

// check reads the whole database, including its indexes. It returns an unsound error if it finds damage. Other errors may mean that the check
// itself failed.
func check(ctx context.Context, db *sql.DB) error {
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return fmt.Errorf("check the archive: %w", err)
	}
	if said != "ok" {
		return &unsound{said}
	}
	return nil
}

// unsound is the error for a database with damage. said is SQLite's description of the damage.
type unsound struct{ said string }

func (u *unsound) Error() string { return "check the archive: " + u.said }

// putAside renames a damaged archive and replaces it. putAside first writes its intention to a file, so that the next start of the program
// completes the replacement if the program stops before the end.
func putAside(ctx context.Context, path string, now time.Time, cause error) error {
	r := &Replaced{Aside: path + brokenSuffix + stamp(now), Cause: cause.Error(), path: path}
	if err := r.write(); err != nil {
		return err
	}
	return finish(ctx, path)
}

// stamp formats a time for the name of a file.
func stamp(t time.Time) string { return t.UTC().Format("20060102T150405.000Z") }

// finish completes the replacement that putAside began. It does nothing if there is no such replacement, or if it is already complete.
func finish(ctx context.Context, path string) error {
	r := readReplaced(path)
	if r == nil || r.Restored {
		return nil
	}
	if !exists(r.Aside) {
		for _, suffix := range []string{"-wal", "-shm", ""} { // the file itself last: once it is renamed, the others are renamed, too
			if err := os.Rename(path+suffix, r.Aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("put the damaged archive aside: %w", err)
			}
		}
	}
	forgetBroken(path)
	kept, err := soundCopy(ctx, path)
	if err != nil {
		return err
	}
	if kept != nil {
		if err := restore(path+copySuffix, path); err != nil {
			return fmt.Errorf("use the copy of the archive: %w", err)
		}
		r.Copied = kept.ModTime()
	}
	r.Restored = true
	if err := r.write(); err != nil {
		return err
	}
	if err := os.Remove(path + damagedSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// soundCopy returns the file information of the copy, or nil if there is no usable copy. The copy is on the same disk as the archive, so it may
// be damaged, too. In that case soundCopy renames it.
func soundCopy(ctx context.Context, path string) (os.FileInfo, error) {
	info, err := os.Stat(path + copySuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no copy is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("use the copy of the archive: %w", err)
	}
	db, err := sql.Open("sqlite", sqliteName(path+copySuffix, "query_only(on)"))
	if err != nil {
		return nil, fmt.Errorf("use the copy of the archive: %w", err)
	}
	err = check(ctx, db)
	err = errors.Join(err, db.Close())
	if err == nil {
		return info, nil
	}
	if !damaged(err) {
		return nil, fmt.Errorf("use the copy of the archive: %w", err)
	}
	if err := os.Rename(path+copySuffix, path+brokenSuffix+"copy-"+stamp(info.ModTime())); err != nil {
		return nil, fmt.Errorf("put the damaged copy aside: %w", err)
	}
	return nil, nil //nolint:nilnil // as above
}

// restore atomically replaces the file to with the contents of the file from. The file from stays.
func restore(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	next := to + ".new"
	out, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Broken returns the names of earlier versions of this archive that were damaged and renamed, starting with the oldest.
func (o Options) Broken() []string {
	if o.Shared() {
		return nil
	}
	return broken(o.Path)
}

func broken(path string) []string {
	all, _ := filepath.Glob(escape(path) + brokenSuffix + "*Z")
	slices.Sort(all)
	return all
}

// escape escapes the characters of a path that have a special meaning for filepath.Glob.
func escape(path string) string {
	out := make([]rune, 0, len(path))
	for _, r := range path {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

// forgetBroken removes renamed damaged archives, except the first archive and the latest archives.
func forgetBroken(path string) {
	all := broken(path)
	for len(all) > maxBroken {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(all[1] + suffix)
		}
		all = slices.Delete(all, 1, 2)
	}
}

// Copy implements Store.
func (d *database) Copy(ctx context.Context) error {
	if d.path == "" {
		return nil // PostgreSQL has its own backups
	}
	if exists(d.path + replacedName) {
		return nil // rows that the archive has lost may still be in the copy
	}
	if err := roomFor(d.path); err != nil {
		return fmt.Errorf("copy the archive: %w", err)
	}
	next := d.path + copySuffix + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("copy the archive: %w", err)
	}
	db, err := sql.Open("sqlite", sqliteName(d.path))
	if err != nil {
		return fmt.Errorf("copy the archive: %w", err)
	}
	defer func() { _ = db.Close() }()
	// VACUUM INTO reads every page. So it fails for a damaged archive, whose copy can't replace the earlier sound copy.
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", next); err != nil {
		return errors.Join(fmt.Errorf("copy the archive: %w", err), os.Remove(next))
	}
	if err := errors.Join(os.Chmod(next, 0o600), syncFile(next)); err != nil {
		return fmt.Errorf("copy the archive: %w", err)
	}
	if err := os.Rename(next, d.path+copySuffix); err != nil {
		return fmt.Errorf("copy the archive: %w", err)
	}
	return nil
}

// Copied implements Store.
func (d *database) Copied() time.Time {
	if d.path == "" {
		return d.now()
	}
	info, err := os.Stat(d.path + copySuffix)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// freeBeside returns the free bytes of the file system of path's folder.
func freeBeside(path string) (int64, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(filepath.Dir(path), &fs)
	return int64(fs.Bavail) * int64(fs.Bsize), err //nolint:unconvert // Bsize is an uint32 on macOS
}

// roomFor returns an error unless the disk has room for a copy of a file and some spare room. A copy must not use up the room that jobs need.
func roomFor(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	free, err := freeBeside(path)
	if err != nil {
		return err
	}
	if free < info.Size()+info.Size()/2 {
		return hint.Errorf("make room on the volume of the archive", "%d MiB are free, and the archive has %d", free>>20, info.Size()>>20)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// noticed records that an operation found damage, and reports this on the channel of Failed. The program must then exit. At its next start, the
// archive is checked and, if necessary, replaced.
func (d *database) noticed(err error) {
	if d.path == "" || !damaged(err) {
		return
	}
	d.once.Do(func() {
		mark, openErr := os.OpenFile(d.path+damagedSuffix, os.O_CREATE|os.O_WRONLY, 0o600)
		if openErr == nil {
			openErr = mark.Close()
		}
		d.failed <- errors.Join(hint.Wrap(fmt.Errorf("the archive of jobs is damaged: %w", err),
			"wait: the controller restarts, moves the file aside and continues with the last copy"), openErr)
	})
}

// Failed implements Store.
func (d *database) Failed() <-chan error { return d.failed }
