// Package attacks attacks the programs of a cluster as a pod could, and measures the memory that the programs use.
package attacks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

func TestMain(m *testing.M) {
	code := kubetest.Wrap(m).Run()
	programs.Clean()
	schedulertest.Clean()
	os.Exit(code)
}

// target is a program that accepts requests from any client that can connect.
type target struct {
	chart string // its limit is in the chart's values
	pid   int
	url   string // of something that it serves without a password
}

// If a program takes more memory than its limit, the kernel kills it in the middle of its work.
func TestNoConnectionsTakeMoreMemoryThanAProgramHas(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	const namespace = "attacks"
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	schedulertest.Configure(t, c.Client, namespace, "virtualClusters: {}\nphysicalCluster: {cellTypes: {}, physicalCells: []}\n")
	for _, one := range []target{watchdog(t), agent(t), alertHandler(t), controller(t), scheduler(t, namespace)} {
		t.Run(one.chart, func(t *testing.T) {
			limit := one.limit(t)
			at := strings.TrimPrefix(one.url[:strings.LastIndex(one.url, "/")], "http://")
			for name, attack := range map[string]struct {
				connections int
				sends       func(w io.Writer)
			}{
				"headers without an end": {600, func(w io.Writer) {
					_, _ = io.WriteString(w, "GET /metrics HTTP/1.1\r\nHost: x\r\n")
					for i := range 1000 {
						if _, err := fmt.Fprintf(w, "A%d: %s\r\n", i, strings.Repeat("x", 900)); err != nil {
							return // cut
						}
					}
				}},
				"unread answers": {200, func(w io.Writer) {
					for range 500 {
						if _, err := io.WriteString(w, "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp4\r\n\r\n"); err != nil {
							return
						}
					}
				}},
				"idle connections": {2000, func(io.Writer) {}},
			} {
				t.Run(name, func(t *testing.T) {
					programs.ResetPeak(t, one.pid)
					var all sync.WaitGroup
					conns := make([]net.Conn, attack.connections)
					for i := range conns {
						all.Go(func() {
							conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", at)
							if err != nil {
								return
							}
							conns[i] = conn
							_ = conn.SetWriteDeadline(time.Now().Add(8 * time.Second)) // a server that doesn't read ends the attack
							attack.sends(conn)
						})
					}
					all.Wait()
					peak := programs.Peak(t, one.pid)
					for _, conn := range conns {
						if conn != nil {
							_ = conn.Close()
						}
					}
					t.Logf("peak %d MiB of %d", peak>>20, limit>>20)
					assert.Less(t, peak, limit)
					require.Eventually(t, func() bool {
						resp, err := http.Get(one.url)
						if err != nil {
							return false
						}
						_ = resp.Body.Close()
						return resp.StatusCode == http.StatusOK
					}, time.Minute, 100*time.Millisecond, "it answers others again")
				})
			}
		})
	}
}

// limit returns the memory limit in the program's chart, in bytes.
func (o target) limit(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("../../templates/charts/" + o.chart + "/values.yaml")
	require.NoError(t, err)
	var values struct {
		Resources struct{ Limits struct{ Memory string } }
	}
	require.NoError(t, yaml.Unmarshal(data, &values))
	q, err := resource.ParseQuantity(values.Resources.Limits.Memory)
	require.NoError(t, err)
	return q.Value()
}

// free returns an address with a port that no program uses.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// started waits until a program responds, and returns it as a target.
func started(t *testing.T, chart string, p *programs.Process, url string) target {
	t.Helper()
	require.Eventually(t, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, chart)
	return target{chart, p.PID(), url}
}

func password(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("s3cret"), 0o600))
	return file
}

// watchdog starts pai-watchdog without an API server, so that it reports a cluster that is down.
func watchdog(t *testing.T) target {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	at := free(t)
	return started(t, "watchdog", programs.Start(t, "pai-watchdog", "--listen="+at, "--access-file="+password(t)), "http://"+at+"/healthz")
}

func agent(t *testing.T) target {
	t.Helper()
	const node = "attacked"
	c := kubetest.Start(t)
	_, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	kubelet, err := os.MkdirTemp("", "pai-agent-") //nolint:usetesting // the path of a socket can't be long
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(kubelet)) })
	in := func(name string) string { return filepath.Join(kubelet, name) }
	for _, name := range []string{"plugins_registry", "pids"} {
		require.NoError(t, os.Mkdir(in(name), 0o700))
	}
	require.NoError(t, os.WriteFile(in("hook"), nil, 0o755))
	require.NoError(t, os.WriteFile(in("machines.json"), []byte("{}"), 0o600)) // this one has no GPUs
	at := free(t)
	p := programs.Start(t, "pai-agent", "--node="+node, "--machines="+in("machines.json"), "--kubeconfig="+kubetest.Kubeconfig(t), "--kubelet-folder="+kubelet,
		"--cdi-folder="+in("cdi"), "--notice-folder="+in("notices"), "--cgroup-folder="+kubelet, "--hook="+in("hook"), "--listen="+at, "--access-file="+password(t))
	return started(t, "agent", p, "http://"+at+"/healthz")
}

// alertHandler starts pai-alert-handler without policies.
func alertHandler(t *testing.T) target {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"drainTimeout":"30m","keep":"24h"}`), 0o600))
	at := free(t)
	p := programs.Start(t, "pai-alert-handler", "--kubeconfig="+kubetest.Kubeconfig(t), "--config="+config, "--identity=attacked",
		"--token-file="+password(t), "--listen="+at, "--access-file="+password(t))
	return started(t, "alert-handler", p, "http://"+at+"/readyz")
}

func controller(t *testing.T) target {
	t.Helper()
	at := free(t)
	p := programs.Start(t, "pai-controller", "--kubeconfig="+kubetest.Kubeconfig(t), "--database="+filepath.Join(t.TempDir(), "archive.db"),
		"--leader-election=false", "--code-listen=127.0.0.1:0", "--listen="+at, "--access-file="+password(t))
	return started(t, "job-controller", p, "http://"+at+"/readyz")
}

func scheduler(t *testing.T, namespace string) target {
	t.Helper()
	s := schedulertest.Start(t, kubetest.Start(t), schedulertest.Options{Name: "attacked", Namespace: namespace})
	return target{"scheduler", s.PID(), s.API + "/healthz"}
}
