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

// Versions holds the resource versions of Frameworks and of pods up to which all objects are known.
type Versions struct{ Frameworks, Pods uint64 }

// Max returns, for both kinds of objects, the later of the two versions.
func (s Versions) Max(o Versions) Versions {
	return Versions{max(s.Frameworks, o.Frameworks), max(s.Pods, o.Pods)}
}

// ReadVersion parses the resource version of an object. It returns 0 if the version is unknown.
func ReadVersion(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Latest points to the latest change of one job. A slow reader holds a Latest instead of a Change, so it doesn't read a change that a later
// change has replaced.
type Latest struct{ change atomic.Pointer[Change] }

// Change returns the latest change of the job.
func (l *Latest) Change() *Change { return l.change.Load() }

// Change is a change of one job. It isn't modified after it was made, because readers share it.
type Change struct {
	Row Row
	// Deleted means that the job's Framework no longer exists. Row is then the job's row in the history.
	Deleted bool

	once sync.Once
	data []byte
}

// JSON returns the row as JSON. The row is encoded once for all readers.
func (c *Change) JSON() []byte {
	c.once.Do(func() {
		c.data, _ = json.Marshal(&c.Row) // a row can always be encoded
	})
	return c.data
}

// changes keeps the latest change of each job, in the order of arrival. It stores nothing for each reader. Instead, a reader keeps a mark, which
// is a position in that order, and can find all changes since the mark, however slow the reader is. Only jobs that are gone are dropped after a
// while.
type changes struct {
	order *list.List // of *noted, the latest last
	at    uint64     // the mark of the latest
	// heard is the latest version of any object that was received. seen is the latest version up to which all objects were received. listed holds
	// the versions of the latest lists, whose objects arrive in any order. covered holds the versions of the lists that are complete.
	heard, seen, listed, covered Versions
	began                        uint64         // the mark at which the latest list began
	places                       map[string]int // in the queue of the virtual cluster, by Framework

	gone *list.List // the elements of order that are gone, the latest last
	keep int
	// forgotten is the mark of the latest change that was dropped, and forgottenVersion is its version.
	forgotten        uint64
	forgottenVersion uint64
}

// noted is a change with its position in the order.
type noted struct {
	latest *Latest
	at     uint64
	// seen holds the latest versions that affected the job. unsure means that a change with an unknown version affected the job, too.
	seen     Versions
	unsure   bool
	unplaced bool
}

// Watched makes the index record changes, which Since then returns. Of the jobs that are gone, the index keeps the latest jobs, up to the number
// keep.
func (x *Index) Watched(keep int) *Index {
	x.log = &changes{order: list.New(), gone: list.New(), keep: keep, places: map[string]int{}}
	return x
}

// Begin records the beginning of a list of Frameworks or pods with a version. Frameworks may have been deleted before the list without a notice
// to the index.
func (x *Index) Begin(list Versions) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log.forgottenVersion = max(x.log.forgottenVersion, list.Frameworks)
	x.log.listed = x.log.listed.with(list)
	x.log.at++
	x.log.began = x.log.at
}

// Listed records that a list is complete. If versions are lower than before, because the cluster was restored from a backup, earlier positions
// are no longer valid.
func (x *Index) Listed(list Versions) {
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

// Reached returns the versions up to which the index is complete. The result seen of Mark is the part of these versions that other servers can
// use, too.
func (x *Index) Reached() Versions {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.seen.Max(x.log.covered)
}

// Latest returns the latest versions that a reader of this index may have seen. A server that has reached lower versions would send old states of
// some jobs to this reader, and might never send their current states.
func (x *Index) Latest() Versions {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.heard
}

// with returns s with the versions that list contains.
func (s Versions) with(list Versions) Versions {
	return Versions{cmp.Or(list.Frameworks, s.Frameworks), cmp.Or(list.Pods, s.Pods)}
}

// hear records a version that was received. All earlier versions have been received, too, unless the object belongs to a list, because the
// objects of a list arrive in any order.
func (c *changes) hear(s Versions) {
	c.heard = c.heard.Max(s)
	if s.Frameworks > c.listed.Frameworks {
		c.seen.Frameworks = max(c.seen.Frameworks, s.Frameworks)
	}
	if s.Pods > c.listed.Pods {
		c.seen.Pods = max(c.seen.Pods, s.Pods)
	}
}

// Mark returns the position of the current state of the index. A reader that has this state passes the position to Since.
func (x *Index) Mark() (mark uint64, seen Versions) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	return x.log.at, x.log.seen
}

// Since returns the latest change of each job that changed after a mark, in the order of these changes. The returned mark is the position for the
// next call of Since. A reader that has all changes up to now has all versions up to seen. ok is false if the result may not include all removed
// jobs. There are two reasons for this: the index has dropped removed jobs since the mark, or a reader from another server may know jobs that
// this index never received, and a list, which doesn't report deleted objects, has begun since the mark.
func (x *Index) Since(after uint64, elsewhere bool) (out []*Latest, mark uint64, seen Versions, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if after < x.log.forgotten || elsewhere && after < x.log.began {
		return nil, after, Versions{}, false
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

// Missed is for a reader that has read from another server. It returns the latest change of each job that a version after elsewhere affected.
// From the returned mark, Since returns all later changes of this index, even changes with earlier versions. ok is false if the index has dropped
// jobs that were removed after elsewhere.
func (x *Index) Missed(elsewhere Versions) (out []*Latest, mark uint64, seen Versions, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if elsewhere.Frameworks < x.log.forgottenVersion {
		return nil, 0, Versions{}, false
	}
	for e := x.log.order.Front(); e != nil; e = e.Next() {
		if n := e.Value.(*noted); n.after(elsewhere) {
			out = append(out, n.latest)
		}
	}
	return out, x.log.at, x.log.seen, true
}

// after reports whether a change may be later than s. It always returns true for a change that depends on the queue, because positions in the
// queue have no version.
func (n *noted) after(s Versions) bool {
	return n.unsure || n.unplaced || n.seen.Frameworks > s.Frameworks || n.seen.Pods > s.Pods
}

// SetPlaces sets the positions in the queue of the jobs whose tasks have no machine.
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

// podSeen records the version of the last change of a Framework's pods, or 0 for an unknown version. The version is unknown if a pod is missing
// from a new list. The pod was then deleted no later than the version of the list.
func (x *Index) podSeen(framework string, version uint64) {
	if x.log == nil {
		return
	}
	x.log.hear(Versions{Pods: version})
	version = cmp.Or(version, x.log.listed.Pods)
	x.log.heard.Pods = max(x.log.heard.Pods, version)
	if e := x.jobs[framework]; e != nil {
		e.touched(Versions{Pods: version})
	}
}

// seen records the version of the Framework that an entry now has.
func (x *Index) seen(e *entry) {
	at := Versions{Frameworks: e.brief.Version}
	x.log.hear(at)
	if e.noted == nil {
		at.Pods = x.log.heard.Max(x.log.listed).Pods // the Framework's own version isn't known: changes of its pods may have been received before it
	}
	e.touched(at)
}

// touched records versions that may have changed an entry. If one of these versions is unknown, a later version doesn't change that.
func (e *entry) touched(s Versions) {
	e.seen = e.seen.Max(s)
	e.unsure = e.unsure || s == Versions{}
	if e.noted != nil {
		n := e.noted.Value.(*noted)
		n.seen, n.unsure = e.seen, e.unsure
	}
}

// note records a change of an entry if the entry's row differs from the last recorded row.
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

// bury records that an entry is gone. version is that of the deletion, or 0 if it is unknown.
func (x *Index) bury(e *entry, b *Brief, version uint64) {
	n := &noted{latest: x.log.become(e, &Change{Row: NewArchivedRow(b.Job), Deleted: true}), seen: e.seen.Max(Versions{Frameworks: version}), unsure: version == 0}
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

// become makes now the latest change of an entry, and removes the entry's earlier change from the order. There may be no earlier change, because
// an entry that is removed immediately is recorded as well. Other servers may have reported that entry.
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
