package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Admit returns the person for an identity that a provider has confirmed, and stores the provider's data about the person. It identifies the person
// by provider and subject, never by name or e-mail address. Otherwise a user who chooses a name at a provider could impersonate the local person with
// that name.
func (s *Service) Admit(ctx context.Context, id *Identity) (*people.Person, error) {
	if id.Provider == "" || id.Subject == "" {
		return nil, errors.New("the provider says no subject of the person")
	}
	policy := s.o.Policies[id.Provider]
	if err := s.people.Bind(ctx, id.Provider, policy.Source, policy.MovedFrom); err != nil {
		if errors.Is(err, people.ErrMoved) {
			err = hint.Wrap(fmt.Errorf("%w: %w", ErrNotAdmitted, err), hint.Of(err))
		}
		return nil, err
	}
	if !policy.allows(id) {
		return nil, hint.Wrap(fmt.Errorf("%w: %s of %s is in none of the groups that may sign in", ErrNotAdmitted, id.Name, id.Provider), "ask an administrator")
	}
	p, err := s.people.ByIdentity(id.Provider, id.Subject)
	if errors.Is(err, people.ErrNoUser) {
		p, err = s.create(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	if p.Disabled {
		return nil, ErrWrong
	}
	of := v1.Identity{Provider: id.Provider, Subject: id.Subject}
	if err := s.people.KeepRefresh(ctx, p, of, id.Refresh); err != nil {
		return nil, err
	}
	if p, err = s.people.RecordAnswer(ctx, p, s.word(p, id)); err != nil {
		return nil, err
	}
	signed := *p
	signed.Via = id.Provider
	return &signed, nil
}

// word returns the provider's data that Admit stores for a confirmed identity.
func (s *Service) word(p *people.Person, id *Identity) v1.External {
	said := p.LastAnswer(v1.Identity{Provider: id.Provider, Subject: id.Subject})
	said.Groups, said.Gone, said.CheckedAt = id.Groups, false, metav1.NewTime(s.o.Now())
	return said
}

// allows reports whether a policy admits an identity.
func (p Policy) allows(id *Identity) bool {
	return len(p.Allowed) == 0 || slices.ContainsFunc(p.Allowed, func(g string) bool { return slices.Contains(id.Groups, g) })
}

// create adds a person at the first sign-in, if the policy of the provider allows it.
func (s *Service) create(ctx context.Context, id *Identity) (*people.Person, error) {
	link := fmt.Sprintf("an administrator can link them: paictl user link NAME --provider %s --subject %s", id.Provider, id.Subject)
	policy := s.o.Policies[id.Provider]
	if !policy.Create {
		return nil, hint.Wrap(fmt.Errorf("%w: %s of %s", ErrNotAdmitted, id.Name, id.Provider), link)
	}
	p, err := s.people.Add(ctx, people.NewUser{Name: id.Name, Vouched: true, Email: id.Email, DisplayName: id.DisplayName, Groups: policy.Groups,
		Identities: []v1.Identity{{Provider: id.Provider, Subject: id.Subject}}})
	if errors.Is(err, people.ErrExists) {
		if other, known := s.people.ByIdentity(id.Provider, id.Subject); known == nil {
			return other, nil // another replica has added them at the same time
		}
	}
	if errors.Is(err, people.ErrExists) || errors.Is(err, people.ErrInvalid) || errors.Is(err, people.ErrNoGroup) {
		return nil, hint.Wrap(fmt.Errorf("%w: %s of %s: %w", ErrNotAdmitted, id.Name, id.Provider, err), link)
	}
	return p, err
}
