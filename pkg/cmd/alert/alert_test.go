package alert

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
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// server is a pai-server where the user is signed in. It returns the given alerts and silences, and records the requests.
type server struct {
	alerts   api.Alerts
	silences api.Silences
	asked    []string
	sent     map[string]any
}

func start(t *testing.T) *server {
	t.Helper()
	since := time.Now().Add(-5 * time.Minute)
	s := &server{
		alerts: api.Alerts{Items: []api.Alert{
			{Name: "NodeDown", Severity: "critical", Since: since, Labels: map[string]string{"alertname": "NodeDown", "severity": "critical", "node": "gpu-1", "job": "x"}, Summary: "gpu-1 is \x1b[31mdown"},
			{Name: "JobGpusIdle", Severity: "info", Since: since, Labels: map[string]string{"user": "ann"}, Silences: []string{"s-1"}},
		}},
		silences: api.Silences{Items: []api.Silence{{ID: "s-1", State: "active", Ends: time.Now().Add(2*time.Hour + time.Minute), By: "root", Reason: "she debugs", Alerts: 1,
			Matchers: []api.Matcher{{Label: "alertname", Value: "JobGpusIdle"}, {Label: "user", Value: "a.*", Regex: true}}}}},
	}
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v3/alerts":
			_ = json.NewEncoder(w).Encode(s.alerts)
		case "GET /api/v3/silences":
			_ = json.NewEncoder(w).Encode(s.silences)
		case "POST /api/v3/silences":
			_ = json.NewDecoder(r.Body).Decode(&s.sent)
			w.WriteHeader(http.StatusCreated)
			now := time.Now()
			_ = json.NewEncoder(w).Encode(api.Silence{ID: "s-2", Starts: now, Ends: now.Add(4 * time.Hour), Matchers: []api.Matcher{{Label: "node", Value: "gpu-1"}}, Alerts: 2})
		case "DELETE /api/v3/silences/s-1":
			_ = json.NewEncoder(w).Encode(s.silences.Items[0])
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(tls.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": tls.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
	return s
}

func run(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	f := cmdutil.New("v1")
	io, _, stdout, stderr := iostreams.Test()
	f.IO = io
	cmd := NewCmdAlert(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestAlertsAreListed(t *testing.T) {
	s := start(t)
	out, _, err := run(t, "list")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^NAME +SEVERITY +AGE +STATE +LABELS +SUMMARY$`, out)
	assert.Regexp(t, `(?m)^NodeDown +critical +5m\S* +firing +job=x,node=gpu-1 +gpu-1 is .*down$`, out)
	assert.NotContains(t, out, "JobGpusIdle")
	assert.NotContains(t, out, "\x1b")
	out, _, err = run(t, "list", "--silenced", "--severity", "info")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^JobGpusIdle +info +5m\S* +silenced +user=ann`, out)
	assert.NotContains(t, out, "NodeDown")
	_, errOut, err := run(t, "list", "--severity", "none")
	require.NoError(t, err)
	assert.Equal(t, "no alerts\n", errOut)
	out, _, err = run(t, "list", "--severity", "none", "-o", "json")
	require.NoError(t, err)
	assert.JSONEq(t, `{"items":[]}`, out)
	assert.Equal(t, "GET /api/v3/alerts", s.asked[0])
}

func TestAlertsAreSilenced(t *testing.T) {
	s := start(t)
	out, _, err := run(t, "silence", "NodeDown", "--match", "node=~gpu-[12]", "--match", "job!=a=b", "--for", "4h", "--reason", "new memory")
	require.NoError(t, err)
	assert.Regexp(t, `^silenced for 4h\S*( 0m)?: node=gpu-1 \(2 firing alerts\)\nEnd it with: paictl alert unsilence s-2\n$`, out)
	assert.Equal(t, map[string]any{"seconds": 14400., "reason": "new memory", "matchers": []any{
		map[string]any{"label": "alertname", "value": "NodeDown"}, map[string]any{"label": "node", "value": "gpu-[12]", "regex": true}, map[string]any{"label": "job", "value": "a=b", "not": true}}}, s.sent)
	for _, args := range [][]string{{"NodeDown"}, {"--reason", "x"}, {"NodeDown", "--reason", " "}, {"--match", "node", "--reason", "x"}, {"NodeDown", "--for", "1s", "--reason", "x"}} {
		_, _, err := run(t, append([]string{"silence"}, args...)...)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), args)
	}
}

func TestSilencesAreListedAndEnded(t *testing.T) {
	s := start(t)
	out, _, err := run(t, "silences")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^ID +STATE +ENDS IN +ALERTS +BY +MATCHERS +REASON$`, out)
	assert.Regexp(t, `(?m)^s-1 +active +2h.* +1 +root +alertname=JobGpusIdle, user=~a\.\* +she debugs$`, out)
	out, _, err = run(t, "unsilence", "s-1")
	require.NoError(t, err)
	assert.Equal(t, "s-1 has ended: alertname=JobGpusIdle, user=~a.*\n", out)
	assert.Equal(t, "DELETE /api/v3/silences/s-1", s.asked[1])
}
