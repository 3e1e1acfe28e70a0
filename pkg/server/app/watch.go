package app

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job/cache"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Reasons why a watch sends the whole list.
const (
	// WatchNew means that the watch has just begun.
	WatchNew = "new"
	// WatchExpired means that the server no longer stores the changes since the requested place.
	WatchExpired = "expired"
	// WatchGrants means that the caller may now read other jobs, or that the place belongs to another filter.
	WatchGrants = "grants"
)

// Watcher receives the results of a watch. If a method returns an error, the watch ends.
type Watcher interface {
	// Weigh waits until a list of n rows may be read. The watch calls give after it has released the rows.
	Weigh(n int) (give func(), err error)
	// Snapshot receives the whole list, which replaces all earlier rows. A reader that has received the list resumes at place. The watch first
	// releases the rows, and then calls send, which sends the list.
	Snapshot(page *listing.Page, why, place string) (send func() error, err error)
	// Changed receives a new or changed job of the list. Left receives a job that the filter no longer selects.
	Changed(c *listing.Change) error
	Left(c *listing.Change) error
	// Commit ends a group of changes. A reader that has received the group resumes at place.
	Commit(place string) error
	// Problem receives an error if changes temporarily can't be read, and nil when they can be read again.
	Problem(err error) error
	// Heartbeat is called periodically, even if no job changes.
	Heartbeat(place string) error
}

// snapshotTime limits the time to read the whole list.
const snapshotTime = 30 * time.Second

// errTooSlow ends the watch of a client that reads too slowly.
var errTooSlow = &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "you read too slowly: the server no longer has the jobs that were removed since",
	Remedy: "begin again, with a filter that selects fewer jobs", RetryAfter: retryAfter}

// Watch sends the list of a filter, and then the changes of the list. It returns when the context ends, or when the caller may no longer watch. If
// place is the position of an earlier watch, it sends only the changes since that position. The earlier watch may belong to another server.
func (d *Actions) Watch(ctx context.Context, f listing.Filter, place string, to Watcher) error {
	if err := rules.Class("jobs.watch", &d.caller.Subject); err != nil {
		return err
	}
	f.Visible = d.visible()
	w := &watching{actions: d, filter: f, view: viewOf(&f), to: to}
	defer func() { w.close() }()
	changed, stop := d.app.People.Changed()
	defer stop()
	if err := w.begin(ctx, place); err != nil {
		return err
	}
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for {
		more, err := w.tell()
		if errors.Is(err, cache.ErrExpired) {
			if err := w.snapshot(ctx, WatchExpired); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-more:
			continue
		case <-changed:
		case <-tick.C:
		}
		if err := w.check(ctx); err != nil {
			return err
		}
	}
}

// watching is the state of one watch.
type watching struct {
	actions *Actions
	filter  listing.Filter
	// view identifies the filter in places, so that a watch never resumes at a place of another filter.
	view   string
	to     Watcher
	reader *cache.Watch
	lost   bool
}

func (w *watching) close() {
	if w.reader != nil {
		w.reader.Close()
	}
}

// begin resumes the watch at a place, or starts it with the whole list.
func (w *watching) begin(ctx context.Context, place string) error {
	if err := w.actions.app.People.Fresh(); err != nil {
		return err
	}
	if place == "" {
		return w.snapshot(ctx, WatchNew)
	}
	at, view, whole := cutLast(place)
	if whole && view != w.view {
		return w.snapshot(ctx, WatchGrants)
	}
	reader, err := w.actions.app.Lister.Resume(ctx, at)
	switch {
	case err != nil:
		return err
	case reader == nil:
		return w.snapshot(ctx, WatchExpired)
	}
	w.reader = reader
	return w.to.Heartbeat(place)
}

// place returns the position at which the watch can resume with the same filter.
func (w *watching) place() string { return w.reader.Place() + placeEnd + w.view }

const placeEnd = "."

// cutLast splits a place into the position of the reader and the view. ok is false if the place contains no view.
func cutLast(place string) (at, view string, ok bool) {
	i := strings.LastIndex(place, placeEnd)
	if i < 0 {
		return place, "", false
	}
	return place[:i], place[i+len(placeEnd):], true
}

// viewOf returns a short text that identifies a filter. The filter contains the caller's visibility, so the text differs for callers who may read
// different jobs.
func viewOf(f *listing.Filter) string {
	data, _ := json.Marshal(f) // a filter can always be encoded
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// snapshot starts the watch with the whole list. Changes during the read of the list are sent again afterwards.
func (w *watching) snapshot(ctx context.Context, why string) error {
	send, err := w.read(ctx, why)
	if err != nil {
		return err
	}
	return send()
}

func (w *watching) read(ctx context.Context, why string) (send func() error, err error) {
	give, err := w.to.Weigh(w.filter.Limit)
	if err != nil {
		return nil, err
	}
	defer give()
	reader, err := w.actions.app.Lister.Watch()
	if err != nil {
		return nil, err
	}
	w.close()
	w.reader = reader
	within, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	page, err := w.actions.app.Lister.List(within, w.filter)
	if err != nil {
		return nil, err
	}
	return w.to.Snapshot(page, why, w.place())
}

// tell sends the pending changes. more is closed when further changes may be available.
func (w *watching) tell() (more <-chan struct{}, err error) {
	changes, more, err := w.reader.Next()
	if errors.Is(err, cache.ErrBehind) {
		return nil, errTooSlow
	}
	if err != nil {
		return nil, err
	}
	ever := w.filter
	ever.Phases = nil
	var seen []*listing.Change // those that the caller may see
	for _, latest := range changes {
		if c := latest.Change(); ever.Selects(&c.Row) {
			seen = append(seen, c)
		}
	}
	if len(seen) == 0 {
		return more, nil
	}
	// The stream may break between two changes. The client must then resume only at a server that has the first change. So send the place before the
	// second change.
	if err := w.to.Commit(w.reader.PlaceBefore() + placeEnd + w.view); err != nil {
		return nil, err
	}
	for _, c := range seen {
		tell := w.to.Left // the client may have received it before
		if w.filter.Selects(&c.Row) {
			tell = w.to.Changed
		}
		if err := tell(c); err != nil {
			return nil, err
		}
	}
	return more, w.to.Commit(w.place())
}

// check determines again which jobs the caller may read, because streams can outlast grants.
func (w *watching) check(ctx context.Context) error {
	if err := w.actions.app.People.Fresh(); err != nil {
		if w.lost {
			return w.to.Heartbeat("") // the stream continues if the grants can't be read
		}
		w.lost = true
		return w.to.Problem(err)
	}
	if w.lost {
		w.lost = false
		if err := w.to.Problem(nil); err != nil {
			return err
		}
	}
	subject, err := w.actions.now()
	if err != nil {
		return err
	}
	if err := rules.Class("jobs.watch", subject); err != nil {
		return err
	}
	if v := visibleTo(subject); !reflect.DeepEqual(v, w.filter.Visible) {
		w.filter.Visible = v
		w.view = viewOf(&w.filter)
		return w.snapshot(ctx, WatchGrants)
	}
	return w.to.Heartbeat(w.place())
}
