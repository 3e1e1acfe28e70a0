package token

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// tries is the maximum number of tries of a change after conflicts.
const tries = 8

// Service creates and checks tokens.
type Service struct {
	o       Options
	people  *people.Directory
	secrets dynamic.ResourceInterface
	objects *watch.Store[stored]
	now     func() time.Time

	mu      sync.Mutex
	running bool
	unknown map[string]time.Time // ids that the API server didn't have, with the end of the time for which that is assumed
	lives   map[string]*life     // by id
	used    map[string]time.Time // times of use, to be written later
	asked   time.Time            // when the keys were last read from the API server
	nudge   chan struct{}        // signals that something changed
	// signed and shown limit the number of simultaneous reads of records from the API server. signed is for tokens with a valid signature. shown is
	// for texts that a client may have invented.
	signed, shown chan struct{}
}

// maxLive is the capacity of signed and of shown. Further requests fail with a temporary error instead of waiting.
const maxLive = 32

// Open returns a Service. It sends no requests.
func Open(config *rest.Config, d *people.Directory, o Options) (*Service, error) {
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	watching, err := watch.Client(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	o.Lifetimes = o.Lifetimes.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	s := &Service{
		o: o, people: d, secrets: api.Resource(secrets).Namespace(v1.Namespace), now: o.Now, signed: make(chan struct{}, maxLive), shown: make(chan struct{}, maxLive),
		unknown: map[string]time.Time{}, lives: map[string]*life{}, used: map[string]time.Time{}, nudge: make(chan struct{}, 1),
	}
	ours := metav1.ListOptions{LabelSelector: v1.LabelPeople + " in (" + v1.SecretToken + "," + v1.SecretKeys + ")"}
	s.objects = watch.New(watch.Options[*unstructured.Unstructured, stored]{
		Name: "tokens", Source: watch.From(watching.Resource(secrets).Namespace(v1.Namespace), ours), Reads: watch.From(s.secrets, ours), Keep: decode,
		Changed: func([]watch.Change[stored], string) { s.look() }, Confirm: true, Log: o.Log,
	})
	d.OnRevoke(func(secret string, uid types.UID) { s.objects.Drop(secret, uid) })
	return s, nil
}

func (l Lifetimes) filled() Lifetimes {
	const day = 24 * time.Hour
	return Lifetimes{
		Access: cmp.Or(l.Access, 15*time.Minute), Browser: cmp.Or(l.Browser, day), Refresh: cmp.Or(l.Refresh, 30*day),
		Session: cmp.Or(l.Session, 90*day), Rotate: cmp.Or(l.Rotate, 30*day),
	}
}

// Load reads the keys and records once, and creates the first key if no key exists. Commands use it instead of Run.
func (s *Service) Load(ctx context.Context) error {
	if err := s.objects.Load(ctx); err != nil {
		return away("read the tokens", err)
	}
	_, err := s.keys(ctx)
	return err
}

// Run watches records and keys until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	changed, stop := s.people.Changed()
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { s.objects.Run(ctx) })
	parts.Go(func() { s.end(ctx, changed) })
	parts.Go(func() { s.writeUsed(ctx) })
	parts.Wait()
	return nil
}

// Fresh returns nil if the watched data is up to date. Otherwise it returns an error that wraps people.ErrUnavailable.
func (s *Service) Fresh() error {
	if time.Since(s.objects.Confirmed()) > people.StaleAfter {
		return people.ErrStale
	}
	return s.people.Fresh()
}

const tending = time.Minute

// Tend maintains the stored data until ctx ends. It creates and rotates keys, removes expired records, and writes the reasons to ignored Users. Only
// the leading replica runs Tend.
func (s *Service) Tend(ctx context.Context) error {
	for {
		if err := s.tend(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.ErrorContext(ctx, "tend the tokens", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tending):
		}
	}
}

func (s *Service) tend(ctx context.Context) error {
	if _, err := s.changeKeys(ctx, func(have keyring) keyring {
		if have.due(s.now(), s.o.Lifetimes.Rotate) {
			return have.rotated(s.now())
		}
		return have
	}); err != nil {
		return err
	}
	for _, e := range s.entries() {
		if e.expired(s.now()) {
			if err := s.drop(ctx, e); err != nil {
				return err
			}
		}
	}
	return s.people.WriteConditions(ctx)
}

func (s *Service) entries() []*entry {
	var out []*entry
	for _, have := range s.objects.All() {
		if have.entry != nil {
			out = append(out, have.entry)
		}
	}
	return out
}

// Of returns the valid records of a person, newest first, or all valid records if user is empty.
func (s *Service) Of(user string) []Record {
	out := []Record{}
	for _, e := range s.entries() {
		if (user == "" || e.User == user) && !e.expired(s.now()) && s.counts(e) {
			out = append(out, e.Record)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return out
}

// counts reports whether the record belongs to an existing person. It returns false for a record of an earlier person with the same name, or of a
// session that has ended.
func (s *Service) counts(e *entry) bool {
	p, err := s.people.ByUID(e.person)
	return err == nil && p.Name == e.User && (e.Kind == KindApplication || e.sessions >= p.Sessions)
}

// Revoke ends a person's token or session. token is an id, the token itself, or a handle. If user is empty, the token may belong to any person.
// Revoke returns ErrNone if the token doesn't exist.
func (s *Service) Revoke(ctx context.Context, user, token string) error {
	id, err := IDOf(token)
	if err != nil {
		return err
	}
	e, err := s.live(ctx, id, s.shown)
	if err != nil {
		return err
	}
	if user != "" && e.User != user {
		return ErrNone
	}
	return s.drop(ctx, e)
}

// RevokeVia ends a person's sessions and browser tokens that began with a provider, and returns their number.
func (s *Service) RevokeVia(ctx context.Context, user, provider string) (n int, err error) {
	return s.revoke(ctx, func(e *entry) bool { return e.User == user && e.Via == provider && e.Kind != KindApplication })
}

// RevokeAll ends all of a person's tokens, or all except application tokens if keepApplication is true. It returns their number.
func (s *Service) RevokeAll(ctx context.Context, user string, keepApplication bool) (n int, err error) {
	return s.revoke(ctx, func(e *entry) bool { return e.User == user && (!keepApplication || e.Kind != KindApplication) })
}

func (s *Service) revoke(ctx context.Context, which func(*entry) bool) (n int, err error) {
	if err := s.objects.Load(ctx); err != nil {
		return 0, away("read the tokens", err)
	}
	for _, e := range s.entries() {
		if !which(e) {
			continue
		}
		if err := s.drop(ctx, e); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
