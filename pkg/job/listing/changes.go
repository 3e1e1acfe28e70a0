package listing

import (
	"cmp"
	"container/list"
	"encoding/json"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
)

// Seen holds the versions of Frameworks and of pods up to which objects are known, in the API server's numbering.
type Seen struct{ Frameworks, Pods uint64 }

// Max returns the later of the two versions of Frameworks, and of pods.
func (s Seen) Max(o Seen) Seen {
	return Seen{max(s.Frameworks, o.Frameworks), max(s.Pods, o.Pods)}
}

// ReadVersion reads the version of an object; 0 if it isn't known.
func ReadVersion(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Latest points to the latest change of one job. A slow reader holds these pointers, so it doesn't read changes that have been replaced.
type Latest struct{ change atomic.Pointer[Change] }

// Change returns the latest change.
func (l *Latest) Change() *Change { return l.change.Load() }

// Change is a change of one job. Readers share it, so it is never written again.
type Change struct {
	Row Row
	// Gone: its Framework no longer exists, and Row is its row in the history.
	Gone bool

	once sync.Once
	data []byte
}

// JSON returns the row in JSON. It is encoded once for all readers.
func (c *Change) JSON() []byte {
	c.once.Do(func() {
		c.data, _ = json.Marshal(&c.Row) // a row can always be encoded
	})
	return c.data
}

// changes keeps the latest change of each job, in the order of arrival. It keeps nothing for each reader: a reader has a mark in
// that order, and finds all changes since the mark, however slow it is. Only jobs that are gone are dropped after a while.
type changes struct {
	order *list.List // of *noted, the latest last
	at    uint64     // the mark of the latest
	// heard is the latest version of any object that was received, and seen is the latest version up to which all were received. listed
	// holds the versions of the latest lists, whose objects come in any order. covered holds the versions of the complete lists.
	heard, seen, listed, covered Seen
	began                        uint64         // the mark at which the latest list began
	places                       map[string]int // in the queue of the virtual cluster, by Framework

	gone *list.List // the elements of order that are gone, the latest last
	keep int
	// forgotten and forgottenVersion are the mark and the version of the latest change that was dropped.
	forgotten        uint64
	forgottenVersion uint64
}

// noted is the place of a change in the order.
type noted struct {
	latest *Latest
	at     uint64
	// seen are the latest versions that touched the job. unsure: a change with an unknown version touched it, too.
	seen     Seen
	unsure   bool
	unplaced bool
}

// Watched makes the index record changes, for Since. It keeps the latest jobs that are gone, as many as keep.
func (x *Index) Watched(keep int) *Index {
	x.log = &changes{order: list.New(), gone: list.New(), keep: keep, places: map[string]int{}}
	return x
}

// Begin records that a list of a version of Frameworks or of pods begins. The index may have missed Frameworks that were deleted before
// the list.
func (x *Index) Begin(list Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log.forgottenVersion = max(x.log.forgottenVersion, list.Frameworks)
	x.log.listed = x.log.listed.with(list)
	x.log.at++
	x.log.began = x.log.at
}

// Listed records that a list is complete. If versions have gone back, because the cluster was restored from a backup, earlier positions
// are no longer valid.
func (x *Index) Listed(list Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.log
	if list.Frameworks > 0 && list.Frameworks < c.heard.Frameworks {
		c.forgottenVersion = max(c.forgottenVersion, c.heard.Frameworks+1)
	}
	c.covered = c.covered.with(list)
	if list.Frameworks > 0 {
		c.heard.Frameworks = min(c.heard.Frameworks, list.Frameworks)
		c.seen.Frameworks = c.heard.Frameworks
	}
	if list.Pods > 0 {
		c.heard.Pods = min(c.heard.Pods, list.Pods)
		c.seen.Pods = c.heard.Pods
	}
}

// Reached returns the versions up to which the index is complete. Mark's seen is the part that is valid on other servers, too.
func (x *Index) Reached() Seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.seen.Max(x.log.covered)
}

// Heard returns the latest version that a reader may have seen. A server that has reached less would send old states of some jobs,
// and might never send their current states.
func (x *Index) Heard() Seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.heard
}

// with returns the versions after a list of one kind.
func (s Seen) with(list Seen) Seen {
	return Seen{cmp.Or(list.Frameworks, s.Frameworks), cmp.Or(list.Pods, s.Pods)}
}

// hear records a version that was received. All earlier versions have been received, unless they belong to a list, whose objects
// come in another order.
func (c *changes) hear(s Seen) {
	c.heard = c.heard.Max(s)
	if s.Frameworks > c.listed.Frameworks {
		c.seen.Frameworks = max(c.seen.Frameworks, s.Frameworks)
	}
	if s.Pods > c.listed.Pods {
		c.seen.Pods = max(c.seen.Pods, s.Pods)
	}
}

// Mark returns the position at which Since continues for a reader that has the current state of the index.
func (x *Index) Mark() (mark uint64, seen Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	return x.log.at, x.log.seen
}

// Since returns the latest change of each job that changed after a mark, in the order of these changes. mark is the position for the next
// Since. The changes that were returned until now include all versions up to seen. ok is false if removed jobs may be missing: because
// jobs have been dropped, or because the reader has read from another server before, perhaps of jobs that this index never received, and
// a list has begun, which doesn't report deleted objects.
func (x *Index) Since(after uint64, elsewhere bool) (out []*Latest, mark uint64, seen Seen, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if after < x.log.forgotten || elsewhere && after < x.log.began {
		return nil, after, Seen{}, false
	}
	from := x.log.order.Back()
	for from != nil && from.Value.(*noted).at > after {
		from = from.Prev()
	}
	next := x.log.order.Front()
	if from != nil {
		next = from.Next()
	}
	for ; next != nil; next = next.Next() {
		out = append(out, next.Value.(*noted).latest)
	}
	return out, x.log.at, x.log.seen, true
}

// Missed returns the latest change of each job that was touched by a version after elsewhere, for a reader that has read from another server. Since
// continues at the mark: it returns all later changes of this index, including changes with earlier versions. ok is false if jobs that are gone
// since then have been dropped.
func (x *Index) Missed(elsewhere Seen) (out []*Latest, mark uint64, seen Seen, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if elsewhere.Frameworks < x.log.forgottenVersion {
		return nil, 0, Seen{}, false
	}
	for e := x.log.order.Front(); e != nil; e = e.Next() {
		if n := e.Value.(*noted); n.after(elsewhere) {
			out = append(out, n.latest)
		}
	}
	return out, x.log.at, x.log.seen, true
}

// after reports whether a change may be later than s. A position in the queue has no version.
func (n *noted) after(s Seen) bool {
	return n.unsure || n.unplaced || n.seen.Frameworks > s.Frameworks || n.seen.Pods > s.Pods
}

// SetPlaces sets the positions in the queue of jobs without a machine.
func (x *Index) SetPlaces(places map[string]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log.places = places
	for _, e := range x.unplaced {
		x.stale[e] = true
	}
}

// Unplaced returns the jobs whose tasks have no machine yet.
func (x *Index) Unplaced() (out []Row) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	for _, e := range x.unplaced {
		out = append(out, e.row)
	}
	return out
}

// podSeen records the version of the last change of a Framework's pods; 0 if it isn't known. It isn't known if a list no longer has a
// pod: the pod was deleted before the list at the latest.
func (x *Index) podSeen(framework string, version uint64) {
	if x.log == nil {
		return
	}
	x.log.hear(Seen{Pods: version})
	version = cmp.Or(version, x.log.listed.Pods)
	x.log.heard.Pods = max(x.log.heard.Pods, version)
	if e := x.jobs[framework]; e != nil {
		e.touched(Seen{Pods: version})
	}
}

// seen records the version of a Framework that an entry has got.
func (x *Index) seen(e *entry) {
	at := Seen{Frameworks: e.brief.Version}
	x.log.hear(at)
	if e.noted == nil {
		at.Pods = x.log.heard.Max(x.log.listed).Pods // the Framework's own version isn't known: changes of its pods may have been received before it
	}
	e.touched(at)
}

// touched records a version that may have changed an entry. A later version of the other kind doesn't make up for an unknown one.
func (e *entry) touched(s Seen) {
	e.seen = e.seen.Max(s)
	e.unsure = e.unsure || s == Seen{}
	if e.noted != nil {
		n := e.noted.Value.(*noted)
		n.seen, n.unsure = e.seen, e.unsure
	}
}

// note records the change of an entry, if its row differs from the last one.
func (x *Index) note(e *entry) {
	row := e.row
	if row.Unplaced {
		row.Unplaced = false
		if place, ok := x.log.places[row.Framework]; ok {
			row.State, row.Position = string(Queued), place
		}
	}
	if e.noted != nil {
		n := e.noted.Value.(*noted)
		n.unplaced = e.row.Unplaced
		if reflect.DeepEqual(n.latest.Change().Row, row) {
			return
		}
	}
	e.noted = x.log.push(&noted{latest: x.log.become(e, &Change{Row: row}), seen: e.seen, unsure: e.unsure, unplaced: e.row.Unplaced})
}

// bury records that an entry is gone; version is 0 if it isn't known.
func (x *Index) bury(e *entry, b *Brief, version uint64) {
	n := &noted{latest: x.log.become(e, &Change{Row: NewArchivedRow(b.Job), Gone: true}), seen: e.seen.Max(Seen{Frameworks: version}), unsure: version == 0}
	x.log.gone.PushBack(x.log.push(n))
	for x.log.gone.Len() > x.log.keep {
		oldest := x.log.gone.Remove(x.log.gone.Front()).(*list.Element)
		n := x.log.order.Remove(oldest).(*noted)
		x.log.forgotten = max(x.log.forgotten, n.at)
		x.log.forgottenVersion = max(x.log.forgottenVersion, n.seen.Frameworks)
		if n.unsure {
			x.log.forgottenVersion = max(x.log.forgottenVersion, x.log.heard.Frameworks) // it was deleted before that list
		}
	}
}

// become sets the latest change of an entry, and removes its earlier change from the order. An entry may be removed before any change was
// recorded, because other servers may have reported it.
func (c *changes) become(e *entry, now *Change) *Latest {
	l := &Latest{}
	if e.noted != nil {
		l = c.order.Remove(e.noted).(*noted).latest
	}
	l.change.Store(now)
	return l
}

func (c *changes) push(n *noted) *list.Element {
	c.at++
	n.at = c.at
	return c.order.PushBack(n)
}
