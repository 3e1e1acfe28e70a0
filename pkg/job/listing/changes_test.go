package listing_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// replica is a server with separate watches, which may lag behind.
type replica struct {
	index            *listing.Index
	frameworks, pods stream
}

// stream holds the events of one kind of object that a replica has received.
type stream struct {
	heard int // of the story's events
	// left holds the events of a list that the replica hasn't received yet. Their order is random.
	left []func(*listing.Index)
	// known holds a function for each object that the replica has. The function reports that the object is gone.
	known map[string]func(*listing.Index)
}

// event is a change of an object. tell passes it to an index. gone reports that a later list no longer contains the object; it is nil if the
// event is the object's deletion.
type event struct {
	object, uid string
	tell, gone  func(*listing.Index)
}

// story is the history of a cluster's objects, in two streams, as watches send it.
type story struct {
	version          uint64
	frameworks, pods []event
	jobs             map[string]*v1.Framework
	started          map[string]bool // jobs with a pod that hasn't begun
}

func (s *story) next() string {
	s.version++
	return strconv.FormatUint(s.version, 10)
}

func (s *story) happens(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "job")
	have := s.jobs[name]
	switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
	case what <= 1 || have == nil:
		second := 0
		if have == nil {
			second = int(s.version) // another one of that name
		} else {
			second = int(have.CreationTimestamp.Sub(epoch).Seconds())
		}
		f := framework("ann", "vision", name, uid(name, second), second, rapid.SampledFrom([]v1.State{"", v1.AttemptPreparing, v1.AttemptRunning, v1.Completed}).Draw(t, "state"), 0)
		f.ResourceVersion = s.next()
		s.jobs[name] = f
		s.frameworks = append(s.frameworks, event{name, string(f.UID), func(x *listing.Index) { x.Put(brief(f)) }, func(x *listing.Index) { x.Remove(brief(f), false) }})
	case what == 2:
		f := have.DeepCopy()
		f.ResourceVersion = s.next()
		delete(s.jobs, name)
		s.frameworks = append(s.frameworks, event{object: name, tell: func(x *listing.Index) { x.Remove(brief(f), true) }})
	default:
		_ = s.next()
		n, pod, start := s.version, types.UID("p-"+name), listing.Start{Placed: rapid.Bool().Draw(t, "placed")}
		here, ends := have.Name, s.started[name] && rapid.Bool().Draw(t, "ends")
		s.started[name] = !ends
		if ends {
			s.pods = append(s.pods, event{object: name, tell: func(x *listing.Index) { x.DeletePod(here, pod, n) }})
			return
		}
		s.pods = append(s.pods, event{name, string(pod), func(x *listing.Index) { x.Pod(here, pod, start, n) }, func(x *listing.Index) { x.DeletePod(here, pod, 0) }})
	}
}

// lists simulates that a replica loses a watch. The replica gets a list instead of the events that it hasn't received.
func (r *stream) lists(t *rapid.T, x *listing.Index, events []event, at listing.Versions) {
	if len(r.left) > 0 {
		return
	}
	last, uids := map[string]event{}, map[string]string{}
	for i, e := range events {
		if last[e.object] = e; i < r.heard {
			uids[e.object] = e.uid
		}
	}
	for _, object := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "list") {
		e, gone := last[object], r.known[object]
		if gone != nil && e.uid != uids[object] {
			r.left = append(r.left, gone)
		}
		if e.gone != nil {
			r.left = append(r.left, e.tell)
		}
		r.known[object] = e.gone
	}
	x.Begin(at)
	r.heard, r.left = len(events), append(r.left, func(x *listing.Index) { x.Listed(at) })
}

func (r *stream) hears(t *rapid.T, x *listing.Index, events []event, all bool) {
	n := len(r.left) + len(events) - r.heard
	if !all {
		n = rapid.IntRange(0, n).Draw(t, "hears")
	}
	for range n {
		if len(r.left) > 0 {
			r.left[0](x)
			r.left = r.left[1:]
			continue
		}
		e := events[r.heard]
		e.tell(x)
		r.known[e.object] = e.gone
		r.heard++
	}
}

// hears passes some of the events that a replica hasn't received to the replica, or all of them if all is true.
func (r *replica) hears(t *rapid.T, s *story, all bool) {
	r.frameworks.hears(t, r.index, s.frameworks, all)
	r.pods.hears(t, r.index, s.pods, all)
}

func (r *replica) lists(t *rapid.T, s *story) {
	if rapid.Bool().Draw(t, "of pods") {
		r.pods.lists(t, r.index, s.pods, listing.Versions{Pods: s.version})
	} else {
		r.frameworks.lists(t, r.index, s.frameworks, listing.Versions{Frameworks: s.version})
	}
}

func newReplica() *replica {
	known := func() stream { return stream{known: map[string]func(*listing.Index){}} }
	return &replica{listing.NewIndex().Watched(100), known(), known()}
}

func states(t require.TestingT, x *listing.Index) map[string]string {
	out := map[string]string{}
	rows, err := x.Rows(listing.Filter{}, 0)
	require.NoError(t, err)
	for _, r := range rows {
		out[r.UID] = r.State
	}
	return out
}

// A reader moves between servers, which lag behind by different times. In the end the reader has the same state as the list, even if the servers
// lose their watches and get lists instead.
func TestAReaderThatMovesFromServerToServerMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &story{jobs: map[string]*v1.Framework{}, started: map[string]bool{}, version: 100}
		servers := []*replica{newReplica(), newReplica()}
		known := map[string]string{} // state by UID
		at, mark, seen, elsewhere := 0, uint64(0), listing.Versions{}, false
		var before listing.Versions   // the position before the changes in waiting
		var waiting []*listing.Latest // read, and not sent yet, as for a slow reader
		told := func() {
			for _, latest := range waiting {
				c := latest.Change()
				if known[c.Row.UID] = c.Row.State; c.Deleted {
					delete(known, c.Row.UID)
				}
			}
			waiting, before = nil, seen
		}
		whole := func(x *listing.Index) {
			mark, seen = x.Mark()
			known, elsewhere, before = states(t, x), false, seen
		}
		read := func() {
			told()
			x := servers[at].index
			changes, next, here, ok := x.Since(mark, elsewhere)
			if !ok {
				require.True(t, elsewhere)
				whole(x)
				return
			}
			waiting, mark, seen = changes, next, here
		}
		move := func() {
			// The reader waits until the other server has caught up. Otherwise that server would send older states than the reader knows.
			x := servers[1-at].index
			if here := x.Reached(); here.Max(servers[at].index.Latest()) != here {
				return
			}
			place := seen
			if n := rapid.IntRange(0, len(waiting)).Draw(t, "told"); n < len(waiting) { // the stream ends between two changes
				waiting, place = waiting[:n], before
			}
			told()
			before, at, elsewhere = place, 1-at, true
			changes, next, here, ok := x.Missed(place)
			if !ok {
				whole(x)
				return
			}
			waiting, mark, seen = changes, next, here
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				s.happens(t)
			case 2:
				rapid.SampledFrom(servers).Draw(t, "server").hears(t, s, false)
			case 3:
				read()
			case 4:
				move()
			case 5:
				rapid.SampledFrom(servers).Draw(t, "server").lists(t, s)
			}
		}
		for _, r := range servers {
			r.hears(t, s, true)
		}
		read()
		told()
		require.Equal(t, states(t, servers[at].index), known)
	})
}

// Otherwise a thousand slow readers would keep many old versions of all jobs in memory.
func TestASlowReaderHoldsNothingThatHasBeenOvertaken(t *testing.T) {
	x := listing.NewIndex().Watched(10)
	f := framework("ann", "vision", "train", "1", 0, v1.AttemptPreparing, 0)
	x.Put(brief(f))
	x.Pod(f.Name, "p", listing.Start{}, 8)
	var overtaken []weak.Pointer[listing.Change]
	var readers [][]*listing.Latest
	for place := range 10 {
		x.SetPlaces(map[string]int{f.Name: place + 1})
		changes, _, _, ok := x.Since(0, false)
		require.True(t, ok)
		require.Len(t, changes, 1)
		readers = append(readers, changes)
		if place < 9 {
			overtaken = append(overtaken, weak.Make(changes[0].Change()))
		}
	}
	runtime.GC()
	for _, c := range overtaken {
		assert.Nil(t, c.Value())
	}
	for _, r := range readers {
		assert.Equal(t, 10, r[0].Change().Row.Position, "each is told the latest")
	}
	x.Remove(brief(f), true)
	_, _ = x.Mark()
	assert.True(t, readers[0][0].Change().Deleted)
}

// After a watch was lost, there is a new list, whose objects are ordered by name and not by version.
func TestWhatAListHasInAnyOrderIsToldAndNotTakenForSeen(t *testing.T) {
	x := listing.NewIndex().Watched(100)
	put := func(name, version string, state v1.State) {
		f := framework("ann", "vision", name, name, 1, state, 0)
		f.ResourceVersion = version
		x.Put(brief(f))
	}
	put("a", "101", v1.AttemptRunning)
	put("b", "102", v1.AttemptRunning)
	mark, _ := x.Mark()
	list := listing.Versions{Frameworks: 210}
	x.Begin(list)
	put("a", "200", v1.Completed)
	changes, mark, seen, ok := x.Since(mark, false)
	require.True(t, ok)
	require.Len(t, changes, 1)
	assert.Equal(t, listing.Versions{Frameworks: 102}, seen, "b isn't known up to 200")
	put("b", "150", v1.Completed)
	x.Listed(list)
	changes, _, seen, ok = x.Since(mark, false)
	require.True(t, ok)
	require.Len(t, changes, 1)
	assert.Equal(t, "b", changes[0].Change().Row.Name)
	assert.Equal(t, listing.Versions{Frameworks: 200}, seen, "another server, which heard of it by watch, knows that version")
	assert.Equal(t, list, x.Reached())
}

// If a pod is missing from a new list, the time of its deletion is unknown, and later events of its job don't show the time, either.
func TestAPodThatWentBetweenListsIsToldToWhoHasHeardOfItsJobSince(t *testing.T) {
	job := func(version string) *v1.Framework {
		f := framework("ann", "vision", "a", "a", 1, v1.AttemptPreparing, 0)
		f.ResourceVersion = version
		f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses = []*v1.TaskStatus{{State: v1.AttemptPreparing}}
		return f
	}
	steps := map[string]func(*listing.Index){
		"job":       func(x *listing.Index) { x.Put(brief(job("100"))) },
		"job later": func(x *listing.Index) { x.Put(brief(job("130"))) },
		"list": func(x *listing.Index) {
			x.Begin(listing.Versions{Pods: 120})
			x.DeletePod(job("").Name, "p", 0)
			x.Pod(job("").Name, "q", listing.Start{Placed: true}, 95) // lists are in the order of names
			x.Listed(listing.Versions{Pods: 120})
		},
	}
	for name, order := range map[string][]string{
		"the job changes later":          {"job", "list", "job later"},
		"the job is heard of later":      {"list", "job later"},
		"the job changes before":         {"job", "job later", "list"},
		"the job's change is told twice": {"job", "list", "job later", "job later"},
	} {
		t.Run(name, func(t *testing.T) {
			x := listing.NewIndex().Watched(100)
			x.Pod(job("").Name, "p", listing.Start{}, 101)
			for _, step := range order {
				steps[step](x)
			}
			for seen, want := range map[listing.Versions]int{{Frameworks: 130, Pods: 101}: 1, {Frameworks: 130, Pods: 119}: 1, {Frameworks: 130, Pods: 121}: 0} {
				changes, _, _, ok := x.Missed(seen)
				require.True(t, ok)
				assert.Len(t, changes, want, "%+v", seen)
			}
		})
	}
}

func TestAPlaceFromBeforeABackupWasPutBackDoesNotCount(t *testing.T) {
	x := listing.NewIndex().Watched(100)
	f := framework("ann", "vision", "a", "a", 1, "", 0)
	f.ResourceVersion = "1000"
	x.Put(brief(f))
	x.Begin(listing.Versions{Frameworks: 500})
	x.Listed(listing.Versions{Frameworks: 500})
	assert.Equal(t, listing.Versions{Frameworks: 500}, x.Reached())
	assert.False(t, remembers(x, 1000), "it is of another history")
}

func TestPlacesInTheQueueAreChanges(t *testing.T) {
	x := listing.NewIndex().Watched(10)
	f := framework("ann", "vision", "train", "1", 0, v1.AttemptPreparing, 0)
	f.ResourceVersion = "7"
	x.Put(brief(f))
	x.Pod(f.Name, "p", listing.Start{}, 8)
	mark, seen := x.Mark()
	assert.Equal(t, listing.Versions{Frameworks: 7, Pods: 8}, seen)
	x.SetPlaces(map[string]int{f.Name: 3})
	changes, mark, _, ok := x.Since(mark, false)
	require.True(t, ok)
	require.Len(t, changes, 1)
	assert.Equal(t, "queued 3", fmt.Sprint(changes[0].Change().Row.State, " ", changes[0].Change().Row.Position))
	assert.False(t, changes[0].Change().Row.Unplaced)
	x.SetPlaces(map[string]int{f.Name: 3})
	changes, mark, _, _ = x.Since(mark, false)
	assert.Empty(t, changes, "nothing changed")
	x.SetPlaces(map[string]int{})
	changes, _, _, _ = x.Since(mark, false)
	require.Len(t, changes, 1)
	assert.Equal(t, "waiting", changes[0].Change().Row.State)
	rows, err := x.Rows(listing.Filter{}, 0)
	require.NoError(t, err)
	assert.True(t, rows[0].Unplaced, "a list asks for the places itself")
}

func remembers(x *listing.Index, version uint64) bool {
	_, _, _, ok := x.Missed(listing.Versions{Frameworks: version})
	return ok
}

func TestWhoReadsTooSlowlyIsTold(t *testing.T) {
	x := listing.NewIndex().Watched(2)
	x.Begin(listing.Versions{Frameworks: 50})
	mark, _ := x.Mark()
	assert.False(t, remembers(x, 49), "what went before it began isn't known")
	assert.True(t, remembers(x, 50))
	slow := mark
	for i := range 4 {
		f := framework("ann", "vision", fmt.Sprint("job-", i), fmt.Sprint(i), i, "", 0)
		f.ResourceVersion = fmt.Sprint(100 + i)
		x.Put(brief(f))
		if i == 0 {
			slow, _ = x.Mark()
		}
		f = f.DeepCopy()
		f.ResourceVersion = fmt.Sprint(200 + i)
		x.Remove(brief(f), true)
	}
	_, _, _, ok := x.Since(slow, false)
	assert.False(t, ok)
	assert.False(t, remembers(x, 200))
	assert.True(t, remembers(x, 201))
	now, _ := x.Mark()
	changes, _, _, ok := x.Since(now, false)
	assert.True(t, ok)
	assert.Empty(t, changes)
}

func TestAChangeIsWrittenOnce(t *testing.T) {
	x := listing.NewIndex().Watched(2)
	x.Put(brief(framework("ann", "vision", "train", "1", 0, "", 0)))
	a, _, _, _ := x.Since(0, false)
	b, _, _, _ := x.Since(0, false)
	require.Len(t, a, 1)
	assert.Same(t, &a[0].Change().JSON()[0], &b[0].Change().JSON()[0])
	assert.Contains(t, string(a[0].Change().JSON()), `"name":"train"`)
}
