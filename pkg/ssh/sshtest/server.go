// Package sshtest is a machine for tests: an SSH server inside the test's process.
// In: accounts, a handler for commands, and faults. Out: a Target to dial and the received commands.
// No protocol is simulated; package ssh can't distinguish it from OpenSSH.
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

// Config configures a server. The zero value admits everyone as root and rejects every command.
type Config struct {
	// Name is the machine's name in Target; the address if empty.
	Name string
	// User may log in; everyone if empty, and Target then names root.
	User string
	// Password, or one of Keys, admits the user. Without either, the server asks for no credentials.
	Password string
	Keys     []cssh.PublicKey
	// KeyboardInteractive asks for Password by that method only.
	KeyboardInteractive bool
	// Expired asks for a new password after Password, as PAM does.
	Expired bool
	// HostKeys identify the server; one ed25519 key is made if empty.
	HostKeys []cssh.Signer
	// Sudo configures sudo for users other than root; if nil, they need no
	// password.
	Sudo *Sudo
	// MaxSessions limits open sessions per connection, as sshd does; zero means no limit.
	MaxSessions int
	// NoForwarding means that the server can't be a jump host.
	NoForwarding bool
	// Handler runs the commands; nil rejects everything and fails the test.
	Handler Handler
	// Fault is the initial fault; see SetFault.
	Fault Fault
}

// Sudo is how a server's sudo behaves.
type Sudo struct {
	// Password is the password that sudo requires; "" means NOPASSWD.
	Password string
	// Deny is printed instead, and sudo ends with ExitCode, or 1.
	Deny     string
	ExitCode int
	// Shell is the text that a login shell that rejects every command prints on standard output, before sudo runs.
	Shell string
}

// Handler runs the commands of sessions.
type Handler interface {
	// Exec runs a command and returns its exit code. It returns soon after ctx or Stdin has ended.
	// The server has already handled sudo.
	Exec(ctx context.Context, e *Exec) int
}

// Server is one machine.
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

// Record is a command that a server was asked to run.
type Record struct {
	// Line is the command line, as a process list would show it.
	Line string
	// Root means that it requested root rights, by login or by sudo.
	Root bool
	// Body is the script, if the command was one and arrived completely.
	Body string
	Held bool
}

// NewServer starts a machine on a free port of 127.0.0.1. It stops with the test.
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

// NewKey makes an ed25519 key.
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

// Addr returns host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Target returns how to reach the server, with its password if it has one.
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

// Dials returns the number of connections so far.
func (s *Server) Dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// Passwords returns the passwords that were typed at sudo's prompt so far.
func (s *Server) Passwords() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.sudoSeen...)
}

// Wait returns when all commands have ended, even those whose connection was interrupted.
func (s *Server) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active > 0 {
		s.idle.Wait()
	}
}

// begin counts a session that starts, and end one that ends.
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

// Close stops the machine and waits until its commands exit.
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

// serve runs one connection.
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

// global replies to keepalives, unless the fault is to be silent.
func (s *Server) global(requests <-chan *cssh.Request) {
	for r := range requests {
		if r.WantReply && !s.faultNow().Silent {
			_ = r.Reply(false, nil)
		}
	}
}
