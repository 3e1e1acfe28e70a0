package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// column is a column of a list, with the functions for its cells and for its order.
type column[T any] struct {
	tui.Column
	cell func(d *env, v T) tui.Cell
	// order compares two objects. If order is nil, the list can't be sorted by this column. down sorts the largest
	// object first.
	order func(a, b T) int
	down  bool
}

// list is a page with a table of objects. It draws only the visible rows.
type list[T any] struct {
	noun string
	// all returns the objects in the default order.
	all func(d *env) []T
	id  func(v T) string
	// text returns the searchable text of an object, in lower case.
	text func(v T) string
	cols []column[T]
	// head draws at most h lines above the table.
	head func(d *env, w, h int) []string
	open func(d *env, v T) effect
	act  func(d *env, v T, k string) (effect, bool)
	// does lists the keys that act handles.
	does  func(d *env, v T) []binding
	empty string // shown if there are no rows
	// source is the source that must respond before the text in empty is shown, or "".
	source string
	// tell returns texts of the selected object that the table truncates. The page shows them in full below the table.
	tell func(d *env, v T) string

	rows   []T
	total  int
	win    tui.Window
	at     string // the id under the cursor
	search string
	sorted int // column, -1 is the model's order
	down   bool
	top    int // line of the body where rows begin
	plain  []tui.Column
	widths []int
	width  int
}

func newList[T any](l list[T]) *list[T] {
	l.sorted = -1
	for _, c := range l.cols {
		l.plain = append(l.plain, c.Column)
	}
	return &l
}

func (l *list[T]) title() string { return plural.Noun(2, l.noun) }

func (l *list[T]) count() string {
	s := plural.Of(l.total, l.noun)
	if l.search != "" {
		s = fmt.Sprintf("%d of %s", len(l.rows), s)
	}
	return s
}

// refresh reads the objects again. The cursor stays on the same object.
func (l *list[T]) refresh(d *env) effect {
	all := l.all(d)
	l.total = len(all)
	l.rows = all
	if w := parseFilter(l.search); !w.empty() {
		l.rows = make([]T, 0, len(all)/4)
		for _, v := range all {
			if w.match(l.text(v)) {
				l.rows = append(l.rows, v)
			}
		}
	}
	if l.sorted >= 0 {
		if w := len(l.rows); w == len(all) {
			l.rows = slices.Clone(l.rows) // the slice belongs to the model
		}
		order := l.cols[l.sorted].order
		if l.down {
			slices.SortStableFunc(l.rows, func(a, b T) int { return order(b, a) })
		} else {
			slices.SortStableFunc(l.rows, order)
		}
	}
	l.win.Len = len(l.rows)
	if i := l.win.Cursor; l.at != "" && (i >= len(l.rows) || l.id(l.rows[i]) != l.at) {
		if i := slices.IndexFunc(l.rows, func(v T) bool { return l.id(v) == l.at }); i >= 0 {
			l.win.Top += i - l.win.Cursor // scroll, so that the cursor stays at the same line of the screen
			l.win.Cursor = i
		}
	}
	l.win.Settle()
	l.note()
	return effect{}
}

// note records which object is under the cursor.
func (l *list[T]) note() {
	l.at = ""
	if v, ok := l.current(); ok {
		l.at = l.id(v)
	}
}

func (l *list[T]) current() (v T, ok bool) {
	if l.win.Cursor < len(l.rows) {
		return l.rows[l.win.Cursor], true
	}
	return v, false
}

func (l *list[T]) filter() string { return l.search }

func (l *list[T]) setFilter(d *env, text string) {
	l.search = text
	l.refresh(d)
}

func (l *list[T]) draw(d *env, w, h int) []string {
	var out []string
	if l.head != nil {
		out = l.head(d, w, max(h-4, 0))
	}
	if w != l.width {
		l.width, l.widths = w, tui.Layout(l.plain, w-2)
	}
	told := l.told(d, w, h-len(out))
	h -= len(told)
	out = append(out, d.p.Faint.Text("  "+tui.Titles(l.plain, l.widths, l.sorted, l.down)))
	l.top = len(out)
	l.win.Height = max(h-len(out), 1)
	l.win.Settle()
	if len(l.rows) == 0 {
		return append(out, d.p.Faint.Text("  "+l.nothing(d)))
	}
	cells := make([]tui.Cell, len(l.cols))
	for i := l.win.Top; i < l.win.End(); i++ {
		for c := range l.cols {
			cells[c] = tui.Cell{}
			if l.widths[c] > 0 {
				cells[c] = l.cols[c].cell(d, l.rows[i])
				cells[c].Text = clean(cells[c].Text)
			}
		}
		out = append(out, mark(d, tui.Row(l.plain, l.widths, cells), i == l.win.Cursor, w))
	}
	for len(told) > 0 && len(out) < h {
		out = append(out, "")
	}
	return append(out, told...)
}

const (
	toldMax  = 3  // lines about the object under the cursor
	toldLow  = 2  // the same on a low screen
	lowRoom  = 18 // lines of a page on a low screen
	toldRoom = 10 // if the page has fewer lines, the table takes them all
)

// told formats the result of tell. The number of lines is the same for all objects, so that the table doesn't move.
func (l *list[T]) told(d *env, w, h int) []string {
	v, ok := l.current()
	if l.tell == nil || !ok || h < toldRoom {
		return nil
	}
	most := toldMax
	if h < lowRoom {
		most = toldLow
	}
	out := make([]string, 1, 1+most)
	if text := clean(l.tell(d, v)); text != "" {
		wrapped := tui.Wrap(text, w-4)
		if len(wrapped) > most {
			wrapped[most-1] = tui.Cut(wrapped[most-1]+" "+wrapped[most], w-4)
		}
		for _, s := range wrapped[:min(len(wrapped), most)] {
			out = append(out, "  "+d.p.Accent.Text(s))
		}
	}
	for len(out) < 1+most {
		out = append(out, "")
	}
	return out
}

// mark returns a row of a list. It marks the selected row with a sign, and with a background if colors are enabled.
func mark(d *env, line string, selected bool, w int) string {
	if !selected {
		return "  " + line
	}
	return d.p.Selected.Over(tui.Pad("> "+line, w))
}

func (l *list[T]) nothing(d *env) string {
	if l.source != "" && !d.cluster.Knows(l.source) {
		switch s := d.cluster.Source(l.source); {
		case s == nil || s.State == status.StateLoading:
			return "asking…"
		case s.State == status.StateAbsent:
			return clean(withHint(cmp.Or(s.Message, "the cluster doesn't have it"), s.Hint)) // the server removes messages
		default:
			return clean(withHint("not known: "+s.Message, s.Hint))
		}
	}
	if l.search != "" {
		return fmt.Sprintf("no %s matches %q; esc shows all", l.noun, clean(l.search))
	}
	if l.empty != "" {
		return l.empty
	}
	return "no " + plural.Noun(2, l.noun)
}

func (l *list[T]) key(d *env, k string) (effect, bool) {
	if move(&l.win, k) {
		l.note()
		return effect{}, true
	}
	switch k {
	case "o":
		l.order(d)
		return effect{}, true
	case "O":
		l.down = !l.down && l.sorted >= 0
		l.refresh(d)
		return effect{}, true
	}
	v, ok := l.current()
	if ok && k == "enter" && l.open != nil {
		return l.open(d, v), true
	}
	if l.act != nil && ok {
		return l.act(d, v, k)
	}
	return effect{}, false
}

// order sorts by the next visible column that can be sorted. After the last such column, it restores the default order.
func (l *list[T]) order(d *env) {
	for {
		l.sorted++
		if l.sorted >= len(l.cols) {
			l.sorted = -1
			break
		}
		if c := l.cols[l.sorted]; c.order != nil && (l.widths == nil || l.widths[l.sorted] > 0) {
			l.down = c.down
			break
		}
	}
	l.refresh(d)
}

func (l *list[T]) click(d *env, _, y int) effect {
	i := l.win.Top + y - l.top
	if y < l.top || i >= l.win.End() {
		return effect{}
	}
	if i == l.win.Cursor && l.open != nil {
		return l.open(d, l.rows[i])
	}
	l.win.Move(i)
	l.note()
	return effect{}
}

func (l *list[T]) keys(d *env) []binding {
	var out []binding
	if l.open != nil {
		out = append(out, binding{"enter", "open"})
	}
	if v, ok := l.current(); ok && l.does != nil {
		out = append(out, l.does(d, v)...)
	}
	return append(out, binding{"/", "filter"}, binding{"o", "order by"}, binding{"O", "the other way round"})
}

// move handles the keys for scrolling. It reports whether k is one of these keys.
func move(w *tui.Window, k string) bool {
	switch k {
	case "up", "k":
		w.Move(w.Cursor - 1)
	case "down", "j":
		w.Move(w.Cursor + 1)
	case "pgup", "ctrl+b":
		w.Move(w.Cursor - max(w.Height-1, 1))
	case "pgdown", "ctrl+f", " ":
		w.Move(w.Cursor + max(w.Height-1, 1))
	case "home", "g":
		w.Move(0)
	case "end", "G":
		w.Move(w.Len - 1)
	case "wheelup":
		w.Move(w.Cursor - 3)
	case "wheeldown":
		w.Move(w.Cursor + 3)
	default:
		return false
	}
	return true
}

// lower joins strings with spaces and converts them to lower case, because filters compare lower-case text.
func lower(parts ...string) string { return strings.ToLower(strings.Join(parts, " ")) }
