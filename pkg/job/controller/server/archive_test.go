package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

func TestTheWholeArchiveIsSentToWhoHasTheToken(t *testing.T) {
	h := newHarness(t)
	h.save(t, "alice", "train", 0)
	resp := h.ask(t, http.MethodGet, "/v1/archive", nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "SQLite format 3\x00"))
	assert.Equal(t, strconv.Itoa(len(text)), resp.Header.Get("Content-Length"))

	h.options.Token = func() string { return "another" }
	assert.Equal(t, http.StatusForbidden, h.ask(t, http.MethodGet, "/v1/archive", nil).StatusCode)
}

func TestAHistoryIsTakenFromWhoHasTheToken(t *testing.T) {
	old, h := newHarness(t), newHarness(t)
	old.save(t, "alice", "train", 0)
	data, size, err := old.store.Export(t.Context(), false)
	require.NoError(t, err)
	text, err := io.ReadAll(data)
	require.NoError(t, err)
	require.NoError(t, data.Close())
	looked := 0
	h.options.Imported = func() { looked++ }
	put := func(body io.Reader) *http.Response { return h.ask(t, http.MethodPut, "/v1/archive", body) }
	resp := put(bytes.NewReader(text))
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Len(t, text, int(size))
	var added api.Import
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&added))
	assert.Equal(t, api.Import{Jobs: 1}, added)
	assert.Equal(t, 1, looked, "whether its jobs still are")
	assert.Equal(t, "train", get[api.JobPage](t, h, "/v1/jobs").Items[0].Name)

	for says, body := range map[string]io.Reader{
		"isn't a history of jobs": bytes.NewReader([]byte("no database, but long enough to be one")),
		"the size is missing":     io.MultiReader(bytes.NewReader(text)),
	} {
		resp := put(body)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
		assert.Contains(t, failure(t, resp).Message, says)
	}
	assert.Equal(t, 1, looked)
	h.options.Token = func() string { return "another" }
	assert.Equal(t, http.StatusForbidden, put(bytes.NewReader(text)).StatusCode)
}

// elsewhere is a store whose database has separate backups.
type elsewhere struct{ archive.Store }

func (elsewhere) Export(context.Context, bool) (io.ReadCloser, int64, error) {
	return nil, 0, archive.ErrElsewhere
}

func TestAnArchiveThatIsElsewhereIsNotSent(t *testing.T) {
	h := newHarness(t)
	h.options.Store = elsewhere{h.store}
	resp := h.ask(t, http.MethodGet, "/v1/archive", nil)
	assert.Equal(t, http.StatusNotImplemented, resp.StatusCode)
	assert.Contains(t, failure(t, resp).Message, "PostgreSQL, which is backed up separately")
}
