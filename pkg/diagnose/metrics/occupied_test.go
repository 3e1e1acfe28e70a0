package metrics

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The use of held GPUs is summed up over windows of a day.
func TestTheUseOfHeldGPUs(t *testing.T) {
	var mu sync.Mutex
	var asked []url.Values
	answer := func(_ context.Context, service, path string, q url.Values) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, q)
		assert.Equal(t, "prometheus /api/v1/query", service+" "+path)
		one := func(part, value string) string {
			return `{"metric":{"user":"ann","vc":"vision","part":"` + part + `"},"value":[1700000000,"` + value + `"]}`
		}
		return io.NopCloser(strings.NewReader(`{"status":"success","data":{"resultType":"vector","result":[` + one("measured", "12") + "," + one("used", "6.5") + "," + one("idle", "3") + `]}}`)), nil
	}
	r := &Reader{Ask: answer}
	out, err := r.Occupied(t.Context(), "ann", `a"b`, noon.Add(-36*time.Hour), noon)
	require.NoError(t, err)
	require.Equal(t, []OccupiedUse{{"ann", "vision", 2 * 12 * 300, 2 * 6.5 * 300, 2 * 3 * 300}}, out)
	require.Len(t, asked, 2)
	var windows []string
	for _, q := range asked {
		assert.Contains(t, q.Get("query"), `user="ann", vc="a\"b"`)
		_, rest, _ := strings.Cut(q.Get("query"), ")[")
		window, _, _ := strings.Cut(rest, "]")
		windows = append(windows, window)
	}
	assert.ElementsMatch(t, []string{"86400s:300s", "43200s:300s"}, windows)
	_, err = r.Occupied(t.Context(), "", "", noon, noon)
	require.ErrorContains(t, err, "since")
	_, err = (&Reader{}).Occupied(t.Context(), "", "", noon.Add(-time.Hour), noon)
	require.ErrorIs(t, err, ErrNone)
	r.Ask = func(context.Context, string, string, url.Values) (io.ReadCloser, error) { return nil, errors.New("x") }
	_, err = r.Occupied(t.Context(), "", "", noon.Add(-time.Hour), noon)
	require.ErrorIs(t, err, ErrAway)
}
