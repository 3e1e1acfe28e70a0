package logstore

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Query selects a part of a log.
type Query struct {
	Offset int64     // where to begin; dropped bytes are skipped
	Tail   int64     // instead of Offset: the number of last lines; unused if negative
	Since  time.Time // instead of Offset, lines written since
	Most   int64     // bytes of the log
	Match  *regexp.Regexp
	Stream string // stdout or stderr; empty: both
	Times  bool   // before each line
}

// Page is the part of a log that a Query selects.
type Page struct {
	Start, Next, End int64 // the range of the kept log, and the start of the page after this one
	Gaps             int   // places in the log at which lines are missing
	frames           []framePlace
	skip             int64 // lines
	dir              string
	codec            *codec
}

type framePlace struct {
	placed
	segment int64
}

// snapshot returns the current state of the log as a page without frames, and the segments.
func (s *stream) snapshot() (*Page, []segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Page{Start: s.end, End: s.end, Next: s.end, Gaps: s.gaps, dir: s.dir, codec: s.codec}
	if len(s.segments) > 0 {
		p.Start = s.segments[0].start
	}
	return p, slices.Clone(s.segments)
}

func (s *stream) page(q Query) (*Page, error) {
	p, segments := s.snapshot()
	var err error
	switch {
	case q.Tail >= 0:
		err = p.tail(segments, q.Tail, q.Stream)
	case !q.Since.IsZero():
		err = p.forward(segments, 0, q.Since.UnixNano(), q.Most)
	default:
		err = p.forward(segments, q.Offset, 0, q.Most)
	}
	return p, err
}

// forward adds the frames after an offset or a time to the page, up to a total size.
func (p *Page) forward(segments []segment, offset, since, most int64) error {
	begun, size := false, int64(0)
	for _, g := range segments {
		if g.end <= offset {
			continue
		}
		frames, err := p.scan(g)
		if err != nil {
			return err
		}
		for _, f := range frames {
			if begun = begun || f.end() > offset && f.last >= since; !begun {
				continue
			}
			if size += int64(f.raw); size > most && len(p.frames) > 0 && !p.frames[len(p.frames)-1].open() {
				p.Next = f.offset
				return nil
			}
			p.frames = append(p.frames, framePlace{f, g.start})
		}
	}
	return nil
}

// scan reads the positions of a segment's frames. If the segment was dropped in the meantime, scan returns no frames and moves the start of the log
// to the segment's end.
func (p *Page) scan(g segment) ([]placed, error) {
	frames, _, err := scan(p.dir, g.start)
	if errors.Is(err, os.ErrNotExist) {
		p.Start = max(p.Start, g.end)
		return nil, nil
	}
	for i := range frames {
		if frames[i].end() > p.End {
			return frames[:i], err // written after the snapshot
		}
	}
	return frames, err
}

// hold removes frames from the end of the page if the rest of their last line may still arrive.
func (p *Page) hold() {
	for n := len(p.frames); n > 0 && p.Next == p.End && p.frames[n-1].open(); n-- {
		p.Next, p.End = p.frames[n-1].offset, p.frames[n-1].offset
		p.frames = p.frames[:n-1]
	}
}

// tail adds the frames that contain the last lines. If stream isn't empty, tail counts only lines of this stream.
func (p *Page) tail(segments []segment, lines int64, stream string) error {
	have := int64(0)
	for i := len(segments) - 1; i >= 0 && lines > 0; i-- {
		frames, err := p.scan(segments[i])
		if err != nil {
			return err
		}
		for j := len(frames) - 1; j >= 0; j-- {
			if have >= lines && !frames[j].open() {
				p.skip = have - lines
				return nil
			}
			if frames[j].without(stream) {
				continue
			}
			place := framePlace{frames[j], segments[i].start}
			p.frames = append([]framePlace{place}, p.frames...)
			n, err := p.count(place, stream)
			if err != nil {
				return err
			}
			have += n
		}
	}
	p.skip = max(have-lines, 0)
	return nil
}

func (p *Page) count(place framePlace, stream string) (n int64, err error) {
	if n, known := place.linesOf(stream); known {
		return n, nil
	}
	f, err := os.Open(segmentPath(p.dir, place.segment))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	data, err := p.codec.unpack(f, place.at)
	if errors.Is(err, errTorn) {
		return 0, nil // the output also omits a damaged frame
	}
	for line := range bytes.Lines(data) {
		if l, ok := parseLine(line); l.of(stream, ok) && !l.partial {
			n++
		}
	}
	return n, err
}

func (p *Page) each(q Query, give func(logapi.Line) error) error {
	skip, j, begun := p.skip, newJoiner(q.Stream), q.Since.IsZero()
	out := func(l logapi.Line) error {
		if !begun {
			if at, ok := parseStamp(l.Stamp); !ok || at < q.Since.UnixNano() {
				return nil
			}
			begun = true
		}
		if skip > 0 {
			skip--
			return nil
		}
		if q.Match != nil && !q.Match.Match(bytes.TrimSuffix(l.Text, []byte("\r"))) {
			return nil
		}
		return give(l)
	}
	for i := 0; i < len(p.frames); {
		n, err := p.segment(p.frames[i:], j, out)
		if err != nil {
			return err
		}
		i += n
	}
	return j.rest(out)
}

// segment passes the lines of all frames in the first frame's segment to j. segment returns the number of frames.
func (p *Page) segment(frames []framePlace, j *joiner, give func(logapi.Line) error) (n int, err error) {
	start := frames[0].segment
	for n < len(frames) && frames[n].segment == start {
		n++
	}
	f, err := os.Open(segmentPath(p.dir, start))
	if err != nil {
		return 0, err // also if it was dropped since: the next request shows where the log begins then
	}
	defer func() { _ = f.Close() }() // opened for reading only
	for _, place := range frames[:n] {
		data, err := p.codec.unpack(f, place.at)
		if errors.Is(err, errTorn) {
			p.Gaps++
			continue
		}
		if err != nil {
			return 0, err
		}
		for line := range bytes.Lines(data) {
			if err := j.add(line, give); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}
