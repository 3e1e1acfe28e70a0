// Package metrics prints how an object used its resources over time. The commands "metrics" of jobs, nodes and virtual clusters use it.
// In: flags, a report of the server. Out: a table with one line per series, and sentences; or JSON.
package metrics

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// Flags are the flags that all "metrics" commands have.
type Flags struct {
	Output       cmdutil.Output
	since, until string
}

// Add adds the flags to a command. usual is the text in the help about the start of the range without --since.
func (fl *Flags) Add(cmd *cobra.Command, usual string) {
	cmd.Flags().StringVar(&fl.since, "since", "", "start: 30m, 6h or 7d before the end, or a date like 2026-01-31 (default: "+usual+")")
	cmd.Flags().StringVar(&fl.until, "until", "", "end: 30m, 6h or 7d ago, or a date (default: now, or the end of a job)")
	cmdutil.AddOutputFlag(cmd, &fl.Output, "table", "wide", "json", "yaml")
}

// Add turns cmd into a command that prints the server's report about the object that its argument names. By default, the report is about the
// last 6 hours.
func Add(f *cmdutil.Factory, cmd *cobra.Command, fl *connection.Flags, read func(*client.Server, context.Context, string, metrics.Window) (*metrics.Report, error)) {
	between := &Flags{}
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := between.Window(time.Now())
		if err != nil {
			return err
		}
		c, err := fl.Open(f)
		if err != nil {
			return err
		}
		r, err := read(c.Server, cmd.Context(), args[0], w)
		if err != nil {
			return err
		}
		return between.Write(f, r)
	}
	fl.AddFlags(f, cmd)
	between.Add(cmd, "6h")
}

// Window returns the time range that the flags select.
func (fl *Flags) Window(now time.Time) (w metrics.Window, err error) {
	if w.Until, err = cmdutil.ReadTime("--until", fl.until, now, time.Local); err != nil {
		return w, err
	}
	since, err := cmdutil.ReadTime("--since", fl.since, now, time.Local)
	switch {
	case err != nil:
		return w, err
	case fl.since != "" && !strings.Contains(fl.since, "-"): // a time span, not a date
		if w.Last = now.Sub(since); w.Last < time.Minute {
			return w, cmdutil.Usagef("--since %s: give a minute or more", fl.since)
		}
	default:
		w.Since = since
	}
	if !w.Since.IsZero() && !w.Until.IsZero() && !w.Since.Before(w.Until) {
		return w, cmdutil.Usagef("--since %s isn't before --until %s", w.Since.Format(time.RFC3339), w.Until.Format(time.RFC3339))
	}
	return w, nil
}

// Write prints a report in the format that the flags select.
func (fl *Flags) Write(f *cmdutil.Factory, r *metrics.Report) error {
	if !fl.Output.IsTable() {
		return fl.Output.Write(f.IO.Out, r, cmdutil.Table{})
	}
	if len(r.Charts) == 0 {
		f.IO.Say("%s", r.Note)
		return nil
	}
	if err := fl.Output.Write(f.IO.Out, r, table(r)); err != nil {
		return err
	}
	const layout = "2006-01-02 15:04"
	_, err := fmt.Fprintf(f.IO.Out, "\n%s to %s, a value every %s\n%s", r.Since.Local().Format(layout), r.Until.Local().Format(layout), time.Duration(r.Step)*time.Second, findings(r))
	return err
}

// findings returns the findings of a report as sentences, one per line.
func findings(r *metrics.Report) string {
	var out strings.Builder
	for _, f := range r.Findings {
		_, _ = io.WriteString(&out, "\n"+f.Text+"\n")
	}
	return out.String()
}

func table(r *metrics.Report) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"METRIC", "OF", "LOWEST", "MEAN", "HIGHEST", "LIMIT", "OVER TIME"}}
	for i := range r.Charts {
		c := &r.Charts[i]
		top := top(c)
		for k := range c.Series {
			s := &c.Series[k]
			low, mean, high, n := sums(s.Values)
			if n == 0 {
				continue
			}
			limit := "-"
			if s.Limit != nil {
				limit = value(*s.Limit, c.Unit)
			}
			t.Rows = append(t.Rows, []string{c.Title, of(c, s), value(low, c.Unit), value(mean, c.Unit), value(high, c.Unit), limit, spark(s.Values, top)})
		}
	}
	return t
}

// of returns the name of a series. If the series combines several others, the name includes their number.
func of(c *metrics.Chart, s *metrics.Series) string {
	switch {
	case c.Folded > 0:
		return fmt.Sprintf("%s of %d", s.Name, c.Folded)
	case c.Folded < 0:
		return s.Name + " of all"
	case s.Name == "":
		return "-"
	}
	return s.Name
}

// top returns the value that is drawn as a full column. It is the same for all lines of a chart.
func top(c *metrics.Chart) float64 {
	if c.Unit == metrics.UnitPercent {
		return 100
	}
	out := 0.0
	for i := range c.Series {
		_, _, high, _ := sums(c.Series[i].Values)
		out = max(out, high)
		if l := c.Series[i].Limit; l != nil {
			out = max(out, *l)
		}
	}
	return out
}

// sums returns the lowest value, the mean, the highest value, and the number of values. It ignores missing values.
func sums(values []*float64) (low, mean, high float64, n int) {
	sum := 0.0
	for _, v := range values {
		if v == nil {
			continue
		}
		if n == 0 {
			low, high = *v, *v
		}
		low, high, sum, n = min(low, *v), max(high, *v), sum+*v, n+1
	}
	if n > 0 {
		mean = sum / float64(n)
	}
	return low, mean, high, n
}

// columns is the maximum width of a drawn line.
const columns = 40

// spark draws values as a line of columns. The height of a column is the mean in its part of the time range. A part without measurements is a
// space.
func spark(values []*float64, top float64) string {
	width := min(columns, len(values))
	var out strings.Builder
	for i := range width {
		_, mean, _, n := sums(values[i*len(values)/width : (i+1)*len(values)/width])
		switch {
		case n == 0:
			out.WriteByte(' ')
		case top <= 0:
			out.WriteString(tui.Level(0))
		default:
			out.WriteString(tui.Level(mean / top))
		}
	}
	return strings.TrimRight(out.String(), " ")
}

// value formats a number with its unit.
func value(v float64, unit string) string {
	switch unit {
	case metrics.UnitPercent:
		return fmt.Sprintf("%.0f %%", v)
	case metrics.UnitBytes:
		return code.Size(int64(v))
	case metrics.UnitRate:
		return code.Size(int64(v)) + "/s"
	case metrics.UnitWatt:
		return fmt.Sprintf("%.0f W", v)
	case metrics.UnitCelsius:
		return fmt.Sprintf("%.0f °C", v)
	case metrics.UnitSeconds:
		return (time.Duration(v) * time.Second).String()
	}
	return fmt.Sprintf("%.4g", v)
}
