package target

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	// writesInFlight is the number of packets of 32 KiB that are sent without waiting for replies. pkg/ssh uses the same number.
	writesInFlight = 64
	// grace is the time limit for removing the unfinished archive of an interrupted upload.
	grace = 5 * time.Second
	// part is the suffix of a folder that contains an unfinished archive.
	part = ".part"
)

// machine is a target in a folder of a machine with an SSH server. It uses one connection, and a separate SFTP session for each call.
type machine struct {
	written string // ssh://[USER@]HOST[:PORT], as it was written
	at      Machine
	dir     string // on the machine; a relative path starts in the user's home
	dial    func(Machine) (*ssh.Client, ssh.Target, error)
	client  *ssh.Client
	target  ssh.Target
	host    ssh.Host // keeps the connection between calls
}

func openSFTP(scheme, rest string, o Options) (Target, error) {
	bad := func(what string) (Target, error) {
		return nil, hint.Errorf("write "+scheme+"://[USER@]HOST[:PORT]/FOLDER, and ~ before FOLDER for one in the user's home",
			"%s: %s", withoutPassword(scheme+"://"+rest), what)
	}
	authority, dir, named := strings.Cut(rest, "/")
	m := &machine{written: scheme + "://" + authority, dir: path.Clean("/" + dir), dial: o.Dial}
	host := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		m.at.User, host = authority[:i], authority[i+1:]
		if strings.Contains(m.at.User, ":") {
			return nil, hint.Errorf("use a key, ssh-agent, or a machine of layout.yaml", "%s: a place can't contain a password: others would see it", withoutPassword(scheme+"://"+rest))
		}
		if m.at.User == "" {
			return bad("the user is missing before @")
		}
	}
	m.at.Host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if h, port, err := net.SplitHostPort(host); err == nil {
		m.at.Host = h
		if m.at.Port, err = strconv.Atoi(port); err != nil || m.at.Port < 1 || m.at.Port > 65535 {
			return bad(port + " is not a port")
		}
	}
	if m.at.Host == "" || strings.ContainsAny(m.at.Host, " \t@") || strings.HasPrefix(m.at.Host, "-") {
		return bad("the machine is missing")
	}
	if home, ok := strings.CutPrefix(m.dir, "/~"); ok && (home == "" || home[0] == '/') {
		m.dir = path.Clean(strings.TrimPrefix(home, "/"))
	} else if !named {
		return bad("the folder is missing")
	}
	return m, nil
}

// Path implements Target.
func (m *machine) Path(name string) string {
	dir := m.dir
	if !path.IsAbs(dir) {
		dir = "/" + path.Join("~", dir)
	}
	return m.written + path.Join(dir, name)
}

// Close implements Target.
func (m *machine) Close() error {
	if m.client == nil {
		return nil
	}
	var err error
	if m.host != nil {
		err = m.host.Close()
	}
	return errors.Join(err, m.client.Close())
}

func (m *machine) files(ctx context.Context) (*ssh.Files, error) {
	if m.client == nil {
		client, target, err := m.dial(m.at)
		if err != nil {
			return nil, err
		}
		m.client, m.target = client, target
	}
	if m.host == nil {
		host, err := m.client.Dial(ctx, m.target)
		if err != nil {
			return nil, err
		}
		m.host = host
	}
	return m.client.Files(ctx, m.target)
}

// Write implements Target. It creates the file in a private folder and moves it later, because all users can read a new file on an SFTP server
// until its mode is set.
func (m *machine) Write(ctx context.Context, name string, fill func(context.Context, io.Writer) error) (size int64, err error) {
	session, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	// After an interruption, Write still tries to remove its files, but waits at most the grace period for the network.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, end) })()
	files, err := m.files(session)
	if err != nil {
		return 0, written(m, name, err)
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	dir := path.Join(m.dir, "."+name+"-"+rand.Text()[:8]+part)
	failed := func(err error) error {
		return written(m, name, m.remedied(files.Explain(ctx, "write the backup", err)))
	}
	if err := files.Mkdir(dir); err != nil {
		if _, there := files.Stat(m.dir); there != nil && errors.Is(there, os.ErrNotExist) {
			err = there
		}
		return 0, failed(err)
	}
	unfinished := path.Join(dir, name)
	defer func() {
		_ = files.Remove(unfinished) // after a rename it no longer exists; otherwise the next Write removes it
		_ = files.RemoveDirectory(dir)
	}()
	if err := files.Chmod(dir, 0o700); err != nil {
		return 0, failed(err)
	}
	m.tidy(files, dir)
	err = pump(ctx, fill, func(in io.Reader) error {
		size, err = m.send(files, unfinished, in)
		if err != nil {
			return failed(err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	rename := files.Rename // which doesn't replace a file
	if _, ok := files.HasExtension("posix-rename@openssh.com"); ok {
		rename = files.PosixRename
	}
	if err := rename(unfinished, path.Join(m.dir, name)); err != nil {
		return 0, failed(err)
	}
	return size, nil
}

func (m *machine) remedied(err error) error {
	status, said := errors.AsType[*sftp.StatusError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hint.Wrap(err, "create the folder on the machine, or name an existing one")
	case errors.Is(err, fs.ErrPermission):
		return hint.Wrap(err, "name a folder where the user may write, or log in as another one: ssh://USER@HOST/FOLDER")
	case said && status.FxCode() == sftp.ErrSSHFxFailure:
		return hint.Wrap(err, "check the free space of the machine's disks")
	}
	return err
}

// send writes a file and checks its size. If the server supports fsync, the file is on the server's disk when send returns.
func (m *machine) send(files *ssh.Files, name string, in io.Reader) (size int64, err error) {
	out, err := files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Chmod(0o600); err != nil {
		return 0, err
	}
	if size, err = out.ReadFromWithConcurrency(in, writesInFlight); err != nil {
		return 0, err
	}
	if _, ok := files.HasExtension("fsync@openssh.com"); ok {
		if err := out.Sync(); err != nil {
			return 0, err
		}
	}
	info, err := out.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%d bytes arrived of %d", info.Size(), size)
	}
	return size, err
}

// tidy removes folders of abandoned uploads. It determines the age of a folder by the machine's own clock.
func (m *machine) tidy(files *ssh.Files, mine string) {
	me, err := files.Stat(mine)
	if err != nil {
		return
	}
	all, err := files.ReadDir(m.dir)
	if err != nil {
		return
	}
	for _, d := range all {
		name, unfinished := strings.CutSuffix(d.Name(), part)
		if i := strings.LastIndexByte(name, '-'); !unfinished || i < 1 || !d.IsDir() || !strings.HasSuffix(name[:i], backup.Ending) {
			continue
		}
		dir, last := path.Join(m.dir, d.Name()), d.ModTime()
		inside, err := files.ReadDir(dir)
		if err != nil {
			continue // it belongs to another user
		}
		for _, f := range inside {
			if f.ModTime().After(last) {
				last = f.ModTime()
			}
		}
		if me.ModTime().Sub(last) < abandoned {
			continue
		}
		for _, f := range inside {
			_ = files.Remove(path.Join(dir, f.Name())) // if it fails, the next call removes it
		}
		_ = files.RemoveDirectory(dir)
	}
}

// List implements Target.
func (m *machine) List(ctx context.Context, cluster string) (out []backup.File, err error) {
	files, err := m.files(ctx)
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	all, err := files.ReadDirContext(ctx, m.dir)
	if err != nil {
		return nil, fmt.Errorf("list backups of %s: %w", wherever(m), m.remedied(files.Explain(ctx, "list backups", err)))
	}
	out = []backup.File{}
	for _, f := range all {
		if f.Mode().IsRegular() {
			out = found(out, m, cluster, f.Name(), f.Size())
		}
	}
	backup.Sort(out)
	return out, nil
}

// Open implements Target.
func (m *machine) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	files, err := m.files(ctx)
	if err != nil {
		return nil, 0, err
	}
	in, err := files.Open(path.Join(m.dir, name))
	if err != nil {
		err = errors.Join(files.Explain(ctx, "read the backup", err), files.Close())
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, missing(m, name)
		}
		return nil, 0, fmt.Errorf("%s: %w", m.Path(name), err)
	}
	info, err := in.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%s: %w", m.Path(name), files.Explain(ctx, "read the backup", err)), files.Close())
	}
	// Send several requests without waiting for replies, as in an upload.
	from, to := io.Pipe()
	r := &remoteReader{PipeReader: from, done: make(chan struct{})}
	r.close = func() error { return errors.Join(in.Close(), files.Close()) }
	go func() {
		defer close(r.done)
		_, err := in.WriteTo(to)
		_ = to.CloseWithError(files.Explain(ctx, "read the backup", err))
	}()
	return r, info.Size(), nil
}

type remoteReader struct {
	*io.PipeReader
	done  chan struct{}
	close func() error
}

// Close stops the goroutine, and then closes the remote file.
func (r *remoteReader) Close() error {
	_ = r.PipeReader.Close() // never fails
	<-r.done
	return r.close()
}

// Delete implements Target.
func (m *machine) Delete(ctx context.Context, name string) (err error) {
	files, err := m.files(ctx)
	if err != nil {
		return fmt.Errorf("delete the backup: %w", err)
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := files.Remove(path.Join(m.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the backup %s: %w", m.Path(name), m.remedied(files.Explain(ctx, "delete the backup", err)))
	}
	return nil
}
