// Package hint adds remedies to errors.
// In: an error and one sentence that says what to do. Out: an error with the same text. The program prints the remedy once, below the error.
package hint

import (
	"errors"
	"fmt"
	"strings"
)

// Error is an error with a remedy. Its text is the text of Err without the remedy, so that a remedy never appears in the middle of a longer
// message.
type Error struct {
	Err  error
	Hint string
}

// Error returns the cause's text, without the remedy.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap adds a remedy to err. If err is nil, it returns nil.
func Wrap(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &Error{Err: err, Hint: remedy}
}

// Errorf makes an error with a remedy. The remedy is the first parameter, so that the arguments of the format can follow the format.
func Errorf(remedy, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: remedy}
}

// Of returns the outermost remedy of err, or "".
func Of(err error) string {
	if h, ok := errors.AsType[*Error](err); ok {
		return h.Hint
	}
	return ""
}

// Quote quotes s for a shell, so that s is one word of a command that a user can copy. It returns s unchanged if a shell takes it literally
// anyway.
func Quote(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./,:@%+=~", r)
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// Uncordon returns the command that allows new pods on a node again. "paictl node uncordon" is recorded in the audit log, but it needs the alert
// handler, which not every cluster has.
func Uncordon(node string) string {
	return "paictl node uncordon " + node + " --reason TEXT (without the service alert-handler: kubectl uncordon " + node + ")"
}
