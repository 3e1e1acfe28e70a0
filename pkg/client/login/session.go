package login

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// early is how long before its expiry an access token is renewed.
const early = time.Minute

// Refresher exchanges a refresh token for a new pair of tokens.
type Refresher interface {
	Refresh(ctx context.Context, refresh secret.String) (*client.Pair, error)
}

// Session provides the tokens of the session at one cluster. It implements client.Tokens.
type Session struct {
	Store Store
	Name  string
	// Server renews the tokens.
	Server Refresher
	// Now returns the current time. If it is nil, time.Now is used.
	Now func() time.Time

	mu     sync.Mutex
	access secret.String
	until  time.Time
}

var _ client.Tokens = (*Session)(nil)

func (s *Session) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Access returns a token that is valid for at least a minute.
func (s *Session) Access(ctx context.Context) (secret.String, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access.IsSet() && s.now().Before(s.until.Add(-early)) {
		return s.access, nil
	}
	f, err := s.Store.Read()
	if err != nil {
		return "", err
	}
	c := f.Clusters[s.Name]
	if c == nil || !c.Refresh.IsSet() {
		return "", s.again("you are not signed in at " + s.Name)
	}
	if c.Access.IsSet() && s.now().Before(c.Expires.Add(-early)) {
		s.access, s.until = c.Access, c.Expires
		return s.access, nil
	}
	return s.renew(ctx, c.Access)
}

// Renewed returns a token in place of a token that the server rejected.
func (s *Session) Renewed(ctx context.Context, refused secret.String) (secret.String, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access.IsSet() && s.access != refused {
		return s.access, nil // another request has renewed it
	}
	return s.renew(ctx, refused)
}

// renew gets a new pair of tokens. It holds the lock of the file, because a refresh token can be used only once. If another paictl has already
// renewed the tokens, renew returns the new access token from the file.
func (s *Session) renew(ctx context.Context, old secret.String) (secret.String, error) {
	err := s.Store.Change(ctx, func(f *File) error {
		c := f.Clusters[s.Name]
		if c == nil || !c.Refresh.IsSet() {
			return s.again("you are not signed in at " + s.Name)
		}
		if c.Access.IsSet() && c.Access != old && s.now().Before(c.Expires.Add(-early)) {
			s.access, s.until = c.Access, c.Expires
			return nil
		}
		pair, err := s.Server.Refresh(ctx, c.Refresh)
		if _, refused := errors.AsType[*client.RefusedError](err); refused {
			return s.again("your session at " + s.Name + " has ended")
		}
		if err != nil {
			return err
		}
		c.Access, c.Expires = pair.Access, s.now().Add(time.Duration(pair.Lifetime)*time.Second)
		if pair.Refresh.IsSet() {
			c.Refresh = pair.Refresh
		}
		s.access, s.until = c.Access, c.Expires
		return nil
	})
	if err != nil {
		return "", err
	}
	return s.access, nil
}

func (s *Session) again(text string) error {
	return hint.Wrap(&client.SessionError{Text: text}, "sign in again: paictl login "+s.Name)
}
