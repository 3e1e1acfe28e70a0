package sshtest

import "time"

// When is the time when the connection of a command is cut.
type When int

// These constants are the times when the connection of a command can be cut.
const (
	Never When = iota
	// BeforeExec means that the command doesn't start.
	BeforeExec
	// MidTransfer means that half of the script has arrived. No command of the script has run.
	MidTransfer
	// MidRun means that the script has started or is about to start.
	MidRun
	// AfterExec means that the command has finished and taken effect, but its result isn't sent.
	AfterExec
)

// Fault describes the faults that a server simulates.
type Fault struct {
	// DropDials is the number of connections that the server closes without a reply, like sshd with MaxStartups.
	DropDials int
	// HangBanner means that the server accepts connections but sends no banner.
	HangBanner bool
	// RefuseAuth means that the server rejects every login.
	RefuseAuth bool
	// Silent means that the server doesn't reply to keepalives.
	Silent bool
	// Delay is how long the server waits before each command.
	Delay time.Duration
	// Exec is the number of the command whose connection is cut. The number starts at 1 and counts the commands of all connections since SetFault. When
	// is the time during that command.
	Exec int
	When When
	// Then is called after the cut. Then may be nil.
	Then func()
}

// SetFault sets the server's fault and restarts the count of commands.
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

// nextExec counts a command, and returns the current fault and the time to cut the command's connection.
func (s *Server) nextExec() (Fault, When) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.execCount++
	if s.fault.Exec == s.execCount {
		return s.fault, s.fault.When
	}
	return s.fault, Never
}

// ExecCount returns the number of commands since SetFault or the start of the server. The SFTP session of an upload counts as a command.
func (s *Server) ExecCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.execCount
}
