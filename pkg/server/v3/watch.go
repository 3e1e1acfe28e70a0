package v3

import (
	"context"
	"errors"

	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

type watchIn struct {
	User    string   `query:"user"`
	VC      string   `query:"vc"`
	Keyword string   `query:"keyword"`
	Name    string   `query:"name"`
	State   []string `query:"state"`
	Since   string   `query:"since"`
	Earlier bool     `query:"earlier"`
	Limit   int      `query:"limit"`
	Place   string   `header:"Last-Event-ID"`
}

// maxPlace limits the length of a Last-Event-ID.
const maxPlace = 128

func watch(c *server.Call) error {
	in := watchIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	list := listIn{User: in.User, VC: in.VC, Keyword: in.Keyword, Name: in.Name, State: in.State, Since: in.Since, Earlier: in.Earlier, Limit: in.Limit}
	f, err := list.filter()
	if err != nil {
		return err
	}
	if len(in.Place) > maxPlace {
		return wire.Bad("Last-Event-ID isn't from this server: leave it out")
	}
	s := &sink{call: c, Events: c.Events()}
	err = c.Actions.Watch(c.Context(), f, in.Place, s)
	if !s.Begun() {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return nil // the reader is gone
	}
	if e := app.Meaning(err); e.RetryAfter > 0 {
		s.Retry(e.RetryAfter)
	}
	if s.AddJSON(api.EventEnd, "", problem(c, err)) == nil {
		_ = s.Flush() // the client may still be connected
	}
	return nil
}

// sink sends the results of a watch of jobs as server-sent events.
type sink struct {
	*server.Events
	call *server.Call
}

// Weigh implements app.Watcher.
func (s *sink) Weigh(n int) (func(), error) { return s.call.Weigh(n) }

// Snapshot implements app.Watcher.
func (s *sink) Snapshot(p *listing.Page, why, place string) (send func() error, err error) {
	return s.Together(func() error { return s.whole(p, why, place) })
}

func (s *sink) whole(p *listing.Page, why, place string) error {
	if err := s.AddJSON(api.EventSnapshot, "", api.Snapshot{Why: why}); err != nil {
		return err
	}
	for i := range p.Items {
		if err := s.AddJSON(api.EventJob, "", &p.Items[i]); err != nil {
			return err
		}
	}
	return s.AddJSON(api.EventReady, place, api.Ready{Next: p.Next, Note: p.Note})
}

// Changed implements app.Watcher.
func (s *sink) Changed(c *listing.Change) error { return s.Add(api.EventJob, c.JSON()) }

// Left implements app.Watcher.
func (s *sink) Left(c *listing.Change) error {
	return s.AddJSON(api.EventGone, "", api.RemovedJob{UID: c.Row.UID, User: c.Row.User, Name: c.Row.Name})
}

// Commit implements app.Watcher.
func (s *sink) Commit(place string) error { return s.Place(place) }

// Problem implements app.Watcher.
func (s *sink) Problem(err error) error {
	if err == nil {
		err = s.Add(api.EventBack, []byte("{}"))
	} else {
		err = s.AddJSON(api.EventProblem, "", problem(s.call, err))
	}
	if err != nil {
		return err
	}
	return s.Flush()
}

// Heartbeat implements app.Watcher.
func (s *sink) Heartbeat(place string) error {
	if s.Begun() && !s.Quiet() {
		return nil
	}
	return s.Place(place)
}
