package sshd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/gliderlabs/ssh"
	"golang.org/x/sys/unix"

	rexit "github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/process"
)

// outputDelay is how long a session waits for background processes that keep its output open after its program has exited.
const outputDelay = time.Second

func session(s ssh.Session, ch *channel, c *Config) {
	cmd, err := command(s, c)
	if err != nil {
		fmt.Fprintln(ch.raw.Stderr(), "[pai-runtime]", err)
		_ = s.Exit(rexit.NotFound) // here and below, an error means that the client has disconnected
		return
	}
	if request, _, terminal := s.Pty(); terminal {
		err = runTerminal(cmd, ch, request.Window)
	} else {
		err = runPipes(cmd, ch)
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		code := ended.ExitCode()
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = rexit.Signal(int(status.Signal()))
		}
		_ = s.Exit(code)
	case err != nil:
		fmt.Fprintln(ch.raw.Stderr(), "[pai-runtime]", err)
		_ = s.Exit(rexit.CannotExecute)
	default:
		_ = s.Exit(0)
	}
}

// command returns a login shell, or a shell that runs the client's command.
func command(s ssh.Session, c *Config) (*exec.Cmd, error) {
	shell, err := loginShell(c.Environ, passwdFile)
	if err != nil {
		return nil, err
	}
	args := []string{"-l"}
	if raw := s.RawCommand(); raw != "" {
		args = []string{"-c", raw}
	}
	cmd := exec.Command(shell, args...) //nolint:noctx // it may outlive the session; see attend
	cmd.Dir = c.Folder()
	cmd.Env = append(append([]string(nil), c.Environ...), sessionVars(s, shell)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// Folder returns the folder in which sessions and the server start. "" means the image's working directory. Folder checks that
// HOME exists, because some images don't contain that folder.
func (c *Config) Folder() string {
	for _, dir := range []string{c.Dir, lookup(c.Environ, "HOME")} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// sessionVars returns the client's permitted variables, and OpenSSH's variables that describe the connection.
func sessionVars(s ssh.Session, shell string) []string {
	var out []string
	for _, e := range s.Environ() {
		if strings.HasPrefix(e, "LC_") || strings.HasPrefix(e, "LANG=") {
			out = append(out, e)
		}
	}
	out = append(out, "SHELL="+shell)
	from, fromPort, err := net.SplitHostPort(s.RemoteAddr().String())
	to, toPort, err2 := net.SplitHostPort(s.LocalAddr().String())
	if err == nil && err2 == nil {
		out = append(out,
			fmt.Sprintf("SSH_CLIENT=%s %s %s", from, fromPort, toPort),
			fmt.Sprintf("SSH_CONNECTION=%s %s %s %s", from, fromPort, to, toPort))
	}
	if request, _, ok := s.Pty(); ok {
		out = append(out, "TERM="+request.Term)
	}
	return out
}

const passwdFile = "/etc/passwd"

// loginShell returns the user's shell from the password file. If the file contains no shell, it returns SHELL from the
// environment, or bash or sh.
func loginShell(environ []string, passwd string) (string, error) {
	if shell := passwdShell(passwd, strconv.Itoa(os.Getuid())); shell != "" {
		return shell, nil
	}
	for _, name := range []string{lookup(environ, "SHELL"), "bash", "sh"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the image has no shell")
}

// passwdShell returns a user's shell from the password file, or "".
func passwdShell(passwd, uid string) string {
	f, err := os.Open(passwd)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 7 || fields[2] != uid {
			continue
		}
		switch filepath.Base(fields[6]) {
		case "nologin", "false", ".": // accounts of services can't log in elsewhere; here, a user with the job's key may have a shell
			return ""
		}
		if _, err := exec.LookPath(fields[6]); err == nil {
			return fields[6]
		}
		return ""
	}
	return ""
}

func lookup(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// runPipes runs a program without a terminal. If the client disconnects, the program receives SIGHUP. The program may ignore
// SIGHUP, for example with nohup.
func runPipes(cmd *exec.Cmd, ch *channel) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, outPipe, err := process.NewStream(ch.raw, io.Discard)
	if err != nil {
		return err
	}
	stderr, errPipe, err := process.NewStream(ch.raw.Stderr(), io.Discard)
	if err != nil {
		return errors.Join(err, outPipe.Close(), stdout.Close())
	}
	cmd.Stdout, cmd.Stderr = outPipe, errPipe
	err = cmd.Start()
	_, _ = outPipe.Close(), errPipe.Close() // the program has inherited them, or didn't start
	if err != nil {
		return errors.Join(err, stdout.Close(), stderr.Close())
	}
	go func() {
		_, _ = io.Copy(in, ch.raw) // until the program or the client ends
		_ = in.Close()
	}()
	err = ch.wait(cmd, func(ssh.Window) {}, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGHUP) })
	limit := time.Now().Add(ch.delay)
	_ = stdout.Finish(time.Until(limit)) // a disconnected client doesn't need the output
	_ = stderr.Finish(time.Until(limit))
	return err
}

func (c *channel) wait(cmd *exec.Cmd, resize func(ssh.Window), hangUp func()) error {
	ended := make(chan struct{})
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		c.attend(ended, cmd.Process.Pid, resize, hangUp)
	}()
	err := cmd.Wait()
	close(ended)
	<-attended
	return err
}

// runTerminal runs a program in a new terminal. When the client disconnects, runTerminal closes the terminal, and Linux sends
// SIGHUP to the programs in the terminal.
func runTerminal(cmd *exec.Cmd, ch *channel, w ssh.Window) error {
	near, far, err := openTerminal(w)
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr.Setctty = true
	err = cmd.Start()
	_ = far.Close() // the program has inherited it
	if err != nil {
		return errors.Join(err, near.Close())
	}
	out := process.Through(near, ch.raw)
	go func() { _, _ = io.Copy(near, ch.raw) }() // until the terminal or the client ends
	err = ch.wait(cmd, func(w ssh.Window) { _ = resize(near, w) }, func() { _ = near.Close() })
	_ = out.Finish(ch.delay) // already closed if the client has disconnected
	return err
}

// openTerminal opens a terminal. The near side is non-blocking, because a blocked read would keep it open after Close. Then the
// programs in the terminal wouldn't receive SIGHUP.
func openTerminal(w ssh.Window) (near, far *os.File, err error) {
	blocking, far, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(err, far.Close())
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd), far.Close())
	}
	near = os.NewFile(uintptr(fd), "terminal")
	if err := resize(near, w); err != nil {
		return nil, nil, errors.Join(err, near.Close(), far.Close())
	}
	return near, far, nil
}

// resize sets the size of a terminal. Unlike pty.Setsize, it keeps the file non-blocking.
func resize(f *os.File, w ssh.Window) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	size := &unix.Winsize{Row: clampSize(w.Height), Col: clampSize(w.Width)}
	if cerr := c.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); cerr != nil {
		return cerr
	}
	return err
}

func clampSize(n int) uint16 { return uint16(min(max(n, 0), 1<<16-1)) }
