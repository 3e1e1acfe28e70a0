// Package people manages the users of the cluster, their groups, and the grants of groups. In: objects and Secrets of the cluster, which are
// watched or read once. Out: people with their grants, without requests to the API server; changes that always leave an administrator.
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
	// Gone reports that no provider confirms the person now. In that case, application tokens of the person are rejected.
	Gone   bool
	User   *v1.User
	Grants rules.Grants
	// Groups holds the names of the existing groups that the person is in, sorted, including groups that the person is in through a provider.
	Groups []string
	// Sessions is the number that the person's new sessions get. Sessions with a lower number have ended.
	Sessions int64
	// Via is the provider that has just confirmed the person at a sign-in, or "" if no provider was involved.
	Via string
}

// Subject returns the person with the token of the request, as the subject of a rule.
func (p *Person) Subject(t rules.Token) rules.Subject {
	return rules.Subject{Name: p.Name, Groups: p.Groups, Grants: p.Grants, Token: t}
}

// NewUser is the data of a person who is to be added.
type NewUser struct {
	Name, Email, DisplayName string
	// Groups are names of existing groups; nil means the group default.
	Groups     []string
	Identities []v1.Identity
	// Password may be unset. Without it, the person can't sign in with a password of the cluster.
	Password secret.String
	// TakeOver allows a name that belonged to a removed person, or that owns jobs. The jobs and files of that name then belong to the new person.
	TakeOver bool
	// Vouched means that a provider reports the name, and no administrator has confirmed it.
	Vouched bool
	// Hash is an encoded hash of a password. It is set instead of Password for people from another system. From is the name of that system.
	Hash, From string
}

// Change reports which person or which group has changed or was deleted. The zero Change means that everything may have changed.
type Change struct {
	User  string
	Group string
}

// Extension is the data that OpenPAI's clients store with a person.
type Extension map[string]json.RawMessage

// Errors of the package. The functions below create errors that wrap these errors and add a name.
var (
	ErrNoUser            = errors.New("there is no such person")
	ErrNoGroup           = errors.New("there is no such group")
	ErrExists            = errors.New("the name is taken")
	ErrProtected         = errors.New("the group is needed")
	ErrUnprepared        = errors.New("the cluster doesn't know users and groups yet")
	ErrLastAdministrator = errors.New("it would leave the cluster without an administrator who can sign in")
	// ErrInvalid means that the request is invalid. ErrUnavailable means that the API server isn't available now.
	ErrInvalid     = errors.New("invalid")
	ErrUnavailable = errors.New("the people of the cluster can't be read now")
	// ErrStale means that a watch wasn't confirmed for as long as StaleAfter.
	ErrStale = fmt.Errorf("%w: the API server didn't answer for %s", ErrUnavailable, StaleAfter)
)

// StaleAfter is how long the data of a watch is valid after its last confirmation.
const StaleAfter = 10 * time.Second

// invalidError is an ErrInvalid whose text includes the name of the invalid field.
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
