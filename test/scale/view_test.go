package scale

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

const (
	changesPerSecond = 20
	viewMeasured     = 30 * time.Second
)

// BenchmarkView measures "paictl status" on a terminal with 200 columns and 60 lines. If PAICTL_SCALE_K9S names the program k9s, it measures k9s,
// too. It measures the memory, and the processor time in percent of one core, while nothing changes and with 20 changes per second.
// PAICTL_SCALE_JOBS jobs with 1 to 8 tasks run. Changes alternate between the state of a job and the restart count of a pod; k9s, which shows pods,
// gets only the latter.
func BenchmarkView(b *testing.B) {
	n := number(b, "PAICTL_SCALE_JOBS", 100)
	w := newJobs(b)
	w.runs = "24h"
	w.start()
	tasks := 0
	for i := range n {
		tasks += tasksOf(i)
	}
	require.NoError(b, w.submitAll(n))
	require.NoError(b, w.waitRunning(tasks, time.After(limit(tasks))), "%s", w.controller.text())
	time.Sleep(5 * time.Second) // until the work of the last one is done
	w.kill()                    // the controller would revert the changes
	pods, err := w.c.Client.CoreV1().Pods(kube.JobNamespace).List(b.Context(), metav1.ListOptions{})
	require.NoError(b, err)
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	require.NoError(b, clientcmd.WriteToFile(w.c.Raw, kubeconfig))
	i := 0
	changeJob := func() error {
		state := []v1.State{v1.AttemptRunning, v1.AttemptPreparing}[i/n%2]
		return w.c.Client.Discovery().RESTClient().Patch(types.MergePatchType).
			AbsPath("/apis", v1.GroupVersion.String(), "namespaces", kube.JobNamespace, "frameworks", v1.ObjectName("ann", fmt.Sprintf("job-%d", i%n)), "status").
			Body(fmt.Appendf(nil, `{"status":{"state":%q}}`, state)).Do(b.Context()).Error()
	}
	changePod := func() error {
		p := pods.Items[i%len(pods.Items)]
		p.ResourceVersion = "" // any version
		statuses := p.Status.ContainerStatuses
		for k := range statuses {
			statuses[k].RestartCount++
		}
		_, err := w.c.Client.CoreV1().Pods(p.Namespace).UpdateStatus(b.Context(), &p, metav1.UpdateOptions{})
		return err
	}
	changeOne := func(podsAlone bool) error {
		i++
		if podsAlone || i%2 == 0 {
			return changePod()
		}
		return changeJob()
	}
	type view struct {
		name, path, shows, keys string
		args                    []string
		podsAlone               bool
	}
	views := []view{
		{"paictl-overview", paictls(b)[""], "Overview", "", []string{"status"}, false},
		{"paictl-jobs", paictls(b)[""], "Overview", "6", []string{"status"}, false},
	}
	if k9s := os.Getenv("PAICTL_SCALE_K9S"); k9s != "" {
		views = append(views, view{"k9s-pods", k9s, "Running", "", []string{"--all-namespaces", "--command", "pods"}, true})
	}
	for _, v := range views {
		b.Run(v.name, func(b *testing.B) {
			for range b.N {
				cmd := exec.CommandContext(b.Context(), v.path, append(v.args, "--kubeconfig", kubeconfig)...)
				cmd.Env = append(os.Environ(), "TERM=xterm-256color", "K9S_CONFIG_DIR="+b.TempDir(), "HOME="+b.TempDir())
				terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 60, Cols: 200})
				require.NoError(b, err)
				screen := &written{}
				go func() { _, _ = io.Copy(screen, terminal) }() // until it is closed
				require.Eventually(b, func() bool { return screen.has(v.shows) }, time.Minute, 100*time.Millisecond)
				time.Sleep(5 * time.Second)
				_, err = io.WriteString(terminal, v.keys)
				require.NoError(b, err)
				time.Sleep(15 * time.Second) // until the work of its start is done
				core := func(each func() error) (percent, kib float64) {
					start, before, sent := time.Now(), secondsOf(b, cmd), screen.size()
					for tick := time.NewTicker(time.Second / changesPerSecond); time.Since(start) < viewMeasured; <-tick.C {
						if each != nil {
							require.NoError(b, each())
						}
					}
					took := time.Since(start).Seconds()
					return 100 * (secondsOf(b, cmd) - before) / took, float64(screen.size()-sent) / 1024 / took
				}
				quiet, _ := core(nil)
				busy, kib := core(func() error { return changeOne(v.podsAlone) })
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(quiet, "%core-quiet")
				b.ReportMetric(busy, "%core")
				b.ReportMetric(kib, "KiB/s")
				b.ReportMetric(float64(peak(cmd.Process.Pid)), "MiB")
				if os.Getenv("PAICTL_SCALE_SCREENS") != "" {
					require.NoError(b, os.WriteFile(filepath.Join(os.Getenv("PAICTL_SCALE_SCREENS"), v.name), screen.bytes(), 0o600))
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
				_ = terminal.Close()
			}
		})
	}
}

// secondsOf returns the processor time that a running program has used.
func secondsOf(b *testing.B, cmd *exec.Cmd) float64 {
	b.Helper()
	_, _, seconds, err := stat(cmd.Process.Pid)
	require.NoError(b, err)
	return seconds
}
