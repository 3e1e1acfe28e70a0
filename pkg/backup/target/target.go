// Package target is where archives are kept: a folder here, a folder of a machine over SSH, a bucket of S3-compatible storage.
// In: a place as people write it, ways to authenticate, archives. Out: the same archives, lists of them.
// What an archive holds, and which ones stay, is pkg/backup's.
package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/backup"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Target keeps archives under their names. An archive that isn't there is fs.ErrNotExist.
type Target interface {
	// Write keeps what fill writes under a name, which appears when all of it is kept and no one else may read it. fill isn't called where
	// the target can't be written to; its context ends when the target fails. Where one of both fails nothing stays, but after a kill or a
	// cut connection, of which the next Write removes what is old enough: three hours after something was written to it, in S3
	// 25 hours after it began. It returns the size in bytes.
	Write(ctx context.Context, name string, fill func(context.Context, io.Writer) error) (int64, error)
	// List returns the archives of a cluster, as backup.File.IsOf takes it, the latest first. It goes by their names.
	List(ctx context.Context, cluster string) ([]backup.File, error)
	// Open reads an archive of that many bytes. Reading fails when ctx has ended.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
	// Delete removes an archive. One that is gone is no error.
	Delete(ctx context.Context, name string) error
	// Path is where an archive of that name is, as people write it.
	Path(name string) string
	Close() error
}

// Named is an archive that was written. Without is why the history of jobs isn't in it, as its name says; nil where that isn't amiss.
type Named struct {
	Name    string
	Size    int64
	Without error
}

// WriteNamed keeps an archive under the name that says whether it has the history of jobs. A name is given before the first byte is written, and the
// history is asked for last: where it can't be had, fill returns a *backup.NoHistoryError, nothing stays, and fill is called again for the other
// name, with the reason. Where the caller knows that there is none, without is why from the beginning.
func WriteNamed(ctx context.Context, to Target, name, nameWithout string, without error, fill func(ctx context.Context, out io.Writer, without error) error) (Named, error) {
	made := Named{Name: name, Without: without}
	write := func() (err error) {
		made.Size, err = to.Write(ctx, made.Name, func(ctx context.Context, out io.Writer) error { return fill(ctx, out, made.Without) })
		return err
	}
	if without == nil {
		err := write()
		missing, ok := errors.AsType[*backup.NoHistoryError](err)
		if !ok {
			return made, err
		}
		made.Without = missing.Err
	}
	made.Name = nameWithout
	return made, write()
}

// Options say how places are reached.
type Options struct {
	S3 S3
	// Dial returns the client for machines, and the target of one that a place names. It is called where one does.
	Dial func(Machine) (*ssh.Client, ssh.Target, error)
}

// Machine is what a place says of a machine. User and Port may be empty.
type Machine struct {
	User, Host string
	Port       int
}

var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://(.*)$`)

// abandoned is the age of what an upload left that was killed. One that is alive wrote meanwhile.
const abandoned = 3 * time.Hour

// Open returns the target of a place: FOLDER, ssh://[USER@]HOST[:PORT]/FOLDER, or s3://BUCKET[/PREFIX]. It asks no one yet.
func Open(place string, o Options) (Target, error) {
	m := scheme.FindStringSubmatch(place)
	if m == nil {
		return folder(place), nil
	}
	switch kind, rest := strings.ToLower(m[1]), m[2]; kind {
	case "ssh", "sftp":
		return openSFTP(kind, rest, o)
	case "s3":
		return openS3(rest, o.S3)
	case "file":
		return nil, hint.Errorf("write the path of the folder", "%s: a folder of this machine is written without file://", place)
	}
	return nil, hint.Errorf("write a folder, ssh://[USER@]HOST[:PORT]/FOLDER, or s3://BUCKET/PREFIX", "%s: backups can't be kept there", withoutPassword(place))
}

// Split parts the place of one archive in the place of its folder, and its name.
func Split(file string) (place, name string, err error) {
	place, name = ".", file
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		place, name = file[:i+1], file[i+1:]
	}
	if m := scheme.FindStringSubmatch(file); m != nil && !strings.Contains(m[2], "/") {
		name = ""
	}
	if name == "" || name == "." || name == ".." {
		return "", "", hint.Errorf("list them with: paictl cluster backup list --to FOLDER", "%s is no name of a backup", withoutPassword(file))
	}
	return place, name, nil
}

// withoutPassword takes out of a place what someone may have written there against all advice.
func withoutPassword(place string) string {
	m := scheme.FindStringSubmatch(place)
	if m == nil {
		return place
	}
	authority, rest, _ := strings.Cut(m[2], "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, _, _ := strings.Cut(authority[:i], ":")
		authority = user + authority[i:]
	}
	return m[1] + "://" + authority + "/" + rest
}

// wherever names the place in errors.
func wherever(t Target) string { return strings.TrimSuffix(t.Path(""), "/") }

func missing(t Target, name string) error {
	return hint.Errorf("list those that are there: paictl cluster backup list --to "+wherever(t), "%s: %w", t.Path(name), fs.ErrNotExist)
}

// found adds an archive to a list, if a name is one's.
func found(files []backup.File, t Target, cluster, name string, size int64) []backup.File {
	f, ok := backup.Named(name)
	if !ok || !f.IsOf(cluster) {
		return files
	}
	f.Path, f.Size = t.Path(name), size
	return append(files, f)
}

// errUnread ends a writer whose reader has gone.
var errUnread = errors.New("the backup's target reads no more")

// pump lets fill write what take reads. Whichever fails first ends the other and is the error. take sees the end of file only where fill
// wrote everything.
func pump(ctx context.Context, fill func(context.Context, io.Writer) error, take func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in, out := io.Pipe()
	filled := make(chan error, 1)
	go func() {
		err := fill(ctx, out)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			cancel(err) // before the reader hears of it
		}
		_ = out.CloseWithError(err)
		filled <- err
	}()
	// A fill that waits for something else doesn't keep its reader from ending.
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) })
	defer stop()
	err := take(in)
	if err != nil {
		cancel(err)
	}
	_ = in.CloseWithError(errUnread)
	if failed := <-filled; err != nil || failed != nil {
		return context.Cause(ctx)
	}
	return nil
}

// written is what the writers say of an error.
func written(t Target, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the backup %s: %w", t.Path(name), err)
}
