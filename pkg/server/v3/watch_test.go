package v3

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/server"
)

// bounded is a ResponseWriter that records the write deadlines.
type bounded struct {
	*httptest.ResponseRecorder
	ends []time.Time
}

func (b *bounded) SetWriteDeadline(end time.Time) error {
	b.ends = append(b.ends, end)
	return nil
}

// Data that waits for its reader occupies memory that other requests need.
func TestAWholeListHasOneTimeToBeRead(t *testing.T) {
	w := &bounded{ResponseRecorder: httptest.NewRecorder()}
	call := &server.Call{Writer: w, Request: httptest.NewRequest(http.MethodGet, "/", nil)}
	s := &sink{call: call, Events: call.Events()}
	page := &listing.Page{}
	for range 100 {
		page.Items = append(page.Items, listing.Row{Job: api.Job{Name: strings.Repeat("x", 4<<10)}})
	}
	send, err := s.Snapshot(page, "new", "1")
	require.NoError(t, err)
	assert.Empty(t, w.ends, "nothing is sent yet")
	require.NoError(t, send())
	text := w.Body.String()
	assert.True(t, strings.HasPrefix(text, "retry: 2000\n\nevent: snapshot\ndata: {"), text[:100])
	assert.Equal(t, 100, strings.Count(text, "\nevent: job\ndata: {"))
	assert.Contains(t, text[len(text)-100:], "id: 1\nevent: ready\ndata: {")
	assert.True(t, strings.HasSuffix(text, "}\n\n"))
	require.Greater(t, len(w.ends), 3, "it is sent in parts")
	last := len(w.ends) - 1
	for _, end := range w.ends[:last] {
		assert.Equal(t, w.ends[0], end)
	}
	assert.True(t, w.ends[last].After(w.ends[0]), "the stream goes on after it")
}

func TestAGroupOfChangesEndsWithAPlace(t *testing.T) {
	w := httptest.NewRecorder()
	call := &server.Call{Writer: w, Request: httptest.NewRequest(http.MethodGet, "/", nil)}
	s := &sink{call: call, Events: call.Events()}
	require.NoError(t, s.Heartbeat("1"))
	require.NoError(t, s.Commit("2"))
	assert.Equal(t, "retry: 2000\n\nid: 1\n: \n\nid: 2\n: \n\n", w.Body.String())
}
