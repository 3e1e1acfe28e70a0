package logstore

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// source is a file of the kubelet with the log of a container. The time of the first line identifies the file, because this time stays the same when
// the kubelet renames or compresses the file.
type source struct {
	id     int64
	name   string
	packed bool // .gz
	size   int64
	file   *os.File // nil if it isn't open
	gone   bool     // removed from the folder; its file can still be read
	before int64    // its size at the last check
	quiet  bool     // it has not grown since the last check, and already had a successor then
}

// current reports whether the container still writes to the file with this name.
func current(name string) bool { return strings.HasSuffix(name, ".log") }

// openPlain opens a regular file. openPlain rejects links. openPlain also rejects pipes, because opening a pipe could block forever.
func openPlain(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// errEmpty means that the file doesn't contain the complete time of its first line yet.
var errEmpty = errors.New("the file has no line yet")

// openSource opens a file of a log. openSource reads the first line to identify the file.
func openSource(folder, name string) (*source, error) {
	f, info, err := openPlain(filepath.Join(folder, name))
	if err != nil {
		return nil, err
	}
	s := &source{name: name, packed: strings.HasSuffix(name, ".gz"), size: info.Size(), file: f}
	if s.id, err = s.identify(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *source) identify() (int64, error) {
	var r io.Reader = io.NewSectionReader(s.file, 0, s.size)
	if s.packed {
		z, err := gzip.NewReader(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = z.Close() }() // opened for reading only
		r = z
		var trailer [4]byte
		if _, err := s.file.ReadAt(trailer[:], max(s.size-4, 0)); err != nil {
			return 0, err
		}
		s.size = int64(binary.LittleEndian.Uint32(trailer[:])) // uncompressed, below 4 GiB
	}
	var head [40]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	stamp, _, ok := bytes.Cut(head[:n], []byte(" "))
	if !ok {
		return 0, errEmpty
	}
	id, ok := parseStamp(string(stamp))
	if !ok {
		return 0, errors.New("its first line has no time")
	}
	return id, nil
}

// grow updates the known size of the file, unless the file is compressed or closed.
func (s *source) grow() {
	if s.packed || s.file == nil {
		return
	}
	if info, err := s.file.Stat(); err == nil {
		s.size = info.Size()
	}
}

func (s *source) from(at int64) (io.Reader, error) {
	if !s.packed {
		return io.NewSectionReader(s.file, at, max(s.size-at, 0)), nil
	}
	z, err := gzip.NewReader(io.NewSectionReader(s.file, 0, 1<<62))
	if err != nil {
		return nil, err
	}
	_, err = io.CopyN(io.Discard, z, at)
	return z, err
}

func (s *source) key() string { return strconv.FormatInt(s.id, 10) }

func (s *source) close() {
	if s.file != nil {
		_ = s.file.Close() // opened for reading only
		s.file = nil
	}
}

// logName reports whether a file in a container's folder belongs to the container's log. Such names are 0.log, 0.log.TIME and 0.log.TIME.gz.
func logName(name string) bool {
	return (strings.HasSuffix(name, ".log") || strings.Contains(name, ".log.")) && !strings.HasSuffix(name, ".tmp")
}
