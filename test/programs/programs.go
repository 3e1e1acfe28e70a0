// Package programs builds programs of this repository for tests, once in a process, and runs them.
// In: the name of a program below cmd, arguments. Out: processes that end with the test.
package programs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/openpai/paictl" // holds the source of the programs: where that changes, no cached result of a test counts
	"github.com/openpai/paictl/test/tier"
)

var (
	mu     sync.Mutex
	folder string
	built  = map[string]error{}
)

// Program returns the path of a program, and builds the program if it isn't built yet.
func Program(t testing.TB, name string) string {
	t.Helper()
	Build(t, name)
	return filepath.Join(folder, name)
}

// Build builds those of the programs that aren't built yet. It uses one command for all of them, because that is faster.
func Build(t testing.TB, names ...string) {
	t.Helper()
	tier.More(t, "the program itself")
	mu.Lock()
	defer mu.Unlock()
	var missing []string
	for _, name := range names {
		if _, done := built[name]; !done {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		err := build(missing)
		for _, name := range missing {
			built[name] = err
		}
	}
	for _, name := range names {
		if built[name] != nil {
			t.Fatal(built[name])
		}
	}
}

func build(names []string) (err error) {
	if folder == "" {
		if folder, err = os.MkdirTemp("", "paictl-programs-"); err != nil {
			return err
		}
	}
	// Without symbol tables, which tests don't read, the linker needs half the time.
	args := []string{"build", "-ldflags=-s -w", "-o", folder + "/"}
	for _, name := range names {
		args = append(args, "github.com/openpai/paictl/cmd/"+name)
	}
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", strings.Join(names, ", "), err, out)
	}
	return nil
}

// Clean removes the built programs. Each TestMain calls it at its end.
func Clean() {
	if folder != "" {
		_ = os.RemoveAll(folder) // of a process that ends
	}
}

// Process is a process of a started program.
type Process struct {
	// Ended is closed when the process has ended.
	Ended <-chan struct{}

	name string
	pid  int
	mu   sync.Mutex
	out  bytes.Buffer
	more chan struct{} // closed and replaced when it has said more
}

// Start starts a program. The process is killed when the test ends.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), Program(t, name), args...)
	p, ended := &Process{name: name, more: make(chan struct{})}, make(chan struct{})
	p.Ended = ended
	cmd.Stdout, cmd.Stderr = p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
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

// PID returns the id of the process.
func (p *Process) PID() int { return p.pid }

// Write implements io.Writer.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
	return p.out.Write(b)
}

// patience is how long a program may take to print a text on a busy machine.
const patience = 2 * time.Minute

// Says waits until the output of a program matches an expression, and returns the groups of the match.
func (p *Process) Says(t testing.TB, what *regexp.Regexp) []string {
	t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		found, more := what.FindStringSubmatch(p.out.String()), p.more
		p.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-more:
		case <-p.Ended:
			t.Fatalf("%s has ended: %s", p.name, p.last())
		case <-late:
			t.Fatalf("%s hasn't said %s after %s: %s", p.name, what, patience, p.last())
		}
	}
}

// String returns the output of the process so far.
func (p *Process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// last returns the last 40 lines of the output.
func (p *Process) last() string {
	lines := strings.Split(p.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
