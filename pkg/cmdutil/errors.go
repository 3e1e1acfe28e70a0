package cmdutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Exit codes of paictl. An error type of a library sets its exit code with a method ExitCode() int; see the function ExitCode.
const (
	ExitOK        = 0
	ExitFailure   = 1
	ExitUsage     = 2
	ExitPartial   = 3   // some hosts failed, the others are done
	ExitPreflight = 4   // a check failed before anything was changed
	ExitLocked    = 5   // another run holds the cluster's lock
	ExitPending   = 6   // changes are pending (plan --exit-code)
	ExitCancelled = 130 // interrupted
)

// ErrSilent makes a command exit with code 1 without a message. Commands return it after they have printed their error.
var ErrSilent = errors.New("silent")

// UsageError is a mistake on the command line. The exit code is 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// ExitCode returns ExitUsage.
func (e *UsageError) ExitCode() int { return ExitUsage }

// Usagef formats a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// CodeError gives an error an exit code. With Silent set, the error isn't printed.
type CodeError struct {
	Err    error
	Code   int
	Silent bool
}

func (e *CodeError) Error() string { return e.Err.Error() }
func (e *CodeError) Unwrap() error { return e.Err }

// ExitCode returns e.Code.
func (e *CodeError) ExitCode() int { return e.Code }

// ExitCode returns the exit code of the program for an error. All commands use it. An error type sets its exit code with a method ExitCode()
// int.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	if errors.Is(err, context.Canceled) {
		return ExitCancelled
	}
	return ExitFailure
}

// remedyOfFile returns the remedy if err is about a local file that can't be read, and "" otherwise. It accesses the path again, because errors
// from other machines also contain paths.
func remedyOfFile(err error) string {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || p.Path == "-" {
		return ""
	}
	if p.Path == "" {
		return "name a file; the path is empty"
	}
	info, now := os.Stat(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(now, fs.ErrNotExist):
		if filepath.IsAbs(p.Path) {
			return "correct the path"
		}
		return "correct the path; it is looked up in the current folder"
	case errors.Is(err, syscall.EISDIR) && now == nil && info.IsDir():
		return "it must be a file, not a folder: correct the path, or put the file there"
	case errors.Is(err, syscall.ENOTDIR) && errors.Is(now, syscall.ENOTDIR):
		return "correct the path: a part of it is a file, not a folder"
	case errors.Is(err, fs.ErrPermission):
		return "check the permissions of the file and its folder"
	}
	return ""
}

// PrintError writes err on one line, and its remedy, if any, on the next line. It writes nothing if err is nil or silent.
func PrintError(w io.Writer, err error) {
	if err == nil || errors.Is(err, ErrSilent) {
		return
	}
	if c, ok := errors.AsType[*CodeError](err); ok && c.Silent {
		return
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w, "paictl: cancelled; run the same command again to continue")
		return
	}
	// Errors contain names of objects, which other users may have chosen.
	fmt.Fprintf(w, "paictl: %s\n", terminal.Text(err.Error()))
	if h := cmp.Or(hint.Of(err), remedyOfFile(err)); h != "" {
		fmt.Fprintf(w, "  -> %s\n", terminal.Text(h))
	}
}
