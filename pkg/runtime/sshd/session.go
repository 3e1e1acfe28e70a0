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

	rexit "github.com/openpai/paictl/pkg/runtime/exit"
)

// outputDelay is how long a session outlives its program where others hold its output open, as what
// was started in the background does.
const outputDelay = time.Second

// session runs one shell or command.
func session(s ssh.Session, c *Config) {
	cmd, err := command(s, c)
	if err != nil {
		fmt.Fprintln(s.Stderr(), "[pai-runtime]", err)
		_ = s.Exit(rexit.NotFound) // here and below: a client that is gone needs no code
		return
	}
	request, resized, terminal := s.Pty()
	if terminal {
		err = runTerminal(s, cmd, request, resized)
	} else {
		err = runPipes(s, cmd)
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		code := ended.ExitCode()
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = rexit.Signal(int(status.Signal()))
		}
		_ = s.Exit(code)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		fmt.Fprintln(s.Stderr(), "[pai-runtime]", err)
		_ = s.Exit(rexit.CannotExecute)
	default:
		_ = s.Exit(0)
	}
}

// command is what the client asks for: a login shell, or a command for the shell.
func command(s ssh.Session, c *Config) (*exec.Cmd, error) {
	shell, err := loginShell(c.Environ)
	if err != nil {
		return nil, err
	}
	args := []string{"-l"}
	if raw := s.RawCommand(); raw != "" {
		args = []string{"-c", raw}
	}
	cmd := exec.CommandContext(s.Context(), shell, args...)
	// The connection's end is a hang-up, as with any server.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP) }
	cmd.WaitDelay = outputDelay
	cmd.Dir = c.Dir
	if home := lookup(c.Environ, "HOME"); cmd.Dir == "" && home != "" {
		cmd.Dir = home
	}
	cmd.Env = append(append([]string(nil), c.Environ...), sessionVars(s, shell)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// sessionVars are those that a client may set, and what OpenSSH tells of the connection.
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

// loginShell is the user's of the password file, else bash or sh.
func loginShell(environ []string) (string, error) {
	if shell := passwdShell(); shell != "" {
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

// passwdShell reads the shell of this process's user.
func passwdShell() string {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return ""
	}
	defer f.Close()
	uid := strconv.Itoa(os.Getuid())
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 7 || fields[2] != uid {
			continue
		}
		switch filepath.Base(fields[6]) {
		case "nologin", "false", ".": // accounts of services; who has the job's key may have a shell
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

func runPipes(s ssh.Session, cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = s, s.Stderr()
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, s) // ends with the program or the client, whichever is first
		_ = in.Close()
	}()
	return cmd.Wait()
}

func runTerminal(s ssh.Session, cmd *exec.Cmd, request ssh.Pty, resized <-chan ssh.Window) error {
	f, err := pty.StartWithAttrs(cmd, size(request.Window), &syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	defer f.Close()
	go func() {
		for w := range resized {
			_ = pty.Setsize(f, size(w)) // the terminal may be closed already
		}
	}()
	go func() { _, _ = io.Copy(f, s) }()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(s, f) // EIO when the last program closes the terminal
	}()
	err = cmd.Wait()
	select {
	case <-copied:
	case <-time.After(outputDelay):
	}
	return err
}

func size(w ssh.Window) *pty.Winsize {
	return &pty.Winsize{Rows: clampSize(w.Height), Cols: clampSize(w.Width)}
}

func clampSize(n int) uint16 { return uint16(min(max(n, 0), 1<<16-1)) }
