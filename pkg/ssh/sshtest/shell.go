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

// Shell is a handler that runs scripts with the real /bin/sh of this machine. It provides files over SFTP only below Root. Scripts that address files
// as "${PAICTL_ROOT:-}/etc/…" only access files below Root.
type Shell struct {
	// Root is the root folder of the host's file system. The environment variable PAICTL_ROOT contains it.
	Root string
	// Path lists folders that come before the PATH of the test, for stubs of programs.
	Path []string
	// Env lists further environment variables, as KEY=value.
	Env []string
	// Sh is the command of the shell that is used instead of /bin/sh, such as "busybox sh".
	Sh string
	// Corrupt, if set, changes the bytes that are written over SFTP, to simulate a bad network. It receives the path and the bytes at an offset.
	Corrupt func(path string, offset int64, b []byte)
}

// Exec runs a command in its own process group, and returns when the process has ended. Like sshd, it closes the process's input when the connection
// ends, and doesn't kill the process.
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

// environment returns the environment of commands: the test's PATH after the folders in h.Path, HOME, PAICTL_ROOT, TMPDIR, and h.Env.
func (h Shell) environment() []string {
	path := strings.Join(append(append([]string(nil), h.Path...), os.Getenv("PATH")), ":")
	env := []string{"PATH=" + path, "HOME=" + h.Root, "PAICTL_ROOT=" + h.Root, "TMPDIR=" + os.TempDir()}
	return append(env, h.Env...)
}

// exitCode returns the exit status that sshd would report. For a process that was killed by a signal, this is 128 plus the number of the signal.
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

// scriptNoter is a reader that records the body of the script as soon as the script is complete.
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
