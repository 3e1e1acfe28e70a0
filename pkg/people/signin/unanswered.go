package signin

import (
	"sync"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// unanswered holds the refresh tokens of requests whose responses were lost. An issuer that rotates refresh tokens rejects such a token later. That
// rejection doesn't mean that the person is gone.
type unanswered struct {
	mu   sync.Mutex
	with map[v1.Identity]people.StoredToken
}

func (u *unanswered) add(id v1.Identity, with people.StoredToken) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.with == nil {
		u.with = map[v1.Identity]people.StoredToken{}
	}
	u.with[id] = with
}

// drop removes a lost response, because the issuer has answered a later request.
func (u *unanswered) drop(id v1.Identity) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.with, id)
}

// has reports whether the response to a request with the same refresh token was lost.
func (u *unanswered) has(id v1.Identity, with people.StoredToken) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	lost, there := u.with[id]
	return there && lost.Same(with)
}
