// Package extendertest runs the scheduler for tests as a pod of its chart does: a stock kube-scheduler of
// the bundle, and beside it the test binary as pai-scheduler, both as processes that can be killed.
// In: the API of a cluster. Out: pairs of processes on loopback.
//
// A package that uses it begins its TestMain with
//
//	extendertest.Main()
package extendertest

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
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/extender"
)

// programEnv makes the test binary be pai-scheduler.
const programEnv = "PAICTL_TEST_PAI_SCHEDULER"

// Main runs pai-scheduler and ends, if this process was started for that.
func Main() {
	if os.Getenv(programEnv) == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := extender.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// KubeScheduler returns the kube-scheduler of the bundle; without one the test is skipped.
func KubeScheduler(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = ""
	}
	for _, dir := range []string{os.Getenv("PAICTL_TEST_BUNDLE"), os.Getenv("PAICTL_BUNDLE"), filepath.Join(cache, "paictl", "bundle")} {
		if dir == "" {
			continue
		}
		b, err := bundle.Open(dir)
		if err != nil {
			continue
		}
		if a, ok := b.Lookup(bundle.KindTool, "kube-scheduler"); ok {
			return b.File(a)
		}
	}
	t.Skip("no bundle with kube-scheduler; make one with \"make bundle\"")
	return ""
}

// Options are of a pair.
type Options struct {
	// Name is the host name of both programs.
	Name string
	// Namespace has the configuration and the Lease.
	Namespace string
	// Elect makes it one of several replicas. That takes the right to have a host name of one's own.
	Elect bool
	// QPS is how fast kube-scheduler asks the API server; 0 means what the chart says.
	QPS int
}

// Pair is the two programs of a pod.
type Pair struct {
	// API is the URL of the read-only API, Verbs that of kube-scheduler's.
	API, Verbs string

	t         testing.TB
	extender  *process
	scheduler *process
}

// Start starts a pair. It is killed when the test ends.
func Start(t testing.TB, c *kube.Cluster, o Options) *Pair {
	t.Helper()
	program := KubeScheduler(t)
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(c.Raw, kubeconfig); err != nil {
		t.Fatal(err)
	}
	p := &Pair{t: t}
	p.startExtender(kubeconfig, o)
	config := filepath.Join(dir, "kube-scheduler.yaml")
	if err := os.WriteFile(config, []byte(configuration(kubeconfig, p.Verbs, o)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.startScheduler(program, config, o)
	return p
}

// startExtender starts pai-scheduler on free ports, which it logs.
func (p *Pair) startExtender(kubeconfig string, o Options) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	lease := ""
	if o.Elect {
		lease = "pai-scheduler"
	}
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), self, "--kubeconfig="+kubeconfig, "--namespace="+o.Namespace, "--lease="+lease,
		"--identity="+o.Name, "--listen=127.0.0.1:0", "--extender-listen=127.0.0.1:0")
	cmd.Env = append(os.Environ(), programEnv+"=1")
	p.extender = launch(p.t, o.Name+" pai-scheduler", cmd)
	line := p.extender.waitFor(p.t, regexp.MustCompile(`msg=starting .*extender=(\S+) api=(\S+)`))
	p.Verbs, p.API = "http://"+line[1], "http://"+line[2]
}

// startScheduler starts kube-scheduler, in replicas with a host name of its own: that is its name in the Lease.
func (p *Pair) startScheduler(program, config string, o Options) {
	p.t.Helper()
	args := []string{program, "--config=" + config, "--secure-port=0", "--v=2"}
	if o.Elect {
		args = append([]string{"unshare", "--uts", "--map-root-user", "sh", "-c", `hostname "$1" && shift && exec "$@"`, "sh", o.Name}, args...)
	}
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), args[0], args[1:]...) // of the bundle
	p.scheduler = launch(p.t, o.Name+" kube-scheduler", cmd)
}

// configuration is that of the chart, for one pair.
func configuration(kubeconfig, verbs string, o Options) string {
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
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
  - schedulerName: pai-scheduler
extenders:
  - urlPrefix: %s/v1/extender
    filterVerb: filter
    preemptVerb: preempt
    bindVerb: bind
    enableHTTPS: false
    httpTimeout: 15s
    nodeCacheCapable: true
    ignorable: false
    managedResources:
      - name: hivedscheduler.microsoft.com/pod-scheduling-enable
        ignoredByScheduler: true
`, kubeconfig, qps, 2*qps, o.Elect, o.Namespace, verbs)
}

// Kill ends both programs at once, as if their machine had died.
func (p *Pair) Kill() {
	p.scheduler.kill()
	p.extender.kill()
}

// KillScheduler ends kube-scheduler alone.
func (p *Pair) KillScheduler() { p.scheduler.kill() }

// KillExtender ends pai-scheduler alone.
func (p *Pair) KillExtender() { p.extender.kill() }

// Stop asks both programs to end, as the kubelet does, and waits until they have.
func (p *Pair) Stop() {
	p.scheduler.signal(syscall.SIGTERM)
	p.extender.signal(syscall.SIGTERM)
	<-p.scheduler.ended
	<-p.extender.ended
}

// Get asks the read-only API.
func (p *Pair) Get(path string) (int, string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.API+path, nil)
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

// process is a program and what it said.
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

// waitFor returns the groups of the first line that matches.
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
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		panic(fmt.Sprintf("signal %s: %v", p.name, err)) // it is our own child
	}
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}
