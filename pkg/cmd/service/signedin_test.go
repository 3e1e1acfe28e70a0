package service

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// signedIn starts a server, and signs the user in there. If report is nil, the user isn't an administrator.
func signedIn(t *testing.T, report *state.Report) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		assert.Equal(t, "/api/v3/services", r.URL.Path)
		var answer any = report
		if report == nil {
			w.WriteHeader(http.StatusForbidden)
			answer = v3.Error{Code: "ForbiddenUserError", Message: "only an administrator may do this"}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(answer))
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": server.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
}

// status runs "paictl service status" with the given arguments.
func status(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	f := cmdutil.New("v1")
	io, _, stdout, stderr := iostreams.Test()
	f.IO = io
	cmd := NewCmdStatus(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestAnAdministratorWhoSignedInSeesTheServices(t *testing.T) {
	report := &state.Report{Items: statuses(time.Now()), Notes: []state.Note{{Message: "a run\x1b[31m changes services", Remedy: "wait"}}}
	signedIn(t, report)
	out, errOut, err := status(t)
	require.NoError(t, err)
	assert.Contains(t, out, "alert-manager   ready")
	assert.Contains(t, out, "prometheus: pod/prometheus-0: ")
	assert.Equal(t, "warning: a run[31m changes services\n  -> wait\n", errOut)

	out, _, err = status(t, "-n", "grafana,prometheus", "-o", "json")
	require.NoError(t, err)
	var all []services.Status
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, 2)
	assert.Equal(t, "prometheus", all[1].Name)

	_, _, err = status(t, "grafanna")
	require.ErrorContains(t, err, "there is no service grafanna")
	assert.Contains(t, hint.Of(err), "grafana")

	report.Items = []services.Status{{Name: "storage", Namespace: "pai-system", State: state.StateUnknown}}
	_, _, err = status(t, "--exit-code")
	coded, ok := err.(*cmdutil.CodeError) //nolint:errorlint // it isn't wrapped
	require.True(t, ok, "%v", err)
	assert.Equal(t, cmdutil.ExitPartial, coded.Code)
}

func TestOthersWhoSignedInDoNotSeeTheServices(t *testing.T) {
	signedIn(t, nil)
	out, _, err := status(t)
	require.ErrorContains(t, err, "only an administrator may do this")
	assert.Empty(t, out)
}
