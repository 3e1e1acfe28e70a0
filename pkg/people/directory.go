package people

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Directory knows users and groups by watch (Run), or as they were once (Load). Nothing is asked of the API server per question.
type Directory struct{}

// Options of a Directory.
type Options struct{}

var errNotYet = errors.New("agreed, written within the hour")

// Open connects. It asks nothing yet.
func Open(_ *rest.Config, _ Options) (*Directory, error) { return nil, errNotYet }

// Prepare makes what people need where it isn't there: both definitions, the namespace, the groups default and administrators.
func (d *Directory) Prepare(context.Context) error { return errNotYet }

// Load reads everything once, for commands.
func (d *Directory) Load(context.Context) error { return errNotYet }

// Run watches until ctx ends.
func (d *Directory) Run(context.Context) error { return errNotYet }

// Fresh is nil, or ErrStale.
func (d *Directory) Fresh() error { return errNotYet }

// Person returns a person, ErrNoUser where there is none or one that was removed.
func (d *Directory) Person(name string) (*Person, error) { return nil, noUser(name) }

// ByUID finds a person by the UID of the User.
func (d *Directory) ByUID(types.UID) (*Person, error) { return nil, ErrNoUser }

// ByIdentity finds the person whom a provider knows under a subject.
func (d *Directory) ByIdentity(provider, _ string) (*Person, error) { return nil, noUser(provider) }

// Users returns all people but removed ones, by name.
func (d *Directory) Users() []*Person { return nil }

// Groups returns all groups, by name.
func (d *Directory) Groups() []*v1.Group { return nil }

// Group returns a group or ErrNoGroup.
func (d *Directory) Group(name string) (*v1.Group, error) { return nil, noGroup(name) }

// Members returns who is in a group, by name.
func (d *Directory) Members(string) []string { return nil }

// Changed returns a channel that gets changes until stop is called. A reader that is too slow gets the zero Change for those it missed.
func (d *Directory) Changed() (changes <-chan Change, stop func()) { return nil, func() {} }

// Add adds a person: ErrExists where the name, or one that differs in case only, is or was taken.
func (d *Directory) Add(context.Context, NewUser) (*Person, error) { return nil, errNotYet }

// Update changes a person. change may be called more than once.
func (d *Directory) Update(context.Context, string, func(*v1.UserSpec) error) (*Person, error) {
	return nil, errNotYet
}

// SetPassword sets a person's password, and ends all sessions; application tokens stay.
func (d *Directory) SetPassword(context.Context, string, secret.String) error { return errNotYet }

// Disable disables a person and ends all sessions, or lets them in again.
func (d *Directory) Disable(context.Context, string, bool) error { return errNotYet }

// Remove removes a person, with password, tokens and extension. The name stays taken.
func (d *Directory) Remove(context.Context, string) error { return errNotYet }

// PutGroup makes a group or changes it.
func (d *Directory) PutGroup(context.Context, *v1.Group) (*v1.Group, error) { return nil, errNotYet }

// DeleteGroup deletes a group and takes its members out of it: ErrProtected for default and for the last group of administrators.
func (d *Directory) DeleteGroup(context.Context, string) error { return errNotYet }

// Extension returns what OpenPAI's clients stored with a person.
func (d *Directory) Extension(context.Context, string) (Extension, error) { return nil, errNotYet }

// MergeExtension sets keys of it; null takes one away.
func (d *Directory) MergeExtension(context.Context, string, Extension) (Extension, error) {
	return nil, errNotYet
}
