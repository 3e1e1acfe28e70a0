package task_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/journal"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/runtime/sshd"
	"github.com/openpai/paictl/pkg/runtime/task"
)

// rootEnv makes the test binary act as a runtime, with all paths below the given folder. The runtime is a separate process,
// because a process that reaps children can't also run tests.
const rootEnv = "PAI_RUNTIME_TEST_ROOT"

func TestMain(m *testing.M) {
	root, ok := os.LookupEnv(rootEnv)
	switch {
	case ok && len(os.Args) > 1 && os.Args[1] == "sshd":
		os.Exit(serve())
	case ok:
		os.Exit(task.Run(context.Background(), task.Options{
			Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Self: "/proc/self/exe", Root: root, Now: time.Now,
		}))
	}
	os.Exit(m.Run())
}

func serve() int {
	c, err := sshd.ReadConfig(os.Stdin)
	if err != nil {
		return 1
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return 1
	}
	if err := sshd.Serve(context.Background(), l, c, func(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }); err != nil {
		return 1
	}
	return 0
}

// container is a task in a separate process.
type container struct {
	t      *testing.T
	root   string
	spec   *spec.Spec
	env    []string
	prefix []string // a program that runs it

	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	mu             sync.Mutex
	lines          chan string // the lines of both streams
}

// newContainer returns a task that runs commands. Its job has one role with one instance.
func newContainer(t *testing.T, commands string) *container {
	t.Helper()
	c := &container{t: t, root: t.TempDir(), lines: make(chan string, 10_000)}
	require.NoError(t, os.Chmod(c.root, 0o777))
	c.spec = &spec.Spec{
		Version: 1, Framework: "0123456789abcdef0123456789abcdef", User: "alice", Job: "job", VirtualCluster: "default", Gang: true, GracePeriodSec: 30,
		Roles: []spec.Role{{Name: "Main_Role", Object: "mainrole", Instances: 1, CPU: 1, MemoryMB: 100, Command: commands, Ports: []spec.Port{{Label: "http", Count: 1}, {Label: "ssh", Count: 1}}}},
	}
	c.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(c.root, "home"), rootEnv + "=" + c.root, spec.TaskVariable + "=mainrole/0/2/0",
		"FC_FRAMEWORK_NAMESPACE=pai-jobs", "PAI_POD_IP=127.0.0.1", "PAI_HOST_IP=192.168.0.1", "FC_POD_UID=some-uid",
	}
	for _, dir := range []string{"home", "etc", "tmp", spec.Home} {
		require.NoError(t, os.MkdirAll(filepath.Join(c.root, dir), 0o777))
		require.NoError(t, os.Chmod(filepath.Join(c.root, dir), 0o777))
	}
	c.write("/etc/hosts", "127.0.0.1 localhost\n")
	return c
}

func (c *container) path(name string) string { return filepath.Join(c.root, name) }

func (c *container) write(name, text string) {
	c.t.Helper()
	require.NoError(c.t, os.MkdirAll(filepath.Dir(c.path(name)), 0o755))
	require.NoError(c.t, os.WriteFile(c.path(name), []byte(text), 0o644))
}

func (c *container) read(name string) string {
	c.t.Helper()
	data, err := os.ReadFile(c.path(name))
	require.NoError(c.t, err)
	return string(data)
}

func (c *container) role() *spec.Role { return &c.spec.Roles[0] }

func (c *container) plugin(name, parameters string) {
	c.role().Plugins = append(c.role().Plugins, spec.Plugin{Name: name, Parameters: json.RawMessage(parameters)})
}

func (c *container) start() {
	c.t.Helper()
	data, err := json.Marshal(c.spec)
	require.NoError(c.t, err)
	if _, err := os.Stat(c.path(spec.File)); err != nil {
		c.write(spec.File, string(data))
	}
	self, err := os.Executable()
	require.NoError(c.t, err)
	args := append(append([]string(nil), c.prefix...), self, "run")
	c.cmd = exec.Command(args[0], args[1:]...)
	c.cmd.Env = c.env
	c.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	c.cmd.Stdout, c.cmd.Stderr = &collector{c: c, to: &c.stdout}, &collector{c: c, to: &c.stderr}
	c.cmd.WaitDelay = 5 * time.Second // background processes of a program may hold the pipes open
	require.NoError(c.t, c.cmd.Start())
	c.t.Cleanup(c.end)
}

// end kills the runtime and all its processes, like the end of a real container.
func (c *container) end() {
	_ = unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL)
	mark := []byte(rootEnv + "=" + c.root + "\x00")
	list, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(c.t, err)
	for _, name := range list {
		environ, err := os.ReadFile(name)
		pid, perr := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && perr == nil && bytes.Contains(append(environ, 0), mark) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// wait waits until the runtime exits, and returns the exit code.
func (c *container) wait() int {
	c.t.Helper()
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

func (c *container) run() int {
	c.t.Helper()
	c.start()
	return c.wait()
}

func (c *container) signal(s unix.Signal) {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Signal(s))
}

// await waits for a line that contains the text.
func (c *container) await(text string) {
	c.t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line := <-c.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-limit:
			require.FailNow(c.t, "it didn't come", "%q in\n%s\n%s", text, c.out(), c.errors())
		}
	}
}

func (c *container) out() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stdout.String()
}

func (c *container) errors() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stderr.String()
}

func (c *container) log() string { return c.read(journal.File) }

func (c *container) report() report.Report {
	c.t.Helper()
	text := c.read(spec.TerminationLog)
	require.LessOrEqual(c.t, len(text), report.Max)
	r, ok := report.Decode(text)
	require.True(c.t, ok, "%q", text)
	return r
}

type collector struct {
	c       *container
	to      *bytes.Buffer
	partial []byte
}

func (w *collector) Write(p []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.to.Len() < 200<<20 {
		w.to.Write(p)
	}
	if w.partial = append(w.partial, p...); len(w.partial) > 1<<20 {
		w.partial = nil // a test of bytes, not of lines
	}
	for {
		n, line, err := bufio.ScanLines(w.partial, false)
		if err != nil || n == 0 {
			return len(p), nil
		}
		select {
		case w.c.lines <- string(line):
		default:
		}
		w.partial = w.partial[n:]
	}
}
