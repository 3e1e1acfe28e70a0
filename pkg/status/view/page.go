package view

import (
	"context"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/terminal"
	"github.com/openpai/paictl/pkg/tui"
)

// desk is what pages draw with.
type desk struct {
	p       tui.Palette
	now     time.Time
	cluster *status.Cluster
	act     Actions
	ctx     context.Context // of the program
	pending int             // asks and works that run
}

// page is one screen.
type page interface {
	// title is its part of the path in the header, such as "jobs" or "alice/train".
	title() string
	// refresh takes in that the model has changed. What it wants to ask comes back.
	refresh(d *desk) effect
	// draw makes at most h lines of w columns.
	draw(d *desk, w, h int) []string
	// key acts on a key; ok is false for one that the page doesn't know.
	key(d *desk, k string) (e effect, ok bool)
	// keys are the page's own, the most useful first.
	keys(d *desk) []binding
}

// clickable pages know what is at a place of their body.
type clickable interface {
	click(d *desk, x, y int) effect
}

// filtered pages show what fits a text.
type filtered interface {
	filter() string
	setFilter(d *desk, text string)
}

// counted pages say in the header how much they show.
type counted interface{ count() string }

// received pages take the answers of what they asked. id is theirs.
type received interface {
	receive(d *desk, a answer) effect
}

// closed pages let go of what runs for them.
type closed interface{ close() }

// effect is what a key or an answer leads to. The zero effect is none.
type effect struct {
	push page
	back bool
	cmd  tea.Cmd
	ask  *question
	say  *notice
}

// binding is a key and what it does.
type binding struct{ key, does string }

// question wants a yes before something is done that can't be taken back at once.
type question struct {
	text string
	yes  func(d *desk) effect
}

// notice tells what was done, and offers to take it back for a while.
type notice struct {
	text  string
	bad   bool
	undo  string // what taking it back does; "" where it can't be
	do    func(d *desk) effect
	until time.Time
}

const (
	noticeFor = 8 * time.Second
	undoFor   = 15 * time.Second
)

func say(d *desk, text string) effect {
	return effect{say: &notice{text: text, until: d.now.Add(noticeFor)}}
}

func complain(d *desk, err error) effect {
	return effect{say: &notice{text: problem(err), bad: true, until: d.now.Add(2 * noticeFor)}}
}

// problem is an error and its remedy in a line.
func problem(err error) string {
	text := err.Error()
	if h := hint.Of(err); h != "" {
		text += " -> " + h
	}
	return clean(text)
}

// clean makes text of others fit for one line of a screen.
func clean(s string) string {
	if tui.Plain(s) {
		return s
	}
	return terminal.Line(s)
}

// level is the sign and the style of a level of pkg/status.
func (d *desk) level(level string) tui.Cell {
	switch level {
	case status.LevelOK:
		return tui.Cell{Text: tui.SignGood, Style: d.p.Good}
	case status.LevelWarning:
		return tui.Cell{Text: tui.SignWarn, Style: d.p.Warn}
	case status.LevelCritical:
		return tui.Cell{Text: tui.SignBad, Style: d.p.Bad}
	}
	return tui.Cell{Text: tui.SignUnknown, Style: d.p.Faint}
}

func (d *desk) age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return tui.Age(d.now.Sub(t))
}

// words are the parts of a filter: all must be in a text, those behind ! must not.
type words struct{ with, without []string }

func parseFilter(text string) words {
	var w words
	for _, f := range strings.Fields(strings.ToLower(text)) {
		if rest, not := strings.CutPrefix(f, "!"); not {
			if rest != "" {
				w.without = append(w.without, rest)
			}
			continue
		}
		w.with = append(w.with, f)
	}
	return w
}

func (w words) empty() bool { return len(w.with)+len(w.without) == 0 }

// match looks at a text in lower case.
func (w words) match(lower string) bool {
	for _, s := range w.with {
		if !strings.Contains(lower, s) {
			return false
		}
	}
	for _, s := range w.without {
		if strings.Contains(lower, s) {
			return false
		}
	}
	return true
}
