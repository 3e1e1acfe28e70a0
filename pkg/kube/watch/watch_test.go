package watch_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/kube/watch"
)

type options = watch.Options[*corev1.ConfigMap, string]

// reports receives the reports of a Store as text: one text for each change, and one for each list.
type reports struct {
	t       *testing.T
	changes chan string
	health  chan error
	store   *watch.Store[string]
}

// next waits for as many reports as want contains, and compares them with want.
func (r *reports) next(want ...string) {
	r.t.Helper()
	for _, w := range want {
		select {
		case got := <-r.changes:
			require.Equal(r.t, w, got)
		case <-r.t.Context().Done():
			r.t.Fatalf("not reported: %s", w)
		}
	}
}

// fails waits until the Store reports an error, and returns it.
func (r *reports) fails() error {
	r.t.Helper()
	for err := range r.health {
		if err != nil {
			return err
		}
	}
	return nil
}

// opens waits until the Store reports that a watch is open.
func (r *reports) opens() {
	for err := range r.health {
		if err == nil {
			return
		}
	}
}

// follow runs a Store of a server's ConfigMaps until the test ends. change can change the Store's options.
func follow(t *testing.T, s *server, change func(*options)) *reports {
	t.Helper()
	r := &reports{t: t, changes: make(chan string, 100), health: make(chan error, 100)}
	o := options{
		Name: "settings", Source: watch.From(s.client(t).CoreV1().ConfigMaps("a"), metav1.ListOptions{}),
		Keep: func(o *corev1.ConfigMap) (string, error) {
			switch v := o.Data["v"]; {
			case v == "skip":
				return "", watch.ErrSkip
			case strings.HasPrefix(v, "bad"):
				return "", errors.New("it can't be read")
			default:
				return v, nil
			}
		},
		Changed: func(changes []watch.Change[string], list string) {
			var all []string
			for _, c := range changes {
				switch {
				case c.Is != nil && c.Was != nil:
					all = append(all, text(c.Key, string(c.Is.UID), c.Was.Value+" -> "+c.Is.Value))
				case c.Is != nil:
					all = append(all, text(c.Key, string(c.Is.UID), c.Is.Value))
				case c.Last != nil:
					all = append(all, text(c.Key, string(c.Last.UID), "gone: "+c.Last.Value))
				case c.Was != nil:
					all = append(all, text(c.Key, string(c.Was.UID), "gone"))
				default:
					all = append(all, c.Key+" left out")
				}
			}
			if list != "" {
				all = []string{"list " + list + ": " + strings.Join(all, ", ")}
			}
			for _, one := range all {
				r.changes <- one
			}
		},
		Health: func(err error) { r.health <- err },
	}
	if change != nil {
		change(&o)
	}
	r.store = watch.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.store.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		s.CloseClientConnections()
		<-done
	})
	return r
}

func TestAStoreHasAllPagesAndFollowsChanges(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.set(name, "1", name)
	}
	r := follow(t, s, nil)
	r.next("list 5: a 1 a, b 1 b, c 1 c, d 1 d, e 1 e")
	s.set("a", "1", "x")
	s.remove("b")
	s.set("b", "2", "new")
	r.next("a 1 a -> x", "b 1 gone: b last", "b 2 new")
	assert.Equal(t, map[string]string{"a": "x", "b": "new", "c": "c", "d": "d", "e": "e"}, r.store.All())
	got, ok := r.store.Get("b")
	assert.True(t, ok)
	assert.Equal(t, "new", got)
	assert.True(t, r.store.Synced())
}

func TestObjectsThatCannotBeReadAreLeftOutAlone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", "1", "bad")
	s.set("b", "1", "skip")
	s.set("c", "1", "c")
	r := follow(t, s, nil)
	r.next("list 3: a left out, c 1 c")
	assert.Equal(t, map[string]string{"a": "it can't be read"}, r.store.Bad())
	s.set("c", "1", "bad")
	s.set("a", "1", "a")
	r.next("c 1 gone", "a 1 a")
	s.set("a", "1", "skip")
	r.next("a 1 gone")
	s.remove("c")
	r.next("c left out")
	assert.Empty(t, r.store.Bad())
	assert.Empty(t, r.store.All())
}

func TestAStoreWaitsForAServerThatStartsSlowly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", "1", "a")
	s.refuses("list", http.StatusServiceUnavailable)
	r := follow(t, s, nil)
	require.Error(t, r.fails())
	assert.False(t, r.store.Synced())
	assert.Empty(t, r.changes, "an empty Store isn't an empty list")
	s.refuses("list", 0)
	r.next("list 1: a 1 a")
}

func TestAWatchThatIsCutContinuesWithoutAList(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", "1", "a")
	r := follow(t, s, nil)
	r.next("list 1: a 1 a")
	s.set("a", "1", "b")
	r.next("a 1 a -> b")
	s.CloseClientConnections()
	s.set("a", "1", "c")
	s.remove("a")
	r.next("a 1 b -> c", "a 1 gone: c last")
	assert.Equal(t, 1, s.count("list"))
}

func TestARelistedStoreHasTheStateOfAServerThatWasRestored(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.set("a", "1", "a")
	s.set("a", "1", "b")
	s.set("c", "1", "c")
	r := follow(t, s, func(o *options) { o.Relist = true })
	r.next("list 3: a 1 b, c 1 c")
	s.set("c", "1", "d")
	r.next("c 1 c -> d")
	r.opens()
	s.restore(1, map[string]*corev1.ConfigMap{"a": a})
	s.CloseClientConnections()
	require.Error(t, r.fails())
	r.next("list 1: a 1 b -> a, c 1 gone")
	s.set("a", "1", "x")
	r.next("a 1 a -> x")
}

func TestWhatAServerHasForgottenIsListed(t *testing.T) {
	t.Parallel()
	for _, relist := range []bool{false, true} {
		s := serve(t)
		s.set("a", "1", "a")
		s.set("b", "1", "b")
		s.set("c", "1", "c")
		var log safeBuffer
		r := follow(t, s, func(o *options) { o.Relist, o.Log = relist, slog.New(slog.NewTextHandler(&log, nil)) })
		r.next("list 3: a 1 a, b 1 b, c 1 c")
		r.opens()
		s.refuses("watch", http.StatusGone)
		s.CloseClientConnections()
		require.Error(t, r.fails())
		s.remove("a")
		s.remove("b")
		s.set("b", "2", "other")
		s.compact()
		s.refuses("watch", 0)
		for got := range r.changes { // a list may have come before the changes
			if got != "list 3: " {
				require.Equal(t, "list 6: b 1 gone, b 2 other, a 1 gone", got, "c hasn't changed")
				break
			}
		}
		if !relist {
			assert.Contains(t, log.String(), "objects are listed again")
			assert.NotContains(t, log.String(), "level=WARN", "it happens several times an hour, to kinds that seldom change")
		}
	}
}

// safeBuffer is a buffer that several goroutines use.
type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestALostWatchKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", "1", "a")
	r := follow(t, s, func(o *options) { o.Relist = true })
	r.next("list 1: a 1 a")
	r.opens()
	s.refuses("list", http.StatusForbidden)
	s.CloseClientConnections()
	for err := r.fails(); !watch.Refused(err); err = r.fails() {
	}
	assert.Equal(t, map[string]string{"a": "a"}, r.store.All())
	s.set("a", "1", "b")
	s.refuses("list", 0)
	r.next("list 2: a 1 a -> b")
	r.opens()
}

func TestAServerThatAnswersConfirmsOnlyAnOpenWatch(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.refuses("watch", http.StatusForbidden)
	r := follow(t, s, func(o *options) { o.Confirm = true })
	r.next("list 0: ")
	assert.True(t, watch.Refused(r.fails()))
	assert.Zero(t, r.store.Confirmed())
	began := time.Now()
	s.refuses("watch", 0)
	r.opens()
	require.Eventually(t, func() bool { return r.store.Confirmed().After(began) }, time.Minute, time.Millisecond)
}

func TestAnAnswerDoesNotConfirmAWatchThatEndedBeforeIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ended, again, checked := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
	beats := 0
	r := follow(t, s, func(o *options) {
		o.Confirm = true
		o.Health = func(err error) {
			if err != nil {
				ended <- struct{}{}
			}
		}
		list := o.Source.List
		o.Source.List = func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) {
			if lo.Limit == 1 {
				if beats++; beats == 1 {
					s.refuses("watch", http.StatusForbidden)
					s.CloseClientConnections()
					<-ended
					s.refuses("watch", 0)
				} else if beats == 2 {
					close(again)
					<-checked
				}
			}
			return list(ctx, lo)
		}
	})
	<-again
	assert.Zero(t, r.store.Confirmed())
	close(checked)
	require.Eventually(t, func() bool { return !r.store.Confirmed().IsZero() }, time.Minute, time.Millisecond)
}

// A server responds with status 503 while its Store of users isn't confirmed.
func TestAStoreThatHasToBeCurrentDoesNotWaitLongAfterARefusal(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var last time.Time
			var longest time.Duration
			refused := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no role"))
			store := watch.New(watch.Options[*corev1.ConfigMap, string]{Name: "users", Confirm: confirm, Source: watch.Source{
				List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					if now := time.Now(); !last.IsZero() {
						longest = max(longest, now.Sub(last))
					}
					last = time.Now()
					return nil, refused
				},
			}})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			store.Run(ctx)
			assert.Equal(t, confirm, longest < 5*time.Second, longest)
		})
	}
}

func TestAListWhoseNextPageHasExpiredIsReadAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, name := range []string{"a", "b", "c"} {
		s.set(name, "1", name)
	}
	pages := 0
	r := follow(t, s, func(o *options) {
		list := o.Source.List
		o.Source.List = func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) {
			if pages++; pages == 2 {
				s.remove("a")
				return nil, apierrors.NewResourceExpired("the continue token is too old")
			}
			return list(ctx, lo)
		}
	})
	r.next("list 4: b 1 b, c 1 c")
}

func TestARestartBeginsWithAList(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := follow(t, s, nil)
	r.next("list 0: ")
	r.opens()
	r.store.Restart()
	r.next("list 0: ")
	r.opens()
	assert.Empty(t, r.health, "the connection hasn't failed")
}

func TestClearedAndForgottenObjectsComeAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("a", "1", "a")
	s.set("b", "1", "b")
	r := follow(t, s, nil)
	r.next("list 2: a 1 a, b 1 b")
	r.opens()
	r.store.Forget("b")
	assert.Equal(t, []string{"a"}, slices.Collect(maps.Keys(r.store.All())))
	r.store.Clear()
	r.next("a 1 gone")
	r.store.Restart()
	r.next("list 2: a 1 a, b 1 b")
}

func object(name, uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// written returns a Store of a program that also writes. Its values are the versions of the objects.
func written() *watch.Store[string] {
	return watch.New(watch.Options[*corev1.ConfigMap, string]{Name: "tokens", Keep: func(o *corev1.ConfigMap) (string, error) { return o.ResourceVersion, nil },
		Reads: watch.Source{List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}}, nil
		}}})
}

func TestAnAnswerThatArrivesLateDoesNotBringBackWhatWent(t *testing.T) {
	for what, end := range map[string]func(*watch.Store[string]) error{
		"the watch says that it is deleted": func(s *watch.Store[string]) error { return s.Delete(object("a", "1", "20")) },
		"it was deleted here, and the watch says so then": func(s *watch.Store[string]) error {
			s.Drop("a", "1")
			return s.Delete(object("a", "1", "20"))
		},
		"a list doesn't have it":           func(s *watch.Store[string]) error { return s.Replace(nil, "20") },
		"a list read here doesn't have it": func(s *watch.Store[string]) error { return s.Load(t.Context()) },
	} {
		t.Run(what, func(t *testing.T) {
			s := written()
			require.NoError(t, s.Replace([]any{object("a", "1", "10")}, "12"))
			require.NoError(t, end(s))
			s.Put(object("a", "1", "10")) // a state from before the deletion, in a response that took long
			_, there := s.Get("a")
			assert.False(t, there)
			assert.True(t, s.Deleted("1"))
			s.Put(object("a", "2", "21"))
			_, there = s.Get("a")
			assert.True(t, there, "another object of that name")
		})
	}
}

func TestEventsThatArriveLateDoNotBringBackWhatThisProgramKnowsToBeGone(t *testing.T) {
	for what, end := range map[string]func(*watch.Store[string]) error{
		"it was deleted here":              func(s *watch.Store[string]) error { s.Drop("a", "1"); return nil },
		"a list read here doesn't have it": func(s *watch.Store[string]) error { return s.Load(t.Context()) },
	} {
		t.Run(what, func(t *testing.T) {
			s := written()
			require.NoError(t, s.Replace([]any{object("a", "1", "10")}, "12"))
			require.NoError(t, end(s))
			require.NoError(t, s.Update(object("a", "1", "15")))
			assert.Empty(t, s.All())
		})
	}
}

func TestAnObjectThatIsSelectedAgainIsBack(t *testing.T) {
	s := written()
	require.NoError(t, s.Add(object("a", "1", "10")))
	require.NoError(t, s.Delete(object("a", "1", "20"))) // its label was removed
	require.NoError(t, s.Add(object("a", "1", "30")))
	got, there := s.Get("a")
	assert.True(t, there)
	assert.Equal(t, "30", got)
	assert.False(t, s.Deleted("1"))
}

func TestWhatIsHeardLateOfAnEarlierLifeDoesNotHideTheLaterOne(t *testing.T) {
	for what, late := range map[string]func(*watch.Store[string]) error{
		"a change":          func(s *watch.Store[string]) error { return s.Update(object("a", "1", "15")) },
		"a list":            func(s *watch.Store[string]) error { return s.Replace([]any{object("a", "1", "15")}, "16") },
		"a list without it": func(s *watch.Store[string]) error { return s.Replace(nil, "16") },
		"a deletion":        func(s *watch.Store[string]) error { return s.Delete(object("a", "1", "20")) },
	} {
		t.Run(what, func(t *testing.T) {
			s := written()
			require.NoError(t, s.Add(object("a", "1", "10")))
			s.Put(object("a", "2", "21")) // this program created the name again
			require.NoError(t, late(s))
			got, there := s.Get("a")
			assert.True(t, there)
			assert.Equal(t, "21", got)
		})
	}
}

// An API server that was restored from a backup sends versions that are earlier than the known versions.
func TestAListHasTheLastWordUnlessThisProgramIsAheadOfIt(t *testing.T) {
	s := written()
	require.NoError(t, s.Replace([]any{object("a", "1", "90"), object("b", "1", "91")}, "95"))
	s.Put(object("c", "1", "96"))
	require.NoError(t, s.Add(object("c", "1", "96"))) // the watch has now sent this version too
	s.Put(object("d", "1", "97"))
	require.NoError(t, s.Replace([]any{object("a", "1", "10")}, "20"))
	assert.Equal(t, map[string]string{"a": "10", "d": "97"}, s.All())
}
