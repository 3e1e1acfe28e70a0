package sshtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

type link struct {
	s    *Server
	nc   net.Conn
	root bool // the login user

	mu       sync.Mutex
	sessions int
}

// Exec is a command to run. The server has already handled sudo.
type Exec struct {
	Server *Server
	// Line is the command line: "exec sh -s", or a command that starts an SFTP server.
	Line string
	// SFTP means that the session uses the SFTP protocol.
	SFTP bool
	Root bool

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	record int // index of the server's record
}

// Script reads the program from Stdin and returns the body of the script. held reports whether ssh.Host.Hold sent the script. The error means that
// the transfer was interrupted.
func (e *Exec) Script() (body string, held bool, err error) {
	in := bufio.NewReader(e.Stdin)
	e.Stdin = in // with the bytes after the program
	program, err := wire.Read(in)
	if err != nil {
		return "", false, err
	}
	body, held, err = wire.Body(program)
	if err == nil {
		e.note(body, held)
	}
	return body, held, err
}

func (e *Exec) note(body string, held bool) {
	e.Server.mu.Lock()
	defer e.Server.mu.Unlock()
	r := &e.Server.execs[e.record]
	r.Body, r.Held = body, held
}

// session accepts or rejects a session. An accepted session runs in the background.
func (l *link) session(nch cssh.NewChannel) {
	l.mu.Lock()
	if l.s.c.MaxSessions > 0 && l.sessions >= l.s.c.MaxSessions {
		l.mu.Unlock()
		_ = nch.Reject(cssh.ConnectionFailed, "open failed")
		return
	}
	l.sessions++
	l.mu.Unlock()
	ch, requests, err := nch.Accept()
	if err != nil {
		return
	}
	l.s.begin()
	go func() {
		defer l.s.end()
		l.requests(ch, requests)
		l.mu.Lock()
		l.sessions--
		l.mu.Unlock()
		_ = ch.Close()
	}()
}

// requests waits for the request that starts a command, and rejects other requests.
func (l *link) requests(ch cssh.Channel, requests <-chan *cssh.Request) {
	for r := range requests {
		var line string
		switch r.Type {
		case "exec", "subsystem":
			var payload struct{ Text string }
			if err := cssh.Unmarshal(r.Payload, &payload); err != nil {
				_ = r.Reply(false, nil)
				return
			}
			line = payload.Text
		default:
			_ = r.Reply(false, nil)
			continue
		}
		l.command(ch, r, line, requests)
		return
	}
}

// command runs a command and simulates the server's faults.
func (l *link) command(ch cssh.Channel, r *cssh.Request, line string, requests <-chan *cssh.Request) {
	fault, when := l.s.nextExec()
	cut := sync.OnceFunc(func() {
		_ = l.nc.Close()
		if fault.Then != nil {
			fault.Then()
		}
	})
	if when == BeforeExec {
		cut()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // the end of requests is the end of the session
		for r := range requests {
			_ = r.Reply(false, nil)
		}
		cancel()
	}()
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-ctx.Done():
			return
		}
	}
	e, err := l.exec(ch, r.Type, line)
	if err != nil {
		_ = r.Reply(false, nil)
		l.s.t.Errorf("sshtest: %v", err)
		return
	}
	_ = r.Reply(true, nil)
	code, ok := l.sudo(e, line)
	if ok {
		e.Stdin = cutInput(e, when, cut)
		code = l.s.handler().Exec(ctx, e)
	}
	if when != Never {
		cut()
		return
	}
	_, _ = ch.SendRequest("exit-status", false, cssh.Marshal(struct{ Status uint32 }{uint32(code)}))
}

func (l *link) exec(ch cssh.Channel, kind, line string) (*Exec, error) {
	e := &Exec{Server: l.s, Line: line, Root: l.root, Stdin: ch, Stdout: ch, Stderr: ch.Stderr()}
	if kind == "subsystem" {
		if line != "sftp" {
			return nil, fmt.Errorf("unknown subsystem %q", line)
		}
		e.SFTP = true
	} else {
		c, err := wire.ParseCommand(line)
		if err != nil {
			return nil, err
		}
		e.Line, e.Root = c.Inner, l.root || c.Sudo
		e.SFTP = c.Inner == wire.SFTPServer
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	e.record = len(l.s.execs)
	l.s.execs = append(l.s.execs, Record{Line: line, Root: e.Root})
	return e, nil
}

// sudo emulates sudo if the command line contains sudo. ok reports whether the command may start. If ok is false, code is the exit code.
func (l *link) sudo(e *Exec, line string) (code int, ok bool) {
	c, err := wire.ParseCommand(line)
	if err != nil || !c.Sudo {
		return 0, true
	}
	rule := l.s.c.Sudo
	if rule == nil {
		rule = &Sudo{}
	}
	if rule.Shell != "" {
		_, _ = fmt.Fprintln(e.Stdout, rule.Shell)
		return max(1, rule.ExitCode), false
	}
	if rule.Deny != "" {
		_, _ = fmt.Fprintln(e.Stderr, rule.Deny)
		return max(1, rule.ExitCode), false
	}
	for tries := 0; rule.Password != ""; tries++ {
		if tries == 3 {
			_, _ = io.WriteString(e.Stderr, "sudo: 3 incorrect password attempts\n")
			return 1, false
		}
		if tries > 0 {
			_, _ = io.WriteString(e.Stderr, "Sorry, try again.\n")
		}
		_, _ = io.WriteString(e.Stderr, wire.Prompt(c.Nonce))
		typed, err := readLine(e.Stdin)
		if err != nil {
			_, _ = io.WriteString(e.Stderr, "\nsudo: no password was provided\n")
			return 1, false
		}
		l.s.mu.Lock()
		l.s.sudoSeen = append(l.s.sudoSeen, typed)
		l.s.mu.Unlock()
		if typed == rule.Password {
			break
		}
	}
	_, _ = fmt.Fprintln(e.Stderr, wire.Ready(c.Nonce))
	return 0, true
}

// readLine reads a line. Like sudo, it reads no byte after the newline.
func readLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
}

// handler returns the configured handler, or a handler that rejects all commands.
func (s *Server) handler() Handler {
	if s.c.Handler != nil {
		return s.c.Handler
	}
	return Scripted(s.t)
}

// sftpCut is the number of transferred bytes after which an SFTP session is cut.
const sftpCut = 16 << 10

// cutInput returns the input of a command with the given fault. The input of a script ends in the middle of the script or right after the script. The
// input of an SFTP session ends during the data or during the handshake.
func cutInput(e *Exec, when When, cut func()) io.Reader {
	if when != MidTransfer && when != MidRun {
		return e.Stdin
	}
	in := e.Stdin // the caller replaces it
	pr, pw := io.Pipe()
	go func() {
		defer func() { _ = pw.Close() }()
		defer cut()
		if e.SFTP {
			limit := int64(sftpCut)
			if when == MidRun {
				limit = 20
			}
			_, _ = io.CopyN(pw, in, limit)
			return
		}
		program, err := wire.Read(bufio.NewReader(in))
		if err == nil && when == MidTransfer {
			program = program[:len(program)/2]
		}
		_, _ = io.Copy(pw, strings.NewReader(program))
	}()
	return pr
}

// forward forwards a connection to another host. This makes the server a jump host.
func (s *Server) forward(nch cssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if err := cssh.Unmarshal(nch.ExtraData(), &to); err != nil || s.c.NoForwarding {
		_ = nch.Reject(cssh.Prohibited, "administratively prohibited")
		return
	}
	up, err := net.Dial("tcp", net.JoinHostPort(strings.Trim(to.Host, "[]"), fmt.Sprint(to.Port)))
	if err != nil {
		_ = nch.Reject(cssh.ConnectionFailed, "Connection refused")
		return
	}
	ch, requests, err := nch.Accept()
	if err != nil {
		_ = up.Close()
		return
	}
	go cssh.DiscardRequests(requests)
	go func() {
		_, _ = io.Copy(ch, up)
		_ = ch.Close()
		_ = up.Close()
	}()
	_, _ = io.Copy(up, ch)
	_ = up.Close()
	_ = ch.Close()
}
