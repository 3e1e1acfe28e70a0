package sshtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

// Shell is a handler that runs scripts with the real /bin/sh of this machine. SFTP gives access only to files below Root. Scripts with paths such as
// "${PAICTL_ROOT:-}/etc/…" access only files below Root.
type Shell struct {
	// Root is the root folder of the host's file system. The environment variable PAICTL_ROOT contains it.
	Root string
	// Path lists folders with stubs of programs. These folders come before the PATH of the test.
	Path []string
	// Env lists further environment variables in the form KEY=value.
	Env []string
	// Sh is the command of a shell that replaces /bin/sh, such as "busybox sh".
	Sh string
	// Corrupt, if set, changes the bytes that SFTP clients write, to simulate a bad network. Corrupt receives the path, the offset and the bytes.
	Corrupt func(path string, offset int64, b []byte)
}

// Exec runs a command in its own process group, and returns when the process has ended. When the connection ends, Exec closes the process's input but
// doesn't kill the process, like sshd.
func (h Shell) Exec(_ context.Context, e *Exec) int {
	if e.SFTP {
		return h.sftp(e)
	}
	words := []string{"/bin/sh"}
	if h.Sh != "" {
		words = strings.Fields(h.Sh)
	}
	cmd := exec.Command(words[0], append(words[1:], "-s")...)
	cmd.Dir = h.Root
	cmd.Env = h.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 20 * time.Second // less, and a busy machine loses output
	cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 255
	}
	if err := cmd.Start(); err != nil {
		_, _ = io.WriteString(e.Stderr, err.Error()+"\n")
		return 127
	}
	go func() {
		_, _ = io.Copy(stdin, &scriptNoter{e: e, r: e.Stdin})
		_ = stdin.Close()
	}()
	return exitCode(cmd.Wait())
}

// environment returns the environment of commands. environment contains PATH, HOME, PAICTL_ROOT, TMPDIR and h.Env. The folders in h.Path come first
// in PATH.
func (h Shell) environment() []string {
	path := strings.Join(append(append([]string(nil), h.Path...), os.Getenv("PATH")), ":")
	env := []string{"PATH=" + path, "HOME=" + h.Root, "PAICTL_ROOT=" + h.Root, "TMPDIR=" + os.TempDir()}
	return append(env, h.Env...)
}

// exitCode returns the exit status that sshd would report. If a signal killed the process, the status is 128 plus the number of the signal.
func exitCode(err error) int {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return 0
	}
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 255
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

// scriptNoter is a reader that records the body of a script when the script is complete.
type scriptNoter struct {
	e       *Exec
	r       io.Reader
	program bytes.Buffer // as far as it was received
	noted   bool
}

func (n *scriptNoter) Read(b []byte) (int, error) {
	got, err := n.r.Read(b)
	if n.noted || got == 0 {
		return got, err
	}
	n.program.Write(b[:got])
	if !wire.Ends(n.program.Bytes()) {
		return got, err
	}
	n.noted = true
	if program, readErr := wire.Read(bufio.NewReader(&n.program)); readErr == nil {
		if body, held, err := wire.Body(program); err == nil {
			n.e.note(body, held)
		}
	}
	return got, err
}
