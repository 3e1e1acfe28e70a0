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
	// rememberGone is how many removed jobs are remembered for clients that read slowly or reconnect.
	rememberGone = 10_000
	// together is how long changes are gathered before watches are notified.
	together = 100 * time.Millisecond
	// queueEvery is how often the scheduler's queue is read while there are watches. queueSoon is how soon it is read after a new job begins to
	// wait.
	queueEvery = 2 * time.Second
	queueSoon  = 500 * time.Millisecond
	// placeLife is the maximum age of a place at which a watch can resume.
	placeLife = 10 * time.Minute
	// catchUp is how long a resuming watch waits for a server that hasn't yet seen the changes up to the watch's place.
	catchUp = 5 * time.Second
)

// ErrBehind is returned if a watch reads so slowly that the cache has forgotten removed jobs before the watch read their removal.
var ErrBehind = errors.New("this reader is too slow: jobs that were removed in the meantime have been forgotten")

// ErrExpired is returned if a watch resumed at a place that is too old, because the cache has forgotten jobs that were removed since then. The
// reader must read the whole list again.
var ErrExpired = errors.New("what changed since that place isn't known")

// Watch reads changes. It doesn't have a queue. Instead, it knows how far it has read, and reads the latest state of each job that has changed
// since then.
type Watch struct {
	cache *Cache
	mark  uint64
	// The reader has all changes up to seen. When Next was last called, the reader had all changes up to before.
	before, seen listing.Versions
	// elsewhere reports whether the watch resumed at a place of another watch. If so, missed lists the changes that the first call of Next
	// returns first.
	elsewhere bool
	missed    []*listing.Latest
	// done is called once, by Close.
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

// Resume returns a watch that continues at a place of another watch, on this server or on another server. It returns nil if some changes since
// that place are unknown.
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

// reaches waits until this server has seen all changes that a reader may have seen, and reports whether this happens in time. In a cluster that
// was restored from a backup, it never happens.
func (l *Cache) reaches(ctx context.Context, s listing.Versions) bool {
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

// Next returns the latest change of each job that has changed since the last call. It also returns a channel that is closed when there may be
// more changes.
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

// Place returns the place at which another watch can resume, on any server, if its reader has all changes that Next returned.
func (w *Watch) Place() string { return w.place(w.seen) }

// PlaceBefore returns the place at which another watch can resume if its reader has only some of the changes that Next last returned.
func (w *Watch) PlaceBefore() string { return w.place(w.before) }

func (w *Watch) place(seen listing.Versions) string {
	heard := w.cache.index.Latest().Max(seen)
	var parts []string
	for _, n := range []uint64{seen.Frameworks, seen.Pods, heard.Frameworks, heard.Pods, uint64(time.Now().Unix())} {
		parts = append(parts, strconv.FormatUint(n, base))
	}
	return strings.Join(parts, ".")
}

const base = 36

// readPlace parses a place. The reader has all changes up to seen, and perhaps some changes up to heard. at is when the place was made.
func readPlace(text string) (seen, heard listing.Versions, at time.Time, err error) {
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
	return listing.Versions{Frameworks: n[0], Pods: n[1]}, listing.Versions{Frameworks: n[2], Pods: n[3]}, time.Unix(int64(n[4]), 0), nil
}

// ring puts a signal into a channel, unless the channel already contains a signal.
func ring(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pump notifies watches after the index has changed. It gathers changes for a moment, so that watches aren't woken for each change.
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

// queue reads the jobs' places in the queue from the scheduler while there are watches, because no Kubernetes object contains them.
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
