package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const (
	// few people may always be gone at once.
	few = 2
	// share of those whom a provider vouched for may be gone at once: one in so many.
	share = 5
)

// judge draws from an answer what it means for a person.
func (r *Recheck) judge(ctx context.Context, provider *asked, l loss, now *Identity, err error) error {
	policy, said := r.Policies[l.id.Provider], l.person.Said(l.id)
	switch {
	case err == nil && now.GroupsUnsaid && len(policy.Allowed) > 0: // no one knows whether the person may sign in
	case err == nil:
		provider.names(now.Groups)
		if !policy.allows(now) {
			provider.loses(l)
			return nil
		}
		provider.keeps()
		return r.confirm(ctx, l.person, l.id, now)
	case errors.Is(err, ErrGone) && (r.over(said) || !r.unanswered.has(l.id, l.kept)):
		provider.loses(l)
		return nil
	}
	return r.unsaid(ctx, l.person, l.id, l.sessions)
}

// settle takes away what people had by a provider that doesn't vouch for them now. Of many at once it is more likely that the provider is wrong, as one
// that has lost its data is: what it said of them before counts then, as if it were away.
func (r *Recheck) settle(ctx context.Context, provider *asked) error {
	fresh := 0
	for _, l := range provider.lost {
		if provider.doubtful(l) {
			fresh++
		}
	}
	doubted := fresh > few && fresh*share > provider.kept+fresh
	if doubted {
		r.log().ErrorContext(ctx, "a provider doesn't know many people any longer: it is asked again, and what it said before counts for a while", "provider", provider.Name(), "gone", fresh, "known", provider.kept, "grace", r.Grace)
	}
	var failed []error
	for _, l := range provider.lost {
		take := r.gone
		if doubted && provider.doubtful(l) && !r.over(l.person.Said(l.id)) {
			take = r.narrow
		}
		if err := take(ctx, provider, l); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", l.person.Name, err))
		}
	}
	return errors.Join(failed...)
}

// doubtful reports whether a loss is one that a provider that has lost something would cause: it doesn't know the person, or shows no groups of anyone.
func (a *asked) doubtful(l loss) bool {
	return !l.person.Said(l.id).Gone && (!l.answered || !a.named)
}

// narrow takes away the groups that a provider doesn't name, of one who stays signed in while it is doubted.
func (r *Recheck) narrow(ctx context.Context, _ *asked, l loss) error {
	said := l.person.Said(l.id)
	if !l.answered || len(said.Groups) == 0 {
		return nil
	}
	said.Groups = nil
	return r.People.EndWord(ctx, l.person, said)
}

// old reports whether a provider said something too long ago.
func (r *Recheck) old(said v1.External) bool { return r.now().Sub(said.CheckedAt.Time) > r.Grace }

// over reports whether a provider that is asked has said nothing for too long. Time in which no one asked doesn't count: else the first question after the
// server was off would sign everyone out, if it failed.
func (r *Recheck) over(said v1.External) bool {
	return r.old(said) && r.now().Sub(r.rounds.Since) > r.Grace
}

// confirm notes what a provider says. When it said so is written from time to time only.
func (r *Recheck) confirm(ctx context.Context, p *people.Person, id v1.Identity, now *Identity) error {
	said := p.Said(id)
	if now.GroupsUnsaid && len(said.Groups) > 0 && !r.over(said) {
		return nil // the groups of before count for their time
	}
	groups := slices.Compact(slices.Sorted(slices.Values(now.Groups)))
	if !slices.Equal(said.Groups, groups) || said.Gone || r.now().Sub(said.CheckedAt.Time) > r.Grace/4 {
		said.Groups, said.Gone, said.CheckedAt = groups, false, metav1.NewTime(r.now())
		return r.say(ctx, p, said)
	}
	return nil
}

// gone takes away what a person had by a provider that doesn't vouch for them any longer. What the issuer is asked with is kept for a while: it may have
// been wrong.
func (r *Recheck) gone(ctx context.Context, provider *asked, l loss) error {
	p, id := l.person, l.id
	if provider.Refreshes() {
		if again, err := r.People.Refresh(ctx, p, id); err != nil || !again.Same(l.kept) {
			return err // the person has just signed in: the next round asks with what that brought
		}
	}
	said := p.Said(id)
	old := said.Gone && r.over(said)
	if !said.Gone || len(said.Groups) > 0 {
		r.log().WarnContext(ctx, "a provider doesn't know a person any longer", "user", p.Name, "provider", id.Provider)
		said.Gone, said.Groups, said.CheckedAt = true, nil, metav1.NewTime(r.now())
		if err := r.say(ctx, p, said); err != nil {
			return err
		}
	}
	if l.sessions {
		if err := r.end(ctx, p, id.Provider); err != nil {
			return err
		}
	}
	if old && l.kept.Refresh.IsSet() {
		return r.People.KeepRefresh(ctx, p, id, "")
	}
	return nil
}

// unsaid takes groups, sessions and application tokens away where a provider has said nothing for too long. Whoever can sign in with a
// password of the cluster, too, keeps application tokens.
func (r *Recheck) unsaid(ctx context.Context, p *people.Person, id v1.Identity, sessions bool) error {
	said := p.Said(id)
	if !r.over(said) {
		return nil
	}
	gone := said.Gone
	if !gone && !said.CheckedAt.IsZero() {
		own, err := r.People.Password(ctx, p)
		if err != nil {
			return err
		}
		gone = own == nil || r.Foreign
	}
	if len(said.Groups) > 0 || gone != said.Gone {
		r.log().WarnContext(ctx, "a provider couldn't be asked about a person for too long: what it said counts no longer", "user", p.Name, "provider", id.Provider)
		said.Groups, said.Gone = nil, gone
		if err := r.People.EndWord(ctx, p, said); err != nil {
			return err
		}
	}
	if sessions {
		return r.end(ctx, p, id.Provider)
	}
	return nil
}

// expire takes away the groups of a person whom no one asks about, once they are too old: else they would count at the next sign-in by another way.
func (r *Recheck) expire(ctx context.Context, p *people.Person, said v1.External) error {
	if len(said.Groups) == 0 || !r.old(said) {
		return nil
	}
	said.Groups = nil
	return r.People.EndWord(ctx, p, said)
}

// say writes what a provider says of a person who is still there.
func (r *Recheck) say(ctx context.Context, p *people.Person, said v1.External) error {
	_, err := r.People.NoteWord(ctx, p, said)
	if errors.Is(err, people.ErrNoUser) {
		return nil
	}
	return err
}

// end ends the sessions that began by a provider's word.
func (r *Recheck) end(ctx context.Context, p *people.Person, provider string) error {
	n, err := r.Tokens.RevokeVia(ctx, p.Name, provider)
	if n > 0 {
		r.log().WarnContext(ctx, "sessions are ended, since their provider doesn't vouch for the person now", "user", p.Name, "provider", provider, "sessions", n)
	}
	return err
}
