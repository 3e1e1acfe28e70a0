package away

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/output"
	"github.com/openpai/paictl/test/programs"
)

func TestMain(m *testing.M) {
	code := kubetest.Wrap(m).Run()
	programs.Clean()
	os.Exit(code)
}

// world is a pai-server on a real API server, with a job controller. Both programs run as separate processes.
type world struct {
	*servertest.Program
	t          *testing.T
	cluster    *kube.Cluster
	controller *controller
	// before is called before a request is forwarded to the API server. after is called when the API server has responded, before the response is
	// forwarded. Both may be nil.
	mu            sync.Mutex
	before, after func(*http.Request)
}

func open(t *testing.T) *world {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	w := &world{t: t, cluster: c}
	w.controller = startController(t, kubetest.Kubeconfig(t))
	api, err := jobtest.Handler(c.Config, nil)
	require.NoError(t, err)
	kubeconfig := jobtest.Kubeconfig(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.hook(&w.before, r)
		if w.watched() && r.Method != http.MethodGet {
			kept := httptest.NewRecorder()
			api.ServeHTTP(kept, r)
			w.hook(&w.after, r)
			for k, v := range kept.Header() {
				rw.Header()[k] = v
			}
			rw.WriteHeader(kept.Code)
			_, _ = rw.Write(kept.Body.Bytes())
			return
		}
		api.ServeHTTP(rw, r)
	}))
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Load(t.Context()))
	_, err = d.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "speech", VirtualClusters: []v1.VCGrant{{Name: "speech", SeeJobs: true}}}})
	require.NoError(t, err)
	_, err = d.Add(t.Context(), people.NewUser{Name: "ann", Groups: []string{"speech"}, Password: secret.String(servertest.Password)})
	if !errors.Is(err, people.ErrExists) {
		require.NoError(t, err)
	}
	w.Program = servertest.Run(t, c, kubeconfig, map[string]any{}, "--job-controller", w.controller.url, "--scheduler", "http://127.0.0.1:1")
	return w
}

func (w *world) hook(which *func(*http.Request), r *http.Request) {
	w.mu.Lock()
	f := *which
	w.mu.Unlock()
	if f != nil {
		f(r)
	}
}

func (w *world) watched() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.after != nil
}

// on sets the functions that are called before and after each request of pai-server to the API server. A nil function isn't called.
func (w *world) on(before, after func(*http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = before, after
}

// controller is a process of cmd/pai-controller, with its archive.
type controller struct {
	t    *testing.T
	args []string
	url  string
	cmd  *exec.Cmd
	out  *output.Buffer
}

func startController(t *testing.T, kubeconfig string) *controller {
	t.Helper()
	c := &controller{t: t, out: &output.Buffer{}}
	c.args = []string{"--kubeconfig=" + kubeconfig, "--database=" + filepath.Join(t.TempDir(), "archive.db"), "--code-listen=127.0.0.1:0", "--leader-election=false", "--listen=127.0.0.1:0"}
	c.start()
	return c
}

var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func (c *controller) start() {
	c.t.Helper()
	path := programs.Program(c.t, "pai-controller")
	begin := len(c.out.String())
	c.cmd = exec.CommandContext(context.WithoutCancel(c.t.Context()), path, c.args...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	require.NoError(c.t, c.cmd.Start())
	cmd := c.cmd
	c.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(c.t, func() bool {
		for line := range strings.SplitSeq(c.out.String()[begin:], "\n") {
			if _, after, says := strings.Cut(line, "listen"); says && c.url == "" {
				if at := listening.FindString(after); at != "" {
					c.url = "http://" + at
					c.args[len(c.args)-1] = "--listen=" + at // the same the next time
				}
			}
		}
		if c.url == "" {
			return false
		}
		resp, err := http.Get(c.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, c.out.String())
}

func (c *controller) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// apiServer returns the id of the process of the tests' API server.
func apiServer(t *testing.T, c *kube.Cluster) int {
	t.Helper()
	port := c.Config.Host[strings.LastIndex(c.Config.Host, ":")+1:]
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && bytes.Contains(line, []byte("kube-apiserver")) && bytes.Contains(line, []byte("--secure-port="+port)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("the API server isn't found")
	return 0
}

// startAgain returns a function that kills a program, and a function that starts the program again with the same arguments and environment.
func startAgain(t *testing.T, pid int) (kill, start func()) {
	t.Helper()
	read := func(name string) []string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		require.NoError(t, err)
		return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	}
	args, env := read("cmdline"), read("environ")
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	require.NoError(t, err)
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	require.NoError(t, err)
	return func() { require.NoError(t, syscall.Kill(pid, syscall.SIGKILL)) }, func() {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args[1:]...)
		cmd.Env, cmd.Dir = env, dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, cmd.Start())
		go func() { _ = cmd.Wait() }()
	}
}
