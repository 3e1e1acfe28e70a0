package sshtest

import "time"

// When is the point of a command where the connection is cut.
type When int

// The points of a command where its connection is cut.
const (
	Never When = iota
	// BeforeExec: the command does not start.
	BeforeExec
	// MidTransfer: half of the script has arrived; none of its commands may have run.
	MidTransfer
	// MidRun: the script has started, or is about to start.
	MidRun
	// AfterExec: the command has finished and taken effect, but the result isn't sent.
	AfterExec
)

// Fault is the faulty behaviour of a server.
type Fault struct {
	// DropDials closes the first connections before a byte is sent (MaxStartups).
	DropDials int
	// HangBanner accepts connections and sends no banner.
	HangBanner bool
	// RefuseAuth rejects every login.
	RefuseAuth bool
	// Silent means that the server doesn't reply to keepalives.
	Silent bool
	// Delay is added before each command.
	Delay time.Duration
	// Exec is the number of the command whose connection is cut, counted from 1 over all connections since SetFault. When is the point within that
	// command.
	Exec int
	When When
	// Then is called after the cut; it may be nil.
	Then func()
}

// SetFault replaces the fault; the count of commands starts again.
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

// nextExec counts a command and returns the point where its connection is cut.
func (s *Server) nextExec() (Fault, When) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execCount++
	if s.fault.Exec == s.execCount {
		return s.fault, s.fault.When
	}
	return s.fault, Never
}

// ExecCount returns the number of commands since SetFault or the start. An upload's SFTP
// session counts as one.
func (s *Server) ExecCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.execCount
}
