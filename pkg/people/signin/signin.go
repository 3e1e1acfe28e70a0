// Package signin lets people in, by a password or by a provider's word, and asks providers again whether that still holds.
// In: a name and a password, or what a provider says about a person. Out: the person, or one answer for all that is wrong; the groups that
// providers say people are in.
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
	DisplayName       string
	Groups            []string // none where the settings of the provider say no groups
	// GroupsUnsaid: the answer is one that says no groups, whatever the person is in.
	GroupsUnsaid bool
	// Refresh, where it is set, is what the provider is asked with again.
	Refresh secret.String
}

// Password is a provider that is asked with a name and a password.
type Password interface {
	Name() string
	SignIn(ctx context.Context, name string, password secret.String) (*Identity, error)
}

// Checker is a provider that can be asked again about a person whom it vouched for. refresh is what its last Identity had.
type Checker interface {
	Name() string
	// Refreshes reports whether it is asked with what it gave: else a subject is enough.
	Refreshes() bool
	// Check is what it knows now: ErrGone where it doesn't know the person, or lets them in no longer. Other errors mean that it can't say, ErrUnsaid of
	// this person alone; an Identity that comes with one has what to ask with next.
	Check(ctx context.Context, subject string, refresh secret.String) (*Identity, error)
}

// Policy says what a provider's word is worth.
type Policy struct {
	// Create adds people who sign in first, into Groups of paictl's; nil is the group default. Else an administrator links them.
	Create bool
	Groups []string
	// Source is the provider's issuer, or its directory, and MovedFrom one of before that has the same people; see people.Directory.Bind.
	Source, MovedFrom string
	// Allowed are groups of the provider: who is in none of them isn't let in. Empty lets everyone in.
	Allowed []string
}

// ErrGone is of a person whom a provider vouches for no longer.
var ErrGone = errors.New("the provider doesn't know the person, or has disabled them")

// ErrNoPassword is of a person who has no password of the cluster.
var ErrNoPassword = errors.New("has no password of the cluster")

// ErrUnsaid is of a provider that answers, and says nothing of one person.
var ErrUnsaid = errors.New("the provider answers, and can't say anything about the person")

// ErrLost is of an issuer that may have taken what it was asked with, and whose answer didn't come.
var ErrLost = errors.New("the provider may have been asked, and its answer is lost")

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
