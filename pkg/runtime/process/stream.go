package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is asked for, so that a program isn't held up by each small delay of the log; a machine
// may give less.
const pipeSize = 1 << 20

// Stream passes one output of a program through: every byte, in order.
type Stream struct {
	read *os.File
	dst  io.Writer
	tail io.Writer
	done chan struct{} // the copying goroutine ended
	eof  bool          // read only after done
	lost error         // of dst: its reader is gone
}

// NewStream returns a stream and the end that a program gets as its output; the caller closes that
// once the program has it. What comes through is written to dst and then to tail.
func NewStream(dst, tail io.Writer) (*Stream, *os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	// Only our end may be non-blocking: programs don't expect that of theirs.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	s := &Stream{read: os.NewFile(uintptr(fds[0]), "output"), dst: dst, tail: tail}
	s.start()
	return s, os.NewFile(uintptr(fds[1]), "output"), nil
}

func (s *Stream) start() {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.eof = !errors.Is(s.copy(-1), os.ErrDeadlineExceeded)
	}()
}

// copy passes on what comes, until there is no more, or, where limit isn't negative, until the pipe
// is empty or limit bytes have come.
func (s *Stream) copy(limit int) error {
	buf := make([]byte, 64<<10)
	for limit != 0 {
		if limit > 0 {
			if n, err := s.buffered(); n == 0 || err != nil {
				return err
			}
		}
		n, err := s.read.Read(buf)
		s.pass(buf[:n])
		if err != nil {
			return err
		}
		if limit > 0 {
			limit = max(0, limit-n)
		}
	}
	return nil
}

// pass writes to both. Where nobody reads the log any more the program goes on, as it would not if
// the pipe were closed before it.
func (s *Stream) pass(p []byte) {
	if s.lost == nil {
		_, s.lost = s.dst.Write(p)
	}
	_, _ = s.tail.Write(p)
}

// buffered is the number of bytes that wait in the pipe.
func (s *Stream) buffered() (int, error) {
	var n int
	var err error
	c, cerr := s.read.SyscallConn()
	if cerr != nil {
		return 0, cerr
	}
	if cerr := c.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); cerr != nil {
		return 0, cerr
	}
	return n, err
}

// Drain returns when all that was written before the call has been passed on. It doesn't wait for
// the pipe's end: a program in the background may hold it open.
func (s *Stream) Drain() error {
	open, err := s.drain()
	if open {
		s.start()
	}
	return err
}

// drain leaves nothing running; open tells whether more may come.
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
	// Never more than a full pipe: what was there at the call is at most that.
	if err := s.copy(s.capacity()); err != nil {
		s.eof = true
		return false, nil //nolint:nilerr // the pipe's end, or one that can't be read: no more will come
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

// Close drains and ends the stream: nothing is written to either side afterwards.
func (s *Stream) Close() error {
	_, err := s.drain()
	return errors.Join(err, s.read.Close())
}
