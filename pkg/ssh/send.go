package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

const (
	// writesInFlight is the maximum number of packets of 32 KiB that are sent without waiting for replies. At a latency of 100 ms, sending 16 MiB takes
	// 52 s with one packet, and 1.2 s with 64 packets.
	writesInFlight = 64
	// resumeFrom is the minimum size of a partial file for resuming an upload. An upload resumes resumeBack bytes before the end of the partial file,
	// because packets arrive out of order and may leave holes near the end.
	resumeFrom = 8 << 20
	resumeBack = 4 << 20
)

// send sends files to their temporary names, several at a time, the largest first.
func (u *upload) send(ctx context.Context, files []pending, root string) error {
	select {
	case u.h.client.uploads <- struct{}{}:
		defer func() { <-u.h.client.uploads }()
	case <-ctx.Done():
		return u.h.conn.explain(ctx, "upload", context.Cause(ctx))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	meter := newMeter(files, u.progress)
	stall := time.AfterFunc(stallLimit, func() { cancel(errStalled) })
	defer stall.Stop()
	meter.moved = func() { stall.Reset(stallLimit) }

	finished := make(chan error, 1)
	go func() { finished <- u.sendAll(ctx, files, root, meter) }()
	var err error
	select {
	case err = <-finished:
	case <-ctx.Done():
		select { // the session is being closed; don't wait for a dead network
		case <-finished:
		case <-time.After(abortGrace):
		}
		err = u.h.conn.explain(ctx, "upload", context.Cause(ctx))
	}
	u.result.Bytes += meter.count()
	return err
}

func (u *upload) sendAll(ctx context.Context, files []pending, root string, meter *meter) error {
	u.trips++
	client, stop, err := u.h.sftp(ctx, "upload", u.h.access(true))
	if err != nil {
		return err
	}
	defer stop()
	files = slices.SortedStableFunc(slices.Values(files), func(a, b pending) int { return cmp.Compare(b.Size, a.Size) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(u.h.client.o.UploadFiles)
	for _, f := range files {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := f.write(client, root, meter)
			if err == nil {
				return nil
			}
			lost := cutOff(err)
			if lost {
				u.h.conn.settle()
			}
			if lost || u.h.conn.isClosed() {
				return u.h.conn.lost("upload " + f.Path)
			}
			return hint.Wrap(fmt.Errorf("upload %s to %s: %w", f.Path, u.h.name, err), cmp.Or(hint.Of(err), "check the free space of the machine's disks"))
		})
	}
	return group.Wait()
}

// cutOff reports whether an error of a transfer means that the connection was lost. The error may come from sftp, from the end of the stream, or from
// the socket.
func cutOff(err error) bool {
	_, socket := errors.AsType[*net.OpError](err)
	return socket || errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, io.EOF)
}

func (p pending) write(client *sftp.Client, root string, meter *meter) (err error) {
	src, err := p.Open()
	if err != nil {
		return hint.Wrap(err, "make or fetch the file again")
	}
	defer func() { _ = src.Close() }()
	offset := p.resumeAt()
	flags := os.O_WRONLY
	if offset == 0 {
		flags |= os.O_TRUNC
	}
	if err := skip(src, offset); err != nil {
		return err
	}
	dst, err := client.OpenFile(root+path.Join(path.Dir(p.Path), p.temp), flags)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if _, err := dst.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	n, err := dst.ReadFromWithConcurrency(meter.reader(io.LimitReader(src, p.Size-offset+1)), writesInFlight)
	if err != nil {
		return err
	}
	if n != p.Size-offset {
		return hint.Errorf("make or fetch the file again", "the local file does not have its %d bytes", p.Size)
	}
	return nil
}

// resumeAt returns the offset from which the upload resumes. resumeAt returns 0 if the upload must start from the beginning.
func (p pending) resumeAt() int64 {
	if p.part < resumeFrom || p.part > p.Size {
		return 0
	}
	return p.part - resumeBack
}

// skip reads and drops the first n bytes of r.
func skip(r io.Reader, n int64) error {
	if n == 0 {
		return nil
	}
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(n, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}

// sftp opens an SFTP session for an operation. sftp uses the server's SFTP subsystem if possible. With sudo, or if the host has no subsystem, sftp
// starts the SFTP server by its path, because sudo can't start a subsystem.
func (h *host) sftp(ctx context.Context, what string, as access) (*sftp.Client, func(), error) {
	if !as.sudo() {
		client, stop, err := h.subsystem(ctx, what)
		if err == nil || ctx.Err() != nil || h.conn.isClosed() {
			return client, stop, err
		}
	}
	out, in := io.Pipe()
	p, err := h.conn.spawn(ctx, what, wire.SFTPServer, as, in)
	if err != nil {
		return nil, nil, err
	}
	go func() {
		<-p.exited
		_ = in.Close()
	}()
	unwatch := context.AfterFunc(ctx, func() { p.abort(); _ = out.Close() })
	client, err := sftp.NewClientPipe(out, p.stdin, sftpOptions()...)
	if err != nil {
		unwatch()
		p.abort()
		if ctx.Err() != nil || h.conn.isClosed() {
			return nil, nil, h.conn.explain(ctx, what, err)
		}
		return nil, nil, hint.Errorf("install openssh-sftp-server on the machine", "%s on %s: the machine has no SFTP server: %w", what, h.name, err)
	}
	return client, func() {
		unwatch()
		_ = client.Close()
		p.abort()
		_ = out.Close()
	}, nil
}

func (h *host) subsystem(ctx context.Context, what string) (*sftp.Client, func(), error) {
	s, free, err := h.conn.session(ctx)
	if err != nil {
		return nil, nil, h.conn.explain(ctx, what, err)
	}
	closeAll := func() {
		_ = s.Close()
		free()
	}
	in, err1 := s.StdinPipe()
	out, err2 := s.StdoutPipe()
	if err := errors.Join(err1, err2, s.RequestSubsystem("sftp")); err != nil {
		closeAll()
		return nil, nil, h.conn.explain(ctx, what, err)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = s.Close() })
	client, err := sftp.NewClientPipe(out, in, sftpOptions()...)
	if err != nil {
		unwatch()
		closeAll()
		return nil, nil, h.conn.explain(ctx, what, err)
	}
	return client, func() {
		unwatch()
		_ = client.Close()
		closeAll()
	}, nil
}

func sftpOptions() []sftp.ClientOption {
	return []sftp.ClientOption{sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(writesInFlight)}
}

// meter sums the bytes of all files in an upload and reports the sum. meter is never called concurrently.
type meter struct {
	mu       sync.Mutex
	sent     int64
	total    int64
	progress func(sent, total int64)
	moved    func()
}

func newMeter(files []pending, progress func(sent, total int64)) *meter {
	m := &meter{progress: progress, moved: func() {}}
	for _, f := range files {
		m.total += f.Size - f.resumeAt()
	}
	return m
}

func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent += int64(n)
	m.moved()
	if m.progress != nil {
		m.progress(min(m.sent, m.total), m.total)
	}
}

func (m *meter) count() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent
}

func (m *meter) reader(r io.Reader) io.Reader { return &meterReader{m: m, r: r} }

// meterReader counts the bytes that are read from a reader. meterReader hides the reader's other methods, so that the SFTP library doesn't try to
// determine the size.
type meterReader struct {
	m *meter
	r io.Reader
}

func (r *meterReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 {
		r.m.add(n)
	}
	return n, err
}
