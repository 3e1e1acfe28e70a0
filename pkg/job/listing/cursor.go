package listing

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
)

const (
	// cursorUID is how many characters of a UID a cursor has.
	cursorUID = 8
	// lastSecond is the end of the year 9999: later times overflow.
	lastSecond = 253402300799
)

// Cursor is the last row of a page, by the beginning of its UID, which is less than the UID itself. Any server can continue the list from
// it, since it doesn't depend on one server's list.
type Cursor struct {
	submitted time.Time
	uid       string
}

// Passed reports whether a row comes after the cursor's. For an empty cursor it returns true for all rows.
func (c Cursor) Passed(r *Row) bool {
	return c.submitted.IsZero() || NewestFirst(&Row{Job: api.Job{Submitted: c.submitted, UID: c.uid}}, r) < 0
}

// NewCursor returns a short text, since users type it: the second of submission, and enough of the UID to distinguish jobs submitted
// in the same second.
func NewCursor(r *Row) string {
	return strconv.FormatInt(r.Submitted.Unix(), 36) + "-" + r.UID[:min(len(r.UID), cursorUID)]
}

// ReadCursor parses a cursor. An empty text is the cursor before all rows.
func ReadCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	at, uid, ok := strings.Cut(text, "-")
	second, err := strconv.ParseInt(at, 36, 64)
	if err != nil || !ok || second <= 0 || second > lastSecond || len(uid) > cursorUID {
		return Cursor{}, hint.Errorf("use the one at the end of the previous page", "%s is not a cursor", url.QueryEscape(text))
	}
	return Cursor{time.Unix(second, 0), uid}, nil
}
