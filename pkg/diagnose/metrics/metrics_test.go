package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/hint"
)

func parse(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return v
}

var (
	noon    = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	anHour  = Range{Since: noon.Add(-time.Hour), Until: noon}
	trainer = OfJob("0123", []Role{{"worker", "worker"}, {"Server 1", "server-1"}}, -1)
)

// fake is a Prometheus with stored responses. It responds to any other query with an empty result.
type fake struct {
	mu      sync.Mutex
	answers map[string]string // by a part of the query
	asked   []url.Values
}

func (f *fake) ask(_ context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if service != "prometheus" || path != "/api/v1/query_range" {
		return nil, errors.New("unexpected request: " + service + path)
	}
	f.asked = append(f.asked, query)
	for part, answer := range f.answers {
		if strings.Contains(query.Get("query"), part) {
			return io.NopCloser(strings.NewReader(answer)), nil
		}
	}
	return io.NopCloser(strings.NewReader(`{"status":"success","data":{"resultType":"matrix","result":[]}}`)), nil
}

// matrix returns a response in which each series has one value, at the end of anHour.
func matrix(labels ...string) string {
	var out []string
	for i, l := range labels {
		out = append(out, fmt.Sprintf(`{"metric":{%s},"values":[[%d,"%d"]]}`, l, noon.Unix(), i+1))
	}
	return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(out, ",") + `]}}`
}

func names(c *Chart) (out []string) {
	for i := range c.Series {
		out = append(out, c.Series[i].Name)
	}
	return out
}

// The file is a recorded response of Prometheus 2.42 to the query of GPU use, for series of test/alerts.
func TestARecordedAnswerIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/gpu-use.json")
	require.NoError(t, err)
	f := &fake{answers: map[string]string{"DCGM_FI_DEV_GPU_UTIL": string(data)}}
	r, err := (&Reader{Ask: f.ask}).Read(t.Context(), trainer, anHour)
	require.NoError(t, err)
	require.Len(t, r.Charts, 1)
	c := r.Charts[0]
	assert.Equal(t, "gpu-use", c.Name)
	assert.Equal(t, []string{"Server 1[0] GPU 0", "worker[2] GPU 0", "worker[10] GPU 0 on gpu-1", "worker[10] GPU 0 on gpu-2"}, names(&c))
	assert.Equal(t, "gpu-1", c.Series[0].Node)
	assert.Len(t, c.Series[0].Values, 121, "an hour, each 30 seconds")
	assert.Nil(t, c.Series[2].Values[0], "it ran later")
	assert.Equal(t, 30, r.Step)
}

func TestQueriesSelectOnlyTheSubject(t *testing.T) {
	all := map[string]*Subject{
		"job":     trainer,
		"task":    OfJob("0123", []Role{{"worker", "worker"}}, 3),
		"odd":     OfJob(`a"b`, []Role{{"r", `x.*|y"\`}}, -1),
		"machine": OfMachine(`gpu"1\`, true),
		"vc":      OfVC("a\nb\"} or vector(1) #"),
	}
	matcher := map[string]string{
		"job":     `namespace="pai-jobs", pod=~"0123-(server-1|worker)-[0-9]+"`,
		"task":    `namespace="pai-jobs", pod=~"0123-(worker)-3"`,
		"odd":     `namespace="pai-jobs", pod=~"a\"b-(x\\.\\*\\|y\"\\\\)-[0-9]+"`,
		"machine": `node="gpu\"1\\"`,
		"vc":      `vc="a\nb\"} or vector(1) #"`,
	}
	for name, s := range all {
		for _, step := range []time.Duration{minStep, time.Hour} {
			for i := range s.queries {
				q := &s.queries[i]
				exprs := []string{q.expr(where{s.match, step})}
				if q.limit != nil {
					exprs = append(exprs, q.limit(where{s.match, step}))
				}
				for _, expr := range exprs {
					rest := strings.ReplaceAll(expr, matcher[name], "")
					assert.NotEqual(t, expr, rest, "%s %s selects nothing of the subject: %s", name, q.name, expr)
					if name != "vc" || q.name != "held-use" {
						assert.Equal(t, strings.Count(expr, "{"), strings.Count(expr, matcher[name]), "%s %s: each selector has the matcher: %s", name, q.name, expr)
					}
				}
			}
		}
	}
}

// The queries together request at most as many series as a report may contain.
func TestAReportHasAtMostMaxSeries(t *testing.T) {
	for _, s := range []*Subject{trainer, OfMachine("m", true), OfVC("v")} {
		sum, seen := 0, map[string]bool{}
		for i := range s.queries {
			sum += s.queries[i].most // or three, if they are folded
			assert.False(t, seen[s.queries[i].name], "two charts are called %s", s.queries[i].name)
			seen[s.queries[i].name] = true
		}
		assert.LessOrEqual(t, sum, MaxSeries)
	}
}

func TestManySeriesAreFolded(t *testing.T) {
	var gpus []string
	for i := range 9 {
		gpus = append(gpus, fmt.Sprintf(`"pod":"0123-worker-0","node":"gpu-1","gpu":"%d"`, i))
	}
	f := &fake{answers: map[string]string{"DCGM_FI_DEV_GPU_UTIL": matrix(gpus...)}}
	r, err := (&Reader{Ask: f.ask}).Read(t.Context(), trainer, anHour)
	require.NoError(t, err)
	require.Len(t, r.Charts, 1)
	c := r.Charts[0]
	assert.Equal(t, 9, c.Folded)
	assert.Equal(t, []string{Lowest, Mean, Highest}, names(&c))
	for i, want := range []float64{1, 5, 9} {
		v := c.Series[i].Values
		assert.Nil(t, v[0])
		assert.InDelta(t, want, *v[len(v)-1], 0)
	}
}

func TestMoreSeriesThanAreReadAreFoldedByPrometheus(t *testing.T) {
	var pods []string
	for i := range maxRaw + 1 {
		pods = append(pods, fmt.Sprintf(`"pod":"0123-worker-%d"`, i))
	}
	f := &fake{answers: map[string]string{`label_replace(min(sum by (pod) (container_memory_working_set_bytes`: matrix(`"part":"lowest"`, `"part":"mean"`, `"part":"highest"`)}}
	ask := func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
		if strings.HasPrefix(query.Get("query"), "sum by (pod) (container_memory_working_set_bytes") {
			assert.Equal(t, strconv.Itoa(maxRaw+1), query.Get("limit"))
			return io.NopCloser(strings.NewReader(matrix(pods...))), nil
		}
		return f.ask(ctx, service, path, query)
	}
	r, err := (&Reader{Ask: ask}).Read(t.Context(), trainer, anHour)
	require.NoError(t, err)
	require.Len(t, r.Charts, 1)
	assert.Equal(t, -1, r.Charts[0].Folded)
	assert.Equal(t, []string{Lowest, Mean, Highest}, names(&r.Charts[0]))
}

func TestSeriesHaveTheirLimits(t *testing.T) {
	f := &fake{answers: map[string]string{
		"container_memory_working_set_bytes": matrix(`"pod":"0123-worker-0"`, `"pod":"0123-worker-1"`), "container_spec_memory_limit_bytes": matrix(`"pod":"0123-worker-1"`)}}
	r, err := (&Reader{Ask: f.ask}).Read(t.Context(), trainer, anHour)
	require.NoError(t, err)
	require.Len(t, r.Charts, 1)
	assert.Nil(t, r.Charts[0].Series[0].Limit)
	assert.InDelta(t, 1, *r.Charts[0].Series[1].Limit, 0)
}

func TestAReportWithoutFiguresSaysSo(t *testing.T) {
	r, err := (&Reader{Ask: (&fake{}).ask}).Read(t.Context(), trainer, anHour)
	require.NoError(t, err)
	assert.Empty(t, r.Charts)
	assert.NotNil(t, r.Charts)
	assert.Contains(t, r.Note, "Prometheus has no figures of this time")
}

func TestPrometheusMayBeMissingOrAway(t *testing.T) {
	failing := func(err error) *Reader {
		return &Reader{Ask: func(context.Context, string, string, url.Values) (io.ReadCloser, error) { return nil, err }}
	}
	for _, r := range []*Reader{nil, {}, failing(&web.NoneError{Service: "prometheus"})} {
		_, err := r.Read(t.Context(), trainer, anHour)
		require.ErrorIs(t, err, ErrNone)
		assert.Equal(t, RemedyNone, hint.Of(err))
	}
	told := 0
	r := failing(errors.New("connection refused"))
	r.Failed = func(error) { told++ }
	_, err := r.Read(t.Context(), trainer, anHour)
	require.ErrorIs(t, err, ErrAway)
	assert.Equal(t, RemedyAway, hint.Of(err))
	assert.Equal(t, 1, told)
	for _, answer := range []string{"", "{", `{"data":{"result":{}}}`, `{"data":{"result":[{"values":[[1]]}]}}`, `{"data":{"result":[{"values":[[1,"x"]]}]}}`, `{"status":"error"}`} {
		garbled := &fake{answers: map[string]string{"": answer}}
		_, err := (&Reader{Ask: garbled.ask}).Read(t.Context(), trainer, anHour)
		require.ErrorIs(t, err, ErrAway, answer)
	}
}

func TestValuesThatAreNoNumbersAreLeftOut(t *testing.T) {
	f := &fake{answers: map[string]string{"DCGM_FI_DEV_GPU_UTIL": fmt.Sprintf(`{"data":{"result":[{"metric":{"pod":"0123-worker-0","gpu":"0"},"values":[[%[1]d,"NaN"],[%[2]d,"+Inf"],[%[3]d,"12.3456"],[1,"5"]]}]}}`,
		noon.Unix()-60, noon.Unix()-30, noon.Unix())}}
	r, err := (&Reader{Ask: f.ask}).Read(t.Context(), trainer, anHour)
	require.NoError(t, err)
	v := r.Charts[0].Series[0].Values
	assert.Nil(t, v[len(v)-3])
	assert.Nil(t, v[len(v)-2])
	assert.InDelta(t, 12.35, *v[len(v)-1], 0)
}

func TestTheTimesOfARange(t *testing.T) {
	for name, c := range map[string]struct {
		since, until time.Duration // before noon
		points       int
		step         time.Duration
		n            int
	}{
		"an hour":                 {time.Hour, 0, 0, 30 * time.Second, 121},
		"six hours":               {6 * time.Hour, 0, 0, 90 * time.Second, 241},
		"thirty days":             {MaxSpan, 0, 0, 3 * time.Hour, 241},
		"few points":              {time.Hour, 0, 2, time.Hour, 2},
		"a minute":                {time.Minute, 0, 0, 30 * time.Second, 3},
		"a second":                {time.Second, 0, 0, 30 * time.Second, 1},
		"not a multiple of steps": {time.Hour + 7*time.Second, 3 * time.Second, 60, 90 * time.Second, 40},
	} {
		t.Run(name, func(t *testing.T) {
			r := Range{Since: noon.Add(-c.since), Until: noon.Add(-c.until), Points: c.points}
			g, err := r.grid()
			require.NoError(t, err)
			assert.Equal(t, c.step, g.step)
			assert.Equal(t, c.n, g.n)
			assert.LessOrEqual(t, g.n, MaxPoints)
			assert.False(t, g.until().After(r.Until))
			assert.Equal(t, g.until(), g.until().Truncate(g.step), "a multiple of the step")
		})
	}
	for text, r := range map[string]Range{
		`"points" is 301: give 2 to 300`:                                      {noon.Add(-time.Hour), noon, 301},
		`"points" is -1: give 2 to 300`:                                       {noon.Add(-time.Hour), noon, -1},
		`"since" isn't before "until"`:                                        {noon, noon, 0},
		`from "since" to "until" is more than 30 days: choose a shorter time`: {noon.Add(-MaxSpan - time.Second), noon, 0},
	} {
		_, err := r.grid()
		require.EqualError(t, err, text)
	}
}

func TestAWindowIsWithinTheTimeOfAJob(t *testing.T) {
	begin, end := noon.Add(-10*time.Hour), noon
	for name, c := range map[string]struct {
		w            Window
		since, until time.Time
	}{
		"all of it":              {Window{}, begin, end},
		"its last hour":          {Window{Last: time.Hour}, noon.Add(-time.Hour), end},
		"more than all of it":    {Window{Last: 24 * time.Hour}, begin, end},
		"from before it":         {Window{Since: noon.Add(-time.Hour * 24)}, begin, end},
		"until after it":         {Window{Since: noon.Add(-time.Hour), Until: noon.Add(time.Hour)}, noon.Add(-time.Hour), end},
		"an hour before another": {Window{Last: time.Hour, Until: noon.Add(-time.Hour)}, noon.Add(-2 * time.Hour), noon.Add(-time.Hour)},
		"before it":              {Window{Last: time.Hour, Until: noon.Add(-20 * time.Hour)}, noon.Add(-20*time.Hour - minStep), noon.Add(-20 * time.Hour)},
		"after it":               {Window{Since: noon.Add(time.Hour)}, noon.Add(-minStep), noon},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := c.w.Within(begin, end, MaxSpan)
			require.NoError(t, err)
			assert.Equal(t, c.since, r.Since)
			assert.Equal(t, c.until, r.Until)
			_, err = r.grid()
			require.NoError(t, err)
		})
	}
	_, err := Window{Since: noon, Until: noon}.Within(begin, end, MaxSpan)
	require.EqualError(t, err, `"since" isn't before "until"`)
}

func TestNamesAreInTheOrderOfPeople(t *testing.T) {
	for _, c := range [][2]string{{"worker[2]", "worker[10]"}, {"2", "10"}, {"a", "b"}, {"", "a"}, {"GPU 9", "GPU 10"}, {"a1b2", "a1b10"}} {
		assert.Negative(t, natural(c[0], c[1]), c)
		assert.Positive(t, natural(c[1], c[0]), c)
	}
	assert.Zero(t, natural("worker[1]", "worker[1]"))
}

func TestManyRolesMakeAShortQuery(t *testing.T) {
	var roles []Role
	for i := range 1000 {
		roles = append(roles, Role{fmt.Sprint("role-", i), fmt.Sprint("role-", i)})
	}
	const hash = "0123456789abcdef0123456789abcdef"
	s := OfJob(hash, roles, -1)
	assert.Equal(t, `namespace="pai-jobs", pod=~"`+hash+`-(.+)-[0-9]+"`, s.match)
	assert.Equal(t, "role-7[3]", s.task(hash+"-role-7-3"))
	assert.Contains(t, OfJob("a", roles, -1).match, "role-7|", "another Framework may be called a-b")
}

func TestACallerWhoHasGoneIsNoFaultOfPrometheus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &Reader{Ask: func(context.Context, string, string, url.Values) (io.ReadCloser, error) {
		cancel()
		return nil, ctx.Err()
	}, Failed: func(err error) { t.Error(err) }}
	_, err := r.Read(ctx, trainer, anHour)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrAway)
}
