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

// Latest is where the latest change of one job is found. Who reads slowly holds these, and not what has been overtaken meanwhile.
type Latest struct{ change atomic.Pointer[Change] }

// Change is the latest.
func (l *Latest) Change() *Change { return l.change.Load() }

// Change is what became of one job. Who reads them shares them, so they are never written again.
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
	order *list.List // of *noted, the latest last
	at    uint64     // the mark of the latest
	// heard is the latest version that was told of an object, and seen the latest up to which all were. listed are the latest lists, whose
	// objects come in any order, and covered those that have come wholly.
	heard, seen, listed, covered Seen
	began                        uint64         // the mark at which the latest list began to come
	places                       map[string]int // in the queue of the virtual cluster, by Framework

	gone *list.List // of those elements of order that are gone, the latest last
	keep int
	// forgotten is the mark, and the version, of the latest that was forgotten.
	forgotten        uint64
	forgottenVersion uint64
}

// noted is the place of a change in the order.
type noted struct {
	latest *Latest
	at     uint64
	// seen are the latest versions that touched the job. unsure: another one did, of which nothing is known.
	seen     Seen
	unsure   bool
	unplaced bool
}

// Watched lets the index note what changes, for Since. Of jobs that are gone it remembers so many.
func (x *Index) Watched(keep int) *Index {
	x.log = &changes{order: list.New(), gone: list.New(), keep: keep, places: map[string]int{}}
	return x
}

// Begin says that a list comes, as of a version of Frameworks or of pods. Of Frameworks that went before it, the index may not have heard.
func (x *Index) Begin(list Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.log.forgottenVersion = max(x.log.forgottenVersion, list.Frameworks)
	x.log.listed = x.log.listed.with(list)
	x.log.at++
	x.log.began = x.log.at
}

// Listed says that all of a list has come. Where versions have gone back, because the cluster was put back from a backup, no place of before counts.
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

// Reached is up to where the index knows everything, Mark's seen how much of that others know as well: only objects tell them their versions.
func (x *Index) Reached() Seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.seen.Max(x.log.covered)
}

// Heard is the latest version of which a reader may know something by now. A server that has reached less would tell some jobs as they were before,
// and might never tell them again as they are.
func (x *Index) Heard() Seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.heard
}

// with is what is known after a list of one kind.
func (s Seen) with(list Seen) Seen {
	return Seen{cmp.Or(list.Frameworks, s.Frameworks), cmp.Or(list.Pods, s.Pods)}
}

// hear notes a version that was told. All before it has been, unless a list has it, whose objects come in another order.
func (c *changes) hear(s Seen) {
	c.heard = c.heard.Max(s)
	if s.Frameworks > c.listed.Frameworks {
		c.seen.Frameworks = max(c.seen.Frameworks, s.Frameworks)
	}
	if s.Pods > c.listed.Pods {
		c.seen.Pods = max(c.seen.Pods, s.Pods)
	}
}

// Mark is where Since begins for who knows all that the index knows now.
func (x *Index) Mark() (mark uint64, seen Seen) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settle()
	return x.log.at, x.log.seen
}

// Since returns the latest of each job that changed after a mark, in the order of these changes. mark is where the next Since begins; all
// that seen has is in what was returned until now. ok is false where it isn't known what went since: jobs have been forgotten, or who asks has
// read elsewhere before, perhaps of jobs that this index never heard of, and a list has come that doesn't tell what isn't there.
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

// Missed returns, to who has read elsewhere, the latest of each job that something touched which isn't seen there; Since goes on from its mark:
// what comes here later is told, whatever its version. ok is false where jobs have been forgotten that went since.
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

// podSeen notes the version of what was last told of a Framework's pods; 0 where it isn't known. That is of a pod that a list no longer has:
// it went before the list at the latest.
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

// seen notes the version of a Framework that an entry has got.
func (x *Index) seen(e *entry) {
	at := Seen{Frameworks: e.brief.Version}
	x.log.hear(at)
	if e.noted == nil {
		at.Pods = x.log.heard.Max(x.log.listed).Pods // its own isn't known: its pods may have been heard of before it
	}
	e.touched(at)
}

// touched notes a version that may have changed an entry. A later one of the other kind doesn't make up for one that isn't known.
func (e *entry) touched(s Seen) {
	e.seen = e.seen.Max(s)
	e.unsure = e.unsure || s == Seen{}
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
		if reflect.DeepEqual(n.latest.Change().Row, row) {
			return
		}
	}
	e.noted = x.log.push(&noted{latest: x.log.become(e, &Change{Row: row}), seen: e.seen, unsure: e.unsure, unplaced: e.row.Unplaced})
}

// bury keeps that an entry is gone; version is 0 where it isn't known.
func (x *Index) bury(e *entry, b *Brief, version uint64) {
	n := &noted{latest: x.log.become(e, &Change{Row: NewArchivedRow(b.Job), Gone: true}), seen: e.seen.Max(Seen{Frameworks: version}), unsure: version == 0}
	x.log.gone.PushBack(x.log.push(n))
	for x.log.gone.Len() > x.log.keep {
		oldest := x.log.gone.Remove(x.log.gone.Front()).(*list.Element)
		n := x.log.order.Remove(oldest).(*noted)
		x.log.forgotten = max(x.log.forgotten, n.at)
		x.log.forgottenVersion = max(x.log.forgottenVersion, n.seen.Frameworks)
		if n.unsure {
			x.log.forgottenVersion = max(x.log.forgottenVersion, x.log.heard.Frameworks) // it went before that at the latest
		}
	}
}

// become says what an entry has become, in the place of what was noted of it. It may go before anything was: others may have told it.
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
