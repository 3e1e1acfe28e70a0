// Package hint carries a remedy along with an error.
// In: an error and one sentence that says what to do. Out: an error whose text is
// unchanged and whose remedy is printed once, at the top of the program.
package hint

import (
	"errors"
	"fmt"
	"strings"
)

// Error is an error with a remedy. Its text is the text of the cause, so that a remedy never appears in the middle of a longer message.
type Error struct {
	Err  error
	Hint string
}

// Error returns the cause's text, without the remedy.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Wrap adds a remedy to err; nil stays nil.
func Wrap(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &Error{Err: err, Hint: remedy}
}

// Errorf makes an error with a remedy. The remedy comes first so that the
// format's arguments can follow.
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

// Quote makes one word of a text in a command that a person types, and leaves plain words as they are.
func Quote(s string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./,:@%+=~", r)
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// Uncordon names the command that gives a node pods again. The action of the alert handler is in the audit, but not every cluster
// has the alert handler.
func Uncordon(node string) string {
	return "paictl node uncordon " + node + " --reason TEXT (without the service alert-handler: kubectl uncordon " + node + ")"
}
