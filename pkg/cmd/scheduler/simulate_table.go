package scheduler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// writeSimulated prints three tables: figures about whole runs, virtual clusters, and job sizes. Several results are columns of the first table,
// and neighboring rows of the other tables.
func writeSimulated(opts *SimulateOptions, results []simulated) error {
	tables := []cmdutil.Table{figures(results), waits(results), localities(results)}
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(opts.IO.Out)
		}
		if err := opts.Output.Write(opts.IO.Out, nil, t); err != nil {
			return err
		}
	}
	return nil
}

// title returns a name for a result that distinguishes it from the other results.
func (r *simulated) title(all []simulated) string {
	switch {
	case r.Policy == "":
		return r.Config
	case slices.ContainsFunc(all, func(other simulated) bool { return other.Config != r.Config }):
		return r.Config + " with " + r.Policy
	}
	return r.Policy
}

// figures returns a table with one row per figure and one column per result.
func figures(results []simulated) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"FIGURE"}}
	for _, r := range results {
		t.Header = append(t.Header, r.title(results))
	}
	row := func(name string, value func(*sim.Report) string) {
		cells := []string{name}
		for _, r := range results {
			cells = append(cells, value(r.Report))
		}
		t.Rows = append(t.Rows, cells)
	}
	number := func(name string, value func(*sim.Report) int) {
		row(name, func(r *sim.Report) string { return strconv.Itoa(value(r)) })
	}
	number("GPUs", func(r *sim.Report) int { return r.GPUs })
	number("jobs", func(r *sim.Report) int { return r.Jobs })
	row("time until the last arrival", func(r *sim.Report) string { return span(float64(r.Span)) })
	row("utilisation", func(r *sim.Report) string { return share(r.Utilisation) })
	row("jobs waiting, average", func(r *sim.Report) string { return fmt.Sprintf("%.1f", r.AvgQueueLength) })
	row("jobs waiting at the end (guaranteed)", func(r *sim.Report) string {
		return fmt.Sprintf("%d (%d)", r.WaitingAtEnd, r.WaitingAtEndGuaranteed)
	})
	row("wait until the first start, mean", func(r *sim.Report) string { return span(r.Mean) })
	row("  median, 99th percentile", func(r *sim.Report) string { return span(float64(r.P50)) + ", " + span(float64(r.P99)) })
	number("gangs preempted", func(r *sim.Report) int { return r.PreemptedJobs })
	number("guaranteed jobs that waited inside their quota", func(r *sim.Report) int { return r.JobsThatWaitedWithinQuota })
	for _, code := range codes(results) {
		number("  because of "+code, func(r *sim.Report) int { return r.WaitedWithinQuotaByCode[code] })
	}
	if !slices.ContainsFunc(results, func(r simulated) bool { return r.Completion == nil }) {
		completions(row)
	}
	if slices.ContainsFunc(results, func(r simulated) bool { return len(r.Refused) > 0 }) {
		number("jobs that could never start", func(r *sim.Report) int { return len(r.Refused) })
	}
	row("starts at the lowest level that could hold them", func(r *sim.Report) string { return share(r.OptimalLocality.All.Share) })
	row("  guaranteed, opportunistic", func(r *sim.Report) string {
		return share(r.OptimalLocality.Guaranteed.Share) + ", " + share(r.OptimalLocality.Opportunistic.Share)
	})
	number("decisions", func(r *sim.Report) int { return r.Decisions })
	if !slices.ContainsFunc(results, func(r simulated) bool { return r.Speed == nil }) {
		row("decisions per second", func(r *sim.Report) string { return fmt.Sprintf("%.0f", r.Speed.DecisionsPerSec) })
		row("time per decision, median, 99th percentile", func(r *sim.Report) string {
			return fmt.Sprintf("%.1f µs, %.1f µs", r.Speed.P50, r.Speed.P99)
		})
		row("allocated per decision", func(r *sim.Report) string { return fmt.Sprintf("%.1f kB", r.Speed.AllocBytesPerDecision/1e3) })
	}
	return t
}

// completions adds the rows about a run in which all jobs finished.
func completions(row func(string, func(*sim.Report) string)) {
	row("work lost by preemptions", func(r *sim.Report) string { return share(r.Completion.LostWork) })
	row("utilisation without lost work", func(r *sim.Report) string { return share(r.UsefulUtilisation) })
	for _, kind := range []struct {
		name string
		of   func(*sim.Completions) *sim.Completion
	}{
		{"all jobs", func(c *sim.Completions) *sim.Completion { return &c.All }},
		{"guaranteed jobs", func(c *sim.Completions) *sim.Completion { return &c.Guaranteed }},
		{"opportunistic jobs", func(c *sim.Completions) *sim.Completion { return &c.Opportunistic }},
	} {
		row("from arrival to end, "+kind.name+", mean, 99th percentile", func(r *sim.Report) string {
			t := kind.of(r.Completion).Time
			return span(t.Mean) + ", " + span(t.P99)
		})
		row("  by the time that they run", func(r *sim.Report) string {
			s := kind.of(r.Completion).Slowdown
			return fmt.Sprintf("%.2f, %.2f", s.Mean, s.P99)
		})
	}
}

// codes returns the codes of the reasons for waiting that occur in any result.
func codes(results []simulated) []string {
	var out []string
	for _, r := range results {
		for code := range r.WaitedWithinQuotaByCode {
			if !slices.Contains(out, code) {
				out = append(out, code)
			}
		}
	}
	slices.Sort(out)
	return out
}

// grouped returns a table in which the rows with the same name in all results are next to each other. The names are in the order of their first
// occurrence.
func grouped(results []simulated, header []string, rows func(*sim.Report) [][]string) cmdutil.Table {
	t := cmdutil.Table{Header: header}
	if len(results) > 1 {
		t.Header = slices.Insert(slices.Clone(header), 1, "CONFIGURATION")
	}
	var names []string
	by := map[string][][]string{}
	for _, r := range results {
		for _, row := range rows(r.Report) {
			if _, ok := by[row[0]]; !ok {
				names = append(names, row[0])
			}
			name := row[0]
			if len(results) > 1 {
				row = slices.Insert(row, 1, r.title(results))
			}
			by[name] = append(by[name], row)
		}
	}
	for _, name := range names {
		t.Rows = append(t.Rows, by[name]...)
	}
	return t
}

// waits returns a table with one row per virtual cluster.
func waits(results []simulated) cmdutil.Table {
	header := []string{"VIRTUAL CLUSTER", "GPUS", "JOBS", "WAIT", "MEDIAN", "P99", "GUARANTEED WAIT", "GUARANTEED P99", "WAITING", "PREEMPTED", "WAITED IN QUOTA"}
	return grouped(results, header, func(r *sim.Report) [][]string {
		var out [][]string
		for _, v := range r.VirtualClusters {
			out = append(out, []string{v.Name, strconv.Itoa(v.GPUs), strconv.Itoa(v.Jobs), span(v.Mean), span(float64(v.P50)), span(float64(v.P99)),
				span(v.Guaranteed.Mean), span(float64(v.Guaranteed.P99)), strconv.Itoa(v.WaitingAtEnd), strconv.Itoa(v.PreemptedJobs),
				strconv.Itoa(v.JobsThatWaitedWithinQuota)})
		}
		return out
	})
}

// localities returns a table with one row per job size.
func localities(results []simulated) cmdutil.Table {
	return grouped(results, []string{"JOB SIZE", "STARTS", "OPTIMAL", "GPUS WITHIN ONE"}, func(r *sim.Report) [][]string {
		var out [][]string
		for _, s := range r.Sizes {
			out = append(out, []string{plural.Of(s.GPUs, "GPU"), strconv.Itoa(s.Starts), share(s.Share.Share), levels(s)})
		}
		return out
	})
}

// levels returns the levels of the cells in which jobs of one size started, beginning with the most frequent level.
func levels(s sim.Size) string {
	names := make([]string, 0, len(s.Levels))
	for name := range s.Levels {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if s.Levels[a] != s.Levels[b] {
			return s.Levels[b] - s.Levels[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %s", name, share(float64(s.Levels[name])/float64(s.Starts)))
	}
	return strings.Join(names, ", ")
}

func share(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// span formats a number of seconds for a person.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%.1f s", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}
