package logstore

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	chunk = 1 << 20 // bytes that are read at a time
	// A frame is written when it contains frameEnough bytes, or after frameWait.
	frameEnough = 256 << 10
	frameWait   = 10 * time.Second
	// roundMost limits the number of bytes that are read from a log before the next log is read.
	roundMost = 64 << 20
	// lingering is how long a rotated file is kept open, because the container may still write to the file.
	lingering = 10 * time.Second
	// rotatedKept is the number of rotated files that the kubelet keeps. If a log has this number of rotated files at the first read, the kubelet may
	// already have removed further files.
	rotatedKept = 4
)

// stream is the log of a container.
type stream struct {
	codec  *codec
	limits *Limits
	from   string // the kubelet's folder
	dir    string // the store's folder
	now    func() time.Time

	mu       sync.Mutex
	loaded   bool
	segments []segment
	end      int64           // the next position in the log
	consumed map[int64]int64 // by source: how far it has been read
	newest   int64           // the latest source that was read
	files    map[string]*source
	done     map[string]bool     // names of files that were read completely and don't grow
	retired  map[int64]time.Time // by source: the time since which it has a successor
	waiting  time.Time           // the time since which lines wait, because there are too few for a frame
	last     time.Time           // when a line was last written
	gap      bool                // lines may be missing before the next frame
	over     bool                // its pod no longer exists, and all lines are read
	seen     bool                // the kubelet's folder was read
	gaps     int
	// unsettled means that the newest rotated file still grew at the last check.
	unsettled bool
}

func newStream(c *codec, limits *Limits, from, dir string, now func() time.Time) *stream {
	return &stream{codec: c, limits: limits, from: from, dir: dir, now: now, consumed: map[int64]int64{},
		files: map[string]*source{}, done: map[string]bool{}, retired: map[int64]time.Time{}}
}

// load reads the stored part of the log from an earlier run.
func (s *stream) load() error {
	if s.loaded {
		return nil
	}
	segments, err := listSegments(s.dir)
	if err != nil {
		return err
	}
	latest, gaps := int64(0), 0
	for i := range segments {
		var frames []placed
		g := &segments[i]
		if i == len(segments)-1 {
			frames, g.size, err = s.codec.recover(s.dir, g.start)
		} else {
			frames, g.size, err = scan(s.dir, g.start)
		}
		if err != nil {
			return err
		}
		g.end = g.start
		for _, f := range frames {
			g.end = f.end()
			s.consumed[f.source] = max(s.consumed[f.source], f.sourceEnd)
			s.newest = max(s.newest, f.source)
			latest = max(latest, f.last)
			if f.flags&flagGap != 0 {
				gaps++
			}
		}
		s.end = max(s.end, g.end)
	}
	s.segments, s.gaps, s.loaded, s.last = segments, gaps, true, time.Unix(0, latest)
	return nil
}

// ingest stores the lines that the container has written since the last call. If all is set, ingest also stores lines that don't fill a frame.
func (s *stream) ingest(all bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return err
	}
	there, failed := s.look()
	budget := int64(roundMost)
	order := s.inOrder()
	s.unsettled = false
	for i, src := range order {
		if i > 0 && i == len(order)-1 && !order[i-1].quiet {
			s.unsettled = true // lines may still be written to it, which come before those of the next file
			return failed
		}
		n, err := s.take(src, all || !there, budget)
		if failed = errors.Join(failed, err); err == nil {
			s.retire(src)
		}
		if budget -= n; budget <= 0 {
			return failed
		}
	}
	s.over = !there && len(s.files) == 0
	return failed
}

// look finds the files of the log, and detects removed files. there is false if the kubelet's folder of the log doesn't exist.
func (s *stream) look() (there bool, err error) {
	entries, err := os.ReadDir(s.from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return true, err
	}
	there, err = err == nil, nil
	byName, rotated := map[string]bool{}, 0
	for _, e := range entries {
		if e.Type().IsRegular() && logName(e.Name()) {
			byName[e.Name()] = true
			if !current(e.Name()) {
				rotated++
			}
		}
	}
	s.renamed(byName)
	oldest := int64(0)
	for name := range byName {
		if s.files[name] != nil || s.done[name] {
			continue
		}
		src, e := openSource(s.from, name)
		if errors.Is(e, errEmpty) || errors.Is(e, os.ErrNotExist) {
			continue // the file will have a line, or was renamed just now
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("read %s: %w", name, e))
			continue
		}
		if oldest == 0 || src.id < oldest {
			oldest = src.id
		}
		s.found(src)
	}
	maps.DeleteFunc(s.done, func(name string, _ bool) bool { return !byName[name] })
	s.firstLook(oldest, rotated)
	return there, err
}

// renamed checks whether open files still have their names, because the kubelet may have given a name to another file.
func (s *stream) renamed(byName map[string]bool) {
	for name, src := range s.files {
		if src.gone || !byName[name] {
			src.gone = true
			continue
		}
		mine, err1 := src.file.Stat()
		now, err2 := os.Lstat(filepath.Join(s.from, name))
		if err1 == nil && err2 == nil && os.SameFile(mine, now) {
			continue
		}
		src.gone = true
		delete(s.files, name)
		s.files[name+"#"+src.key()] = src // with a name that doesn't exist
	}
}

// found adds a file. found skips a file that was read completely or is already open under another name.
func (s *stream) found(src *source) {
	for name, other := range s.files {
		if other.id != src.id {
			continue
		}
		if src.packed { // the file itself is still open here, which is easier to read
			src.close()
			return
		}
		src.before = other.before
		other.close() // the same file under its new name
		delete(s.files, name)
		s.files[src.name] = src
		return
	}
	read, known := s.consumed[src.id]
	old := !known && !current(src.name) && src.id < s.newest // it was read, and dropped since
	if src.packed && known && read >= src.size || old {
		s.done[src.name] = true
		src.close()
		return
	}
	s.files[src.name] = src
}

// firstLook checks at the first read whether lines were removed before they could be stored. The kubelet removes the oldest files first.
func (s *stream) firstLook(oldest int64, rotated int) {
	if s.seen || oldest == 0 {
		return
	}
	s.seen, s.gap = true, oldest > s.newest
	if len(s.consumed) == 0 {
		s.gap = rotated >= rotatedKept
	}
}

func (s *stream) inOrder() []*source {
	return slices.SortedFunc(maps.Values(s.files), func(a, b *source) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
}

// take reads a file from its last position, up to a limit, and stores the lines. take returns the number of bytes that it read.
func (s *stream) take(src *source, all bool, most int64) (n int64, err error) {
	src.grow()
	_, succeeded := s.retired[src.id]
	src.quiet, src.before = src.packed || succeeded && src.size == src.before, src.size
	at := s.consumed[src.id]
	if at >= src.size {
		return 0, nil
	}
	if s.waiting.IsZero() {
		s.waiting = s.now()
	}
	if !all && current(src.name) && !src.gone && src.size-at < frameEnough && s.now().Sub(s.waiting) < frameWait {
		return 0, nil
	}
	s.waiting = time.Time{}
	r, err := src.from(at)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, min(chunk, max(src.size-at, 64<<10)))
	have := 0
	for n < most {
		k, err := io.ReadFull(r, buf[have:])
		have += k
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return n, err
		}
		end := lastLine(buf[:have])
		if !all && current(src.name) && !src.gone {
			end = cut(buf[:have])
		}
		if end == 0 && (have == len(buf) || ended && s.retiredFor(src) >= lingering) {
			end = have // no line of the kubelet is that long, or the line will never end
		}
		if end > 0 {
			if err := s.append(src, buf[:end]); err != nil {
				return n, err
			}
			n += int64(end)
			have = copy(buf, buf[end:have])
		}
		if ended {
			return n, nil
		}
	}
	return n, nil
}

// retire closes a file if the container no longer writes to the file.
func (s *stream) retire(src *source) {
	if current(src.name) && !src.gone {
		return
	}
	since, ok := s.retired[src.id]
	if !ok {
		s.retired[src.id] = s.now()
		return
	}
	if s.now().Sub(since) < lingering || s.consumed[src.id] < src.size {
		return
	}
	for name, other := range s.files {
		if other == src {
			delete(s.files, name)
		}
	}
	if !src.gone {
		s.done[src.name] = true
	}
	delete(s.retired, src.id)
	src.close()
}

func (s *stream) retiredFor(src *source) time.Duration {
	since, ok := s.retired[src.id]
	if !ok {
		return 0
	}
	return s.now().Sub(since)
}

// append writes a piece of a file to the log. append removes the oldest segments if the log becomes too large.
func (s *stream) append(src *source, data []byte) error {
	f := &frame{offset: s.end, source: src.id, sourceEnd: s.consumed[src.id] + int64(len(data))}
	f.describe(data)
	if s.gap {
		f.flags |= flagGap
	}
	packed := s.codec.pack(f, data)
	g := s.active()
	if err := s.write(g, packed); err != nil {
		return err
	}
	if s.gap {
		s.gap = false
		s.gaps++
	}
	g.end, g.size = f.end(), g.size+int64(len(packed))
	s.end = f.end()
	s.consumed[src.id] = f.sourceEnd
	s.newest = max(s.newest, src.id)
	s.last = s.now()
	return s.shrink()
}

func (s *stream) active() *segment {
	if n := len(s.segments); n == 0 || s.segments[n-1].end-s.segments[n-1].start >= s.limits.segment() {
		s.segments = append(s.segments, segment{start: s.end, end: s.end})
	}
	return &s.segments[len(s.segments)-1]
}

// write appends data to a segment. If the write is incomplete, the next attempt overwrites the written part.
func (s *stream) write(g *segment, data []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(segmentPath(s.dir, g.start), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, g.size)
	return errors.Join(err, f.Close())
}

// shrink removes the oldest segments if the log is too long.
func (s *stream) shrink() error {
	for len(s.segments) > 1 && s.end-s.segments[1].start >= s.limits.PerTask {
		if err := s.drop(); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) drop() error {
	if err := os.Remove(segmentPath(s.dir, s.segments[0].start)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.segments = s.segments[1:]
	return nil
}

func (s *stream) disk() (n int64) {
	for _, g := range s.segments {
		n += g.size
	}
	return n
}

// close closes the open files of the kubelet.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, src := range s.files {
		src.close()
		delete(s.files, name)
	}
}

// finished reports whether the log is complete. A log is complete if its pod no longer exists and all lines were read.
func (s *stream) finished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// reappear sets the kubelet's folder of a log that was found again.
func (s *stream) reappear(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from != from {
		s.from, s.over = from, false
	}
}

func (s *stream) isUnsettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsettled
}
