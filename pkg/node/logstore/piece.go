package logstore

import (
	"bytes"
	"context"
	"errors"
	"os"
)

// piece is a line in the kubelet's file. piece is a log line or a part of a long log line. Each piece belongs to exactly one window, so consecutive
// windows contain every byte of the log once.
type piece struct {
	at, next     int64 // the positions of this piece and of the next piece
	stamp        []byte
	time         int64 // the time of the stamp, in ns, or 0 without a stamp
	stderr       int   // 1 if it is on stderr; an index
	begins, ends bool  // whether it begins and ends a line of the log
	text         []byte
}

// streams reports for stdout and for stderr whether the last line continues.
type streams [2]bool

// split calls give with the pieces of a frame, until give returns false. at is the position of data in the log. open are the lines that continue from
// the previous frame, and left are the lines that continue in the next frame. A line without a piece in a frame has ended, so that the meaning of a
// position doesn't depend on the start of the read.
func split(data []byte, at int64, open streams, give func(piece) bool) (left streams, more bool) {
	for line := range bytes.Lines(data) {
		l, ok := parseLine(line)
		c := piece{at: at, next: at + int64(len(line)), begins: true, ends: true, text: l.text}
		if ok {
			if string(l.stream) == "stderr" {
				c.stderr = 1
			}
			c.stamp, c.time, c.begins, c.ends = l.time, l.stamp, !open[c.stderr], !l.partial
			open[c.stderr], left[c.stderr] = l.partial, l.partial
		} else {
			c.text = bytes.TrimSuffix(line, []byte("\n"))
		}
		at = c.next
		if !give(c) {
			return left, false
		}
	}
	return left, true
}

// openAfter returns the lines that continue after a frame.
func (p *Page) openAfter(f *framePlace) (streams, error) {
	if f == nil || !f.open() {
		return streams{}, nil
	}
	data, err := p.data(*f)
	left, _ := split(data, f.offset, streams{}, func(piece) bool { return true })
	return left, err
}

// data returns the content of a frame. For a damaged frame, data returns nil and counts a gap.
func (p *Page) data(f framePlace) ([]byte, error) {
	file, err := os.Open(segmentPath(p.dir, f.segment))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	data, err := p.codec.unpack(file, f.at)
	if errors.Is(err, errTorn) {
		p.Gaps++
		return nil, nil
	}
	return data, err
}

// lastOf returns the last frame of a segment, or nil if the segment is empty.
func (p *Page) lastOf(g segment) (*framePlace, error) {
	frames, err := p.scan(g)
	if err != nil || len(frames) == 0 {
		return nil, err
	}
	return &framePlace{frames[len(frames)-1], g.start}, nil
}

// walk calls give with the pieces that end after the position from. walk stops when give returns false, or after reading most bytes of the log. walk
// returns the position of the first piece that give rejected. skip reports whether a frame can be skipped, and may be nil. walk doesn't skip frames
// with parts of lines from other frames.
func (p *Page) walk(ctx context.Context, segments []segment, from, most int64, skip func(data []byte) bool, give func(piece) bool) (next int64, err error) {
	next, open, begun, read := max(from, p.Start), streams{}, false, int64(0)
	var before *framePlace
	for i, g := range segments {
		if g.end <= from {
			continue
		}
		frames, err := p.scan(g)
		if err != nil {
			return next, err
		}
		for _, f := range frames {
			here := framePlace{f, g.start}
			if f.end() <= from {
				before = &here
				continue
			}
			if !begun && before == nil && i > 0 {
				before, err = p.lastOf(segments[i-1])
			}
			if !begun && err == nil {
				begun = true
				open, err = p.openAfter(before)
			}
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return next, err
			}
			data, err := p.data(here)
			if err != nil {
				return next, err
			}
			if skip != nil && open == (streams{}) && !f.open() && skip(data) {
				data = nil
			}
			var more bool
			open, more = split(data, f.offset, open, func(c piece) bool {
				if c.next <= from {
					return true
				}
				if next = c.at; !give(c) {
					return false
				}
				next = c.next
				return true
			})
			if !more {
				return next, nil
			}
			next = f.end()
			if read += int64(f.raw); read >= most {
				return next, nil
			}
		}
	}
	return next, nil
}

// walkBack calls give with the pieces before a position, latest first. walkBack stops when give returns false, or after reading most bytes of the
// log. walkBack returns the position of the earliest piece that give accepted.
func (p *Page) walkBack(ctx context.Context, segments []segment, to, most int64, give func(piece) bool) (first int64, err error) {
	first, read := to, int64(0)
	for i := len(segments) - 1; i >= 0; i-- {
		if segments[i].start >= to {
			continue
		}
		frames, err := p.scan(segments[i])
		if err != nil {
			return first, err
		}
		for j := len(frames) - 1; j >= 0; j-- {
			if frames[j].offset >= to {
				continue
			}
			if err := context.Cause(ctx); err != nil {
				return first, err
			}
			all, err := p.piecesBefore(segments, i, frames, j, to)
			if err != nil {
				return first, err
			}
			for k := len(all) - 1; k >= 0; k-- {
				if !give(all[k]) {
					return first, nil
				}
				first = all[k].at
			}
			if read += int64(frames[j].raw); read >= most {
				return frames[j].offset, nil
			}
		}
	}
	return first, nil
}

// piecesBefore returns the pieces in frame j of segment i that end before a position.
func (p *Page) piecesBefore(segments []segment, i int, frames []placed, j int, to int64) (all []piece, err error) {
	var before *framePlace
	if j > 0 {
		before = &framePlace{frames[j-1], segments[i].start}
	} else if i > 0 {
		if before, err = p.lastOf(segments[i-1]); err != nil {
			return nil, err
		}
	}
	open, err := p.openAfter(before)
	if err != nil {
		return nil, err
	}
	data, err := p.data(framePlace{frames[j], segments[i].start})
	if err != nil {
		return nil, err
	}
	split(data, frames[j].offset, open, func(c piece) bool {
		if c.next <= to {
			all = append(all, c)
		}
		return true
	})
	return all, nil
}
