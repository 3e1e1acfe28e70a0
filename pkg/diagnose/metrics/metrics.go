// Package metrics reads from Prometheus how jobs, machines and virtual clusters used their resources over time. It uses a table of named queries, and
// explains the figures in sentences.
// In: a subject and a range of time. Out: a Report. Callers can't write queries, so people get no figures of other people's jobs.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/hint"
)

// Report describes the use of resources by a job, a task, a machine or a virtual cluster over time.
type Report struct {
	// Since and Until are the first and the last time of each series. Step is the time between two values, in seconds.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Step  int       `json:"step"`
	// Findings contains conclusions from the measurements, the most important first. It has at most MaxFindings entries and is usually empty.
	Findings []Finding `json:"findings,omitempty"`
	// Charts omits metrics without measurements.
	Charts []Chart `json:"charts"`
	// Note is the reason why Charts is empty.
	Note string `json:"note,omitempty"`
}

// Chart shows one metric, with a series for each task, GPU or machine.
type Chart struct {
	Name  string `json:"name"`  // gpu-use; see the table of queries
	Title string `json:"title"` // GPU use
	Unit  string `json:"unit,omitempty"`
	// Folded is 0 if the chart contains all series. If too many series exist, the chart contains their lowest, mean and highest values. Folded is then
	// the number of series, or -1 if the number is unknown.
	Folded int      `json:"folded,omitempty"`
	Series []Series `json:"series"`
}

// Units of charts. Values without a unit are counts.
const (
	UnitPercent = "percent"
	UnitBytes   = "bytes"
	UnitRate    = "bytes/s"
	UnitCores   = "cores"
	UnitWatt    = "watts"
	UnitCelsius = "celsius"
	UnitSeconds = "seconds"
)

// Series is one line of a chart.
type Series struct {
	Name string `json:"name"`           // worker[0] GPU 3
	Task string `json:"task,omitempty"` // worker[0]
	Node string `json:"node,omitempty"`
	GPU  string `json:"gpu,omitempty"` // its number on its machine
	// Limit is the highest possible value, or nil if it is unknown. It is the limit of a task or the memory of a machine.
	Limit *float64 `json:"limit,omitempty"`
	// Values contains one value for each time from Since to Until. A missing measurement is null.
	Values []*float64 `json:"values"`
}

// Names of the series that summarize all series of a folded chart.
const (
	Lowest  = "lowest"
	Mean    = "mean"
	Highest = "highest"
)

// Limits of a report.
const (
	// MaxPoints is the maximum number of values of a series. DefaultPoints is the number of values if the request doesn't specify a number.
	MaxPoints     = 300
	DefaultPoints = 241
	// MaxSpan is the longest range. Prometheus keeps figures for 31 days by default.
	MaxSpan = 30 * 24 * time.Hour
	// MaxSeries is the maximum number of series in a report.
	MaxSeries = 64
	// minStep is Prometheus' default scrape interval. Shorter steps would not contain new values.
	minStep = 30 * time.Second
)

// steps contains the intervals between two times of a report, in minutes. Each interval divides a day.
var steps = []float64{0.5, 1, 1.5, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 720}

// step returns the shortest possible interval that is at least d. Possible intervals are steps and whole days.
func step(d time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, minutes := range steps {
		if s := time.Duration(minutes * float64(time.Minute)); s >= d {
			return s
		}
	}
	return (d + day - 1) / day * day
}

// Range is the time range of a report.
type Range struct {
	// Since and Until are the bounds of the range. Since is before Until.
	Since, Until time.Time
	// Points is the maximum number of values of each series; 0 means DefaultPoints.
	Points int
}

// Window is the time range in a user's request. If a field is zero, the subject of the report determines the range.
type Window struct {
	Since, Until time.Time
	// Last is the length of the range that ends at Until. It applies if Since is zero.
	Last   time.Duration
	Points int
}

// Within returns the range of a window for a subject that exists from begin to end. If the window contains neither Since nor Last, usual is the
// length of the range.
func (w Window) Within(begin, end time.Time, usual time.Duration) (Range, error) {
	if !w.Since.IsZero() && !w.Until.IsZero() && !w.Since.Before(w.Until) {
		return Range{}, &RangeError{`"since" isn't before "until"`}
	}
	r := Range{Since: w.Since, Until: end, Points: w.Points}
	if !w.Until.IsZero() && w.Until.Before(end) {
		r.Until = w.Until
	}
	if r.Since.IsZero() {
		if w.Last > 0 {
			usual = w.Last
		}
		r.Since = r.Until.Add(-usual)
	}
	if r.Since.Before(begin) {
		r.Since = begin
	}
	if !r.Since.Before(r.Until) { // it didn't exist then: a short range without figures
		r.Since = r.Until.Add(-minStep)
	}
	return r, nil
}

// RangeError is the error for an invalid range.
type RangeError struct{ text string }

// Error implements error.
func (e *RangeError) Error() string { return e.text }

// grid is the list of times at which all series have their values.
type grid struct {
	since time.Time
	step  time.Duration
	n     int
}

// grid returns the times of a range. Each time is a multiple of the step, so that repeated reads of a chart return the same values.
func (r Range) grid() (grid, error) {
	points := r.Points
	if points == 0 {
		points = DefaultPoints
	}
	switch span := r.Until.Sub(r.Since); {
	case points < 2 || points > MaxPoints:
		return grid{}, &RangeError{fmt.Sprintf(`"points" is %d: give 2 to %d`, points, MaxPoints)}
	case span <= 0:
		return grid{}, &RangeError{`"since" isn't before "until"`}
	case span > MaxSpan:
		return grid{}, &RangeError{fmt.Sprintf(`from "since" to "until" is more than %d days: choose a shorter time`, int(MaxSpan.Hours()/24))}
	}
	step := step(r.Until.Sub(r.Since) / time.Duration(points-1))
	until := r.Until.Truncate(step)
	n := min(int(until.Sub(r.Since)/step)+1, points)
	if n < 1 { // the range is shorter than a step, and has no multiple of it
		n = 1
	}
	return grid{until.Add(-time.Duration(n-1) * step).UTC(), step, n}, nil
}

func (g grid) until() time.Time { return g.since.Add(time.Duration(g.n-1) * g.step) }

// mixed returns the number of first values that contain measurements from before begin. With long steps, each value summarizes the time since the
// previous value. Rates need a little more time.
func (g grid) mixed(begin time.Time) (n int) {
	if begin.IsZero() || g.step <= 2*minStep {
		return 0
	}
	for n < g.n && g.since.Add(time.Duration(n-1)*g.step-minStep).Before(begin) {
		n++
	}
	return n
}

var (
	// ErrNone means that the cluster has no Prometheus.
	ErrNone = errors.New("the use over time isn't known: the cluster has no Prometheus")
	// ErrAway means that Prometheus doesn't respond.
	ErrAway = errors.New("the use over time isn't known: Prometheus doesn't answer")
)

// Remedies of ErrNone and ErrAway.
const (
	RemedyNone = "an operator starts it with: paictl service start -n prometheus"
	RemedyAway = "try again in a moment; an operator sees its state with: paictl service status -n prometheus"
)

// Reader reads reports from Prometheus.
type Reader struct {
	// Ask sends a request to the HTTP API of a service of the platform, as pkg/diagnose/web does. If the cluster doesn't have the service, the error
	// is a web.NoneError.
	Ask func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error)
	// Failed is called with the reason if Prometheus doesn't respond. It may be nil.
	Failed func(error)
}

const atOnce = 4

// Read reads the report of a subject. The error is a RangeError, ErrNone or ErrAway.
func (r *Reader) Read(ctx context.Context, s *Subject, of Range) (*Report, error) {
	g, err := of.grid()
	if err != nil {
		return nil, err
	}
	if r == nil || r.Ask == nil {
		return nil, hint.Wrap(ErrNone, RemedyNone)
	}
	raw := make([]Chart, len(s.queries))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i := range s.queries {
		all.Go(func() (err error) {
			raw[i], err = r.chart(each, s, &s.queries[i], g)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx) // the caller has gone
		}
		if _, none := errors.AsType[*web.NoneError](err); none {
			return nil, hint.Wrap(ErrNone, RemedyNone)
		}
		if r.Failed != nil {
			r.Failed(err)
		}
		return nil, hint.Wrap(fmt.Errorf("%w: %w", ErrAway, err), RemedyAway)
	}
	out := &Report{Since: g.since, Until: g.until(), Step: int(g.step.Seconds()), Charts: []Chart{}, Findings: find(raw)}
	for i := range raw {
		if c := fold(&raw[i], s.queries[i].most); len(c.Series) > 0 && (!s.queries[i].rare || !silent(c)) {
			out.Charts = append(out.Charts, *c)
		}
	}
	if len(out.Charts) == 0 {
		out.Note = s.nothing
	}
	return out, nil
}

func silent(c *Chart) bool {
	for i := range c.Series {
		for _, v := range c.Series[i].Values {
			if v != nil && *v != 0 {
				return false
			}
		}
	}
	return true
}

// fold returns a chart with at most most series. If the chart has more series, fold replaces them with their lowest, mean and highest values.
func fold(c *Chart, most int) *Chart {
	if len(c.Series) <= most || c.Folded != 0 {
		return c
	}
	n := len(c.Series[0].Values)
	out := &Chart{Name: c.Name, Title: c.Title, Unit: c.Unit, Folded: len(c.Series)}
	low, mean, high := make([]*float64, n), make([]*float64, n), make([]*float64, n)
	for at := range n {
		var values []float64
		for i := range c.Series {
			if v := c.Series[i].Values[at]; v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			continue
		}
		lowest, sum, highest := values[0], 0.0, values[0]
		for _, v := range values {
			lowest, sum, highest = min(lowest, v), sum+v, max(highest, v)
		}
		low[at], mean[at], high[at] = &lowest, new(rounded(sum/float64(len(values)))), &highest
	}
	out.Series = []Series{{Name: Lowest, Values: low}, {Name: Mean, Values: mean}, {Name: Highest, Values: high}}
	limit := c.Series[0].Limit
	for i := range c.Series {
		if limit == nil || c.Series[i].Limit == nil || *c.Series[i].Limit != *limit {
			return out
		}
	}
	for i := range out.Series {
		out.Series[i].Limit = limit
	}
	return out
}
