package listing

import (
	"container/list"
	"encoding/json"
	"reflect"
	"strconv"
	"sync"
)

// Seen is how far the objects of jobs are known: the versions of Frameworks and of pods, as the API server counts them.
type Seen struct{ Frameworks, Pods uint64 }

// Max is what one of two has seen.
func (s Seen) Max(o Seen) Seen {
	return Seen{max(s.Frameworks, o.Frameworks), max(s.Pods, o.Pods)}
}

// ReadVersion reads the version of an object; 0 is not known.
func ReadVersion(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Change is the latest of one job. Who reads them shares them, so they are never written again.
type Change struct {
	Row Row
	// Gone: its Framework is no longer there, and Row is what the history will have of it.
	Gone bool

	once sync.Once
	data []byte
}

// JSON is the row. It is made once, however many read it.
func (c *Change) JSON() []byte {
	c.once.Do(func() {
		c.data, _ = json.Marshal(&c.Row) // a row has nothing that can't be written
	})
	return c.data
}

// changes keeps the latest change of each job, in the order in which they came. Nothing is kept for who reads: a reader has a mark in that
// order, and finds what changed since, however slow it is. Only jobs that are gone are forgotten some time.
type changes struct {
	order  *list.List // of *noted, the latest last
	at     uint64     // the mark of the latest
	seen   Seen
	places map[string]int // in the queue of the virtual cluster, by Framework

	gone *list.List // of those elements of order that are gone, the latest last
	keep int
	// forgotten is the mark, and the version, of the latest that was forgotten.
	forgotten        uint64
	forgottenVersion uint64
}

// noted is the place of a change in the order.
type noted struct {
	*Change
	at uint64
	// seen are the latest versions that touched the job. unsure: a later one did, which isn't known.
	seen     Seen
	unsure   bool
	unplaced bool
}

// Watched lets the index note what changes, for Since. Of jobs that are gone it remembers so many.
func (x *Index) Watched(keep int) *Index {
	x.log = &changes{order: list.New(), gone: list.New(), keep: keep, places: map[string]int{}}
	return x
}

// Begin says that Frameworks have been listed: of those that went before that version, the index may not have heard.
func (x *Index) Begin(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log.forgottenVersion = max(x.log.forgottenVersion, version)
}

// Mark is where Since begins for who knows all that the index knows now.
func (x *Index) Mark() (mark uint64, seen Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	return x.log.at, x.log.seen
}

// Remembers reports whether the index can tell what changed since a version of Frameworks: it has forgotten no job that went since.
func (x *Index) Remembers(s Seen) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return s.Frameworks >= x.log.forgottenVersion
}

// Since returns the latest of each job that changed after a mark, in the order of these changes, but for what who asks has seen
// elsewhere. mark is where the next Since begins; all that seen has is in what was returned until now. ok is false where jobs have been
// forgotten that went since.
func (x *Index) Since(after uint64, elsewhere Seen) (out []*Change, mark uint64, seen Seen, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	if after > 0 && after < x.log.forgotten {
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
		if n := next.Value.(*noted); n.after(elsewhere) {
			out = append(out, n.Change)
		}
	}
	return out, x.log.at, x.log.seen, true
}

// after reports whether a change may come after what was seen. A place in the queue has no version.
func (n *noted) after(s Seen) bool {
	return n.unsure || n.unplaced || n.seen.Frameworks > s.Frameworks || n.seen.Pods > s.Pods
}

// SetPlaces says where jobs without a machine are in the queue.
func (x *Index) SetPlaces(places map[string]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log.places = places
	for _, e := range x.unplaced {
		x.stale[e] = true
	}
}

// Unplaced are the jobs whose tasks have no machine yet.
func (x *Index) Unplaced() (out []Row) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	for _, e := range x.unplaced {
		out = append(out, e.row)
	}
	return out
}

// PodSeen takes the version of what was last told of a Framework's pods; 0 where it isn't known.
func (x *Index) PodSeen(framework string, version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.log == nil {
		return
	}
	x.log.seen.Pods = max(x.log.seen.Pods, version)
	if e := x.jobs[framework]; e != nil {
		e.touched(Seen{Pods: version})
	}
}

// seen notes the version of a Framework that an entry has got.
func (x *Index) seen(e *entry) {
	x.log.seen.Frameworks = max(x.log.seen.Frameworks, e.brief.Version)
	at := Seen{Frameworks: e.brief.Version}
	if e.noted == nil && len(x.pods[e.brief.Job.Framework]) > 0 {
		at.Pods = x.log.seen.Pods // its own isn't known: its pods were known before it
	}
	e.touched(at)
}

// touched notes a version that may have changed an entry.
func (e *entry) touched(s Seen) {
	e.seen = e.seen.Max(s)
	e.unsure = s == Seen{}
	if e.noted != nil {
		n := e.noted.Value.(*noted)
		n.seen, n.unsure = e.seen, e.unsure
	}
}

// note keeps what has become of an entry, if it is something else than before.
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
		if reflect.DeepEqual(n.Row, row) {
			return
		}
		x.log.order.Remove(e.noted)
	}
	e.noted = x.log.push(&noted{Change: &Change{Row: row}, seen: e.seen, unsure: e.unsure, unplaced: e.row.Unplaced})
}

// bury keeps that an entry is gone; version is 0 where it isn't known.
func (x *Index) bury(e *entry, b *Brief, version uint64) {
	if e.noted != nil { // else it went before it was told here; others may have told it
		x.log.order.Remove(e.noted)
	}
	n := &noted{Change: &Change{Row: NewArchivedRow(b.Job), Gone: true}, seen: e.seen.Max(Seen{Frameworks: version}), unsure: version == 0}
	x.log.gone.PushBack(x.log.push(n))
	for x.log.gone.Len() > x.log.keep {
		oldest := x.log.gone.Remove(x.log.gone.Front()).(*list.Element)
		n := x.log.order.Remove(oldest).(*noted)
		x.log.forgotten = max(x.log.forgotten, n.at)
		x.log.forgottenVersion = max(x.log.forgottenVersion, n.seen.Frameworks)
		if n.unsure {
			x.log.forgottenVersion = x.log.seen.Frameworks // it went before that at the latest
		}
	}
}

func (c *changes) push(n *noted) *list.Element {
	c.at++
	n.at = c.at
	return c.order.PushBack(n)
}
