package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/password"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Options configure a Service.
type Options struct {
	Now func() time.Time // nil is time.Now
	Log *slog.Logger     // nil discards the log
	// ProvidersOnly means that only passwords of directories are accepted. Passwords that the cluster stores are rejected.
	ProvidersOnly bool
	// Policies holds the policies of providers, by the provider's name. A provider without a policy adds no people.
	Policies map[string]Policy
	// Addresses returns the client addresses that have used a person's tokens. Failures from other addresses don't delay sign-ins from these
	// addresses. Addresses may be nil.
	Addresses func(name string) []string
}

// Service signs in people.
type Service struct {
	o         Options
	people    *people.Directory
	providers []Password
	throttle  *throttle
	noting    chan struct{} // sign-ins that are being noted
}

// New returns a Service. Its SignIn first checks the stored password, and then the providers in the given order.
func New(d *people.Directory, providers []Password, o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{o: o, people: d, providers: providers, throttle: newThrottle(o.Now), noting: make(chan struct{}, 8)}
}

// SignIn returns the person with the given name if the password is right. address is the client's address for the throttle.
func (s *Service) SignIn(ctx context.Context, name string, p secret.String, address string) (*people.Person, error) {
	who, err := s.attempt(ctx, name, address, func(try *try) (*people.Person, error) { return s.signIn(ctx, name, p, try) })
	if err == nil {
		s.Note(ctx, who)
	}
	return who, err
}

// VerifyOwn checks the stored password of a person who already has a session. It doesn't ask directories, because their passwords aren't passwords of the
// cluster.
func (s *Service) VerifyOwn(ctx context.Context, name string, p secret.String, address string) error {
	_, err := s.attempt(ctx, name, address, func(try *try) (*people.Person, error) {
		who, err := s.people.Person(name)
		if err != nil {
			return nil, err
		}
		if stored, err := s.people.Password(ctx, who); err != nil || stored == nil {
			return nil, cmp.Or(err, hint.Wrap(fmt.Errorf("%s %w", name, ErrNoPassword), "an administrator can give them one: paictl user passwd "+name))
		}
		return s.local(ctx, name, p, try)
	})
	return err
}

// attempt makes one attempt to sign in with a name from an address, if the throttle permits it. what checks the password.
func (s *Service) attempt(ctx context.Context, name, address string, what func(*try) (*people.Person, error)) (*people.Person, error) {
	if err := s.people.Fresh(); err != nil {
		return nil, err
	}
	try, err := s.throttle.begin(address, name)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	who, err := what(try)
	switch {
	case err == nil:
		try.right()
	case errors.Is(err, ErrWrong), try.doubted: // otherwise attackers could guess without a limit while one of several directories is not available
		try.wrong()
		rest(ctx, began)
	default: // the attempt doesn't show whether the password is right
		try.undo()
	}
	return who, err
}

// Providers reports whether directories also check passwords.
func (s *Service) Providers() bool { return len(s.providers) > 0 }

// Guess limits attempts to guess a value, such as a short code. The limit is the same as for the password of one name. what identifies the value.
// wrong is the error of a wrong guess.
func (s *Service) Guess(what string, wrong error, attempt func() error) error {
	try, err := s.throttle.guess(what)
	if err != nil {
		return err
	}
	err = attempt()
	switch {
	case err == nil:
		try.guessed()
	case errors.Is(err, wrong):
		try.wrong()
	default:
		try.undo()
	}
	return err
}

// Note stores the time of a person's sign-in in the background, so that the response doesn't wait. If too many writes are already pending, Note does
// nothing.
func (s *Service) Note(ctx context.Context, who *people.Person) {
	select {
	case s.noting <- struct{}{}:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	go func() {
		defer func() { cancel(); <-s.noting }()
		if err := s.people.NoteSignIn(ctx, who, s.o.Now()); err != nil {
			s.o.Log.WarnContext(ctx, "a sign-in isn't noted", "user", who.Name, "error", err)
		}
	}()
}

// floor is the minimum response time for a wrong password. It is longer than the time to store the failure of an existing person.
const floor = 250 * time.Millisecond

// rest waits until floor has passed since began, so that the response time doesn't reveal why the sign-in failed.
func rest(ctx context.Context, began time.Time) {
	select {
	case <-time.After(time.Until(began.Add(floor))):
	case <-ctx.Done():
	}
}

func (s *Service) signIn(ctx context.Context, name string, p secret.String, try *try) (*people.Person, error) {
	if !s.o.ProvidersOnly {
		if who, err := s.local(ctx, name, p, try); !errors.Is(err, ErrWrong) {
			return who, err
		}
		try.doubted = true
	}
	away := error(nil)
	for _, provider := range s.providers {
		if p.Reveal() == "" { // directories accept a bind without a password, as an anonymous one
			break
		}
		id, err := provider.SignIn(ctx, name, p)
		switch {
		case err == nil:
			try.doubted = false
			return s.Admit(ctx, id)
		case errors.Is(err, ErrWrong):
			try.doubted = true
		default: // other providers may know the person
			away = cmp.Or(away, err)
		}
	}
	return nil, cmp.Or(away, ErrWrong)
}

// stranger replaces an invalid name, so that the server does the same work as for an existing person.
const stranger = "no-person-has-this-name"

// local checks a stored password. Every kind of failure takes the same time.
func (s *Service) local(ctx context.Context, name string, p secret.String, try *try) (*people.Person, error) {
	who, err := s.people.Person(name)
	if err != nil || who.Disabled {
		if !v1.ValidName(name) {
			name = stranger
		}
		if _, err := s.people.Password(ctx, &people.Person{Name: name}); err != nil {
			return nil, err
		}
		return nil, s.unknown(ctx, p)
	}
	stored, err := s.people.Password(ctx, who)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, s.unknown(ctx, p)
	}
	// Another replica has counted too many failures. Only one replica counts the failures for a nonexistent name. So a different response here would
	// reveal whether the name exists.
	if s.o.Now().Before(stored.NotBefore) && !try.trusted() && !s.uses(name, try.from) {
		return nil, s.unknown(ctx, p)
	}
	ok, rehash, err := password.Verify(ctx, stored.Hash, p)
	if err != nil {
		return nil, busy(err)
	}
	if !ok {
		s.note(ctx, who, stored, func(w *people.Password) {
			w.Failures++
			w.NotBefore = s.o.Now().Add(pause(w.Failures))
		})
		return nil, ErrWrong
	}
	// Sessions that begin with this password end when a later password is set.
	signed := *who
	signed.Sessions = max(who.Sessions, stored.Sessions)
	if rehash || stored.Failures > 0 {
		again := ""
		if rehash {
			again = password.Hash(p)
		}
		s.note(ctx, who, stored, func(w *people.Password) {
			w.Hash, w.Failures, w.NotBefore = cmp.Or(again, w.Hash), 0, time.Time{}
		})
	}
	return &signed, nil
}

// uses reports whether a person's tokens were used from a network. Unlike the throttle's state, this information survives a restart and exists at
// other replicas.
func (s *Service) uses(name, from string) bool {
	return s.o.Addresses != nil && slices.ContainsFunc(s.o.Addresses(name), func(a string) bool { return a != "" && clientaddr.NetworkOf(a) == from })
}

// note stores the result of a sign-in with the password. If the result can't be written, note only logs the error. After a conflict it repeats the
// write, unless a new password was set.
func (s *Service) note(ctx context.Context, who *people.Person, stored *people.Password, change func(*people.Password)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for hash := stored.Hash; stored != nil && stored.Hash == hash; {
		change(stored)
		written, err := s.people.StorePassword(ctx, who, stored)
		if err == nil && !written {
			stored, err = s.people.Password(ctx, who)
		}
		if err != nil {
			s.o.Log.WarnContext(ctx, "a sign-in isn't noted", "user", who.Name, "error", err)
			return
		}
		if written {
			return
		}
	}
}

// unknown takes as long as the check of a wrong password, and returns ErrWrong.
func (s *Service) unknown(ctx context.Context, p secret.String) error {
	if err := password.Dummy(ctx, p); err != nil {
		return busy(err)
	}
	return ErrWrong
}

func busy(err error) error {
	if errors.Is(err, password.ErrBusy) {
		return &ThrottledError{After: 5 * time.Second}
	}
	return err
}
