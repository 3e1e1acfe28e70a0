package server

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAListCountsAsWhatItTakes(t *testing.T) {
	taken, given := 0, 0
	w := httptest.NewRecorder()
	c := &Call{Writer: w, Request: httptest.NewRequest("GET", "/", nil), Route: &Route{}, rows: func(n int) (func(), error) {
		taken = n
		return func() { given++ }, nil
	}}
	text := strings.Repeat("<", 1<<20)
	wrote := 0
	require.NoError(t, c.List(`{"items":`, `}`, 3<<20, func(yield func(any) bool) {
		for range 3 {
			assert.Zero(t, given, "it counts until all is written")
			wrote++
			if !yield(text) {
				return
			}
		}
	}))
	assert.Equal(t, 3<<10+1, taken)
	assert.Equal(t, 1, given)
	assert.Equal(t, 3, wrote)
	one := `"` + strings.Repeat(`\u003c`, 1<<20) + `"`
	assert.Equal(t, `{"items":[`+strings.Join(slices.Repeat([]string{one}, 3), ",")+`]}`, w.Body.String())
}

func TestAPersonHasOneSuchListAtATime(t *testing.T) {
	r := Listing[struct{}, []string]("/lists", "open", "Lists", func(c *Call, _ *struct{}) error { return c.List("", "", 0, slices.Values([]any{})) })
	assert.Equal(t, 1, r.Limit.Each)
	w := httptest.NewRecorder()
	require.NoError(t, r.Serve(&Call{Writer: w, Request: httptest.NewRequest("GET", "/lists", nil), Route: &r}))
	assert.Equal(t, "[]", strings.TrimSpace(w.Body.String()))
}
