package cache

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job/listing"
)

const (
	// rememberGone is how many removed jobs are remembered, for clients that read slowly or reconnect.
	rememberGone = 10_000
	// together is how long changes are gathered before watches are notified.
	together = 100 * time.Millisecond
	// queueEvery is how often the scheduler's queue is read while there are watches, queueSoon how long after a new job waits.
	queueEvery = 2 * time.Second
	queueSoon  = 500 * time.Millisecond
	// placeLife is the maximum age of a place for a watch that resumes.
	placeLife = 10 * time.Minute
	// catchUp is how long a watch waits for a server that hasn't yet seen the changes up to the watch's place.
	catchUp = 5 * time.Second
)

// ErrBehind is the error of a watch that reads so slowly that jobs were removed and forgotten before it read their removal.
var ErrBehind = errors.New("this reader is too slow: jobs that were removed in the meantime have been forgotten")

// ErrExpired is the error of a watch that resumed at a place which is too old: jobs that were removed since then have been forgotten.
// The reader has to begin with the whole list.
var ErrExpired = errors.New("what changed since that place isn't known")

// Watch reads changes. It doesn't have its own queue: it knows how far it has read, and reads the latest state of each job that changed since.
type Watch struct {
	cache *Cache
	mark  uint64
	// The reader has all changes up to seen, and had those up to before when Next was last called.
	before, seen listing.Seen
	// elsewhere reports whether the watch resumed at a place of another watch. If so, missed are the changes that the first Next returns
	// first.
	elsewhere bool
	missed    []*listing.Latest
	// done is called by Close, once.
	done func()
}

// Watch returns a watch that begins with the next change.
func (l *Cache) Watch() (*Watch, error) {
	if !l.Filled() {
		return nil, errEmpty
	}
	mark, seen := l.index.Mark()
	return l.reader(&Watch{mark: mark, seen: seen}), nil
}

// Resume continues at a place of another watch, of this server or another one. It returns nil if it can't know all changes since.
func (l *Cache) Resume(ctx context.Context, place string) (*Watch, error) {
	if !l.Filled() {
		return nil, errEmpty
	}
	seen, heard, at, err := readPlace(place)
	if err != nil || time.Since(at) > placeLife || !l.reaches(ctx, heard) {
		return nil, nil //nolint:nilnil,nilerr // said above
	}
	missed, mark, _, ok := l.index.Missed(seen)
	if !ok {
		return nil, nil //nolint:nilnil // said above
	}
	return l.reader(&Watch{mark: mark, seen: seen, elsewhere: true, missed: missed}), nil
}

// reaches waits until this server knows everything that a reader may know. In a cluster that was restored from a backup it never does.
func (l *Cache) reaches(ctx context.Context, s listing.Seen) bool {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	for {
		l.mu.Lock()
		next := l.moved
		l.mu.Unlock()
		here := l.index.Reached()
		if here.Max(s) == here {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-next:
		case <-time.After(together):
		}
	}
}

func (l *Cache) reader(w *Watch) *Watch {
	l.readers.Add(1)
	ring(l.asked)
	w.cache, w.done = l, func() { l.readers.Add(-1) }
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	if w.done != nil {
		w.done()
		w.done = nil
	}
}

// Next returns the latest change of each job that changed since the last call, if any, and a channel that is closed when there may be more.
func (w *Watch) Next() (changes []*listing.Latest, more <-chan struct{}, err error) {
	w.cache.mu.Lock()
	more = w.cache.moved
	w.cache.mu.Unlock()
	changes, mark, seen, ok := w.cache.index.Since(w.mark, w.elsewhere)
	switch {
	case !ok && w.elsewhere:
		return nil, nil, ErrExpired
	case !ok:
		return nil, nil, ErrBehind
	}
	changes, w.missed = append(w.missed, changes...), nil
	w.mark, w.before, w.seen = mark, w.seen, seen
	return changes, more, nil
}

// Place returns the position at which a watch that has read the same changes can resume, here or at another server.
func (w *Watch) Place() string { return w.place(w.seen) }

// PlaceBefore returns the position at which a watch resumes if it got only some of the changes of the last Next.
func (w *Watch) PlaceBefore() string { return w.place(w.before) }

func (w *Watch) place(seen listing.Seen) string {
	heard := w.cache.index.Heard().Max(seen)
	var parts []string
	for _, n := range []uint64{seen.Frameworks, seen.Pods, heard.Frameworks, heard.Pods, uint64(time.Now().Unix())} {
		parts = append(parts, strconv.FormatUint(n, base))
	}
	return strings.Join(parts, ".")
}

const base = 36

// readPlace reads a place: the reader has all changes up to seen, perhaps some up to heard, as of a time.
func readPlace(text string) (seen, heard listing.Seen, at time.Time, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 5 {
		return seen, heard, at, errors.New("a place has five numbers")
	}
	var n [5]uint64
	for i := range parts {
		if n[i], err = strconv.ParseUint(parts[i], base, 63); err != nil {
			return seen, heard, at, err
		}
	}
	return listing.Seen{Frameworks: n[0], Pods: n[1]}, listing.Seen{Frameworks: n[2], Pods: n[3]}, time.Unix(int64(n[4]), 0), nil
}

// ring puts a signal into a channel, unless it already has one.
func ring(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pump notifies watches that the index has changed. It gathers changes, so that watches aren't woken for each one.
func (l *Cache) pump(ctx context.Context) {
	last := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.touched:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(together):
		}
		mark, _ := l.index.Mark()
		if mark == last {
			continue
		}
		last = mark
		l.mu.Lock()
		close(l.moved)
		l.moved = make(chan struct{})
		l.mu.Unlock()
		if len(l.index.Unplaced()) > 0 {
			ring(l.asked)
		}
	}
}

// queue reads the places of jobs from the scheduler while there are watches: no object has them.
func (l *Cache) queue(ctx context.Context) {
	tick := time.NewTicker(queueEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.asked:
			select {
			case <-ctx.Done():
				return
			case <-time.After(queueSoon):
			}
		}
		rows := l.index.Unplaced()
		if l.readers.Load() == 0 || len(rows) == 0 || l.jobs.Place(ctx, "", rows) != nil {
			continue
		}
		places := map[string]int{}
		for i := range rows {
			if listing.Phase(rows[i].State) == listing.Queued {
				places[rows[i].Framework] = rows[i].Position
			}
		}
		l.index.SetPlaces(places)
		ring(l.touched)
	}
}
