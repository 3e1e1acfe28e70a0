package token

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/people"
)

// life notifies streams when the record of their token ends.
type life struct {
	ended  chan struct{}
	secret types.UID
}

// watch returns a channel that is closed when the record expires or is revoked.
func (s *Service) watch(e *entry) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lives[e.ID]
	if l == nil || l.secret != e.secret {
		l = &life{ended: make(chan struct{}), secret: e.secret}
		s.lives[e.ID] = l
		s.look() // the record may have ended in the meantime
	}
	return l.ended
}

// look makes end check all watched records now.
func (s *Service) look() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// end closes the channels of records that have ended. It checks them after each change, and every second, because records also expire without a
// change.
func (s *Service) end(ctx context.Context, changed <-chan people.Change) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changed:
		case <-s.nudge:
		}
		s.endNow()
	}
}

func (s *Service) endNow() {
	s.mu.Lock()
	lives := maps.Clone(s.lives)
	s.mu.Unlock()
	for id, l := range lives {
		have, ok := s.objects.Get(secretOf(id))
		if ok && have.entry != nil && have.entry.secret == l.secret {
			if _, err := s.holder(have.entry); err == nil {
				continue
			}
		} else if !ok && !s.objects.Deleted(l.secret) && s.Fresh() != nil {
			continue // the record's state is unknown now
		}
		s.mu.Lock()
		if s.lives[id] == l {
			delete(s.lives, id)
			close(l.ended)
		}
		s.mu.Unlock()
	}
}

const (
	// usedEvery is the precision of the stored time of the last use.
	usedEvery = 10 * time.Minute
	// writing is the interval between two writes of the times of use.
	writing = 30 * time.Second
)

// note records in memory that a token is used now. writeUsed stores the time later.
func (s *Service) note(e *entry) {
	now := s.now()
	if now.Sub(e.Used) < usedEvery {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.used[e.ID]) >= usedEvery {
		s.used[e.ID] = now
	}
}

// writeUsed regularly stores the times at which tokens were used, until ctx ends.
func (s *Service) writeUsed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(writing):
		}
		s.mu.Lock()
		all := s.used
		s.used = map[string]time.Time{}
		s.mu.Unlock()
		for id, at := range all {
			value := base64.StdEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339)))
			patch := fmt.Sprintf(`{"data":{"used":%q}}`, value)
			if u, err := s.secrets.Patch(ctx, secretOf(id), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil {
				s.objects.Put(u)
			}
		}
	}
}
