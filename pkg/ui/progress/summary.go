package progress

import (
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/ui/tui"
)

// writeEnding prints the result of a run: the figures, the failures with their causes, the services that wait for failed services, and the command
// that continues the run.
func writeEnding(w io.Writer, e *outcome, p tui.Palette) {
	if e == nil {
		return
	}
	fmt.Fprintln(w, p.Bold.Text(e.figures))
	if len(e.failed) == 0 {
		return
	}
	fmt.Fprintln(w, p.Bad.Text(e.blame))
	writeFailed(w, e.failed, tui.Style{})
	if len(e.waiting) > 0 {
		fmt.Fprintf(w, "Waiting for that: %s\n", line(strings.Join(e.waiting, ", ")))
	}
	if e.retry != "" {
		fmt.Fprintf(w, "When this is repaired, continue with:\n  %s\n", line(e.retry))
	}
}

// failedShown limits the number of failures that are printed. -o json lists all of them.
const failedShown = 100

// writeFailed prints failures, each with its remedy on an indented line.
func writeFailed(w io.Writer, fs []failure, style tui.Style) {
	for _, f := range fs[:min(len(fs), failedShown)] {
		where := line(f.name)
		if where == "" {
			where = "all hosts"
		}
		if f.phase != "" {
			where += "  " + line(f.phase)
		}
		fmt.Fprintln(w, style.Text(fmt.Sprintf("  %s: %s", where, line(f.err))))
		if f.hint != "" {
			fmt.Fprintf(w, "    -> %s\n", line(f.hint))
		}
	}
	if n := len(fs) - failedShown; n > 0 {
		fmt.Fprintf(w, "  … and %d more\n", n)
	}
}
