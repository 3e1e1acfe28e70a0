// Package signin lets people in: by a password now, by other providers through the same door.
// In: a name and a password, or what a provider says about a person. Out: the person, or one answer for all that is wrong.
package signin

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/secret"
)

// Identity is a person as a provider knows them.
type Identity struct {
	Provider, Subject string
	Name, Email       string
	Groups            []string
	GroupsKnown       bool // else Groups says nothing
	Refresh           secret.String
}

// Password is a provider that is asked with a name and a password.
type Password interface {
	Name() string
	SignIn(ctx context.Context, name string, password secret.String) (*Identity, error)
}

// Errors of SignIn. ErrWrong is the only answer for a wrong password, for a person who isn't there, is disabled or was removed, and for one
// whose password was wrong so often that it isn't tried for a while; it takes the same time. Others wrap people.ErrUnavailable.
var (
	ErrWrong = errors.New("the user name or the password is wrong")
	ErrBusy  = errors.New("too many sign-ins")
	// ErrNotAdmitted is of a person whom a provider vouches for, and who isn't here: its text says what an administrator can do.
	ErrNotAdmitted = errors.New("the person is not known here")
)

// ThrottledError is an ErrBusy that says when to try again.
type ThrottledError struct{ After time.Duration }

func (e *ThrottledError) Error() string {
	return "too many sign-ins: try again in " + e.After.Round(time.Second).String()
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *ThrottledError) Is(target error) bool { return target == ErrBusy }
