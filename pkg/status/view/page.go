package view

import (
	"context"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/terminal"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// env holds the data that pages need to draw and to send requests.
type env struct {
	p       tui.Palette
	now     time.Time
	cluster *status.Cluster
	act     Actions
	ctx     context.Context // the context of the program
	pending int             // running requests and actions
}

// page is a page of the view, such as a list or an object.
type page interface {
	// title returns the page's part of the path in the header, such as "jobs" or "alice/train".
	title() string
	// refresh updates the page after a change of the model. It returns the page's next requests.
	refresh(d *env) effect
	// draw returns at most h lines of w columns.
	draw(d *env, w, h int) []string
	// key handles a key. ok is false if the page doesn't use the key.
	key(d *env, k string) (e effect, ok bool)
	// keys returns the keys of the page, most useful first.
	keys(d *env) []binding
}

// clickable is implemented by pages that handle clicks. x and y are relative to the body of the page.
type clickable interface {
	click(d *env, x, y int) effect
}

// filtered is implemented by pages with a filter.
type filtered interface {
	filter() string
	setFilter(d *env, text string)
}

// counted is implemented by pages that show a number of objects in the header.
type counted interface{ count() string }

// received is implemented by pages that send requests. The view passes responses to them.
type received interface {
	receive(d *env, a answer) effect
}

// closed is implemented by pages that stop a running action when the user leaves the page.
type closed interface{ close() }

// effect is the result of handling a key or a response. The zero effect does nothing.
type effect struct {
	push page
	back bool
	cmd  tea.Cmd
	ask  *question
	say  *notice
}

// binding is a key and the name of its action.
type binding struct{ key, does string }

// question asks for confirmation before an action.
type question struct {
	text string
	yes  func(d *env) effect
}

// notice reports an action. For a while, it offers to undo the action.
type notice struct {
	text  string
	bad   bool
	undo  string // the undo action; "" if it can't be undone
	do    func(d *env) effect
	until time.Time
}

const (
	noticeFor = 8 * time.Second
	undoFor   = 15 * time.Second
)

func say(d *env, text string) effect {
	return effect{say: &notice{text: text, until: d.now.Add(noticeFor)}}
}

func complain(d *env, err error) effect {
	return effect{say: &notice{text: problem(err), bad: true, until: d.now.Add(2 * noticeFor)}}
}

// problem formats an error and its remedy as one line.
func problem(err error) string {
	text := err.Error()
	if h := hint.Of(err); h != "" {
		text += " -> " + h
	}
	return clean(text)
}

// clean returns an untrusted text as one line without control characters.
func clean(s string) string {
	if tui.Plain(s) {
		return s
	}
	return terminal.Line(s)
}

func (d *env) level(level string) tui.Cell {
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

func (d *env) age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return tui.Age(d.now.Sub(t))
}

// words are the words of a filter. A text matches if it contains all words in with and no words in without. In the
// input, excluded words begin with !.
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

// match reports whether a lower-case text matches the filter.
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
