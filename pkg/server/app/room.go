package app

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Most limits the unfinished jobs of one person, and the tasks of these jobs. Zero means no limit. The limits exist because all jobs share one
// namespace, and the API server and the controller keep each task in memory.
type Most struct{ Jobs, Tasks int }

// awaitTime limits how long a change waits until lists contain the change.
const awaitTime = 2 * time.Second

// room counts the jobs and tasks of requests in progress until lists contain them. It doesn't count requests to other servers.
type room struct {
	mu     sync.Mutex
	adding map[string]Most // by person
}

// added holds the jobs and tasks of one request in progress.
type added struct {
	app  *App
	user string
	more Most
}

// add returns an error if more jobs and tasks would exceed a person's limit. Otherwise it counts them until done is called.
func (a *added) add(s *App, user string, more Most) error {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	jobs, tasks := s.Lister.Unfinished(user)
	adding := s.room.adding[user]
	for _, n := range []struct {
		what             string
		have, more, most int
	}{{"jobs", jobs + adding.Jobs, more.Jobs, s.Most.Jobs}, {"tasks", tasks + adding.Tasks, more.Tasks, s.Most.Tasks}} {
		if n.most != 0 && n.more > 0 && n.have+n.more > n.most {
			return &wire.Error{Status: http.StatusForbidden, Code: codeQuota, Message: fmt.Sprintf(
				"%s has %d unfinished %s and would have %d; one person may have %d: wait until some have finished, or stop some", user, n.have, n.what, n.have+n.more, n.most)}
		}
	}
	if s.room.adding == nil {
		s.room.adding = map[string]Most{}
	}
	s.room.adding[user] = Most{adding.Jobs + more.Jobs, adding.Tasks + more.Tasks}
	*a = added{s, user, more}
	return nil
}

func (a *added) done() {
	if a.app == nil {
		return
	}
	r := &a.app.room
	r.mu.Lock()
	defer r.mu.Unlock()
	left := Most{r.adding[a.user].Jobs - a.more.Jobs, r.adding[a.user].Tasks - a.more.Tasks}
	if r.adding[a.user] = left; left == (Most{}) {
		delete(r.adding, a.user)
	}
	a.app = nil
}

// await waits until lists contain the change of a job, but not longer than awaitTime.
func (s *App) await(ctx context.Context, framework string, changed func(listing.Row) bool) {
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	s.Lister.Await(ctx, framework, changed)
}

// unfinished reports whether the job of a row hasn't ended.
func unfinished(r listing.Row) bool { return !listing.Phase(r.State).Done() }
