// Package target stores archives in a local folder, in a folder of another machine over SSH, or in a bucket of S3-compatible storage.
// In: a place in the format that users write, credentials, archives. Out: the same archives, lists of archives. Package pkg/cluster/backup defines
// the content of archives, and which archives are kept.
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

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Target stores archives by name. Its methods return fs.ErrNotExist for an archive that doesn't exist.
type Target interface {
	// Write stores the output of fill under a name, and returns its size in bytes. Only the owner can read the archive. The archive becomes visible when
	// it is complete. If the target isn't writable, Write doesn't call fill. If the target fails later, the context of fill ends. After a failure, no
	// file remains, except after a kill or a broken connection. The next Write removes such a remaining file three hours after its last change. In S3,
	// it removes a remaining upload 25 hours after its start.
	Write(ctx context.Context, name string, fill func(context.Context, io.Writer) error) (int64, error)
	// List returns the archives of a cluster (see backup.File.IsOf), the latest first. It reads only the names of archives.
	List(ctx context.Context, cluster string) ([]backup.File, error)
	// Open returns a reader of an archive, and the archive's size in bytes. The reader returns an error after ctx has ended.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
	// Delete removes an archive. It returns nil if the archive doesn't exist.
	Delete(ctx context.Context, name string) error
	// Path returns the location of an archive with this name, in the format that users write. The archive needn't exist.
	Path(name string) string
	Close() error
}

// Named describes a written archive. Without is the reason why the archive doesn't contain the job history, or nil if it does.
type Named struct {
	Name    string
	Size    int64
	Without error
}

// WriteNamed stores an archive under name, or under nameWithout if the archive doesn't contain the job history. The name must be known before the
// first byte is written, but fill reads the history last. If fill can't read the history, it returns a *backup.NoHistoryError. WriteNamed then
// calls fill again with the reason and stores the archive under nameWithout. If the caller already knows that the history is unavailable, the
// argument without is the reason.
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

// Options holds the settings for access to targets.
type Options struct {
	S3 S3
	// Dial returns an SSH client, and the SSH address of a machine. It is only called for targets on another machine.
	Dial func(Machine) (*ssh.Client, ssh.Target, error)
}

// Machine is the machine in a target's address. User may be empty and Port may be 0.
type Machine struct {
	User, Host string
	Port       int
}

var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://(.*)$`)

// abandoned is the age at which the remains of an upload count as abandoned. A running upload would have written within this time.
const abandoned = 3 * time.Hour

// Open returns the target for a place: FOLDER, ssh://[USER@]HOST[:PORT]/FOLDER, or s3://BUCKET[/PREFIX]. It doesn't connect yet.
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

// Split splits the location of an archive into the place of its folder and the archive's name.
func Split(file string) (place, name string, err error) {
	place, name = ".", file
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		place, name = file[:i+1], file[i+1:]
	}
	if m := scheme.FindStringSubmatch(file); m != nil && !strings.Contains(m[2], "/") {
		name = ""
	}
	if name == "" || name == "." || name == ".." {
		return "", "", hint.Errorf("list them with: paictl cluster backup list --to FOLDER", "%s is not the name of a backup", withoutPassword(file))
	}
	return place, name, nil
}

// withoutPassword removes a password from a place for error messages.
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

// wherever returns the place of a target for error messages.
func wherever(t Target) string { return strings.TrimSuffix(t.Path(""), "/") }

func missing(t Target, name string) error {
	return hint.Errorf("list the existing ones: paictl cluster backup list --to "+wherever(t), "%s: %w", t.Path(name), fs.ErrNotExist)
}

// found appends an archive to files if name is the name of an archive of the cluster.
func found(files []backup.File, t Target, cluster, name string, size int64) []backup.File {
	f, ok := backup.Named(name)
	if !ok || !f.IsOf(cluster) {
		return files
	}
	f.Path, f.Size = t.Path(name), size
	return append(files, f)
}

// errUnread is the error of a writer whose reader has stopped reading.
var errUnread = errors.New("the backup's target reads no more")

// pump runs fill and take concurrently. The reader of take returns the output of fill. The first failure ends both functions, and pump returns its
// error. The reader returns io.EOF only after fill has written everything.
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
			cancel(err) // before the reader receives the error
		}
		_ = out.CloseWithError(err)
		filled <- err
	}()
	// If ctx ends while fill is blocked, the reader must still end.
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

// written adds the path of the backup to an error of writing the backup. It returns nil if err is nil.
func written(t Target, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the backup %s: %w", t.Path(name), err)
}
