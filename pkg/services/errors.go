package services

import (
	"errors"
	"fmt"
	"strings"
)

// PartialError means that some services failed, or weren't started because a required service failed. In an upgrade, NotStarted lists the services
// that weren't upgraded.
type PartialError struct {
	Failed     []Failed
	NotStarted []string
	Services   int
	Verb       string // "start"
	Retry      string
}

func (e *PartialError) Error() string {
	var names []string
	for _, f := range e.Failed {
		names = append(names, f.Service)
	}
	text := fmt.Sprintf("%d of %d services failed to %s: %s", len(e.Failed), e.Services, e.Verb, strings.Join(names, ", "))
	if n := len(e.NotStarted); n > 0 && e.Verb == verbUpgrade {
		text += "; left as they are: " + strings.Join(e.NotStarted, ", ")
	} else if n > 0 {
		text += fmt.Sprintf("; %s: %s", waiting(n), strings.Join(e.NotStarted, ", "))
	}
	return text
}

func waiting(n int) string {
	if n == 1 {
		return "1 waits for it"
	}
	return fmt.Sprintf("%d wait for them", n)
}

// ExitCode returns 3 (partial), or 1 if no service succeeded.
func (e *PartialError) ExitCode() int {
	if len(e.Failed)+len(e.NotStarted) >= e.Services {
		return 1
	}
	return 3
}

// ErrLockLost means that the run lost the lease that prevents concurrent runs. The run must stop, because another run may have acquired the lease.
var ErrLockLost = errors.New("the lock of the cluster's services was lost")

// LockedError means that another run is changing the services.
type LockedError struct {
	Owner   string // user@host, pid
	Command string
	Since   string // RFC 3339
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another run changes the services of this cluster: %s, %q, since %s", e.Owner, e.Command, e.Since)
}

// ExitCode returns 5 (locked).
func (e *LockedError) ExitCode() int { return 5 }
