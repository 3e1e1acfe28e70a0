package migrate_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	historyserver "github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/openpai/history"
	"github.com/openpai/paictl/pkg/openpai/history/historytest"
	_ "github.com/openpai/paictl/pkg/openpai/history/reader" // is in the built program: if it changes, no cached result counts
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
)

func TestJobsOfOpenPAIAreInListsAndReports(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Load(t.Context()))
	_, err = d.Add(t.Context(), people.NewUser{Name: "mig-ann", Password: secret.String(servertest.Password), Groups: []string{}})
	require.NoError(t, err)

	old := historytest.New(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ann := historytest.Job{User: "mig-ann", Name: "train", VC: "vision", Submitted: at, GPUs: 4, Tasks: 2, Code: 137, Attempt: 1}
	old.Add(ann)
	old.AddTag(ann, "paper")
	old.Add(historytest.Job{User: "mig-gone", Name: "eval", VC: "vision", Submitted: at.AddDate(0, 1, 0)})
	old.Add(historytest.Job{User: "mig-ann", Name: "live", VC: "vision", Submitted: at, Running: true})

	store, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	h := historyserver.New(historyserver.Options{Store: store, Ready: func(context.Context) error { return nil }, Metrics: prometheus.NewRegistry(),
		Token: func() string { return jobtest.Token }, Log: slog.New(slog.DiscardHandler)}).Handler()
	with := filepath.Dir(programs.Program(t, history.Name)) + string(filepath.ListSeparator) + os.Getenv("PATH")
	t.Run("scripts", func(t *testing.T) { // which run side by side, and end with it
		cmdtest.RunFiles(t, []string{"testdata/history.txtar"}, map[string]string{
			"KUBECONFIG": jobtest.Front(t, c, jobtest.Services{api.Service: h}), "WITHOUT": jobtest.Front(t, c, nil), "OLD": old.Address, "PATH": with,
		})
	})

	page, err := store.Jobs(t.Context(), api.JobQuery{})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	require.NoError(t, store.EndRemoved(t.Context(), []string{page.Items[0].UID, page.Items[1].UID})) // as the controller does
	s := servertest.Start(t, c, servertest.Options{History: h})
	token := s.SignIn("mig-ann")
	list := s.Do("GET", "/api/v2/jobs", token, "")
	assert.Equal(t, 200, list.Status)
	assert.Contains(t, list.Body, `"name":"train"`)
	assert.NotContains(t, list.Body, "eval", "which is another's")
	detail := s.Do("GET", "/api/v2/jobs/mig-ann~train", token, "")
	assert.Equal(t, 200, detail.Status)
	assert.Contains(t, detail.Body, `"appExitCode":137`)
	assert.Contains(t, detail.Body, `"paper"`)
	assert.Equal(t, 200, s.Do("GET", "/api/v2/jobs/mig-ann~train/config", token, "").Status)
	assert.NotEqual(t, 200, s.Do("GET", "/api/v2/jobs/mig-gone~eval", token, "").Status)
}
