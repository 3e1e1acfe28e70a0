package job

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// busy is a store in which another import is in progress.
type busy struct{ archive.Store }

func (busy) Import(context.Context, io.Reader, int64, bool) (*api.Import, error) {
	return nil, archive.ErrImporting
}

func TestAHistoryIsReadAndPutBackThroughTheAPIServer(t *testing.T) {
	open := func() archive.Store {
		s, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	before, now := open(), open()
	serve := func(s archive.Store) *server.Server {
		return server.New(server.Options{Store: s, Metrics: prometheus.NewRegistry(), Token: func() string { return jobtest.Token }, Log: slog.New(slog.DiscardHandler)})
	}
	f := &v1.Framework{}
	f.Name, f.UID, f.CreationTimestamp = v1.ObjectName("ann", "train"), types.UID("u"), metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	f.Labels = map[string]string{v1.LabelUser: "ann"}
	f.Annotations = map[string]string{v1.AnnotationJobName: "train"}
	require.NoError(t, before.SaveJob(t.Context(), f))
	require.NoError(t, before.SaveLog(t.Context(), api.LogKey{Framework: f.Name, Role: "worker"}, bytes.Repeat([]byte("line\n"), 1<<20), false))

	c, _ := onServer(t, jobtest.Services{api.Service: serve(before).Handler()})
	data, size, err := c.History.Archive(t.Context())
	require.NoError(t, err)
	text, err := io.ReadAll(data)
	require.NoError(t, err)
	require.NoError(t, data.Close())

	c, _ = onServer(t, jobtest.Services{api.Service: serve(now).Handler()})
	for _, want := range []api.Import{{Jobs: 1}, {Known: 1}} {
		added, err := c.History.PutBack(t.Context(), bytes.NewReader(text), size)
		require.NoError(t, err)
		assert.Equal(t, &want, added)
	}
	d, err := c.History.Job(t.Context(), f.Name)
	require.NoError(t, err)
	assert.Equal(t, "u", d.UID)
	_, err = c.History.PutBack(t.Context(), bytes.NewReader(text[:size/2]), size/2)
	require.Error(t, err)

	c, _ = onServer(t, jobtest.Services{api.Service: serve(busy{now}).Handler()})
	_, err = c.History.PutBack(t.Context(), bytes.NewReader(text), size)
	require.ErrorContains(t, err, "another import is running")
	assert.Equal(t, "try again when that has ended", hint.Of(err))
}
