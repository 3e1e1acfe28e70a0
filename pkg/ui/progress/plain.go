package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/ui/tui"
)

// progressEvery is the minimum time between two lines about the progress of one long step.
const progressEvery = 10 * time.Second

// log writes lines about a run, for events of any type.
type log struct {
	w    *errWriter
	p    tui.Palette
	wide []int // columns of the longest name in each position before the text
}

func newLog(w io.Writer, colour bool) *log {
	return &log{w: &errWriter{w: w}, p: tui.NewLinePalette(colour)}
}

// Close returns the first write error.
func (r *log) Close() error { return r.w.err }

// align makes the columns wide enough for the given names.
func (r *log) align(places ...[]string) {
	r.wide = make([]int, len(places))
	for i, names := range places {
		for _, n := range names {
			r.wide[i] = max(r.wide[i], tui.Width(line(n)))
		}
	}
}

// start writes the first line of a run.
func (r *log) start(title string, figures ...string) {
	fmt.Fprintf(r.w, "%s: %s\n", r.p.Bold.Text(line(title)), strings.Join(figures, ", "))
}

// line writes one line: the names, such as host and phase, followed by the text.
func (r *log) line(text string, where ...string) {
	for i, name := range where {
		if name == "" {
			continue
		}
		w := 0
		if i < len(r.wide) {
			w = r.wide[i]
		}
		fmt.Fprint(r.w, tui.Fill(line(name), w), "  ")
	}
	fmt.Fprintln(r.w, text)
}

func (r *log) hint(text string) {
	if text != "" {
		fmt.Fprintf(r.w, "  -> %s\n", line(text))
	}
}

// errWriter keeps the first write error, so that a renderer needn't check each line. A run doesn't stop if its output can't be written.
type errWriter struct {
	w   io.Writer
	err error
}

func (w *errWriter) Write(b []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
	return len(b), nil
}
