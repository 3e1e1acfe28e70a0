package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Snapshot reads etcd's database from etcd's streaming API. POST /v3/maintenance/snapshot returns lines of JSON. Each line contains a piece of the
// database in base64 and the number of remaining bytes. The last line contains the SHA-256 of the whole database. Read returns the database
// followed by the checksum, which is the format of etcd's own tools. Read returns an error if the database isn't complete.
type Snapshot struct {
	in    *json.Decoder
	size  int64
	left  int64
	piece []byte
	sum   hash.Hash
	done  bool
}

type snapshotLine struct {
	Result struct {
		Remaining json.Number `json:"remaining_bytes"`
		Blob      []byte      `json:"blob"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// NewSnapshot reads the stream's first line, which contains the size of the database.
func NewSnapshot(r io.Reader) (*Snapshot, error) {
	s := &Snapshot{in: json.NewDecoder(r), sum: sha256.New()}
	line, left, err := s.next()
	if err != nil {
		return nil, err
	}
	s.left = left + int64(len(line))
	s.size, s.piece = s.left, line
	return s, nil
}

// Size returns the size of the database with its checksum, in bytes.
func (s *Snapshot) Size() int64 { return s.size + sha256.Size }

func (s *Snapshot) next() (blob []byte, remaining int64, err error) {
	var l snapshotLine
	switch err := s.in.Decode(&l); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, errors.New("etcd's snapshot: the transfer was interrupted")
	case err != nil:
		return nil, 0, fmt.Errorf("etcd's snapshot: %w", err)
	case l.Error.Message != "":
		return nil, 0, fmt.Errorf("etcd's snapshot: etcd says: %s", l.Error.Message)
	}
	if l.Result.Remaining != "" { // a zero is omitted
		if remaining, err = l.Result.Remaining.Int64(); err != nil {
			return nil, 0, fmt.Errorf("etcd's snapshot: %w", err)
		}
	}
	if remaining < 0 {
		return nil, 0, fmt.Errorf("etcd's snapshot: %d bytes remain", remaining)
	}
	return l.Result.Blob, remaining, nil
}

// Read reads the database and then its checksum.
func (s *Snapshot) Read(b []byte) (int, error) {
	for len(s.piece) == 0 {
		if s.left == 0 {
			if err := s.end(); err != nil {
				return 0, err
			}
			break
		}
		blob, _, err := s.next()
		if err != nil {
			return 0, err
		}
		if int64(len(blob)) > s.left {
			return 0, errors.New("etcd's snapshot: it has more bytes than it said")
		}
		s.piece = blob
	}
	n := copy(b, s.piece)
	s.piece = s.piece[n:]
	if !s.done {
		_, _ = s.sum.Write(b[:n]) // never fails
		s.left -= int64(n)
	}
	return n, nil
}

// end reads the checksum at the end of the stream, and compares it with the checksum of the database.
func (s *Snapshot) end() error {
	if s.done {
		return io.EOF
	}
	sum, _, err := s.next()
	if err != nil {
		return err
	}
	if !bytes.Equal(sum, s.sum.Sum(nil)) {
		return errors.New("etcd's snapshot: its checksum differs from etcd's")
	}
	s.done, s.piece = true, sum
	return nil
}
