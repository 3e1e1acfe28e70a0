package listing_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/framework/listing"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// replica is a server with its own watches, which are as late as they are.
type replica struct {
	index            *listing.Index
	frameworks, pods int // how many events of each it has heard of
}

// story is what happened to the objects of a cluster, in two streams, as watches tell it.
type story struct {
	version          uint64
	frameworks, pods []func(*listing.Index)
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
		s.frameworks = append(s.frameworks, func(x *listing.Index) { x.Put(brief(f)) })
	case what == 2:
		f := have.DeepCopy()
		f.ResourceVersion = s.next()
		delete(s.jobs, name)
		told := rapid.IntRange(0, 3).Draw(t, "told") > 0
		if !told {
			f = have // a list doesn't have it any longer
		}
		s.frameworks = append(s.frameworks, func(x *listing.Index) { x.Remove(brief(f), told) })
	default:
		n := s.version + 1
		_ = s.next()
		pod, start := types.UID("p-"+name), listing.Start{Placed: rapid.Bool().Draw(t, "placed")}
		here, ends := have.Name, s.started[name] && rapid.Bool().Draw(t, "ends")
		s.started[name] = !ends
		if ends && rapid.IntRange(0, 3).Draw(t, "told") == 0 {
			n = 0
		}
		s.pods = append(s.pods, func(x *listing.Index) {
			if ends {
				x.PodGone(here, pod)
			} else {
				x.Pod(here, pod, start)
			}
			x.PodSeen(here, n)
		})
	}
}

// hears lets a replica hear of some of what it hasn't.
func (r *replica) hears(t *rapid.T, s *story, all bool) {
	some := func(at *int, events []func(*listing.Index)) {
		n := len(events) - *at
		if !all {
			n = rapid.IntRange(0, n).Draw(t, "hears")
		}
		for range n {
			events[*at](r.index)
			*at++
		}
	}
	some(&r.frameworks, s.frameworks)
	some(&r.pods, s.pods)
}

// A reader that moves from server to server, each of them as late as it is, knows in the end what the list has.
func TestAReaderThatMovesFromServerToServerMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &story{jobs: map[string]*v1.Framework{}, started: map[string]bool{}, version: 100}
		servers := []*replica{{index: listing.NewIndex().Watched(100)}, {index: listing.NewIndex().Watched(100)}}
		known := map[string]string{} // state by UID
		at, mark, seen := 0, uint64(0), listing.Seen{}
		read := func() {
			changes, next, here, ok := servers[at].index.Since(mark, seen)
			require.True(t, ok)
			for _, c := range changes {
				if known[c.Row.UID] = c.Row.State; c.Gone {
					delete(known, c.Row.UID)
				}
			}
			mark, seen = next, seen.Max(here)
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				s.happens(t)
			case 2:
				rapid.SampledFrom(servers).Draw(t, "server").hears(t, s, false)
			case 3:
				read()
			case 4:
				// One that hasn't got so far is waited for: it would tell what is older than what is known.
				if _, here := servers[1-at].index.Mark(); here.Max(seen) == here {
					at, mark = 1-at, 0
				}
			}
		}
		for _, r := range servers {
			r.hears(t, s, true)
		}
		read()
		want := map[string]string{}
		rows, err := servers[at].index.Rows(listing.Filter{}, 0)
		require.NoError(t, err)
		for _, r := range rows {
			want[r.UID] = r.State
		}
		require.Equal(t, want, known)
	})
}

func TestPlacesInTheQueueAreChanges(t *testing.T) {
	x := listing.NewIndex().Watched(10)
	f := framework("ann", "vision", "train", "1", 0, v1.AttemptPreparing, 0)
	f.ResourceVersion = "7"
	x.Put(brief(f))
	x.Pod(f.Name, "p", listing.Start{})
	x.PodSeen(f.Name, 8)
	mark, seen := x.Mark()
	assert.Equal(t, listing.Seen{Frameworks: 7, Pods: 8}, seen)
	x.SetPlaces(map[string]int{f.Name: 3})
	changes, mark, _, ok := x.Since(mark, seen)
	require.True(t, ok)
	require.Len(t, changes, 1)
	assert.Equal(t, "queued 3", fmt.Sprint(changes[0].Row.State, " ", changes[0].Row.Position))
	assert.False(t, changes[0].Row.Unplaced)
	x.SetPlaces(map[string]int{f.Name: 3})
	changes, mark, _, _ = x.Since(mark, seen)
	assert.Empty(t, changes, "nothing changed")
	x.SetPlaces(map[string]int{})
	changes, _, _, _ = x.Since(mark, seen)
	require.Len(t, changes, 1)
	assert.Equal(t, "waiting", changes[0].Row.State)
	rows, err := x.Rows(listing.Filter{}, 0)
	require.NoError(t, err)
	assert.True(t, rows[0].Unplaced, "a list asks for the places itself")
}

func TestWhoReadsTooSlowlyIsTold(t *testing.T) {
	x := listing.NewIndex().Watched(2)
	x.Begin(50)
	mark, _ := x.Mark()
	assert.False(t, x.Remembers(listing.Seen{Frameworks: 49}), "what went before it began isn't known")
	assert.True(t, x.Remembers(listing.Seen{Frameworks: 50}))
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
	_, _, _, ok := x.Since(slow, listing.Seen{Frameworks: 100})
	assert.False(t, ok)
	assert.False(t, x.Remembers(listing.Seen{Frameworks: 200}))
	assert.True(t, x.Remembers(listing.Seen{Frameworks: 201}))
	now, seen := x.Mark()
	changes, _, _, ok := x.Since(now, seen)
	assert.True(t, ok)
	assert.Empty(t, changes)
}

func TestAChangeIsWrittenOnce(t *testing.T) {
	x := listing.NewIndex().Watched(2)
	x.Put(brief(framework("ann", "vision", "train", "1", 0, "", 0)))
	a, _, _, _ := x.Since(0, listing.Seen{})
	b, _, _, _ := x.Since(0, listing.Seen{})
	require.Len(t, a, 1)
	assert.Same(t, &a[0].JSON()[0], &b[0].JSON()[0])
	assert.Contains(t, string(a[0].JSON()), `"name":"train"`)
}
