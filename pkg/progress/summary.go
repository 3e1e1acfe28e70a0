package progress

import (
	"fmt"
	"io"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/plural"
)

// writeSummary prints how a run ended: the figures, the hosts that were set aside with
// their causes, and the command that goes on with them.
func writeSummary(w io.Writer, s *cluster.Summary, p palette) {
	fmt.Fprintln(w, p.bold(totals(s)))
	if len(s.Failed) == 0 {
		return
	}
	if len(s.Failed) == 1 {
		fmt.Fprintln(w, p.bad("1 host was set aside:"))
	} else {
		fmt.Fprintln(w, p.bad(plural.Of(len(s.Failed), "host")+" set aside:"))
	}
	writeFailed(w, s.Failed, func(t string) string { return t })
	if s.Retry != "" {
		fmt.Fprintf(w, "Once that is mended, go on with:\n  %s\n", line(s.Retry))
	}
}

// failedShown bounds the causes that are printed; -o json has them all.
const failedShown = 100

// writeFailed prints failures with their remedies, indented.
func writeFailed(w io.Writer, fs []cluster.Failed, colour func(string) string) {
	for _, f := range fs[:min(len(fs), failedShown)] {
		where := line(f.Host)
		if where == "" {
			where = "all hosts"
		}
		fmt.Fprintln(w, colour(fmt.Sprintf("  %s  %s: %s", where, line(f.Phase), line(f.Error))))
		if f.Hint != "" {
			fmt.Fprintf(w, "    -> %s\n", line(f.Hint))
		}
	}
	if n := len(fs) - failedShown; n > 0 {
		fmt.Fprintf(w, "  … and %d more\n", n)
	}
}

func totals(s *cluster.Summary) string {
	changed, changes := fmt.Sprintf("%d changed", s.Changed), plural.Of(s.Changes, "change")
	if s.DryRun {
		changed, changes = fmt.Sprintf("%d would change", s.Changed), changes+" planned"
	}
	return fmt.Sprintf("%s, %s, %s, %s", plural.Of(s.Hosts, "host"), changed, changes, duration(s.Elapsed))
}
