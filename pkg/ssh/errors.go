package ssh

import "errors"

// Errors of this package. A returned error wraps one of these values and adds the host's name, a cause and a remedy (pkg/hint). Use errors.Is to
// compare errors.
var (
	// ErrUnreachable means that the host accepted no TCP connection or sent no SSH banner. The machine may be off, so a later retry may help. Callers
	// skip the host and continue with other hosts.
	ErrUnreachable = errors.New("unreachable")
	// ErrAuth means that the server rejected all authentication methods. A retry doesn't help.
	ErrAuth = errors.New("authentication refused")
	// ErrHostKey means that the host's key is unknown and wasn't accepted, or differs from the known key. Callers must not retry.
	ErrHostKey = errors.New("host key not accepted")
	// ErrSudo means that the user may not become root, or that the password was wrong.
	ErrSudo = errors.New("sudo refused")
	// ErrDryRun means that the gate rejected a script or an upload that would change the host.
	ErrDryRun = errors.New("refused in a dry run")
	// ErrClosed means that the connection was lost while a script ran. The script may have finished. All scripts can be repeated safely.
	ErrClosed = errors.New("connection lost")
	// ErrTimeout means that a script ran longer than its time limit.
	ErrTimeout = errors.New("timed out")
)
