package metrics

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// always responds to queries that contain part with a series that is 1 at each time. Such a series results if the series of an earlier job
// continues as the series of a later job with the same name.
func always(part string) func(context.Context, string, string, url.Values) (io.ReadCloser, error) {
	return func(_ context.Context, _, _ string, q url.Values) (io.ReadCloser, error) {
		number := func(name string) int { n, _ := strconv.Atoi(q.Get(name)); return n }
		var values []string
		if strings.Contains(q.Get("query"), part) {
			for at := number("start"); at <= number("end"); at += number("step") {
				values = append(values, fmt.Sprintf(`[%d,"1"]`, at))
			}
		}
		if values == nil {
			return io.NopCloser(strings.NewReader(matrix())), nil
		}
		return io.NopCloser(strings.NewReader(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"0123-worker-0","node":"a","gpu":"0"},"values":[` + strings.Join(values, ",") + `]}]}}`)), nil
	}
}

func TestValuesThatLookBackToAnEarlierJobOfTheNameAreLeftOut(t *testing.T) {
	begin := noon.Add(-10 * 24 * time.Hour)
	job := func() *Subject { return OfJob("0123", []Role{{"worker", "worker"}}, -1).Since(begin) }
	read := func(s *Subject, r Range) *Report {
		t.Helper()
		out, err := (&Reader{Ask: always("DCGM_FI_DEV_GPU_UTIL")}).Read(t.Context(), s, r)
		require.NoError(t, err)
		return out
	}
	r := read(job(), Range{Since: begin, Until: noon})
	require.Len(t, r.Charts, 1)
	values, step := r.Charts[0].Series[0].Values, time.Duration(r.Step)*time.Second
	require.Greater(t, step, 2*minStep)
	for i, v := range values {
		at := r.Since.Add(time.Duration(i) * step)
		assert.Equal(t, at.Add(-step-minStep).Before(begin), v == nil, "%s is about the time since %s, and the job began at %s", at, at.Add(-step), begin)
	}
	assert.Nil(t, values[0])
	assert.NotNil(t, values[2])

	later := read(job(), Range{Since: begin.Add(24 * time.Hour), Until: noon})
	assert.NotNil(t, later.Charts[0].Series[0].Values[0], "a range that begins later has all values")
	short := read(job(), Range{Since: begin, Until: begin.Add(time.Hour)})
	assert.NotNil(t, short.Charts[0].Series[0].Values[0], "with short steps, a value is that of its time")
	two := read(job(), Range{Since: begin, Until: begin.Add(3 * time.Hour), Points: 2})
	assert.Empty(t, two.Charts, "no value is only about this job")
	assert.NotEmpty(t, two.Note)
	assert.NotNil(t, read(OfMachine("a", false), Range{Since: begin, Until: noon}).Charts[0].Series[0].Values[0], "a machine has no earlier one")
}
