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

// Shell runs scripts for real, with /bin/sh of this machine, and files over SFTP, below
// Root only. Scripts that address files as "${PAICTL_ROOT:-}/etc/…" stay below Root.
type Shell struct {
	// Root is the root folder of the host's file system. It is in the environment as PAICTL_ROOT.
	Root string
	// Path is put before the PATH of the test, for stubs of programs.
	Path []string
	// Env is added to the environment, as KEY=value.
	Env []string
	// Sh is the shell to use instead of /bin/sh, such as "busybox sh".
	Sh string
	// Corrupt, if set, changes the bytes that are written over SFTP, to simulate a bad network. It gets
	// the path and the bytes at an offset.
	Corrupt func(path string, offset int64, b []byte)
}

// Exec runs one command in a separate process group. It returns when the process has
// ended; like sshd, it ends the process's input with the connection and doesn't kill the process.
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

// environment returns the environment of the test, with HOME and the path replaced.
func (h Shell) environment() []string {
	path := strings.Join(append(append([]string(nil), h.Path...), os.Getenv("PATH")), ":")
	env := []string{"PATH=" + path, "HOME=" + h.Root, "PAICTL_ROOT=" + h.Root, "TMPDIR=" + os.TempDir()}
	return append(env, h.Env...)
}

// exitCode returns the exit status that sshd would report: 128 and the signal for a process that was killed.
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

// scriptNoter records the script's body as soon as it is complete.
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
