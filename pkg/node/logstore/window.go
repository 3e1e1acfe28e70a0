package logstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

const (
	// stepBytes limits the number of log bytes that are read for a response, because a single line may be larger than any response.
	stepBytes = 64 << 20
	// dropTries is the maximum number of attempts of a request if segments are dropped during the request.
	dropTries = 3
)

// place is a place in a log: the start, the end, an offset, or the first line that was written at or after a time.
type place struct {
	edge   string // start or end
	time   time.Time
	offset int64
}

func readPlace(text string) (place, error) {
	if text == logapi.AtStart || text == logapi.AtEnd {
		return place{edge: text}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return place{time: at}, nil
	}
	offset, err := whole(text)
	return place{offset: offset}, err
}

type windowQuery struct {
	at     place
	before bool // the lines before the position, instead of those from it on
	lines  int
	// longest is the maximum number of returned bytes per line.
	longest int
	wait    time.Duration
}

// readWindowQuery parses the parameters of a request for a window. readWindowQuery rejects unknown parameters.
func readWindowQuery(v url.Values) (q windowQuery, err error) {
	q = windowQuery{lines: logapi.WindowLines, longest: logapi.LineBytes}
	for name := range v {
		text := v.Get(name)
		switch name {
		case "view":
		case "at":
			q.at, err = readPlace(text)
		case "before":
			q.before, err = strconv.ParseBool(text)
		case "lines":
			q.lines, err = between(text, logapi.WindowLines)
		case "longest":
			q.longest, err = between(text, logapi.WindowBytes)
		case "wait":
			q.wait, err = time.ParseDuration(text)
			q.wait = min(q.wait, logapi.WindowWait)
		default:
			err = errors.New("there is no such parameter")
		}
		if err != nil {
			return q, fmt.Errorf("%s=%s: %w", name, strings.ToValidUTF8(text, ""), err)
		}
	}
	if q.lines > 1 {
		q.longest = min(q.longest, logapi.ManyBytes)
	}
	return q, nil
}

func between(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && (n < 1 || n > most) {
		err = fmt.Errorf("it must be between 1 and %d", most)
	}
	return n, err
}

func (p *Page) resolve(ctx context.Context, segments []segment, at place) (int64, error) {
	switch {
	case at.edge == logapi.AtStart:
		return p.Start, nil
	case at.edge == logapi.AtEnd:
		return p.End, nil
	case !at.time.IsZero():
		return p.seek(ctx, segments, at.time.UnixNano())
	}
	return min(at.offset, p.End), nil
}

// seek returns the position of the first line that was written at or after since, in nanoseconds.
func (p *Page) seek(ctx context.Context, segments []segment, since int64) (int64, error) {
	for _, g := range segments {
		frames, err := p.scan(g)
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			if f.last >= since {
				return p.walk(ctx, segments, f.offset, stepBytes, nil, func(c piece) bool { return !c.begins || c.time < since })
			}
		}
	}
	return p.End, nil
}

func (p *Page) span(limit int64) logapi.Span {
	return logapi.Span{Start: p.Start, End: p.End, Gaps: p.Gaps, Limit: limit}
}

// window returns the lines that a query selects. window starts again if a segment is dropped in the meantime.
func (s *stream) window(ctx context.Context, q windowQuery) (w *logapi.Window, err error) {
	for range dropTries {
		p, segments := s.snapshot()
		at, e := p.resolve(ctx, segments, q.at)
		if err = e; err == nil && q.before {
			w, err = p.windowBefore(ctx, segments, at, q)
		} else if err == nil {
			w, err = p.windowFrom(ctx, segments, at, q)
		}
		if err == nil {
			w.Span = p.span(s.limits.PerTask)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return w, err
		}
	}
	return nil, err
}

// windowFrom returns the lines that begin at or after a position. The window ends before the first line that doesn't fit. If only one line is
// requested, the window may end within the line, and the next window contains the rest of the line.
func (p *Page) windowFrom(ctx context.Context, segments []segment, from int64, q windowQuery) (*logapi.Window, error) {
	w := &logapi.Window{Lines: []logapi.PlacedLine{}}
	open, size := [2]int{}, 0 // by stream: 1 + the index of its line that continues
	to, err := p.walk(ctx, segments, from, stepBytes, nil, func(c piece) bool {
		if c.begins || open[c.stderr] == 0 {
			if n := len(w.Lines); n == q.lines || n > 0 && size+q.longest > logapi.WindowBytes {
				return false
			}
			w.Lines = append(w.Lines, logapi.PlacedLine{At: c.at, Line: logapi.Line{Stamp: string(c.stamp), Text: []byte{}}, Continued: !c.begins})
			open[c.stderr] = len(w.Lines)
		}
		l := &w.Lines[open[c.stderr]-1]
		room := max(q.longest-len(l.Text), 0)
		if q.lines == 1 && len(c.text) > room && len(l.Text) > 0 {
			l.Bytes = max(l.Bytes, int64(len(l.Text))+1) // marks that the line continues
			return false
		}
		part := c.text[:min(room, len(c.text))]
		l.Text, l.Bytes, size = append(l.Text, part...), l.Bytes+int64(len(c.text)), size+len(part)
		if c.ends {
			open[c.stderr] = 0
		}
		return true
	})
	w.To = to
	return finished(w, from, err)
}

// windowBefore returns the last lines that begin before a position.
func (p *Page) windowBefore(ctx context.Context, segments []segment, to int64, q windowQuery) (*logapi.Window, error) {
	w := &logapi.Window{Lines: []logapi.PlacedLine{}, To: to}
	open, size := [2]*lineBack{}, 0 // by stream: its line whose beginning hasn't been read
	first := true
	from, err := p.walkBack(ctx, segments, to, stepBytes, func(c piece) bool {
		l := open[c.stderr]
		if l == nil {
			n := len(w.Lines)
			for _, other := range open {
				if other != nil {
					n++
				}
			}
			if n >= q.lines || n > 0 && size+q.longest > logapi.WindowBytes {
				return false
			}
			l = &lineBack{longest: q.longest}
			open[c.stderr] = l
		}
		if first {
			w.To, first = c.next, false
		}
		l.At, l.Stamp, l.Bytes = c.at, string(c.stamp), l.Bytes+int64(len(c.text))
		size += l.prepend(c.text)
		if c.begins {
			w.Lines = append(w.Lines, l.whole())
			open[c.stderr] = nil
		}
		return true
	})
	for _, l := range open {
		if l != nil {
			l.Continued = true
			w.Lines = append(w.Lines, l.whole())
		}
	}
	slices.SortFunc(w.Lines, func(a, b logapi.PlacedLine) int { return cmp.Compare(a.At, b.At) })
	return finished(w, from, err)
}

// lineBack is a line that is read backwards. lineBack copies each byte only once, because a line may be much longer than its returned part.
type lineBack struct {
	logapi.PlacedLine
	longest int
	parts   [][]byte // the line's beginning is the last one
	held    int      // bytes of parts
}

// prepend adds a part at the beginning of the line. prepend returns the increase of the returned text's size.
func (l *lineBack) prepend(text []byte) int {
	before := min(l.held, l.longest)
	l.parts = append(l.parts, bytes.Clone(text[:min(l.longest, len(text))]))
	l.held += len(l.parts[len(l.parts)-1])
	for l.held-len(l.parts[0]) >= l.longest {
		l.held -= len(l.parts[0])
		l.parts = l.parts[1:]
	}
	return min(l.held, l.longest) - before
}

// whole joins the parts and returns the line.
func (l *lineBack) whole() logapi.PlacedLine {
	slices.Reverse(l.parts)
	l.Text = bytes.Join(l.parts, nil)
	l.Text = l.Text[:min(l.longest, len(l.Text))]
	return l.PlacedLine
}

// finished sets the start of a window. finished clears Bytes of lines that the window contains completely.
func finished(w *logapi.Window, from int64, err error) (*logapi.Window, error) {
	if err != nil {
		return nil, err
	}
	if w.From = from; len(w.Lines) > 0 {
		w.From = w.Lines[0].At
	}
	w.To = max(w.To, w.From)
	for i := range w.Lines {
		if l := &w.Lines[i]; l.Bytes == int64(len(l.Text)) {
			l.Bytes = 0
		}
	}
	return w, nil
}

const (
	// searchBytes is the number of bytes at the beginning of a line that are searched.
	searchBytes = 64 << 10
	// searchTime limits the duration of a search. excerptBytes is the size of the returned part of a long line. excerptBefore is the size of the text
	// before the match in the returned part.
	searchTime    = 2 * time.Second
	excerptBytes  = 240
	excerptBefore = 60
)

type matchQuery struct {
	at    place
	match *regexp.Regexp
	limit int
}

// readMatchQuery parses the parameters of a request for matches. readMatchQuery rejects unknown parameters.
func readMatchQuery(v url.Values) (q matchQuery, err error) {
	q = matchQuery{at: place{edge: logapi.AtStart}, limit: logapi.MatchesLimit}
	for name := range v {
		text := v.Get(name)
		switch name {
		case "view":
		case "at":
			q.at, err = readPlace(text)
		case "limit":
			q.limit, err = between(text, logapi.MatchesLimit)
		case "match":
			q.match, err = logapi.Expression(text)
		default:
			err = errors.New("there is no such parameter")
		}
		if err != nil {
			return q, fmt.Errorf("%s=%s: %w", name, strings.ToValidUTF8(text, ""), err)
		}
	}
	if q.match == nil {
		return q, errors.New("match is missing")
	}
	return q, nil
}

// candidate is the searched beginning of a line.
type candidate struct {
	at    int64
	stamp string
	text  []byte
	open  bool
}

// matches searches a part of the log. matches stops after a number of matches, after a number of bytes, or after searchTime. matches returns the
// position from which the search can continue.
func (s *stream) matches(ctx context.Context, q matchQuery, now func() time.Time) (out *logapi.Matches, err error) {
	for range dropTries {
		p, segments := s.snapshot()
		from, e := p.resolve(ctx, segments, q.at)
		if err = e; err == nil {
			out, err = p.search(ctx, segments, from, q, now)
		}
		if err == nil {
			out.Span = p.span(s.limits.PerTask)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return out, err
		}
	}
	return nil, err
}

func (p *Page) search(ctx context.Context, segments []segment, from int64, q matchQuery, now func() time.Time) (*logapi.Matches, error) {
	out := &logapi.Matches{Items: []logapi.Match{}, From: max(from, p.Start)}
	lines := [2]candidate{} // by stream
	judge := func(at int64, stamp, text []byte) {
		if found := q.match.FindIndex(bytes.TrimSuffix(text, []byte("\r"))); found != nil {
			out.Items = append(out.Items, excerpt(at, string(stamp), text, found))
		}
	}
	started, unchecked := now(), 0
	to, err := p.walk(ctx, segments, from, stepBytes, needleOf(q.match).missing(), func(c piece) bool {
		if unchecked += len(c.text) + 1; unchecked > searchBytes {
			if unchecked = 0; now().Sub(started) > searchTime || ctx.Err() != nil {
				return false
			}
		}
		l := &lines[c.stderr]
		switch {
		case len(out.Items) == q.limit:
			return false
		case c.begins && c.ends:
			judge(c.at, c.stamp, c.text[:min(len(c.text), searchBytes)])
			return true
		case c.begins || !l.open:
			*l = candidate{c.at, string(c.stamp), l.text[:0], true}
		}
		l.text = append(l.text, c.text[:min(searchBytes-len(l.text), len(c.text))]...)
		if c.ends {
			judge(l.at, []byte(l.stamp), l.text)
			l.open = false
		}
		return true
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	for i := range lines { // frames whose end isn't in this part
		if l := &lines[i]; l.open && len(out.Items) < q.limit {
			judge(l.at, []byte(l.stamp), l.text)
		}
	}
	slices.SortFunc(out.Items, func(a, b logapi.Match) int { return cmp.Compare(a.At, b.At) })
	out.To = max(to, out.From)
	return out, err
}

// excerpt returns a Match with the part of a line around the match.
func excerpt(at int64, stamp string, text []byte, found []int) logapi.Match {
	begin := 0
	if len(text) > excerptBytes {
		begin = min(max(found[0]-excerptBefore, 0), len(text)-excerptBytes)
	}
	end := min(begin+excerptBytes, len(text))
	return logapi.Match{At: at, Stamp: stamp, Text: slices.Clone(text[begin:end]), From: found[0] - begin, To: min(found[1], end) - begin}
}
