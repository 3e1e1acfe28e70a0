package logs

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Positions of lines are strings, LOG.OFFSET: eight hexadecimal digits that name the log of one attempt of a task, and the offset that the
// agent of its machine uses. Positions of one log have the order of their offsets.

// ErrUnplaced means that a log has no positions: only agents of log-manager know them.
var ErrUnplaced = errors.New("the log has no positions")

// ErrGone means that there is no line at a position: its log is no longer kept, or never had it.
var ErrGone = errors.New("the position leads to no line")

// At is where a part of a log begins: a position, the start, the end, or the first line that was written at a time.
type At struct {
	log    string // "" means the log that a Selection selects
	offset int64  // of a position
	text   string // in the form that agents accept
}

// ReadAt reads a position, "start", "end", or a time in RFC 3339.
func ReadAt(text string) (At, error) {
	if text == logapi.AtStart || text == logapi.AtEnd {
		return At{text: text}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return At{text: t.UTC().Format(time.RFC3339Nano)}, nil
	}
	log, digits, _ := strings.Cut(text, ".")
	_, err := strconv.ParseUint(log, 16, 32)
	offset, e := strconv.ParseUint(digits, 10, 63)
	if len(log) != 8 || errors.Join(err, e) != nil || log != strings.ToLower(log) {
		return At{}, hint.Errorf(`give "start", "end", a time such as 2026-01-31T12:00:00Z, or the position of a line as an answer has it`, "%.40q isn't a position of a log", text)
	}
	return At{log: log, offset: int64(offset), text: digits}, nil
}

// Before reports whether the lines before it are meant by default, because there are none after the end.
func (a *At) Before() bool { return a.text == logapi.AtEnd }

// logName names the log of a source in positions.
func (s *source) logName() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.uid)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// position names a line of a source.
func (s *source) position(offset int64) string {
	return s.logName() + "." + strconv.FormatInt(offset, 10)
}
