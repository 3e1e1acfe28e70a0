package sshtest

import "time"

// When is the time at which the connection of a command is cut.
type When int

// The times at which the connection of a command can be cut.
const (
	Never When = iota
	// BeforeExec means that the command doesn't start.
	BeforeExec
	// MidTransfer means that half of the script has arrived. None of its commands may have run.
	MidTransfer
	// MidRun means that the script has started or is about to start.
	MidRun
	// AfterExec means that the command has finished and taken effect, but its result isn't sent.
	AfterExec
)

// Fault describes how a server misbehaves.
type Fault struct {
	// DropDials is how many connections are closed before a byte is sent, as by MaxStartups.
	DropDials int
	// HangBanner means that the server accepts connections but sends no banner.
	HangBanner bool
	// RefuseAuth means that the server rejects every login.
	RefuseAuth bool
	// Silent means that the server doesn't reply to keepalives.
	Silent bool
	// Delay is a time that the server waits before each command.
	Delay time.Duration
	// Exec is the number of the command whose connection is cut, counted from 1 over all connections since SetFault. When is the time during that
	// command.
	Exec int
	When When
	// Then is called after the cut. It may be nil.
	Then func()
}

// SetFault replaces the server's fault and restarts the count of commands.
func (s *Server) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	s.execCount = 0
}

func (s *Server) faultNow() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// nextExec counts a command, and returns the current fault and when to cut the command's connection.
func (s *Server) nextExec() (Fault, When) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execCount++
	if s.fault.Exec == s.execCount {
		return s.fault, s.fault.When
	}
	return s.fault, Never
}

// ExecCount returns the number of commands since SetFault or the start. The SFTP session of an upload counts as a command.
func (s *Server) ExecCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.execCount
}
