package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/server/app"
)

// lookAgain is the interval at which SendLog checks again whether the caller may read the log.
const lookAgain = 15 * time.Second

// SendLog sends a log as a streaming response. If the rest of the log can't be read, it aborts the response, so that clients don't mistake a part for
// the whole log.
func (c *Call) SendLog(j *app.Job, l *app.Log, follow bool) error {
	f := c.Flow()
	if c.Request.Method == http.MethodHead {
		return f.Flush()
	}
	looked := time.Now()
	note := func(text string) {
		if !f.Begun() {
			c.Warn(text)
		}
	}
	err := j.LogText(c.Context(), l, follow, note, func(text []byte) error {
		if now := time.Now(); now.Sub(looked) > lookAgain {
			looked = now
			if err := j.Still(); err != nil {
				return err
			}
		}
		return f.Write(text, follow)
	})
	switch {
	case err != nil && !f.Begun():
		return err
	case err != nil:
		f.Cut()
	}
	return f.Flush()
}

// Warn adds a warning to the headers of the response.
func (c *Call) Warn(text string) {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r > '~':
			return ' '
		}
		return r
	}, text)
	c.Writer.Header().Add("Warning", `199 - "`+text+`"`)
}
