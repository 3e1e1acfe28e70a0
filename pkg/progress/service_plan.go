package progress

import (
	"fmt"
	"io"

	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/release"
)

// WriteServicePlan prints what a dry run found, by service, with diffs below.
func WriteServicePlan(w io.Writer, events []services.Event) error {
	out := &errWriter{w: w}
	total, touched := 0, 0
	for _, e := range events {
		if e.Kind != services.EventPlanned || e.Plan == nil || len(e.Plan.Changes) == 0 {
			continue
		}
		title := line(e.Service)
		if title == "" {
			title = "the cluster"
		} else {
			touched++
		}
		fmt.Fprintln(out, title)
		writeChanges(out, e.Plan.Changes)
		fmt.Fprintln(out)
		total += len(e.Plan.Changes)
	}
	if total == 0 {
		fmt.Fprintln(out, "No changes: the services are as the configuration says.")
		return out.err
	}
	fmt.Fprintf(out, "%s, %s\n", plural.Of(total, "change"), plural.Of(touched, "service"))
	return out.err
}

func writeChanges(w io.Writer, changes []release.Change) {
	for _, c := range changes {
		fmt.Fprintf(w, "  %s %s %s\n", mark(c.Action), line(c.Action), line(c.Object))
		for _, l := range lines(c.Diff) {
			fmt.Fprintf(w, "      %s\n", l)
		}
	}
}
