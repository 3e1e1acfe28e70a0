package report

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// Header returns the titles of the columns that Cells fills.
func Header() []string {
	return []string{"GPU HOURS", "USED", "IDLE", "LOST", "WAITED", "LONGEST WAIT", "JOBS"}
}

// unknown is displayed instead of a figure that isn't known.
const unknown = "-"

// Cells returns the figures of a row for display. GPU time is in hours. Used and idle time is in percent of the measured time.
func (r *Row) Cells() []string {
	out := []string{hours(r.Held()), unknown, unknown, hours(r.Lost()), unknown, unknown, unknown}
	if u := r.Use; u != nil && u.Measured > 0 {
		out[1], out[2] = ofMeasured(u.Used, u.Measured), ofMeasured(u.Idle, u.Measured)
	}
	if w := r.Waits; w != nil {
		out[4], out[5], out[6] = hours(w.GPUs), (time.Duration(w.Longest) * time.Second).String(), fmt.Sprint(w.Jobs)
	}
	return out
}

// hours formats GPU seconds as GPU hours.
func hours(seconds int64) string { return fmt.Sprintf("%.1f", float64(seconds)/3600) }

func ofMeasured(seconds, measured int64) string {
	return fmt.Sprintf("%s (%.0f %%)", hours(seconds), 100*float64(seconds)/float64(measured))
}

// Text returns the report as plain text for a message. Each table has at most the given number of rows. clean converts a name that users wrote to
// one safe line.
func (r *Report) Text(most int, clean func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "GPU hours from %s to %s (UTC)\n\n", r.Since.UTC().Format("2006-01-02 15:04"), r.Until.UTC().Format("2006-01-02 15:04"))
	r.table(&b, "VIRTUAL CLUSTER", r.VirtualClusters, most, clean)
	r.table(&b, "PERSON", r.People, most, clean)
	if len(r.VirtualClusters) == 0 {
		b.WriteString("No GPUs were held, and no jobs were submitted.\n\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n", clean(n))
	}
	return b.String()
}

func (r *Report) table(b *strings.Builder, title string, rows []Row, most int, clean func(string) string) {
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(append([]string{title}, Header()...), "\t"))
	for i := range rows[:min(len(rows), most)] {
		name := clean(rows[i].Name)
		if name == "" {
			name = unknown
		}
		fmt.Fprintln(w, strings.Join(append([]string{name}, rows[i].Cells()...), "\t"))
	}
	_ = w.Flush() // a strings.Builder doesn't fail
	if more := len(rows) - most; more > 0 {
		fmt.Fprintf(b, "and %d more\n", more)
	}
	b.WriteString("\n")
}
