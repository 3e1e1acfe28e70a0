package scale

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	build "github.com/openpai/paictl/test/programs"
)

// controller is a process of cmd/pai-controller.
type controller struct {
	cmd   *exec.Cmd
	url   string
	tasks string // the address that tasks ask
	ended chan struct{}

	output written
}

// text returns the end of the controller's log.
func (c *controller) text() string {
	b := c.output.bytes()
	return string(b[max(0, len(b)-4000):])
}

// written collects the output of a program. It can be read while the program runs.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.b.Bytes())
}

func (w *written) has(text string) bool { return bytes.Contains(w.bytes(), []byte(text)) }

func (w *written) size() int { return len(w.bytes()) }

// start starts the controller, and waits until the controller responds.
func (w *jobsWorld) start() {
	w.t.Helper()
	program := build.Program(w.t, "pai-controller")
	dir := w.t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(w.t, clientcmd.WriteToFile(w.c.Raw, kubeconfig))
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), program, "--kubeconfig="+kubeconfig, "--database="+w.archive, "--listen="+cmp.Or(w.host, "127.0.0.1")+":0", "--code-listen=127.0.0.1:0", "--leader-election=false")
	// The test measures the controller with its own setting of GOGC. The setting in the environment only makes compilation faster.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") })
	// The process is in a separate process group, so a signal to the process group of the test, such as Ctrl-C, doesn't reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &controller{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &c.output, &c.output
	require.NoError(w.t, cmd.Start())
	w.controller = c
	go func() { _ = cmd.Wait(); close(c.ended) }()
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); <-c.ended })
	require.NoError(w.t, w.wait(time.After(2*time.Minute), func() error {
		select {
		case <-c.ended:
			return fmt.Errorf("it has ended: %s", c.text())
		default:
		}
		if c.url, c.tasks = c.address("listen"), c.address("tasks"); c.url == "" || c.tasks == "" {
			return errors.New("it doesn't listen yet")
		}
		resp, err := http.Get(c.url + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it is not ready: %s", resp.Status)
		}
		return nil
	}), "%s", c.text())
}

// kill kills the controller with SIGKILL.
func (w *jobsWorld) kill() {
	w.peak = max(w.peak, w.controller.memory())
	_ = w.controller.cmd.Process.Signal(syscall.SIGKILL) // it may have ended by itself; its successor's log shows that
	<-w.controller.ended
}

// memory returns the maximum memory that any of the controllers has used, in MiB.
func (w *jobsWorld) memory() int64 { return max(w.peak, w.controller.memory()) }

// memory returns the maximum memory that the process has used, in MiB.
func (c *controller) memory() int64 { return peak(c.cmd.Process.Pid) }

// address returns an address at which the controller listens, according to its log. It returns "" before the controller listens.
func (c *controller) address(key string) string {
	_, rest, found := strings.Cut(string(c.output.bytes()), " "+key+"=")
	address, _, whole := strings.Cut(rest, " ")
	if !found || !whole {
		return ""
	}
	return "http://" + address
}
