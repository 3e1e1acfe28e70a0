// Package schedulertest runs pai-scheduler for tests in the same way as a pod of its chart. It builds the program as for the image, and runs it as a
// process that a test can kill.
// In: the API of a cluster. Out: processes that serve the API for people at a loopback address.
package schedulertest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/test/tier"
)

var (
	building sync.Once
	built    string
	buildErr error
)

// Program returns the path of pai-scheduler, which is built once in a process.
func Program(t testing.TB) string {
	t.Helper()
	tier.More(t, "the program pai-scheduler")
	building.Do(func() { built, buildErr = build() })
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return built
}

// Clean removes the program that Program has built. Each TestMain calls it at its end.
func Clean() {
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built)) // of a process that ends
	}
}

// flags lists the flags with which pai-scheduler is built. The bundle uses the same flags, so that the program is compiled only once.
var flags = []string{"-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-modfile=cmd/pai-scheduler/kubernetes.mod", "-tags=pai_scheduler"}

func build() (string, error) {
	mod, err := exec.CommandContext(context.Background(), "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(context.Background(), "go", args...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
		}
		return out, nil
	}
	// Go caches the result of a test until a file that the test has read changes. So the test must read the sources of the program.
	list := append(append([]string{"list", "-deps"}, flags[3:]...), "-f", `{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/pai-scheduler")
	files, err := run(list...)
	if err != nil {
		return "", err
	}
	for file := range strings.FieldsSeq(string(files)) {
		if _, err := os.ReadFile(file); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp("", "pai-scheduler-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "pai-scheduler")
	_, err = run(append(append([]string{"build"}, flags...), "-ldflags=-s -w", "-o", program, "./cmd/pai-scheduler")...)
	return program, err
}

// Options configures a process of pai-scheduler.
type Options struct {
	// Name is the host name of the process.
	Name string
	// Namespace is the namespace with the configuration and the Lease.
	Namespace string
	// Elect makes the process one of several replicas, which elect a leader. It needs permission to set the host name of the process.
	Elect bool
	// Restart starts the process again whenever it exits, as a kubelet does. A leader that has lost its lease exits. Restart needs Elect.
	Restart bool
	// QPS limits the requests per second that kube-scheduler sends to the API server; 0 means the limit of the chart.
	QPS int
}

// Scheduler is a running pai-scheduler.
type Scheduler struct {
	// API is the URL of the API for people.
	API string

	t       testing.TB
	process *process
}

// Start starts a pai-scheduler. It is killed when the test ends.
func Start(t testing.TB, c *kube.Cluster, o Options) *Scheduler {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "kube-scheduler.yaml")
	if err := clientcmd.WriteToFile(c.Raw, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(configuration(kubeconfig, o)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{Program(t), "--config=" + config, "--secure-port=0", "--v=2", "--namespace=" + o.Namespace, "--listen=127.0.0.1:0"}
	if o.Elect {
		// The Lease contains the host name of the leader.
		script := `hostname "$1" && shift && exec "$@"`
		if o.Restart {
			script = `hostname "$1" && shift && while :; do "$@"; sleep 1; done`
		}
		args = append([]string{"unshare", "--uts", "--map-root-user", "sh", "-c", script, "sh", o.Name}, args...)
	}
	s := &Scheduler{t: t}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals also reach the programs that a shell has started
	s.process = launch(t, o.Name, cmd)
	s.API = "http://" + s.process.waitFor(t, regexp.MustCompile(`msg=starting .*api=(\S+)`))[1]
	return s
}

// configuration returns the kube-scheduler configuration of the chart, adapted to one process.
func configuration(kubeconfig string, o Options) string {
	qps := o.QPS
	if qps == 0 {
		qps = 50
	}
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: %d, burst: %d}
leaderElection:
  leaderElect: %t
  resourceName: pai-scheduler
  resourceNamespace: %s
  leaseDuration: 10s
  renewDeadline: 6s
  retryPeriod: 1500ms
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
  - schedulerName: pai-scheduler
    plugins:
      multiPoint: {enabled: [{name: Pai}, {name: PaiDynamicResources, weight: 2}], disabled: [{name: DynamicResources}]}
      queueSort: {enabled: [{name: Pai}], disabled: [{name: "*"}]}
      preFilter: {enabled: [{name: Pai}]}
      postFilter: {enabled: [{name: Pai}]}
      bind: {enabled: [{name: Pai}]}
    pluginConfig:
      - name: NodeResourcesFit
        args: {ignoredResources: [hivedscheduler.microsoft.com/pod-scheduling-enable]}
`, kubeconfig, qps, 2*qps, o.Elect, o.Namespace)
}

// Kill kills the process immediately, as if its machine has failed.
func (s *Scheduler) Kill() { s.process.kill() }

// Stop sends SIGTERM to the process, as a kubelet does, and waits until the process has ended.
func (s *Scheduler) Stop() {
	s.process.signal(syscall.SIGTERM)
	<-s.process.ended
}

// PID returns the id of the process that was started.
func (s *Scheduler) PID() int { return s.process.cmd.Process.Pid }

// Get sends a request to the API for people. It returns the status and the body of the response.
func (s *Scheduler) Get(path string) (int, string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.API+path, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// process is a started program with its output.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	said  bytes.Buffer
	lines chan struct{} // closed and replaced with each line
}

func launch(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, ended: make(chan struct{}), lines: make(chan struct{})}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			p.hear(scanner.Bytes())
		}
		_ = cmd.Wait() // it was killed
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said last:\n%s", name, p.tail(40))
		}
	})
	return p
}

func (p *process) hear(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.Write(line)
	p.said.WriteByte('\n')
	close(p.lines)
	p.lines = make(chan struct{})
}

// waitFor waits until a line of the output matches an expression. It returns the groups of the first match.
func (p *process) waitFor(t testing.TB, what *regexp.Regexp) []string {
	t.Helper()
	for {
		p.mu.Lock()
		found, next := what.FindStringSubmatch(p.said.String()), p.lines
		p.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-next:
		case <-p.ended:
			t.Fatalf("%s ended: %s", p.name, p.tail(10))
		case <-time.After(time.Minute):
			t.Fatalf("%s didn't start: %s", p.name, p.tail(10))
		}
	}
}

func (p *process) tail(n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(p.said.Bytes()), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.ended:
		return // another process may have its number by now
	default:
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		panic(fmt.Sprintf("signal %s: %v", p.name, err)) // it is our own child
	}
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}
