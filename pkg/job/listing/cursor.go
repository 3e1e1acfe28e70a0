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
	// cursorUID is how many characters of a UID a cursor contains.
	cursorUID = 8
	// lastSecond is the last second of the year 9999. Later times would overflow.
	lastSecond = 253402300799
)

// Cursor is the position after the last row of a page. It consists of the row's submission time and the beginning of the row's UID. It doesn't
// depend on the state of a server, so any server can continue the list.
type Cursor struct {
	submitted time.Time
	uid       string
}

// Passed reports whether a row comes after the cursor. It returns true for all rows if the cursor is empty.
func (c Cursor) Passed(r *Row) bool {
	return c.submitted.IsZero() || NewestFirst(&Row{Job: api.Job{Submitted: c.submitted, UID: c.uid}}, r) < 0
}

// NewCursor returns the cursor after a row as text. The text is short, because users type it. It contains the second of submission, and enough of
// the UID to distinguish jobs that were submitted in the same second.
func NewCursor(r *Row) string {
	return strconv.FormatInt(r.Submitted.Unix(), 36) + "-" + r.UID[:min(len(r.UID), cursorUID)]
}

// ReadCursor parses a cursor. An empty text is the cursor at the beginning of the list.
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
