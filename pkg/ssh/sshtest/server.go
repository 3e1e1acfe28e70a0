// Package sshtest provides a machine for tests: an SSH server in the process of the test. In: accounts, a handler for commands, and faults. Out: a
// Target to dial, and the received commands. The server uses the real SSH protocol.
package sshtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	cssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
)

// Config configures a server. The zero value accepts every login as root and rejects every command.
type Config struct {
	// Name is the machine's name in Target. The default is the address.
	Name string
	// User is the only user who may log in. If User is empty, all users may log in, and Target contains root.
	User string
	// Password and Keys are the accepted credentials. Without Password and Keys, the server requires no credentials.
	Password string
	Keys     []cssh.PublicKey
	// KeyboardInteractive means that the server accepts Password only by the method keyboard-interactive.
	KeyboardInteractive bool
	// Expired means that the server accepts Password and then requests a new password, as PAM does.
	Expired bool
	// HostKeys are the keys of the server. If HostKeys is empty, the server creates an ed25519 key.
	HostKeys []cssh.Signer
	// Sudo configures sudo for users other than root. If Sudo is nil, sudo requires no password.
	Sudo *Sudo
	// MaxSessions limits the number of open sessions per connection, as in sshd. Zero means no limit.
	MaxSessions int
	// NoForwarding means that the server can't be a jump host.
	NoForwarding bool
	// Handler runs the commands. If Handler is nil, the server rejects all commands and the test fails.
	Handler Handler
	// Fault is the server's initial fault. SetFault changes the fault.
	Fault Fault
}

// Sudo configures the behavior of a server's sudo.
type Sudo struct {
	// Password is the password that sudo requires. The empty password means NOPASSWD.
	Password string
	// Deny, if set, is the message that sudo prints instead of running the command. sudo then exits with ExitCode, or with 1 if ExitCode is zero.
	Deny     string
	ExitCode int
	// Shell, if set, is the message of a login shell that rejects all commands. The shell prints the message to standard output before sudo runs.
	Shell string
}

// Handler runs the commands of sessions.
type Handler interface {
	// Exec runs a command and returns the exit code. Exec must return soon after ctx or Stdin has ended. The server emulates sudo before it calls Exec.
	Exec(ctx context.Context, e *Exec) int
}

// Server is an SSH server that represents one machine.
type Server struct {
	t        testing.TB
	c        Config
	listener net.Listener
	host     string
	port     int
	config   *cssh.ServerConfig

	mu        sync.Mutex
	fault     Fault
	conns     map[net.Conn]bool
	dials     int
	execCount int
	execs     []Record
	sudoSeen  []string
	closed    bool
	active    int            // sessions
	idle      *sync.Cond     // broadcast when active falls to zero
	serving   sync.WaitGroup // connections and the accept loop
}

// Record describes a command that a server has received.
type Record struct {
	// Line is the command line. On a real host, other users can read it in the list of processes.
	Line string
	// Root means that the command runs as root, because root logged in or because of sudo.
	Root bool
	// Body is the body of a script that has arrived completely, or "".
	Body string
	Held bool
}

// NewServer starts a server on a free port of 127.0.0.1. The server stops when the test ends.
func NewServer(t testing.TB, c Config) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("sshtest: listen: %v", err)
	}
	if len(c.HostKeys) == 0 {
		c.HostKeys = []cssh.Signer{NewKey(t)}
	}
	s := &Server{t: t, c: c, listener: listener, conns: map[net.Conn]bool{}, fault: c.Fault}
	s.idle = sync.NewCond(&s.mu)
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	s.host = host
	s.port, _ = strconv.Atoi(port)
	s.config = s.serverConfig()
	s.serving.Add(1)
	go s.accept()
	t.Cleanup(s.Close)
	return s
}

// NewKey creates an ed25519 key.
func NewKey(t testing.TB) cssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatalf("sshtest: make key: %v", err)
	}
	signer, err := cssh.NewSignerFromSigner(private)
	if err != nil {
		t.Fatalf("sshtest: make key: %v", err)
	}
	return signer
}

// Addr returns the server's host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Target returns a Target for the server. The Target contains the server's password, if any.
func (s *Server) Target() ssh.Target {
	t := ssh.Target{Name: s.c.Name, Address: s.host, Port: s.port, User: s.user(), Password: secret.String(s.c.Password)}
	if s.c.Sudo != nil {
		t.SudoPassword = secret.String(s.c.Sudo.Password)
	}
	return t
}

// KnownHosts returns the server's lines for a known_hosts file.
func (s *Server) KnownHosts() string {
	var lines bytes.Buffer
	for _, k := range s.c.HostKeys {
		fmt.Fprintln(&lines, knownhosts.Line([]string{s.Addr()}, k.PublicKey()))
	}
	return lines.String()
}

// Fingerprint returns the fingerprint of the first host key.
func (s *Server) Fingerprint() string { return cssh.FingerprintSHA256(s.c.HostKeys[0].PublicKey()) }

// Execs returns the commands received so far, in order.
func (s *Server) Execs() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.execs...)
}

// Dials returns the number of connections that the server has accepted so far.
func (s *Server) Dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// Passwords returns the passwords that sudo has received so far.
func (s *Server) Passwords() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.sudoSeen...)
}

// Wait waits until all commands have ended, including commands whose connection was cut.
func (s *Server) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active > 0 {
		s.idle.Wait()
	}
}

// begin adds a session to the count of open sessions. end removes the session.
func (s *Server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 {
		s.idle.Broadcast()
	}
}

// Drop cuts all connections, as a network failure does.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Close stops the server and waits until all commands have ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.listener.Close()
	s.Drop()
	s.serving.Wait()
	s.Wait()
}

func (s *Server) user() string {
	if s.c.User == "" {
		return "root"
	}
	return s.c.User
}

func (s *Server) accept() {
	defer s.serving.Done()
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.dials++
		n, fault, closed := s.dials, s.fault, s.closed
		if !closed {
			s.conns[nc] = true
			s.serving.Add(1)
		}
		s.mu.Unlock()
		if closed {
			_ = nc.Close()
			return
		}
		go func() {
			defer s.serving.Done()
			defer s.drop(nc)
			if n <= fault.DropDials {
				return
			}
			if fault.HangBanner {
				_, _ = nc.Read(make([]byte, 1<<10)) // the client's banner
				_, _ = nc.Read(make([]byte, 1))     // until the client gives up
				return
			}
			s.serve(nc)
		}()
	}
}

func (s *Server) drop(nc net.Conn) {
	s.mu.Lock()
	delete(s.conns, nc)
	s.mu.Unlock()
	_ = nc.Close()
}

func (s *Server) serve(nc net.Conn) {
	_ = nc.SetDeadline(time.Now().Add(2 * time.Minute))
	sc, channels, requests, err := cssh.NewServerConn(nc, s.config)
	if err != nil {
		return
	}
	_ = nc.SetDeadline(time.Time{})
	go s.global(requests)
	l := &link{s: s, nc: nc, root: sc.User() == "root"}
	for ch := range channels {
		switch ch.ChannelType() {
		case "session":
			l.session(ch)
		case "direct-tcpip":
			go s.forward(ch)
		default:
			_ = ch.Reject(cssh.UnknownChannelType, "unknown channel type")
		}
	}
}

// global replies to keepalives, except with the fault Silent.
func (s *Server) global(requests <-chan *cssh.Request) {
	for r := range requests {
		if r.WantReply && !s.faultNow().Silent {
			_ = r.Reply(false, nil)
		}
	}
}
