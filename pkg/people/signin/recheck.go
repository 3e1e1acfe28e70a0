package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Tokens reads and ends people's sessions and tokens.
type Tokens interface {
	// Of returns the records of a person's sessions and tokens, or all records if user is empty.
	Of(user string) []token.Record
	// RevokeVia ends the sessions of a person that began with a provider, and returns their number.
	RevokeVia(ctx context.Context, user, provider string) (n int, err error)
}

// Recheck regularly sends requests to providers about people with a session or a token. So the cluster also revokes permissions that a provider has
// revoked. Only one replica runs Recheck.
type Recheck struct {
	People   *people.Directory
	Tokens   Tokens
	Checkers []Checker
	Policies map[string]Policy
	// ProvidersOnly means that passwords of the cluster aren't accepted. People then can't sign in without the provider, even with a stored password.
	ProvidersOnly bool
	// Every is the interval between two checks of each person. Grace is how long a provider's last answer is valid while the provider is unavailable.
	Every, Grace time.Duration
	Now          func() time.Time // nil is time.Now
	Log          *slog.Logger     // nil discards the log

	unanswered unanswered
	rounds     people.Rounds
	noted      time.Time // when rounds were last recorded for the next replica
}

const (
	// together is the number of simultaneous checks.
	together = 8
	// patience limits the time to check one person.
	patience = 15 * time.Second
	// keeping limits the time to store the next refresh token.
	keeping = 5 * time.Second
	// strikes is the number of consecutive failures after which a round skips the provider.
	strikes = 3
)

// Run calls Round at the interval Every until ctx ends.
func (r *Recheck) Run(ctx context.Context) error {
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for {
		if err := r.Round(ctx); err != nil && ctx.Err() == nil {
			r.log().ErrorContext(ctx, "ask the providers again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Recheck) log() *slog.Logger { return cmp.Or(r.Log, slog.New(slog.DiscardHandler)) }

func (r *Recheck) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// asked holds the state of a provider during one round.
type asked struct {
	Checker
	failed atomic.Int32 // consecutive failures

	mu    sync.Mutex
	kept  int    // people whom it confirms
	lost  []loss // the people whom it doesn't know
	named bool   // it has reported groups of at least one person
}

// loss describes a person whom a provider no longer confirms.
type loss struct {
	person   *people.Person
	id       v1.Identity
	kept     people.StoredToken
	sessions bool // some sessions began with this provider
	answered bool // the provider knows the person, but reports no group that may sign in
}

func (a *asked) keeps() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept++
}

func (a *asked) names(groups []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.named = a.named || len(groups) > 0
}

func (a *asked) loses(l loss) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = append(a.lost, l)
}

// Round checks once, with the providers, everyone who has a session or a token.
func (r *Recheck) Round(ctx context.Context) error {
	failed := []error{r.follow(ctx)}
	vias := map[string]map[string]bool{} // the providers of people's sessions
	for _, record := range r.Tokens.Of("") {
		if vias[record.User] == nil {
			vias[record.User] = map[string]bool{}
		}
		vias[record.User][record.Via] = true
	}
	providers := map[string]*asked{}
	for _, c := range r.Checkers {
		one, policy := &asked{Checker: c}, r.Policies[c.Name()]
		if err := r.People.Bind(ctx, c.Name(), policy.Source, policy.MovedFrom); err != nil {
			one.failed.Store(strikes) // the refresh tokens belong to another issuer
			failed = append(failed, err)
		}
		providers[c.Name()] = one
	}
	all := slices.Clone(r.People.Users())
	// The order is random. In a fixed order, failed checks of some people could prevent the checks of the same other people in each round.
	//nolint:gosec // an order, no secret
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var g errgroup.Group
	g.SetLimit(together)
	var mu sync.Mutex
	for _, p := range all {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := r.person(ctx, p, vias[p.Name], providers); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("%s: %w", p.Name, err))
			}
			return nil
		})
	}
	_ = g.Wait() // it has no errors
	for _, provider := range providers {
		if ctx.Err() == nil { // otherwise the round is incomplete
			failed = append(failed, r.settle(ctx, provider))
		}
	}
	return errors.Join(append(failed, r.note(ctx))...)
}

// follow determines whether this round continues the previous rounds, which another replica may have run. If no round ran for a quarter of the grace
// period, a new grace period begins.
func (r *Recheck) follow(ctx context.Context) (err error) {
	now := r.now()
	if r.follows(now) {
		return nil
	}
	if r.rounds, err = r.People.Rounds(ctx); !r.follows(now) {
		r.rounds.Since = now
	}
	return err
}

func (r *Recheck) follows(now time.Time) bool { return now.Sub(r.rounds.Last).Abs() <= r.Grace/4 }

// note stores the end of this round, so that another replica can continue the rounds.
func (r *Recheck) note(ctx context.Context) error {
	r.rounds.Last = r.now()
	if r.rounds.Last.Sub(r.noted) < r.Grace/10 {
		return nil
	}
	if err := r.People.NoteRounds(ctx, r.rounds); err != nil {
		return err
	}
	r.noted = r.rounds.Last
	return nil
}

// person checks one person. It skips a person without sessions and tokens, because the next sign-in checks that person. It then only removes outdated
// answers about the person.
func (r *Recheck) person(ctx context.Context, p *people.Person, vias map[string]bool, providers map[string]*asked) error {
	var failed []error
	for via := range vias {
		linked := slices.ContainsFunc(p.User.Spec.Identities, func(id v1.Identity) bool { return id.Provider == via })
		if via != "" && (!linked || providers[via] == nil) { // no provider confirms these sessions now
			failed = append(failed, r.end(ctx, p, via))
		}
	}
	for _, id := range p.User.Spec.Identities {
		provider, said := providers[id.Provider], p.LastAnswer(id)
		switch {
		case provider == nil && len(said.Groups) > 0: // it isn't in the settings
			said.Groups = nil
			failed = append(failed, r.People.ExpireAnswer(ctx, p, said))
		case provider == nil && vias != nil:
			failed = append(failed, r.unsaid(ctx, p, id, false))
		case provider != nil && vias != nil && !p.Disabled:
			failed = append(failed, r.check(ctx, p, id, provider, vias[id.Provider]))
		default:
			failed = append(failed, r.expire(ctx, p, said))
		}
	}
	return errors.Join(failed...)
}

// check sends a request to a provider about one identity. After the request has begun, check ignores the end of ctx and uses a separate time limit.
// An issuer may invalidate the refresh token, so the next token must be stored even if this replica is stopping.
func (r *Recheck) check(ctx context.Context, p *people.Person, id v1.Identity, provider *asked, sessions bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	kept := people.StoredToken{}
	if provider.Refreshes() {
		var err error
		if kept, err = r.People.Refresh(ctx, p, id); err != nil {
			return err
		}
	}
	now, err := r.ask(ctx, provider, id, kept)
	next, failed := r.keep(ctx, p, id, kept, now)
	switch {
	case failed != nil, errors.Is(err, ErrLost):
		r.unanswered.add(id, kept)
	case err == nil:
		r.unanswered.drop(id)
	}
	if failed != nil {
		return failed
	}
	return r.judge(ctx, provider, loss{person: p, id: id, kept: next, sessions: sessions, answered: err == nil}, now, err)
}

// keep stores the refresh token that the issuer returned, and returns the token that is now stored. Its separate time limit allows the write even
// after a slow response of the issuer.
func (r *Recheck) keep(ctx context.Context, p *people.Person, id v1.Identity, kept people.StoredToken, now *Identity) (people.StoredToken, error) {
	if now == nil || !now.Refresh.IsSet() || now.Refresh == kept.Refresh {
		return kept, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeping)
	defer cancel()
	return r.People.NextRefresh(ctx, p, id, kept, now.Refresh)
}

// ask sends a request to a provider about an identity. It sends no request if the provider has failed several times in a row in this round.
func (r *Recheck) ask(ctx context.Context, provider *asked, id v1.Identity, kept people.StoredToken) (*Identity, error) {
	if provider.failed.Load() >= strikes {
		return nil, people.ErrUnavailable
	}
	if provider.Refreshes() && !kept.Refresh.IsSet() {
		return nil, people.ErrUnavailable // there is no refresh token
	}
	now, err := provider.Check(ctx, id.Subject, kept.Refresh)
	if err == nil || errors.Is(err, ErrGone) || errors.Is(err, ErrUnsaid) {
		provider.failed.Store(0)
	} else {
		provider.failed.Add(1)
	}
	return now, err
}
