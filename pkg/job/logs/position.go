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

// The position of a line is a string of the form LOG.OFFSET. LOG is eight hexadecimal digits that identify the log for one attempt of a task.
// OFFSET is the offset that the machine's agent uses. Lines of one log are in the order of their offsets.

// ErrUnplaced means that the lines of a log have no positions, because only agents of log-manager know positions.
var ErrUnplaced = errors.New("the log has no positions")

// ErrGone means that there is no line at a position. Either the log is no longer kept, or it never had a line there.
var ErrGone = errors.New("the position leads to no line")

// At specifies where a part of a log begins: at a position, at the start, at the end, or at the first line that was written at or after a time.
type At struct {
	log    string // "" means the log that a Selection selects
	offset int64  // of a position
	text   string // in the form that agents accept
}

// ReadAt parses a position, "start", "end", or a time in RFC 3339.
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

// Before reports whether to return the lines before At by default. This is the case for the end of a log, because no lines follow it.
func (a *At) Before() bool { return a.text == logapi.AtEnd }

// logName returns the LOG part of positions in the log of a source.
func (s *source) logName() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.uid)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// position returns the position for an offset in the log of a source.
func (s *source) position(offset int64) string {
	return s.logName() + "." + strconv.FormatInt(offset, 10)
}
