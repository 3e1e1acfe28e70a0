package logapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// Line is a line of a log. Agents and the kubelet send the time, a space, the text and a newline. The archive sends only the text and a newline.
type Line struct {
	// Stamp is the time of the line in RFC 3339, or "" if the time is unknown.
	Stamp string `json:"stamp,omitempty"`
	// Text is the line as the program wrote it, without the trailing newline. Text may contain bytes that aren't UTF-8.
	Text []byte `json:"text"`
}

// Append appends the line to b in the format of a response. If times is set, the line begins with its time.
func (l *Line) Append(b []byte, times bool) []byte {
	if times {
		b = append(append(b, l.Stamp...), ' ')
	}
	return append(append(b, l.Text...), '\n')
}

// maxLine is the maximum size of a line in memory. Read splits longer lines.
const maxLine = 1 << 20

// Read calls the function give with each line of a log. times reports whether the log contains times. A carriage return before the newline is part of
// the line.
func Read(r io.Reader, times bool, give func(Line) error) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var text []byte
	for {
		part, err := b.ReadSlice('\n')
		text = append(text, part...)
		if errors.Is(err, bufio.ErrBufferFull) && len(text) < maxLine {
			continue
		}
		if len(text) > 0 {
			if e := give(parse(bytes.Clone(bytes.TrimSuffix(text, []byte("\n"))), times)); e != nil {
				return e
			}
			text = text[:0]
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// parse splits a line into its time and its text. Agents send an empty time for a line that the container runtime didn't write. If Read has split a
// line, the second part has no time.
func parse(text []byte, times bool) Line {
	if stamp, rest, ok := bytes.Cut(text, []byte(" ")); ok && times {
		if _, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil || len(stamp) == 0 {
			return Line{string(stamp), rest}
		}
	}
	return Line{Text: text}
}
