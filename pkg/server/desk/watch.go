package desk

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

	"github.com/openpai/paictl/pkg/framework/listing"
	"github.com/openpai/paictl/pkg/job/live"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Why a watch begins with all that the list has.
const (
	// WatchNew: it has just begun.
	WatchNew = "new"
	// WatchExpired: what changed since the place where it was to go on isn't known.
	WatchExpired = "expired"
	// WatchGrants: the caller sees other jobs than before, or the place is one of another filter.
	WatchGrants = "grants"
)

// Watcher is told what a watch sees. An error of its methods ends the watch.
type Watcher interface {
	// Weigh waits until a list of so many rows may be read; give is called when they aren't in memory any longer.
	Weigh(n int) (give func(), err error)
	// Snapshot is all that the list has. What was told before counts no longer. place is where who has been told so much goes on. It is told by send,
	// for which no row is needed.
	Snapshot(page *listing.Page, why, place string) (send func() error, err error)
	// Changed is a job of the list that is new or has changed, Left one that the filter no longer selects.
	Changed(c *listing.Change) error
	Left(c *listing.Change) error
	// Told ends what belongs together.
	Told(place string) error
	// Problem says that changes can't be heard of for the time being; nil, that they can again.
	Problem(err error) error
	// Alive is called every so often.
	Alive(place string) error
}

// snapshotTime bounds how long a list is read.
const snapshotTime = 30 * time.Second

// errTooSlow ends the watch of someone who doesn't read.
var errTooSlow = &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "you read too slowly: jobs that went meanwhile have been forgotten",
	Remedy: "begin again, with a filter that selects fewer jobs", RetryAfter: retryAfter}

// Watch tells what the list of a filter has, and then what changes in it, until the context ends or the caller may no longer watch. At a
// place that was told before, by this server or another, it tells only what changed since.
func (d *Desk) Watch(ctx context.Context, f listing.Filter, place string, to Watcher) error {
	if err := rules.Class("jobs.watch", &d.caller.Subject); err != nil {
		return err
	}
	f.Visible = d.visible()
	w := &watching{desk: d, filter: f, view: viewOf(&f), to: to}
	defer func() { w.close() }()
	changed, stop := d.shop.People.Changed()
	defer stop()
	if err := w.begin(ctx, place); err != nil {
		return err
	}
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for {
		more, err := w.tell()
		if errors.Is(err, live.ErrExpired) {
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

// watching is a watch that goes on.
type watching struct {
	desk   *Desk
	filter listing.Filter
	// view stands for the filter in places, so that none is gone on at under another one.
	view   string
	to     Watcher
	reader *live.Watch
	lost   bool
}

func (w *watching) close() {
	if w.reader != nil {
		w.reader.Close()
	}
}

// begin goes on at a place, or begins with all.
func (w *watching) begin(ctx context.Context, place string) error {
	if err := w.desk.shop.People.Fresh(); err != nil {
		return err
	}
	if place == "" {
		return w.snapshot(ctx, WatchNew)
	}
	at, view, whole := cutLast(place)
	if whole && view != w.view {
		return w.snapshot(ctx, WatchGrants)
	}
	reader, err := w.desk.shop.Live.Resume(ctx, at)
	switch {
	case err != nil:
		return err
	case reader == nil:
		return w.snapshot(ctx, WatchExpired)
	}
	w.reader = reader
	return w.to.Alive(place)
}

// place is where a watch goes on that has read what this one has, if it sees the same.
func (w *watching) place() string { return w.reader.Place() + placeEnd + w.view }

// placeEnd is between where a reader goes on and the view.
const placeEnd = "."

// cutLast cuts a place in these two.
func cutLast(place string) (at, view string, ok bool) {
	i := strings.LastIndex(place, placeEnd)
	if i < 0 {
		return place, "", false
	}
	return place[:i], place[i+len(placeEnd):], true
}

// viewOf is short, and another one for each filter. What the caller sees is a part of it.
func viewOf(f *listing.Filter) string {
	data, _ := json.Marshal(f) // a filter has nothing that can't be written
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// snapshot begins with all. What changes while it is read is told again.
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
	reader, err := w.desk.shop.Live.Watch()
	if err != nil {
		return nil, err
	}
	w.close()
	w.reader = reader
	within, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	page, err := w.desk.shop.Live.List(within, w.filter)
	if err != nil {
		return nil, err
	}
	return w.to.Snapshot(page, why, w.place())
}

// tell tells what changed. more is closed when there may be more.
func (w *watching) tell() (more <-chan struct{}, err error) {
	changes, more, err := w.reader.Next()
	if errors.Is(err, live.ErrBehind) {
		return nil, errTooSlow
	}
	if err != nil {
		return nil, err
	}
	ever := w.filter
	ever.Phases = nil
	var seen []*listing.Change // those that the caller may see
	for _, latest := range changes {
		if c := latest.Change(); ever.Fits(&c.Row) {
			seen = append(seen, c)
		}
	}
	if len(seen) == 0 {
		return more, nil
	}
	// A stream may end between two changes. Its reader must then continue only at a server that knows the first one.
	if err := w.to.Told(w.reader.PlaceBefore() + placeEnd + w.view); err != nil {
		return nil, err
	}
	for _, c := range seen {
		tell := w.to.Left // it may have been told before
		if w.filter.Fits(&c.Row) {
			tell = w.to.Changed
		}
		if err := tell(c); err != nil {
			return nil, err
		}
	}
	return more, w.to.Told(w.place())
}

// check decides again what the caller sees, since streams outlive grants.
func (w *watching) check(ctx context.Context) error {
	if err := w.desk.shop.People.Fresh(); err != nil {
		if w.lost {
			return w.to.Alive("") // what is not known ends no stream
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
	subject, err := w.desk.now()
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
	return w.to.Alive(w.place())
}
