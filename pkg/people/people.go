// Package people manages the users of the cluster, their groups, and the grants of groups. In: objects and Secrets of the cluster, which are watched
// or read once. Out: people with their grants, without requests to the API server; changes, after which at least one administrator always remains.
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

// Person is a user with the combined grants of the user's groups. A Person is immutable. A change creates a new Person.
type Person struct {
	Name     string
	UID      types.UID
	Disabled bool
	// Unconfirmed reports that no provider confirms the person. Application tokens of such a person are rejected.
	Unconfirmed bool
	User        *v1.User
	Grants      rules.Grants
	// Groups holds the sorted names of the person's existing groups, including groups through a provider.
	Groups []string
	// Sessions is the number for new sessions of the person. Sessions with a lower number have ended.
	Sessions int64
	// Via is the provider that has just confirmed the person at a sign-in, or "" without a provider.
	Via string
}

// Subject returns the person with the token of the request, as the subject of a rule.
func (p *Person) Subject(t rules.Token) rules.Subject {
	return rules.Subject{Name: p.Name, Groups: p.Groups, Grants: p.Grants, Token: t}
}

// NewUser is the data of a new person.
type NewUser struct {
	Name, Email, DisplayName string
	// Groups are names of existing groups. Nil means the group default.
	Groups     []string
	Identities []v1.Identity
	// Password may be unset. The person then can't sign in with a password of the cluster.
	Password secret.String
	// TakeOver allows a name that belonged to a removed person or owns jobs. The new person then owns the jobs and files of that name.
	TakeOver bool
	// Vouched means that a provider reports the name, and no administrator has confirmed the name.
	Vouched bool
	// Hash is an encoded hash of a password, for people from another system. It is used instead of Password. From is the name of that system.
	Hash, From string
}

// Change identifies a person or a group that has changed or was deleted. The zero Change means that anything may have changed.
type Change struct {
	User  string
	Group string
}

// Extension is the data that OpenPAI's clients store for a person.
type Extension map[string]json.RawMessage

// Errors of the package. Functions wrap these errors and add a name.
var (
	ErrNoUser            = errors.New("there is no such person")
	ErrNoGroup           = errors.New("there is no such group")
	ErrExists            = errors.New("the name is taken")
	ErrProtected         = errors.New("the group is needed")
	ErrUnprepared        = errors.New("the cluster doesn't know users and groups yet")
	ErrLastAdministrator = errors.New("it would leave the cluster without an administrator who can sign in")
	// ErrInvalid means that the request is invalid. ErrUnavailable means that the API server isn't available.
	ErrInvalid     = errors.New("invalid")
	ErrUnavailable = errors.New("the people of the cluster can't be read now")
	// ErrStale means that a watch wasn't confirmed within StaleAfter.
	ErrStale = fmt.Errorf("%w: the API server didn't answer for %s", ErrUnavailable, StaleAfter)
)

// StaleAfter is how long the data of a watch is valid after its last confirmation.
const StaleAfter = 10 * time.Second

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
