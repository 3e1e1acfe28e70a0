package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/openpai/paictl/pkg/diagnose/web"
)

const (
	service = "prometheus"
	// maxRaw is the maximum number of series to read for a query. For more series, Prometheus returns only summaries.
	maxRaw = 64
	// maxBytes is the maximum size of a response. maxRaw series of MaxPoints values need about 1 MB.
	maxBytes = 8 << 20
)

// errMany is the error for a response with more than maxRaw series.
var errMany = errors.New("there are too many series")

// chart reads the chart of a query. If the query has more than maxRaw series, the chart contains only their lowest, mean and highest values.
func (r *Reader) chart(ctx context.Context, s *Subject, q *query, g grid) (Chart, error) {
	c := Chart{Name: q.name, Title: q.title, Unit: q.unit}
	w := where{s.match, g.step}
	expr := q.expr(w)
	series, err := r.series(ctx, s, q.by, expr, g)
	if errors.Is(err, errMany) {
		c.Folded = -1
		c.Series, err = r.series(ctx, s, []string{labelPart}, part(Lowest, "min("+expr+")")+" or "+part(Mean, "avg("+expr+")")+" or "+part(Highest, "max("+expr+")"), g)
		return c, err
	}
	if c.Series = series; err != nil || q.limit == nil || len(series) == 0 {
		return c, err
	}
	limits, err := r.series(ctx, s, q.by, q.limit(w), g)
	if err != nil && !errors.Is(err, errMany) {
		return c, err
	}
	for i := range c.Series {
		for k := range limits {
			if limits[k].Name == c.Series[i].Name {
				c.Series[i].Limit = highest(limits[k].Values)
			}
		}
	}
	return c, nil
}

// highest returns the highest value, or nil if no value was measured.
func highest(values []*float64) (out *float64) {
	for _, v := range values {
		if v != nil && (out == nil || *v > *out) {
			out = v
		}
	}
	return out
}

// series returns the series of a query, sorted, and named after the given labels. The error is errMany for more than maxRaw series.
func (r *Reader) series(ctx context.Context, s *Subject, by []string, expr string, g grid) ([]Series, error) {
	at := func(i int) string { return strconv.FormatInt(g.since.Unix()+int64(i)*int64(g.step.Seconds()), 10) }
	body, err := r.Ask(ctx, service, "/api/v1/query_range", url.Values{
		"query": {expr}, "start": {at(0)}, "end": {at(g.n - 1)}, "step": {strconv.Itoa(int(g.step.Seconds()))}, "limit": {strconv.Itoa(maxRaw + 1)}, "timeout": {"20s"}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var out []Series
	mixed := g.mixed(s.begin)
	err = web.Results(io.LimitReader(body, maxBytes), func(d *json.Decoder) error {
		var one result
		if err := d.Decode(&one); err != nil {
			return err
		}
		if len(out) == maxRaw {
			return errMany
		}
		x := one.series(s, by, g)
		clear(x.Values[:mixed])
		if mixed == 0 || highest(x.Values) != nil {
			out = append(out, x)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the answer of Prometheus: %w", err)
	}
	slices.SortFunc(out, compare)
	distinguish(out)
	return out, nil
}

// result is one series in a response of Prometheus: {"metric":{"pod":"a"},"values":[[1700000000,"0.5"]]}.
type result struct {
	Metric map[string]string `json:"metric"`
	Values []point           `json:"values"`
}

// point is a value and its time in seconds since 1970.
type point struct{ at, value float64 }

// UnmarshalJSON implements json.Unmarshaler. Prometheus writes values as strings, because JSON has no NaN.
func (p *point) UnmarshalJSON(data []byte) error {
	var pair [2]json.RawMessage
	var text string
	err := json.Unmarshal(data, &pair)
	if err == nil {
		err = errors.Join(json.Unmarshal(pair[0], &p.at), json.Unmarshal(pair[1], &text))
	}
	if err == nil {
		p.value, err = strconv.ParseFloat(text, 64)
	}
	return err
}

func (one *result) series(s *Subject, by []string, g grid) Series {
	out := Series{Values: make([]*float64, g.n)}
	for _, label := range by {
		switch value := one.Metric[label]; label {
		case "pod":
			out.Task = s.task(value)
		case "node":
			out.Node = value
		case "gpu":
			out.GPU = value
		default:
			out.Name = value
		}
	}
	if out.Name == "" {
		out.Name = out.Task
	}
	if out.GPU != "" {
		if out.Name != "" {
			out.Name += " "
		}
		out.Name += "GPU " + out.GPU
	}
	for _, p := range one.Values {
		i := int(math.Round((p.at - float64(g.since.Unix())) / g.step.Seconds()))
		if i >= 0 && i < g.n && !math.IsNaN(p.value) && !math.IsInf(p.value, 0) {
			out.Values[i] = new(rounded(p.value))
		}
	}
	return out
}

// rounded returns a value with four digits, because a chart doesn't show more digits.
func rounded(v float64) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return out
}

// compare orders series by task, node, GPU and name. It compares numbers as numbers, so that worker[2] comes before worker[10].
func compare(a, b Series) int {
	return cmp.Or(natural(a.Task, b.Task), natural(a.Node, b.Node), natural(a.GPU, b.GPU), slices.Index(order, a.Name)-slices.Index(order, b.Name), natural(a.Name, b.Name))
}

// order contains the names of series in the order of a chart.
var order = []string{"guaranteed", "used", "opportunistic", "bad", "jobs", "tasks", "all", "the busiest", Lowest, Mean, Highest}

// natural compares strings. It compares numbers in the strings as numbers.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, errA := strconv.ParseUint(a[:x], 10, 64)
			n, errB := strconv.ParseUint(b[:y], 10, 64)
			if c := cmp.Compare(m, n); c != 0 && errA == nil && errB == nil {
				return c
			}
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// distinguish adds the machine to the names of series that have the same name. For example, a task after a retry may have used GPU 0 of several
// machines.
func distinguish(all []Series) {
	count := map[string]int{}
	for i := range all {
		count[all[i].Name]++
	}
	for i := range all {
		if s := &all[i]; count[s.Name] > 1 && s.Node != "" {
			s.Name += " on " + s.Node
		}
	}
}
