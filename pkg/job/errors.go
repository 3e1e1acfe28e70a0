package job

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// ConflictError means that another job already has the name.
type ConflictError struct {
	User, Name string
	// Phase is the phase of the other job.
	Phase Phase
	text  string
}

// Error returns a message that names the other job and its state.
func (e *ConflictError) Error() string { return e.text }

// EndedError means that a request needs a job that has not finished.
type EndedError struct{ User, Name string }

// Error returns a message that names the job.
func (e *EndedError) Error() string { return e.User + "/" + e.Name + " has ended" }

func ended(j *Job, remedy string) error { return hint.Wrap(&EndedError{j.User, j.Name}, remedy) }

// LimitError means that a job would exceed a limit of its user.
type LimitError struct{ Err error }

// Error returns the message of the API server.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap returns the API server's error.
func (e *LimitError) Unwrap() error { return e.Err }

// UnavailableError means that a result isn't available at the moment, but may be available later.
type UnavailableError struct{ Err error }

// Error returns the message of the underlying error.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the underlying error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsUnavailable reports whether an error is temporary, because the API server, the job controller or the scheduler doesn't respond, or responds too
// late.
func IsUnavailable(err error) bool {
	if _, ok := errors.AsType[*UnavailableError](err); ok {
		return true
	}
	_, offline := errors.AsType[net.Error](err)
	return offline || errors.Is(err, ErrAway) || errors.Is(err, errFailing) || errors.Is(err, ErrNoController) && !errors.Is(err, ErrClosed) ||
		errors.Is(err, vc.ErrNotRunning) || errors.Is(err, context.DeadlineExceeded) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// RefusedError means that the job controller rejected a request or its data as invalid.
type RefusedError struct{ Err error }

// Error returns the message of the job controller.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the job controller.
func (e *RefusedError) Unwrap() error { return e.Err }
