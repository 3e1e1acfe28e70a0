package ssh

import "errors"

// Sentinel errors. They are wrapped with the host's name, a cause and a remedy
// (pkg/hint); test with errors.Is.
var (
	// ErrUnreachable: no TCP connection or no SSH banner. The machine may be off;
	// callers set the host aside and continue. A later retry may help.
	ErrUnreachable = errors.New("unreachable")
	// ErrAuth: the server rejected every authentication method. A retry does not help.
	ErrAuth = errors.New("authentication refused")
	// ErrHostKey: the host key is unknown and was not accepted, or differs from the
	// known one. Never retry.
	ErrHostKey = errors.New("host key not accepted")
	// ErrSudo: the user may not become root, or the password was wrong.
	ErrSudo = errors.New("sudo refused")
	// ErrDryRun: the gate rejected a script or an upload that would change the host.
	ErrDryRun = errors.New("refused in a dry run")
	// ErrClosed: the connection broke while a script ran. The script may have had its
	// effect or not; every script is safe to repeat.
	ErrClosed = errors.New("connection lost")
	// ErrTimeout: a script ran longer than its limit.
	ErrTimeout = errors.New("timed out")
)
