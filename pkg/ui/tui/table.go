package tui

// Column is a column of a table.
type Column struct {
	Title string
	// Min is the minimum width in columns, and Ideal the preferred width.
	Min, Ideal int
	// Priority determines the order in which columns are omitted on a narrow screen: the highest number first. A column with 0 is never omitted.
	Priority int
	// Grows means that the column takes the remaining width.
	Grows bool
	Right bool // numbers
}

// gap is the number of spaces between two columns.
const gap = 2

// Layout divides width among columns. The width of an omitted column is 0. The result depends only on width, so that a table doesn't move when
// the user scrolls.
func Layout(cols []Column, width int) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = max(c.Min, 1)
	}
	for taken(out) > width {
		drop := -1
		for i, c := range cols {
			if out[i] > 0 && c.Priority > 0 && (drop < 0 || c.Priority >= cols[drop].Priority) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		out[drop] = 0
	}
	left := width - taken(out)
	for p := 0; left > 0 && p < 100; p++ { // the most important columns grow first
		for i, c := range cols {
			if out[i] > 0 && c.Priority == p {
				more := min(max(c.Ideal-out[i], 0), max(left, 0))
				out[i] += more
				left -= more
			}
		}
	}
	for i, c := range cols {
		if c.Grows && out[i] > 0 && left > 0 {
			out[i] += left
			break
		}
	}
	return out
}

func taken(widths []int) int {
	n := -gap
	for _, w := range widths {
		if w > 0 {
			n += w + gap
		}
	}
	return max(n, 0)
}

// Cell is the text of one cell of a table, with its style.
type Cell struct {
	Text  string
	Style Style
}

// Row returns the cells on one line, each cut to the width of its column.
func Row(cols []Column, widths []int, cells []Cell) string {
	b := make([]byte, 0, 256)
	first := true
	for i, c := range cells {
		if i >= len(widths) || widths[i] == 0 {
			continue
		}
		if !first {
			b = append(b, "  "...)
		}
		first = false
		text := Cut(c.Text, widths[i])
		room := Spaces(widths[i] - Width(text))
		if cols[i].Right {
			b = append(b, room...)
		}
		b = append(b, c.Style.Text(text)...)
		if !cols[i].Right {
			b = append(b, room...)
		}
	}
	return string(b)
}

// Titles returns the line above the rows. The title of the column that the rows are sorted by has an arrow. sorted is -1 if the rows aren't
// sorted.
func Titles(cols []Column, widths []int, sorted int, down bool) string {
	cells := make([]Cell, len(cols))
	for i, c := range cols {
		cells[i].Text = c.Title
		if i != sorted {
			continue
		}
		arrow := "↑"
		if down {
			arrow = "↓"
		}
		cells[i].Text = Cut(c.Title, max(widths[i]-1, 1)) + arrow
	}
	return Row(cols, widths, cells)
}

// Window is the visible part of a list of Len rows. It shows the rows from Top, up to Height rows, and always includes the cursor.
type Window struct{ Top, Cursor, Height, Len int }

// Move sets the cursor, and scrolls only as far as needed.
func (w *Window) Move(to int) {
	w.Cursor = min(max(to, 0), max(w.Len-1, 0))
	w.Settle()
}

// Settle moves the window so that the cursor is visible and the window doesn't exceed the list.
func (w *Window) Settle() {
	h := max(w.Height, 1)
	w.Cursor = min(max(w.Cursor, 0), max(w.Len-1, 0))
	w.Top = min(w.Top, w.Cursor)
	w.Top = max(w.Top, w.Cursor-h+1)
	w.Top = min(max(w.Top, 0), max(w.Len-h, 0))
}

// End returns the index after the last visible row of the list.
func (w *Window) End() int { return min(w.Top+max(w.Height, 1), w.Len) }
