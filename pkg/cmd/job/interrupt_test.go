package job_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// A command that follows a job exits with 130 after Ctrl-C, and prints that the job continues.
func TestCtrlCEndsTheLookingAndNotTheJob(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	makeJob(t, cluster, "left", "")
	h, err := jobtest.Handler(cluster.Config, nil)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte("protocolVersion: 2\nname: new\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n"+
		"taskRoles: {worker: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: [echo]}}\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		job  string
	}{
		"wait":   {[]string{"wait", "left"}, "left"},
		"logs":   {[]string{"logs", "left", "-f"}, "left"},
		"watch":  {[]string{"submit", file, "--watch"}, "new"},
		"silent": {[]string{"submit", file, "--name", "silent", "--wait"}, "silent"},
	} {
		t.Run(name, func(t *testing.T) {
			// The command reads the pods as soon as it follows the job.
			var once sync.Once
			follows := make(chan struct{})
			kubeconfig := jobtest.Kubeconfig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				if strings.HasSuffix(r.URL.Path, "/pods") && strings.Contains(r.URL.RawQuery, v1.ObjectName("bob", c.job)) {
					once.Do(func() { close(follows) })
				}
			}))
			cmd := exec.CommandContext(t.Context(), "paictl", append([]string{"job"}, c.args...)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PAICTL_USER=bob")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			select {
			case <-follows:
			case <-time.After(time.Minute):
				t.Error("it never looked at the pods")
			}
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			require.Error(t, cmd.Wait())
			assert.Equal(t, 130, cmd.ProcessState.ExitCode(), stderr.String())
			assert.Contains(t, stderr.String(), "\nbob/"+c.job+" continues. Show it with: paictl job get bob/"+c.job+"; follow it with: paictl job logs bob/"+c.job+" -f;")
			assert.NotContains(t, stderr.String(), "cancelled")
			out, err := exec.CommandContext(t.Context(), "paictl", "job", "get", c.job, "--user", "bob", "--kubeconfig", kubeconfig, "-o", "json").Output()
			require.NoError(t, err)
			assert.Contains(t, string(out), `"state": "waiting"`)
		})
	}
}
