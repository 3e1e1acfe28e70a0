// Package exit has the exit codes of the runtime itself, and errors with an exit code. In: an error, and the reason why it ends
// the task. Out: the exit code for the container.
package exit

import "errors"

// Exit codes of the runtime itself, with the names from OpenPAI's exit specification.
const (
	Setup             = 247 // PAIRuntimeSetupFailed: a step before the program
	SSHBarrierTimeout = 249 // PAIRuntimeSSHBarrierTimeout
	BarrierTransient  = 250 // FrameworkBarrierTransientFailed: the API can't be reached
	GangTimeout       = 251 // JobGangAllocationTimeout: not every task got a place
	BarrierPermanent  = 252 // FrameworkBarrierPermanentFailed: the API refuses
	PortConflict      = 253 // ContainerPortConflict
	Unknown           = 255 // PAIRuntimeUnknownFailed
	Stopped           = 143 // the code of a program that SIGTERM ended
	CannotExecute     = 126 // the code of shells
	NotFound          = 127

	signalBase = 128
)

// Error is an error with an exit code for the task.
type Error struct {
	Code int
	Err  error
	// Program means that the code is the exit code of a program. The failure rules interpret only such codes. For the runtime's
	// own codes, the rules would search the output of a program that never ran.
	Program bool
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// With adds an exit code to an error. It returns nil if the error is nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Code returns the exit code of the outermost Error. It returns Setup for any other error, and 0 for nil.
func Code(err error) int {
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return Setup
}

// OfProgram returns an error with the exit code of a program. If the program can't be started, code is the code that a shell
// would return.
func OfProgram(code int, err error) error { return &Error{Code: code, Err: err, Program: true} }

// IsRuntimeCode reports whether the exit code of an error is one of the runtime's codes, not a program's exit code.
func IsRuntimeCode(err error) bool {
	var e *Error
	return !errors.As(err, &e) || !e.Program
}

// Signal returns the exit code of a program that signal n ended.
func Signal(n int) int { return signalBase + n }
