package live

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

func framework(name, version string, state v1.State) *v1.Framework {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: version}}
	f.Status = &v1.FrameworkStatus{State: state}
	return f
}

func pod(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version, Labels: map[string]string{v1.LabelFramework: "a"}}}
}

func follows(t *testing.T) *Live {
	t.Helper()
	l := New(&job.Client{Cluster: &kube.Cluster{Client: fake.NewClientset()}}, slog.New(slog.DiscardHandler))
	require.NoError(t, l.pods.Replace(nil, "90"))
	require.NoError(t, l.frameworks.Replace([]any{framework("a", "101", v1.AttemptRunning), framework("b", "102", v1.AttemptRunning), framework("c", "103", v1.AttemptRunning)}, "110"))
	require.True(t, l.Filled())
	return l
}

// between calls a function after each object that a follower passes on.
type between struct {
	toolscache.ResourceEventHandler
	call func()
}

func (b between) OnAdd(o any, first bool) { b.ResourceEventHandler.OnAdd(o, first); b.call() }

func TestAWatchMissesNothingOfAListThatComesAgain(t *testing.T) {
	l := follows(t)
	w, err := l.Watch()
	require.NoError(t, err)
	told := map[string]bool{}
	var seen []listing.Seen
	read := func(w *Watch) {
		changes, _, err := w.Next()
		require.NoError(t, err)
		for _, c := range changes {
			told[c.Change().Row.Framework] = true
		}
	}
	l.frameworks.handler = between{l.frameworks.handler, func() { read(w); seen = append(seen, w.seen) }}
	before := w.seen
	// c is gone, and a has changed after b.
	require.NoError(t, l.frameworks.Replace([]any{framework("a", "200", v1.Completed), framework("b", "150", v1.Completed)}, "210"))
	read(w)
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, told)
	assert.Equal(t, []listing.Seen{before, before}, seen, "while a list comes, no place is after its first object")
	assert.Equal(t, listing.Seen{Frameworks: 200}, w.seen)

	again, err := l.Resume(t.Context(), w.Place())
	require.NoError(t, err)
	assert.Nil(t, again, "what went before the list isn't known")
}

func TestAWatchFromElsewhereBeginsAgainWhenAListComes(t *testing.T) {
	l := follows(t)
	require.NoError(t, l.frameworks.Update(framework("a", "120", v1.Completed)))
	here, err := l.Watch()
	require.NoError(t, err)
	w, err := l.Resume(t.Context(), here.Place())
	require.NoError(t, err)
	require.NotNil(t, w)
	_, _, err = w.Next()
	require.NoError(t, err)
	require.NoError(t, l.frameworks.Replace([]any{framework("a", "120", v1.Completed)}, "210"))
	_, _, err = w.Next()
	require.ErrorIs(t, err, ErrExpired, "it may know a job that this server never heard of")
	changes, _, err := here.Next()
	require.NoError(t, err)
	assert.Len(t, changes, 2, "b and c are gone")
}

func TestAWatchMovesOnlyToAServerThatKnowsAllThatItsReaderMayKnow(t *testing.T) {
	l, other := follows(t), follows(t)
	for _, server := range []*Live{l, other} {
		require.NoError(t, server.frameworks.Update(framework("c", "120", v1.AttemptRunning)))
	}
	w, err := l.Watch()
	require.NoError(t, err)
	var place string
	l.frameworks.handler = between{l.frameworks.handler, func() {
		if place == "" {
			_, _, err := w.Next()
			require.NoError(t, err)
			place = w.PlaceBefore()
		}
	}}
	require.NoError(t, l.frameworks.Replace([]any{framework("a", "200", v1.Completed), framework("b", "150", v1.Completed), framework("c", "120", v1.AttemptRunning)}, "210"))
	now, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, other.frameworks.Update(framework("b", "150", v1.Completed)))
	again, err := other.Resume(now, place)
	require.NoError(t, err)
	require.Nil(t, again, "the reader may know a as of version 200")
	require.NoError(t, other.frameworks.Update(framework("a", "200", v1.Completed)))
	again, err = other.Resume(now, place)
	require.NoError(t, err)
	require.NotNil(t, again)
	changes, _, err := again.Next()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, c := range changes {
		names[c.Change().Row.Framework] = true
	}
	assert.Subset(t, slices.Collect(maps.Keys(names)), []string{"a", "b"}, "the changes after the place come again")
}

func TestAPodOfTheSameNameTakesThePlaceOfTheOther(t *testing.T) {
	for name, tell := range map[string]func(*follower, *corev1.Pod) error{
		"by watch": func(f *follower, p *corev1.Pod) error { return f.Add(p) },
		"by list":  func(f *follower, p *corev1.Pod) error { return f.Replace([]any{p}, "300") },
	} {
		t.Run(name, func(t *testing.T) {
			l, gone := follows(t), []types.UID{}
			require.NoError(t, l.pods.Add(pod("a-worker-0", "1", "201")))
			l.pods.handler = toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
				gone = append(gone, o.(toolscache.DeletedFinalStateUnknown).Obj.(*known).uid)
			}}
			require.NoError(t, tell(l.pods, pod("a-worker-0", "2", "202")))
			assert.Equal(t, []types.UID{"1"}, gone)
		})
	}
}
