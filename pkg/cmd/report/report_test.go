package report

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/report"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// run runs "paictl report" against a server that returns the given report. It also returns the URL of the command's request.
func run(t *testing.T, answer report.Report, args ...string) (out, errOut string, asked *url.URL, err error) {
	t.Helper()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(tls.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": tls.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
	f := cmdutil.New("v1")
	io, _, stdout, stderr := iostreams.Test()
	f.IO = io
	cmd := NewCmdReport(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), asked, err
}

func aReport() report.Report {
	ann := report.Row{Name: "ann", GPUTime: api.GPUTime{Guaranteed: 36000, Failed: 1800}, Use: &report.Use{Measured: 18000, Used: 9000, Idle: 1800}, Waits: &report.Waits{Jobs: 2, GPUs: 7200, Longest: 3600}}
	bob := report.Row{Name: "bob", GPUTime: api.GPUTime{Opportunistic: 3600}}
	vision := ann
	vision.Name = "vision"
	return report.Report{Since: time.Unix(1_800_000_000, 0).UTC(), Until: time.Unix(1_800_600_000, 0).UTC(), VirtualClusters: []report.Row{vision}, People: []report.Row{ann, bob}, Total: ann,
		Notes: []string{"no metrics for 55 % of the GPU hours"}}
}

func TestAReportIsShown(t *testing.T) {
	out, errOut, asked, err := run(t, aReport(), "--since", "2026-11-01", "--until", "2026-11-08", "--vc", "vision", "--user", "ann")
	require.NoError(t, err)
	assert.Equal(t, "/api/v3/report", asked.Path)
	assert.Equal(t, url.Values{"since": {"2026-11-01T00:00:00Z"}, "until": {"2026-11-08T00:00:00Z"}, "vc": {"vision"}, "user": {"ann"}}, asked.Query())
	for _, line := range []string{`VIRTUAL CLUSTER +GPU HOURS +USED +IDLE +LOST +WAITED +LONGEST WAIT +JOBS`, `vision +10\.0 +2\.5 \(50 %\) +0\.5 \(10 %\) +0\.5 +2\.0 +1h0m0s +2`, `PERSON +GPU HOURS.*`, `bob +1\.0 +- +- +0\.0 +- +- +-`, `TOTAL +10\.0.*`} {
		assert.Regexp(t, "(?m)^"+line+" *$", out)
	}
	assert.Equal(t, "note: no metrics for 55 % of the GPU hours\n", errOut)
}

func TestAReportForPrograms(t *testing.T) {
	out, _, _, err := run(t, aReport(), "-o", "csv")
	require.NoError(t, err)
	assert.Equal(t, `kind,name,gpu_hours,guaranteed_hours,opportunistic_hours,preempted_hours,failed_hours,measured_hours,used_hours,idle_hours,waited_gpu_hours,longest_wait_hours,jobs
vc,vision,10.0000,10.0000,0.0000,0.0000,0.5000,5.0000,2.5000,0.5000,2.0000,1.0000,2
person,ann,10.0000,10.0000,0.0000,0.0000,0.5000,5.0000,2.5000,0.5000,2.0000,1.0000,2
person,bob,1.0000,0.0000,1.0000,0.0000,0.0000,,,,,,
`, out)
	out, errOut, _, err := run(t, aReport(), "-o", "json")
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Equal(t, int64(9000), r.People[0].Use.Used)
	assert.Len(t, r.Notes, 1)
	assert.Empty(t, errOut)
	out, errOut, _, err = run(t, report.Report{})
	require.NoError(t, err)
	assert.Empty(t, out)
	assert.Contains(t, errOut, "no GPUs were held")
}

func TestWrongTimesAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--since", "yesterday"}, {"--since", ""}, {"--since", "1d", "--until", "2d"}} {
		_, _, asked, err := run(t, aReport(), args...)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), args)
		assert.Nil(t, asked)
	}
}
