// Package signin signs in people with a password or through a provider, and regularly checks with the providers whether a sign-in is still valid. In:
// a name and a password, or a provider's data about a person. Out: the person, or the same error for all failures; the groups that providers report.
package signin

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/secret"
)

// Identity is a provider's data about a person.
type Identity struct {
	Provider, Subject string
	Name, Email       string
	DisplayName       string
	Groups            []string // empty if the provider isn't configured to report groups
	// GroupsUnsaid reports that the provider's response doesn't contain groups. The person may still be in groups.
	GroupsUnsaid bool
	// Refresh is the refresh token for the next Check. It is unset if the provider has sent no new token.
	Refresh secret.String
}

// Password is a provider that checks names and passwords.
type Password interface {
	Name() string
	SignIn(ctx context.Context, name string, password secret.String) (*Identity, error)
}

// Checker is a provider that can check again a person whom it has confirmed.
type Checker interface {
	Name() string
	// Refreshes reports whether Check needs the refresh token from the last Identity. Otherwise a subject is enough.
	Refreshes() bool
	// Check returns the current identity of a subject. refresh is the token from the last Identity. ErrGone means that the person doesn't exist at
	// the provider, or is no longer admitted. ErrUnsaid means that the provider has no answer about this person only. Other errors mean that the
	// provider is unavailable. If Check returns an Identity with an error, the Identity holds the token for the next Check.
	Check(ctx context.Context, subject string, refresh secret.String) (*Identity, error)
}

// Policy defines the permissions of a provider to add people, and to admit members of its groups.
type Policy struct {
	// Create adds people to Groups at their first sign-in. If Groups is empty, they join the group default. If Create is false, an administrator must
	// link people with the provider.
	Create bool
	Groups []string
	// Source is the provider's issuer or directory. MovedFrom is an earlier issuer or directory with the same people; see people.Directory.Bind.
	Source, MovedFrom string
	// Allowed holds groups of the provider whose members are admitted. Empty means that everyone is admitted.
	Allowed []string
}

// ErrGone means that the person no longer exists at a provider, or is no longer admitted.
var ErrGone = errors.New("the provider doesn't know the person, or has disabled them")

// ErrNoPassword means that the cluster stores no password for a person.
var ErrNoPassword = errors.New("has no password of the cluster")

// ErrUnsaid means that a provider responds, but has no answer about one person.
var ErrUnsaid = errors.New("the provider answers, and can't say anything about the person")

// ErrLost means that an issuer may have invalidated the refresh token, and that its response with the next token was lost.
var ErrLost = errors.New("the provider may have received the request, but its response was lost")

// Errors of SignIn. ErrWrong is the only error for a wrong password, and for a person who doesn't exist, is disabled or was removed. It is also the
// error after too many failures, when the password isn't checked. All of these cases take the same time. All other errors wrap people.ErrUnavailable.
var (
	ErrWrong = errors.New("the user name or the password is wrong")
	ErrBusy  = errors.New("too many sign-ins")
	// ErrNotAdmitted means that a provider has confirmed a person who doesn't exist in the cluster. The error contains the remedy for an
	// administrator.
	ErrNotAdmitted = errors.New("the person is not known here")
)

// ThrottledError is an ErrBusy with the time until the next attempt.
type ThrottledError struct{ After time.Duration }

func (e *ThrottledError) Error() string {
	return "too many sign-ins: try again in " + e.After.Round(time.Second).String()
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *ThrottledError) Is(target error) bool { return target == ErrBusy }
