package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

// paictl is the program under test. bundle is the folder of the bundle that it installs. work is a folder that is removed at the end of the run.
var paictl, bundle, work string

func TestMain(m *testing.M) {
	if os.Getenv("PAICTL_E2E") == "" {
		fmt.Println("skip: sandbox hosts are tested with PAICTL_E2E=1 as root (make test-hosts does it)")
		os.Exit(0)
	}
	// The tests wait until there is room for their hosts. By default, Go would run only as many tests at the same time as there are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	removeHostsOnSignal()
	os.Exit(setUp(m))
}

// live holds the folders of the sandboxes that must be removed with their tests.
var live sync.Map

// removeHostsOnSignal removes the hosts of running tests if this process receives a signal to exit, or if its parent is killed. The cleanups of the
// tests don't run then.
func removeHostsOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0) // if this fails, hosts remain only after a kill of the parent
	go func() {
		<-signals
		var all sync.WaitGroup
		live.Range(func(dir, _ any) bool {
			all.Go(func() {
				if out, err := exec.Command(paictl, "sandbox", "down", "--dir", dir.(string)).CombinedOutput(); err != nil {
					fmt.Printf("sandbox down --dir %s: %v: %s\n", dir, err, out)
				}
			})
			return true
		})
		all.Wait()
		os.Exit(1)
	}()
}

// room limits the number of hosts of all tests that run at the same time. The tests mostly wait for machines to start, or to be detected as missing.
// A full host takes up to 1 GiB of memory. On slow processors, PAICTL_TEST_HOSTS must limit the tests to one cluster at a time, because kubeadm
// would otherwise exceed its time limits.
var room = semaphore.NewWeighted(int64(setting("PAICTL_TEST_HOSTS", 8)))

// setting returns the number in an environment variable, or otherwise if the variable isn't a number.
func setting(name string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return otherwise
	}
	return n
}

// enter waits until there is room for a number of hosts, and releases the room when the test ends.
func enter(t testing.TB, hosts int) {
	t.Helper()
	require.NoError(t, room.Acquire(t.Context(), int64(hosts)))
	t.Cleanup(func() { room.Release(int64(hosts)) })
}

// besides makes a test run in parallel with other tests. It doesn't affect benchmarks.
func besides(t testing.TB) {
	if t, ok := t.(*testing.T); ok {
		t.Parallel()
	}
}

func setUp(m *testing.M) int {
	bundle = os.Getenv("PAICTL_BUNDLE")
	dir, err := os.MkdirTemp("", "paictl-e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	work = dir
	defer endShared()
	paictl = filepath.Join(dir, "paictl")
	build := exec.Command("go", "build", "-o", paictl, "../../cmd/paictl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("build paictl: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result holds the output of a command and its exit code.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", r.code, r.stdout, r.stderr)
}

// command returns a command that runs paictl in the environment of the tests, with its standard output and standard error.
func command(ctx context.Context, t testing.TB, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(ctx, paictl, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "PAICTL_BUNDLE="+bundle)
	return cmd, &out, &errOut
}

// run runs paictl, and returns its result.
func run(t testing.TB, args ...string) result {
	t.Helper()
	cmd, out, errOut := command(t.Context(), t, args...)
	err := cmd.Run()
	r := result{stdout: out.String(), stderr: errOut.String(), code: cmd.ProcessState.ExitCode()}
	if err != nil && r.code < 0 {
		t.Fatalf("paictl %s: %v\n%s", strings.Join(args, " "), err, r)
	}
	return r
}

// ok runs paictl, which must succeed.
func ok(t testing.TB, args ...string) result {
	t.Helper()
	r := run(t, args...)
	require.Equal(t, 0, r.code, "paictl %s: %s", strings.Join(args, " "), r)
	return r
}

// lab is a sandbox of full hosts, with the configuration of a cluster.
type lab struct {
	t        testing.TB
	dir      string // the sandbox's folder
	cluster  string // the configuration's folder
	names    []string
	machines *hosts
}

// newLab creates hosts that run at the same time as the hosts of other tests. The hosts are removed when the test ends. With PAICTL_E2E_DIR they
// stay, and the next run of the test continues with them; "paictl sandbox down --dir DIR/NAME/sandbox" removes them.
func newLab(t testing.TB, name string, hosts int, flags ...string) *lab {
	t.Helper()
	besides(t)
	enter(t, hosts)
	base := kept(name)
	if base == "" {
		base = t.TempDir()
	}
	l := labIn(t, base)
	if kept(name) == "" {
		t.Cleanup(l.destroy)
	}
	l.hosts(name, hosts, flags...)
	return l
}

// kept returns the folder of a lab that stays after the test, or "" if the lab is removed.
func kept(name string) string {
	if dir := os.Getenv("PAICTL_E2E_DIR"); dir != "" {
		return filepath.Join(dir, name)
	}
	return ""
}

func labIn(t testing.TB, base string) *lab {
	t.Helper()
	require.NoError(t, os.MkdirAll(base, 0o700))
	l := &lab{t: t, dir: filepath.Join(base, "sandbox"), cluster: filepath.Join(base, "cluster")}
	if os.Getenv("PAICTL_E2E_DIR") == "" {
		live.Store(l.dir, true)
	}
	l.machines = &hosts{dir: l.dir}
	t.Cleanup(l.machines.close)
	return l
}

// destroy removes the hosts. A second call has no effect.
func (l *lab) destroy() {
	l.t.Helper()
	if l.t.Failed() {
		consoles, _ := filepath.Glob(filepath.Join(l.dir, "hosts", "*", "console.log"))
		for _, file := range consoles {
			b, _ := os.ReadFile(file)
			l.t.Logf("the end of %s:\n%s", file, b[max(0, len(b)-2000):])
		}
	}
	// During a cleanup, the context of the test has already ended.
	out, err := exec.Command(paictl, "sandbox", "down", "--dir", l.dir).CombinedOutput()
	require.NoError(l.t, err, "sandbox down: %s", out)
	live.Delete(l.dir)
}

// hosts changes the number of hosts in the sandbox. PAICTL_TEST_RELEASE selects a Debian release other than this machine's, PAICTL_TEST_MIRROR its
// mirror, and PAICTL_TEST_KEYRING its keys.
func (l *lab) hosts(name string, n int, flags ...string) {
	l.t.Helper()
	for flag, variable := range map[string]string{"--release": "PAICTL_TEST_RELEASE", "--mirror": "PAICTL_TEST_MIRROR", "--keyring": "PAICTL_TEST_KEYRING"} {
		if value := os.Getenv(variable); value != "" {
			flags = append(flags, flag, value)
		}
	}
	ok(l.t, append([]string{"sandbox", "up", "--dir", l.dir, "--name", name, "--hosts", fmt.Sprint(n)}, flags...)...)
	l.names = nil
	for i := range n {
		l.names = append(l.names, fmt.Sprintf("%s-%d", name, i+1))
	}
}

// generate creates the configuration folder.
func (l *lab) generate() {
	l.t.Helper()
	ok(l.t, "config", "generate", "-f", "-i", filepath.Join(l.dir, "quick-start.yaml"), "-o", l.cluster)
}

// on runs a script on a host, which must succeed, and returns the output.
func (l *lab) on(host string, script string) string {
	l.t.Helper()
	out, err := l.try(host, script)
	require.NoError(l.t, err, "on %s: %s\n%s", host, script, out)
	return out
}

func (l *lab) try(host string, script string) (string, error) {
	l.t.Helper()
	return l.machines.run(l.t, host, script)
}

// kubectl runs kubectl on the first host, and returns the output.
func (l *lab) kubectl(args string) string {
	l.t.Helper()
	return l.on(l.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl "+args+" 2>&1")
}

// up runs "cluster up", which must exit with a given code. It returns the summary from the event stream.
func (l *lab) up(code int, flags ...string) summary {
	l.t.Helper()
	r := run(l.t, append([]string{"cluster", "up", "-p", l.cluster, "-o", "json"}, flags...)...)
	require.Equal(l.t, code, r.code, "cluster up: %s", r)
	return lastSummary(l.t, r.stdout)
}

type summary struct {
	Hosts, Changed, Changes, RoundTrips int
	Retry                               string
	Failed                              []struct{ Host, Phase, Error, Hint string }
}

func lastSummary(t testing.TB, events string) summary {
	t.Helper()
	var s summary
	for line := range strings.Lines(events) {
		var e struct {
			Kind    string
			Summary *summary
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e), "line %q", line)
		if e.Summary != nil {
			s = *e.Summary
		}
	}
	return s
}

// output holds the output of a command while the command runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start starts "cluster up" in the background, in a separate process group.
func (l *lab) start(flags ...string) (*exec.Cmd, *output) {
	l.t.Helper()
	cmd, _, _ := command(l.t.Context(), l.t, append([]string{"cluster", "up", "-p", l.cluster, "-o", "json"}, flags...)...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(l.t, cmd.Start())
	return cmd, out
}

// patience is how many times longer an operation may take if other tests run at the same time.
const patience = 4

// eventually repeats a check until the check succeeds. The intervals grow, because other tests need the cores, too. limit is the time that is enough
// on a machine without other work.
func eventually(t testing.TB, limit time.Duration, what string, yes func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience * limit)
	defer deadline.Stop()
	pause := 300 * time.Millisecond
	for !yes() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", patience*limit, what)
		case <-time.After(pause):
			pause = min(pause*4/3, 3*time.Second)
		}
	}
}
