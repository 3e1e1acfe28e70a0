// Package people manages the users of the cluster, their groups, and the grants of groups. In: objects and Secrets of the cluster, by watch
// or read once. Out: people with their grants, without requests to the API server; changes that always leave an administrator.
package people

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Person is a user with the combined grants of all groups. It is immutable: a change makes a new one.
type Person struct {
	Name     string
	UID      types.UID
	Disabled bool
	// Gone reports that no provider confirms the person now. Application tokens of the person are then rejected.
	Gone   bool
	User   *v1.User
	Grants rules.Grants
	// Groups are the names of existing groups that the person is in, in order, including those through a provider.
	Groups []string
	// Sessions is the number that new sessions get; sessions with a lower number have ended.
	Sessions int64
	// Via is the provider that has just confirmed the person who signs in; "" without a provider.
	Via string
}

// Subject returns the person, and the token of the request, as the subject of a rule.
func (p *Person) Subject(t rules.Token) rules.Subject {
	return rules.Subject{Name: p.Name, Groups: p.Groups, Grants: p.Grants, Token: t}
}

// NewUser is a person to be added.
type NewUser struct {
	Name, Email, DisplayName string
	// Groups are names of existing groups; nil means the group default.
	Groups     []string
	Identities []v1.Identity
	// Password may be unset: then the person can't sign in with a password.
	Password secret.String
	// TakeOver also takes a name that a removed person had, or that jobs have: Then jobs and files of that name belong to the new
	// person.
	TakeOver bool
	// Vouched means that a provider reports the name, and no administrator has confirmed it.
	Vouched bool
	// Hash is an encoded hash instead of a Password, for people who come from another system, and From names that system.
	Hash, From string
}

// Change indicates that a person or a group has changed or is gone. Name is empty if all may have changed.
type Change struct {
	User  string
	Group string
}

// Extension is the data that OpenPAI's clients store with a person.
type Extension map[string]json.RawMessage

// Errors. Those with a name in their text are made by the functions below and wrap these.
var (
	ErrNoUser            = errors.New("there is no such person")
	ErrNoGroup           = errors.New("there is no such group")
	ErrExists            = errors.New("the name is taken")
	ErrProtected         = errors.New("the group is needed")
	ErrUnprepared        = errors.New("the cluster doesn't know users and groups yet")
	ErrLastAdministrator = errors.New("it would leave the cluster without an administrator who can sign in")
	// ErrInvalid means an invalid request; ErrUnavailable means that the API server isn't available now.
	ErrInvalid     = errors.New("invalid")
	ErrUnavailable = errors.New("the people of the cluster can't be read now")
	// ErrStale means that a watch wasn't confirmed for StaleAfter.
	ErrStale = fmt.Errorf("%w: the API server didn't answer for %s", ErrUnavailable, StaleAfter)
)

// StaleAfter is how long the data of a watch is valid without being confirmed.
const StaleAfter = 10 * time.Second

// invalidError is an ErrInvalid that names its field.
type invalidError struct{ field, why string }

func (e *invalidError) Error() string        { return e.field + ": " + e.why }
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, format string, args ...any) error {
	return &invalidError{field, fmt.Errorf(format, args...).Error()}
}

func noUser(name string) error {
	return hint.Wrap(fmt.Errorf("%w: %s", ErrNoUser, name), "see: paictl user list")
}

func noGroup(name string) error {
	return hint.Wrap(fmt.Errorf("%w: %s", ErrNoGroup, name), "see: paictl group list; make it with: paictl group add "+name)
}
