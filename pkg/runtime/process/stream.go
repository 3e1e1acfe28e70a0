package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is the requested size of a pipe. A large pipe prevents that a short delay of the log delays the program. The system
// may allow less.
const pipeSize = 1 << 20

// Stream copies the output of a program without reordering or loss.
type Stream struct {
	read *os.File
	dst  io.Writer
	tail io.Writer
	done chan struct{} // closed when the copying goroutine has ended
	eof  bool          // may be read only after done is closed
	lost error         // the error of dst, if its reader has exited
}

// NewStream returns a stream, and the write end of a pipe for a program's output. The caller closes the write end after
// starting the program. The stream writes the output to dst and then to tail.
func NewStream(dst, tail io.Writer) (*Stream, *os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	// Only the read end may be non-blocking, because programs don't expect a non-blocking output.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	s := &Stream{read: os.NewFile(uintptr(fds[0]), "output"), dst: dst, tail: tail}
	s.start()
	return s, os.NewFile(uintptr(fds[1]), "output"), nil
}

// Through returns a stream that reads a non-blocking file, such as the controlling side of a terminal. Close also closes this
// file.
func Through(read *os.File, dst io.Writer) *Stream {
	s := &Stream{read: read, dst: dst, tail: io.Discard}
	s.start()
	return s
}

func (s *Stream) start() {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.eof = !errors.Is(s.copy(-1), os.ErrDeadlineExceeded)
	}()
}

// copy copies the output until it ends. If limit isn't negative, copy stops when no output is available, or after limit bytes.
func (s *Stream) copy(limit int) error {
	buf := make([]byte, 64<<10)
	read := s.read.Read
	if limit >= 0 {
		read = s.readNow
	}
	for limit != 0 {
		n, err := read(buf)
		s.pass(buf[:n])
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		if limit > 0 {
			limit = max(0, limit-n)
		}
	}
	return nil
}

// readNow reads without waiting. It returns EAGAIN if no output is available. It doesn't query the number of available bytes,
// because a terminal produces more output only when it is read.
func (s *Stream) readNow(p []byte) (int, error) {
	c, err := s.read.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	if cerr := c.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), p); !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	}); cerr != nil {
		return 0, cerr
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(0, n), err
}

// pass writes to dst and tail. If dst fails because the log has no reader, pass continues to read. Otherwise the pipe would
// close and the program would end.
func (s *Stream) pass(p []byte) {
	if s.lost == nil {
		_, s.lost = s.dst.Write(p)
	}
	_, _ = s.tail.Write(p)
}

// Drain returns when all data that was written before the call has been copied. It doesn't wait for the end of the pipe,
// because a background program may keep the pipe open.
func (s *Stream) Drain() error {
	open, err := s.drain()
	if open {
		s.start()
	}
	return err
}

// drain copies the available output and stops. open reports whether more output may follow.
func (s *Stream) drain() (open bool, err error) {
	if err := s.read.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return false, err
	}
	<-s.done
	if s.eof {
		return false, nil
	}
	if err := s.read.SetReadDeadline(time.Time{}); err != nil {
		return false, err
	}
	// Read at most the capacity of the pipe. More output can't have been available at the call.
	if err := s.copy(s.capacity()); err != nil {
		s.eof = true
		return false, nil //nolint:nilerr // the pipe has ended, or can't be read: there is no more output
	}
	return true, nil
}

func (s *Stream) capacity() int {
	size := pipeSize
	if c, err := s.read.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
				size = n
			}
		})
	}
	return size
}

// Close copies the available output and ends the stream. After that, the stream writes to neither dst nor tail.
func (s *Stream) Close() error {
	_, err := s.drain()
	return errors.Join(err, s.read.Close())
}

// Finish waits until the output ends, or until d has passed. Then it copies all available output, however long dst takes, and
// ends the stream.
func (s *Stream) Finish(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
	return s.Close()
}
