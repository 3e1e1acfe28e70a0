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

// The files beside an SQLite archive.
const (
	copySuffix    = ".copy"     // the last output of Copy
	damagedSuffix = ".damaged"  // an empty file: an operation found damage, so the next start checks the database
	brokenSuffix  = ".broken-"  // followed by the time: an archive that was put aside
	replacedName  = ".replaced" // a Replaced in JSON, until the missing rows are written again

	// maxBroken bounds how many archives are put aside, so that a bad disk isn't filled up as well.
	maxBroken = 3
)

// Replaced indicates that an archive was damaged and that another one replaced it. Each start reports it until Done is called.
type Replaced struct {
	// Aside is the file that the damaged archive was renamed to.
	Aside string `json:"aside"`
	// Copied is when the copy that replaced the archive was made; zero if the new archive is empty.
	Copied time.Time `json:"copied"`
	Cause  string    `json:"cause"`
	// Restored reports whether the copy, or an empty archive, has taken the place of the damaged one.
	Restored bool `json:"restored"`

	path string
}

// Done records that everything that could be written again is in the archive.
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

// readReplaced returns nil if nothing was replaced. If the file can't be read, the result says so.
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

// String returns a sentence for a log or an event.
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

// openSQLite opens a file, or its replacement if the file is damaged.
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

// openSound opens a file, and checks all of it if damage was found before.
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

// repair checks the whole database, and rebuilds its indexes if only they are damaged.
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

// check reads the whole database, including its indexes. It returns an unsound error if it finds damage; other errors
// may mean that the check failed.
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

// unsound is the error for a database in which a check found damage.
type unsound struct{ said string }

func (u *unsound) Error() string { return "check the archive: " + u.said }

// putAside begins to replace a damaged archive. It first writes down what to do, so that the next start completes it if the program stops
// before the end.
func putAside(ctx context.Context, path string, now time.Time, cause error) error {
	r := &Replaced{Aside: path + brokenSuffix + stamp(now), Cause: cause.Error(), path: path}
	if err := r.write(); err != nil {
		return err
	}
	return finish(ctx, path)
}

// stamp formats a time for the name of a file.
func stamp(t time.Time) string { return t.UTC().Format("20060102T150405.000Z") }

// finish carries out what putAside wrote down, unless that is done.
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

// soundCopy returns the copy, or nil if no copy is usable. The copy is on the same disk, so it may be damaged, too; then it is put aside.
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

// restore atomically replaces a file with a copy. The copy stays.
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

// Broken returns the archives beside this one that were damaged and put aside, oldest first.
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

// escape escapes the characters of a path that are patterns for filepath.Glob.
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

// forgetBroken removes archives that were put aside, except the first one and the latest ones.
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
	// VACUUM INTO reads every page, so a damaged archive doesn't replace the copy of a sound one.
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

// roomFor reports whether there is room for a file of the size of this one, with some to spare: a copy must not
// keep jobs from being written.
func roomFor(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &fs); err != nil {
		return err
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < info.Size()+info.Size()/2 {
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

// noticed records that an operation found damage. The program has to exit: at its next start, the archive is checked and set
// aside.
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
