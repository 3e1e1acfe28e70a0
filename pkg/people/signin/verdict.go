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
	// few is the number of people who may be lost in one round without doubt about the provider.
	few = 2
	// share limits the part of a provider's people who may be lost in one round: one person in five.
	share = 5
)

func (r *Recheck) judge(ctx context.Context, provider *asked, l loss, now *Identity, err error) error {
	policy, said := r.Policies[l.id.Provider], l.person.LastAnswer(l.id)
	switch {
	case err == nil && now.GroupsUnsaid && len(policy.Allowed) > 0: // it isn't known whether the person may sign in
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

// settle revokes the permissions of people whom a provider no longer confirms. If many people would lose their permissions at once, the provider is
// probably wrong, for example because of lost data. The provider's earlier answers then stay valid for the grace period, as for an unavailable
// provider.
func (r *Recheck) settle(ctx context.Context, provider *asked) error {
	fresh := 0
	for _, l := range provider.lost {
		if provider.doubtful(l) {
			fresh++
		}
	}
	doubted := fresh > few && fresh*share > provider.kept+fresh
	if doubted {
		r.log().ErrorContext(ctx, "a provider no longer knows many people: it is asked again, and its earlier answers stay valid for a while", "provider", provider.Name(), "gone", fresh, "known", provider.kept, "grace", r.Grace)
	}
	var failed []error
	for _, l := range provider.lost {
		take := r.gone
		if doubted && provider.doubtful(l) && !r.over(l.person.LastAnswer(l.id)) {
			take = r.narrow
		}
		if err := take(ctx, provider, l); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", l.person.Name, err))
		}
	}
	return errors.Join(failed...)
}

// doubtful reports whether missing data of the provider could have caused a loss. It returns true if the provider doesn't return the person, or has
// returned groups for no person in this round.
func (a *asked) doubtful(l loss) bool {
	return !l.person.LastAnswer(l.id).Gone && (!l.answered || !a.named)
}

// narrow removes groups that a provider no longer reports from a person who stays signed in during doubt about the provider.
func (r *Recheck) narrow(ctx context.Context, _ *asked, l loss) error {
	said := l.person.LastAnswer(l.id)
	if !l.answered || len(said.Groups) == 0 {
		return nil
	}
	said.Groups = nil
	return r.People.ExpireAnswer(ctx, l.person, said)
}

// old reports whether a provider's answer is older than the grace period.
func (r *Recheck) old(said v1.External) bool { return r.now().Sub(said.CheckedAt.Time) > r.Grace }

// over reports whether a provider hasn't answered for longer than the grace period. Time without rounds doesn't count. Otherwise the first failed
// request after a pause of the server would sign out everyone.
func (r *Recheck) over(said v1.External) bool {
	return r.old(said) && r.now().Sub(r.rounds.Since) > r.Grace
}

// confirm stores a provider's answer. It stores an unchanged answer only from time to time.
func (r *Recheck) confirm(ctx context.Context, p *people.Person, id v1.Identity, now *Identity) error {
	said := p.LastAnswer(id)
	if now.GroupsUnsaid && len(said.Groups) > 0 && !r.over(said) {
		return nil // the earlier groups are valid for their time
	}
	groups := slices.Compact(slices.Sorted(slices.Values(now.Groups)))
	if !slices.Equal(said.Groups, groups) || said.Gone || r.now().Sub(said.CheckedAt.Time) > r.Grace/4 {
		said.Groups, said.Gone, said.CheckedAt = groups, false, metav1.NewTime(r.now())
		return r.say(ctx, p, said)
	}
	return nil
}

// gone revokes the permissions of a person whom a provider no longer confirms. It keeps the refresh token for a while, because the issuer may have
// been wrong.
func (r *Recheck) gone(ctx context.Context, provider *asked, l loss) error {
	p, id := l.person, l.id
	if provider.Refreshes() {
		if again, err := r.People.Refresh(ctx, p, id); err != nil || !again.Same(l.kept) {
			return err // the person has just signed in: the next round uses the new token
		}
	}
	said := p.LastAnswer(id)
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

// unsaid handles a person about whom a provider hasn't answered. After the grace period, it revokes the person's groups, sessions and application
// tokens. Application tokens stay valid if the person also has a password of the cluster.
func (r *Recheck) unsaid(ctx context.Context, p *people.Person, id v1.Identity, sessions bool) error {
	said := p.LastAnswer(id)
	if !r.over(said) {
		return nil
	}
	gone := said.Gone
	if !gone && !said.CheckedAt.IsZero() {
		own, err := r.People.Password(ctx, p)
		if err != nil {
			return err
		}
		gone = own == nil || r.ProvidersOnly
	}
	if len(said.Groups) > 0 || gone != said.Gone {
		r.log().WarnContext(ctx, "a provider couldn't be asked about a person for too long: its last answer is no longer valid", "user", p.Name, "provider", id.Provider)
		said.Groups, said.Gone = nil, gone
		if err := r.People.ExpireAnswer(ctx, p, said); err != nil {
			return err
		}
	}
	if sessions {
		return r.end(ctx, p, id.Provider)
	}
	return nil
}

// expire removes outdated groups of a person who isn't checked. Otherwise these groups would take effect when the person signs in by another method.
func (r *Recheck) expire(ctx context.Context, p *people.Person, said v1.External) error {
	if len(said.Groups) == 0 || !r.old(said) {
		return nil
	}
	said.Groups = nil
	return r.People.ExpireAnswer(ctx, p, said)
}

// say stores a provider's answer about a person. It ignores a person who no longer exists.
func (r *Recheck) say(ctx context.Context, p *people.Person, said v1.External) error {
	_, err := r.People.RecordAnswer(ctx, p, said)
	if errors.Is(err, people.ErrNoUser) {
		return nil
	}
	return err
}

func (r *Recheck) end(ctx context.Context, p *people.Person, provider string) error {
	n, err := r.Tokens.RevokeVia(ctx, p.Name, provider)
	if n > 0 {
		r.log().WarnContext(ctx, "sessions are ended, since their provider doesn't vouch for the person now", "user", p.Name, "provider", provider, "sessions", n)
	}
	return err
}
