package cmdutil

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Table is a table for users: a header and rows of equal length. The first column contains the names of the objects.
type Table struct {
	Header []string
	Rows   [][]string
}

const (
	gap = 3 // spaces between two columns
	// minimum is the number of characters to which a cell can be shortened if the table is too wide.
	minimum  = 8
	ellipsis = "…"
)

// WriteTable prints the table. On a terminal, the table is fitted to the width of the terminal, except with -o wide.
func (o *Output) WriteTable(w io.Writer, t Table) error {
	width := iostreams.Columns(w)
	if o.format == "wide" {
		width = 0
	}
	return t.write(w, width)
}

// write prints the table, fitted to a width in columns; 0 means no limit. It removes control characters from cells, because their text may come
// from other users.
func (t Table) write(w io.Writer, width int) error {
	var rows [][]string
	if len(t.Header) > 0 {
		rows = append(rows, plain(t.Header))
	}
	for _, r := range t.Rows {
		rows = append(rows, plain(r))
	}
	if len(rows) == 0 {
		return nil
	}
	between, columns, dropped := gap, widths(rows), 0
	if width > 0 && total(columns, between) > width {
		between = gap - 1
		header := make([]int, len(columns))
		copy(header, widths([][]string{plain(t.Header)}))
		columns, dropped = fit(columns, header, between, width)
	}
	if err := writeAligned(w, rows, columns, between); err != nil || dropped == 0 || len(t.Header) < len(columns) {
		return err
	}
	_, err := fmt.Fprintf(w, "(no room for %s: -o wide)\n", strings.Join(plain(t.Header[len(columns):]), ", "))
	return err
}

// fit makes columns narrower until they fit into width, beginning with the widest column. No column becomes narrower than its header. If that
// isn't enough, fit drops the last columns, and returns the number of dropped columns.
func fit(columns, header []int, between, width int) (fitted []int, dropped int) {
	for n := len(columns); n > 1; n-- {
		fitted = append([]int(nil), columns[:n]...)
		for total(fitted, between) > width {
			at := widest(fitted, header)
			if at < 0 {
				break
			}
			fitted[at]--
		}
		if total(fitted, between) <= width {
			return fitted, len(columns) - n
		}
	}
	return []int{min(columns[0], max(width, 1))}, len(columns) - 1
}

// widest returns the index of the widest column that may become narrower, or -1 if there is no such column.
func widest(columns, header []int) int {
	at := -1
	for i, n := range columns {
		if n > max(header[i], minimum) && (at < 0 || n > columns[at]) {
			at = i
		}
	}
	return at
}

func total(columns []int, between int) int {
	n := between * (len(columns) - 1)
	for _, c := range columns {
		n += c
	}
	return n
}

// widths returns the widths of the columns on a terminal, where some characters take two places.
func widths(rows [][]string) []int {
	var out []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] = max(out[i], ansi.StringWidth(c))
		}
	}
	return out
}

// writeAligned prints rows in columns of the given widths. It omits cells beyond the last column.
func writeAligned(w io.Writer, rows [][]string, columns []int, between int) error {
	var b strings.Builder
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r[:min(len(r), len(columns))] {
			c = shortened(c, columns[i])
			line.WriteString(c + strings.Repeat(" ", max(columns[i]-ansi.StringWidth(c), 0)+between))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shortened shortens a cell to a width. A name is cut in the middle, since both its ends distinguish it from other names. A text with spaces is
// cut at its end.
func shortened(s string, width int) string {
	switch n := ansi.StringWidth(s); {
	case n <= width:
		return s
	case width < 3 || strings.Contains(strings.TrimLeft(s, " "), " "):
		return ansi.Truncate(s, width, ellipsis)
	default:
		start := ansi.Truncate(s, width/2, "")
		end := n - (width - width/2 - 1)
		if tail := ansi.TruncateLeft(s, end, ""); ansi.StringWidth(tail) > n-end {
			end++ // a wide character is at the cut
		}
		return start + ansi.TruncateLeft(s, end, ellipsis)
	}
}

// Rows writes pairs of a label and a text, aligned and never shortened. Each text becomes one line, because other users may have written it.
type Rows struct {
	w    io.Writer
	rows [][]string
}

// NewRows returns Rows without pairs. Flush writes them to w.
func NewRows(w io.Writer) *Rows { return &Rows{w: w} }

// Add adds a pair, which the next Flush writes.
func (r *Rows) Add(label, text string) { r.rows = append(r.rows, plain([]string{label, text})) }

// Flush writes the pairs that were added since the last Flush. Their texts are aligned.
func (r *Rows) Flush() error {
	rows := r.rows
	r.rows = nil
	return writeAligned(r.w, rows, widths(rows), gap)
}

// plain converts each cell to one line of text without control characters. It keeps leading spaces, which indent cells that belong to the row
// above.
func plain(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = c[:len(c)-len(strings.TrimLeft(c, " "))] + terminal.Line(c)
	}
	return out
}

// Age returns a duration in its largest unit: 40s, 12m, 3h, 5d.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
