// Package programs builds programs of this repository for tests, once per process, and runs them.
// In: the name of a program below cmd, arguments. Out: processes that end with the test.
package programs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	_ "github.com/openpai/paictl" // holds the source of the programs: where that changes, no cached result of a test counts
)

var (
	mu     sync.Mutex
	folder string
	built  = map[string]error{}
)

// Program returns the file of a program, which is built once per process.
func Program(t testing.TB, name string) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if _, done := built[name]; !done {
		built[name] = build(name)
	}
	if built[name] != nil {
		t.Fatal(built[name])
	}
	return filepath.Join(folder, name)
}

func build(name string) (err error) {
	if folder == "" {
		if folder, err = os.MkdirTemp("", "paictl-programs-"); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(folder, name), "github.com/openpai/paictl/cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return nil
}

// Clean removes what was built. It is called at the end of TestMain.
func Clean() {
	if folder != "" {
		_ = os.RemoveAll(folder) // of a process that ends
	}
}

// Process is one that runs.
type Process struct {
	// Ended is closed when it has ended.
	Ended <-chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Start starts a program. It is killed when the test ends.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), Program(t, name), args...)
	p, ended := &Process{}, make(chan struct{})
	p.Ended = ended
	cmd.Stdout, cmd.Stderr = p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s said at last:\n%s", name, p.last())
		}
	})
	return p
}

// Write implements io.Writer.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// String is what it has said.
func (p *Process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// last are its last lines.
func (p *Process) last() string {
	lines := strings.Split(p.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
