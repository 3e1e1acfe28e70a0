package job_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(kubetest.Wrap(m), func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // as in cmd/paictl
		context.AfterFunc(ctx, stop)
		os.Exit(cmd.Main(ctx, cmdutil.New("v0.0.0-test"), os.Args[1:]))
	})
}

// These scripts need no cluster.
func TestScripts(t *testing.T) { cmdtest.Run(t) }

func TestScriptsOnAServer(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	garbage := filepath.Join(t.TempDir(), "garbage.yaml")
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise) // never fails
	require.NoError(t, os.WriteFile(garbage, noise, 0o600))
	archive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if jobtest.RefusesLists(w, r) || jobtest.TakesRecords(w, r) {
			return
		}
		if r.URL.Path == "/v1/jobs" {
			fmt.Fprint(w, `{"items":[]}`)
			return
		}
		if r.URL.Path == "/v1/usage" && r.URL.Query().Get("user") != "nobody" {
			fmt.Fprintf(w, `{"since":"2026-01-01T00:00:00Z","until":"2026-01-11T00:00:00Z","items":[
				{"virtualCluster":"speech","user":"%[1]s","guaranteedSeconds":0,"opportunisticSeconds":36000,"preemptedSeconds":3600,"failedSeconds":0},
				{"virtualCluster":"vision","user":"%[1]s","guaranteedSeconds":432000,"opportunisticSeconds":0,"preemptedSeconds":0,"failedSeconds":1800}],
				"total":{"guaranteedSeconds":432000,"opportunisticSeconds":36000,"preemptedSeconds":3600,"failedSeconds":1800}}`, r.URL.Query().Get("by"))
			return
		}
		if r.URL.Path == "/v1/usage" {
			fmt.Fprint(w, `{"since":"2026-01-01T00:00:00Z","until":"2026-01-11T00:00:00Z","items":[],"total":{}}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"NotFound","message":"no such job"}`)
	})
	scheduler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/virtualclusters" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"items":[{"name":"vision","guaranteed":2}]}`)
	})
	cmdtest.RunIn(t, "testdata/server", map[string]string{
		"KUBECONFIG": jobtest.Front(t, cluster, jobtest.Services{api.Service: archive, "scheduler": scheduler, "prometheus": http.HandlerFunc(prometheus)}), "GARBAGE": garbage})
}

var framework = regexp.MustCompile(`pod=~"([0-9a-f]+)-`)

// prometheus responds to queries about the utilization of GPUs in the format of Prometheus; the last value is 42. For other queries it returns
// no series.
func prometheus(w http.ResponseWriter, r *http.Request) {
	query, series := r.FormValue("query"), ""
	if strings.Contains(query, "DCGM_FI_DEV_GPU_UTIL") {
		labels := ""
		if m := framework.FindStringSubmatch(query); m != nil {
			labels = fmt.Sprintf(`"gpu":"3","node":"gpu-1","pod":"%s-worker-1"`, m[1])
		}
		series = fmt.Sprintf(`{"metric":{%s},"values":[[%s,"42"]]}`, labels, r.FormValue("end"))
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, series)
}
