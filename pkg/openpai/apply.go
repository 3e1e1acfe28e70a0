package openpai

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/password"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// password adds the hash of the password to the step, if the options request it and the hash has a form that can be verified. The hash is replaced
// with another when the person signs in for the first time.
func (s *Step) password(u *User, o Options) {
	if !o.Passwords {
		s.note("the password: set one with paictl user passwd %s, or name a provider's person with paictl user link %s", u.Name, u.Name)
		return
	}
	hash, err := password.OpenPAI(u.Name, u.Password)
	if err != nil {
		s.note("the password can't be checked: set one with paictl user passwd %s", u.Name)
		return
	}
	s.user.Hash = hash
}

// maxKeys is the maximum number of public keys of a User.
const maxKeys = 100

// take copies the data that clients have stored with a person. It moves public keys to the field of the User.
func (s *Step) take(extension map[string]json.RawMessage) {
	s.extension = people.Extension(maps.Clone(extension))
	text, there := s.extension["sshKeys"]
	delete(s.extension, "sshKeys")
	var keys []v1.SSHKey
	if there && json.Unmarshal(text, &keys) != nil {
		s.note("the public keys can't be read")
	}
	for _, key := range keys {
		_, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(key.Value))
		if err != nil || len(rest) > 0 || len(s.keys) == maxKeys {
			s.note("the public key %q is left out: it can't be read", key.Title)
			continue
		}
		s.keys = append(s.keys, key)
	}
}

// Apply executes the steps in order, and calls told after each step. After a failure, it can be repeated with the steps of a new Plan.
func Apply(ctx context.Context, d *people.Directory, steps []Step, told func(*Step)) error {
	for i := range steps {
		s := &steps[i]
		if err := s.do(ctx, d); err != nil {
			return fmt.Errorf("%s %s: %w", s.Kind, s.Name, err)
		}
		told(s)
	}
	return nil
}

func (s *Step) do(ctx context.Context, d *people.Directory) error {
	switch {
	case s.Action == Add && s.Kind == KindGroup:
		_, err := d.ChangeGroup(ctx, s.Name, true, func(spec *v1.GroupSpec) error {
			*spec = *s.group
			return nil
		})
		return err
	case s.Action == Add:
		if _, err := d.Add(ctx, s.user); err != nil {
			return err
		}
		return s.rest(ctx, d)
	case s.Action == Complete:
		if err := s.givePassword(ctx, d); err != nil {
			return err
		}
		return s.rest(ctx, d)
	}
	return nil
}

func (s *Step) givePassword(ctx context.Context, d *people.Directory) error {
	if s.user.Hash == "" {
		return nil
	}
	p, err := d.Person(s.Name)
	if err != nil {
		return err
	}
	given, err := d.SetHash(ctx, p, s.user.Hash)
	if err == nil && !given {
		return hint.Errorf("set it with: paictl user passwd "+s.Name, "something else is stored where the password would be")
	}
	return err
}

// rest stores the data that the User doesn't contain when it is created. Finally it records in the User that all data has been taken over.
func (s *Step) rest(ctx context.Context, d *people.Directory) error {
	if len(s.keys) > 0 {
		if _, err := d.Update(ctx, s.Name, func(spec *v1.UserSpec) error {
			spec.SSHKeys = s.keys
			return nil
		}); err != nil {
			return err
		}
	}
	if len(s.extension) > 0 {
		if _, err := d.MergeExtension(ctx, s.Name, s.extension); err != nil {
			return err
		}
	}
	return d.RecordImport(ctx, s.Name, s.taken)
}
