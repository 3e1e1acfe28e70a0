package job

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// isNoCRD reports whether an error says that the API server doesn't know the resource Framework.
func isNoCRD(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}

// Explain adds advice for the user to an error of the API. It returns any other error, and nil, unchanged.
func (c *Client) Explain(err error) error {
	switch {
	case err == nil || hint.Of(err) != "":
		return err
	case errors.Is(err, vc.ErrNotRunning):
		return hint.Wrap(err, "look at it with: paictl service status -n scheduler; start it with: paictl service start -n scheduler")
	case isNoCRD(err):
		return hint.Errorf("start it: paictl service start -n job-controller", "this cluster doesn't run jobs: the job controller isn't started")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return hint.Wrap(&LimitError{err}, "wait until other jobs finish, or stop some (paictl job stop), or ask an administrator for more")
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot "): // admission plugins use other texts
		return hint.Wrap(err, remedyRight)
	}
	return c.Cluster.Explain(err)
}

// NotFoundError means that a user has no job with a name.
type NotFoundError struct {
	User, Name string
	// Unsure is the error of the history if the history could not be read. Then the job may have ended long ago.
	Unsure error
}

func notFound(user, name string, unsure error) error {
	if errors.Is(unsure, ErrClosed) {
		return hint.Wrap(&NotFoundError{user, name, unsure}, hint.Of(unsure))
	}
	return hint.Wrap(&NotFoundError{user, name, unsure}, "see the names with: paictl job list; jobs of all users with: paictl job list --all-users")
}

// NotFound returns a NotFoundError for a user and the name of a job.
func NotFound(user, name string) error { return notFound(user, name, nil) }

// Error returns a message that names the job.
func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("user %s has no job %q", e.User, e.Name)
	if e.User == "" {
		text = fmt.Sprintf("there is no job %q", e.Name)
	}
	if e.Unsure != nil {
		text += " now; finished jobs are not known: " + e.Unsure.Error()
	}
	return text
}

// Unwrap returns the error of the history, or nil.
func (e *NotFoundError) Unwrap() error { return e.Unsure }

// IsNotFound reports whether an error is a NotFoundError.
func IsNotFound(err error) bool {
	_, ok := errors.AsType[*NotFoundError](err)
	return ok
}
