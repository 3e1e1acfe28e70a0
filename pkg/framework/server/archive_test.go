package server_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/framework/archive"
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

// elsewhere is a store whose database someone else keeps.
type elsewhere struct{ archive.Store }

func (elsewhere) Export(context.Context) (io.ReadCloser, int64, error) {
	return nil, 0, archive.ErrElsewhere
}

func TestAnArchiveThatIsElsewhereIsNotSent(t *testing.T) {
	h := newHarness(t)
	h.options.Store = elsewhere{h.store}
	resp := h.ask(t, http.MethodGet, "/v1/archive", nil)
	assert.Equal(t, http.StatusNotImplemented, resp.StatusCode)
	assert.Contains(t, failure(t, resp).Message, "PostgreSQL, which has backups of its own")
}
