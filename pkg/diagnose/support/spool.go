package support

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// inMemory is the maximum size of a file that is kept in memory, in bytes.
const inMemory = 64 << 10

// spooled holds a file until its size is known, because a tar header contains the size. A larger file is on the disk without a name, so that the file
// disappears when the program exits.
type spooled struct {
	dir  string // "" keeps all in memory
	buf  bytes.Buffer
	file *os.File
	name string // the name of a file that could not be unlinked
	size int64
	err  error
}

// Write implements io.Writer.
func (s *spooled) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.file == nil && s.dir != "" && s.buf.Len()+len(p) > inMemory {
		s.err = s.open()
	}
	to := io.Writer(&s.buf)
	if s.file != nil {
		to = s.file
	}
	if s.err == nil {
		_, s.err = to.Write(p)
	}
	if s.err != nil {
		return 0, s.err
	}
	s.size += int64(len(p))
	return len(p), nil
}

func (s *spooled) open() (err error) {
	if s.file, err = os.CreateTemp(s.dir, ".paictl-support-*"); err != nil { // mode 0600
		return err
	}
	if os.Remove(s.file.Name()) != nil { // not every system can delete an open file
		s.name = s.file.Name()
	}
	_, err = s.file.Write(s.buf.Bytes())
	s.buf = bytes.Buffer{}
	return err
}

func (s *spooled) copyTo(w io.Writer) error {
	if s.file == nil {
		_, err := w.Write(s.buf.Bytes())
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, s.file)
	return err
}

func (s *spooled) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.name != "" {
		_ = os.Remove(s.name)
	}
}

// bothEnds writes only the beginning and the end of a stream. The end begins with a whole line.
type bothEnds struct {
	w          io.Writer
	head, tail int

	passed  int
	ring    []byte // the last bytes after the head, from at on
	at      int
	dropped int64
}

// Write implements io.Writer.
func (b *bothEnds) Write(p []byte) (int, error) {
	n := len(p)
	if b.passed < b.head {
		m := min(len(p), b.head-b.passed)
		if _, err := b.w.Write(p[:m]); err != nil {
			return 0, err
		}
		b.passed += m
		p = p[m:]
	}
	if over := len(p) - b.tail; over > 0 {
		b.dropped += int64(over)
		p = p[over:]
	}
	if grow := min(len(p), b.tail-len(b.ring)); grow > 0 {
		b.ring = append(b.ring, p[:grow]...)
		p = p[grow:]
	}
	b.dropped += int64(len(p))
	for len(p) > 0 {
		m := copy(b.ring[b.at:], p)
		b.at = (b.at + m) % len(b.ring)
		p = p[m:]
	}
	return n, nil
}

// Close writes the number of omitted bytes, and then the end of the stream.
func (b *bothEnds) Close() error {
	last := append(bytes.Clone(b.ring[b.at:]), b.ring[:b.at]...)
	if b.dropped > 0 {
		if i := bytes.IndexByte(last, '\n'); i >= 0 && i < len(last)-1 { // the rest of a line
			b.dropped += int64(i + 1)
			last = last[i+1:]
		}
		if _, err := fmt.Fprintf(b.w, "\n[cut: %d bytes are left out here]\n", b.dropped); err != nil {
			return err
		}
	}
	_, err := b.w.Write(last)
	return err
}
