package app

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/transfer"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// These limits apply to the responses of a task, in bytes, because the task's owner controls the program that responds.
const (
	maxListing = 4 << 20
	maxKind    = 64
	maxReason  = 1 << 10
	maxPath    = 4 << 10
	// maxAround limits the bytes of an archive before its file, and after its file.
	maxAround = 64 << 10
)

const codeNoFile = "NoFileError"

var errNoFile = &wire.Error{Status: http.StatusNotFound, Code: codeNoFile, Message: "there is no such file in the task"}

// File is a file or a folder of a task. A folder is sent as a gzipped tar.
type File struct {
	Name string
	// Size is in bytes, or -1 if unknown.
	Size int64
}

// Files returns the file or folder at a path of a running task. For a folder, it returns the entries. The path "" is the working folder of the task's
// program.
func (j *Job) Files(ctx context.Context, role string, index int32, name string) (*transfer.Listing, error) {
	if name == "" {
		name = "."
	}
	t, err := j.enterFiles(ctx, role, index, "list", name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := j.runIn(ctx, t, nil, &limited{&out, maxListing}, "cp-list", name); err != nil {
		return nil, err
	}
	list := &transfer.Listing{}
	if err := json.Unmarshal(out.Bytes(), list); err != nil || list.Check() != nil {
		return nil, errAnswer
	}
	if list.Kind == transfer.None {
		return nil, errNoFile
	}
	return list, nil
}

// ReadFile writes a file of a running task, or a folder as a gzipped tar. It calls begin before it writes the first byte. An error before begin means
// that the response hasn't begun. An error after begin means that only a part was written.
func (j *Job) ReadFile(ctx context.Context, role string, index int32, name string, begin func(File), to io.Writer) error {
	t, err := j.enterFiles(ctx, role, index, "read", name)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go j.guard(ctx, "job.enter", end)
	var b bytes.Buffer
	if err := j.runIn(ctx, t, nil, &limited{&b, maxKind}, "cp-kind", name); err != nil {
		return err
	}
	base := path.Base(path.Clean(name))
	if base == "." || base == "/" || base == ".." {
		base = "files"
	}
	read, write := io.Pipe()
	sent := make(chan error, 1)
	take := func(into func(io.Reader) error) error {
		go func() {
			err := j.runIn(ctx, t, nil, write, "cp-out", name, base)
			write.CloseWithError(err)
			sent <- err
		}()
		err := into(read)
		read.CloseWithError(io.ErrClosedPipe)
		if failed := <-sent; err == nil {
			err = failed
		}
		return err
	}
	switch kind := transfer.Kind(strings.TrimSpace(b.String())); kind {
	case transfer.None:
		return errNoFile
	case transfer.File:
		return take(func(r io.Reader) error { return unpackFile(r, base, begin, to) })
	case transfer.Folder:
		return take(func(r io.Reader) error {
			packed := bufio.NewReader(r)
			if _, err := packed.Peek(1); err != nil {
				return err
			}
			begin(File{Name: base + ".tar.gz", Size: -1})
			_, err := packed.WriteTo(to)
			return err
		})
	case transfer.Other:
		return wire.Bad("path: it is neither a file nor a folder")
	}
	return errAnswer
}

// unpackFile writes the only file of a gzipped tar to a writer.
func unpackFile(r io.Reader, name string, begin func(File), to io.Writer) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	bounded := &io.LimitedReader{R: z, N: maxAround}
	files := tar.NewReader(bounded)
	h, err := files.Next()
	if err != nil {
		return err
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return errAnswer
	}
	begin(File{Name: name, Size: h.Size})
	bounded.N = h.Size
	if _, err := io.CopyN(to, files, h.Size); err != nil {
		return err
	}
	// The exit code of the runtime arrives only after its output, so read the output to the end.
	if n, err := io.CopyN(io.Discard, r, maxAround); n == maxAround {
		return errAnswer
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// WriteFile writes a file of size bytes into a running task. It creates parent folders, and replaces a file with the same name. It calls stop if the
// task exits before it has received the whole file. stop must interrupt a pending read of from.
func (j *Job) WriteFile(ctx context.Context, role string, index int32, name string, size int64, from io.Reader, stop func()) error {
	dir, base := path.Split(name)
	if base == "" || base == "." || base == ".." {
		return wire.Bad("path: name a file, not a folder")
	}
	if size < 0 {
		return wire.Bad("the request needs a Content-Length")
	}
	t, err := j.enterFiles(ctx, role, index, "write", name)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go j.guard(ctx, "job.enter", end)
	read, write := io.Pipe()
	packed, counted := make(chan error, 1), &counting{Reader: from}
	go func() {
		err := packFile(write, base, size, counted)
		write.CloseWithError(err)
		packed <- err
	}()
	if dir == "" {
		dir = "."
	}
	err = j.runIn(ctx, t, read, io.Discard, "cp-in", dir)
	read.CloseWithError(io.ErrClosedPipe)
	if counted.n.Load() < size {
		stop()
	}
	switch failed := <-packed; {
	case failed != nil && !errors.Is(failed, io.ErrClosedPipe) && !errors.Is(failed, os.ErrDeadlineExceeded):
		return failed
	case failed != nil && err == nil:
		return errPart
	}
	return err
}

// errPart is the error for a file that a task didn't accept completely.
var errPart = &wire.Error{Status: http.StatusBadGateway, Code: wire.CodeUnavailable, Message: "the task has taken only a part of the file"}

// counting is a reader that counts its bytes.
type counting struct {
	io.Reader
	n atomic.Int64
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func packFile(w io.Writer, name string, size int64, from io.Reader) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	files := tar.NewWriter(z)
	if err := files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Now()}); err != nil {
		return wire.Bad("path: " + err.Error())
	}
	if _, err := io.CopyN(files, from, size); err != nil {
		return err
	}
	return errors.Join(files.Close(), z.Close())
}

// enterFiles writes to the audit log that the caller reads or changes files of a task, and returns the task.
func (j *Job) enterFiles(ctx context.Context, role string, index int32, what, name string) (t *job.Target, err error) {
	if name == "" || len(name) > maxPath || strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
		return nil, wire.Bad("path: name a file of the task, in at most 4 KiB")
	}
	detail := map[string]string{"way": "files", "do": what, "task": job.TaskName(role, index), "path": name}
	err = j.change(ctx, "job.enter", detail, func(ctx context.Context) (err error) {
		if t, err = j.target(ctx, role, index); err != nil {
			return err
		}
		if !t.OwnRuntime {
			return &wire.Error{Status: http.StatusConflict, Code: codeConflictJob, Message: t.Task + " has no job runtime, which is needed for files", Remedy: "use tar in a shell: paictl job exec"}
		}
		return nil
	})
	return t, err
}

// errAnswer is the error for output that the job's runtime never writes. Another program must have written the output.
var errAnswer = &wire.Error{Status: http.StatusBadGateway, Code: wire.CodeUnavailable, Message: "the task gave an answer that can't be read"}

// sayer is the prefix of the runtime's error messages.
const sayer = "pai-runtime: "

// runIn runs the job's runtime in the task with the given arguments.
func (j *Job) runIn(ctx context.Context, t *job.Target, in io.Reader, out io.Writer, args ...string) error {
	config := rest.CopyConfig(j.actions.app.Jobs.Config)
	config.WrapTransport = nil // it limits the duration of requests, and this connection lasts longer
	said := &firstBytes{}
	err := stream.Exec(ctx, &kube.Cluster{Client: j.actions.app.Jobs.Client, Config: config},
		stream.Command{Namespace: t.Namespace, Pod: t.Pod, Container: t.Container, Args: t.Runtime(args...), Stdin: in, Stdout: out, Stderr: said})
	exit, ended := errors.AsType[*stream.ExitError](err)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case !ended && t.LacksRuntime(err):
		return &wire.Error{Status: http.StatusConflict, Code: codeConflictJob, Message: "the container of " + t.Task + " has no job runtime at " + t.Program,
			Remedy: "a program of the task removed it, or a volume of the job hides it: don't use the path " + path.Dir(t.Program)}
	case !ended:
		return fmt.Errorf("run the job's runtime in %s: %w", t.Task, err)
	case exit.Code == 2:
		return &wire.Error{Status: http.StatusConflict, Code: codeConflictJob, Message: "the runtime of this job is older than this operation", Remedy: "jobs that start from now on have a current one; until then use: paictl job exec"}
	}
	text := terminal.Line(said.String())
	if at := strings.LastIndex(text, sayer); at >= 0 {
		text = text[at+len(sayer):]
	}
	return wire.Bad("the task says: " + cmp.Or(text, exit.Error()))
}

// limited is a writer that returns an error after more than left bytes.
type limited struct {
	io.Writer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errAnswer
	}
	return l.Writer.Write(p)
}

// firstBytes keeps the first maxReason bytes, and discards the rest.
type firstBytes struct{ strings.Builder }

// Write implements io.Writer.
func (f *firstBytes) Write(p []byte) (int, error) {
	f.Builder.Write(p[:min(len(p), maxReason-f.Len())])
	return len(p), nil
}
