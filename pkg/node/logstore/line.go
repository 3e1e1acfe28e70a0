package logstore

import (
	"bytes"
	"time"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// criLine is a line in the kubelet's log files. The format is STAMP STREAM TAG TEXT. The container runtime splits lines that are longer than 16 KiB.
// All parts except the last part are marked as partial.
type criLine struct {
	stamp   int64 // ns
	time    []byte
	stream  []byte
	partial bool
	text    []byte
}

// parseLine parses a line in the kubelet's format. ok is false if the line has another format.
func parseLine(line []byte) (l criLine, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	var at, rest, tags []byte
	if at, rest, ok = bytes.Cut(line, []byte(" ")); !ok {
		return l, false
	}
	if l.stream, rest, ok = bytes.Cut(rest, []byte(" ")); !ok {
		return l, false
	}
	if tags, l.text, ok = bytes.Cut(rest, []byte(" ")); !ok {
		tags = rest // a line without text
	}
	l.time = at
	if l.stamp, ok = parseStamp(string(at)); !ok {
		return l, false
	}
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	l.partial = string(tag) == "P"
	return l, l.partial || string(tag) == "F"
}

func parseStamp(text string) (int64, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > 40 {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	return t.UnixNano(), true
}

// of reports whether a line belongs to a stream. of returns true if stream is empty. A line in another format counts as a line of stdout.
func (l *criLine) of(stream string, ok bool) bool {
	return stream == "" || ok && string(l.stream) == stream || !ok && stream == "stdout"
}

// maxText limits the size of a line that is joined from parts.
const maxText = 1 << 20

// joiner joins the lines in a file to the lines of the log.
type joiner struct {
	only    string                  // the wanted stream; empty: both
	pending map[string]*logapi.Line // by stream
}

func newJoiner(only string) *joiner { return &joiner{only, map[string]*logapi.Line{}} }

// add adds a line from a file. add calls give if the added line completes a line of the log.
func (j *joiner) add(line []byte, give func(logapi.Line) error) error {
	l, ok := parseLine(line)
	if !l.of(j.only, ok) {
		return nil
	}
	if !ok {
		return give(logapi.Line{Text: bytes.TrimSuffix(line, []byte("\n"))})
	}
	p := j.pending[string(l.stream)]
	switch {
	case p == nil && !l.partial:
		return give(logapi.Line{Stamp: string(l.time), Text: l.text})
	case p == nil:
		p = &logapi.Line{Stamp: string(l.time)}
		j.pending[string(l.stream)] = p
	}
	p.Text = append(p.Text, l.text...)
	if l.partial && len(p.Text) < maxText {
		return nil
	}
	delete(j.pending, string(l.stream))
	return give(*p)
}

// rest calls give with the incomplete lines.
func (j *joiner) rest(give func(logapi.Line) error) error {
	for _, stream := range []string{"stdout", "stderr"} {
		if p := j.pending[stream]; p != nil {
			delete(j.pending, stream)
			if err := give(*p); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastLine returns the offset after the last newline in data. An incomplete line may begin at this offset.
func lastLine(data []byte) int { return bytes.LastIndexByte(data, '\n') + 1 }

// cut returns the best position for the end of a piece of a log. This is the end of the last complete log line or, without a complete log line, the
// end of the last line in the file.
func cut(data []byte) int {
	end := bytes.LastIndexByte(data, '\n') + 1
	for at := end; at > 0; {
		start := bytes.LastIndexByte(data[:at-1], '\n') + 1
		if l, ok := parseLine(data[start:at]); !ok || !l.partial {
			return at
		}
		at = start
	}
	return end
}
