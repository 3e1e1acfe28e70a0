package cache

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/watch"
)

func framework(name, version string, state v1.State) *v1.Framework {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: version}}
	f.Status = &v1.FrameworkStatus{State: state}
	return f
}

// follows returns a Cache with three jobs. If between isn't nil, the Cache calls it after each change of a job that it has passed on.
func follows(t *testing.T, between *func()) *Cache {
	t.Helper()
	l := New(&job.Client{Cluster: &kube.Cluster{Client: fake.NewClientset()}}, slog.New(slog.DiscardHandler))
	if between != nil {
		l.frameworks = l.watchFrameworks(func(c *watch.Change[*listing.Brief]) {
			l.framework(c)
			(*between)()
		})
	}
	require.NoError(t, l.pods.Replace(nil, "90"))
	require.NoError(t, l.frameworks.Replace([]any{framework("a", "101", v1.AttemptRunning), framework("b", "102", v1.AttemptRunning), framework("c", "103", v1.AttemptRunning)}, "110"))
	require.True(t, l.Filled())
	return l
}

func TestAWatchMissesNothingOfAListThatComesAgain(t *testing.T) {
	between := func() {}
	l := follows(t, &between)
	w, err := l.Watch()
	require.NoError(t, err)
	told := map[string]bool{}
	var seen []listing.Versions
	read := func(w *Watch) {
		changes, _, err := w.Next()
		require.NoError(t, err)
		for _, c := range changes {
			told[c.Change().Row.Framework] = true
		}
	}
	between = func() { read(w); seen = append(seen, w.seen) }
	before := w.seen
	// c no longer exists, and a has changed after b.
	require.NoError(t, l.frameworks.Replace([]any{framework("a", "200", v1.Completed), framework("b", "150", v1.Completed)}, "210"))
	read(w)
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, told)
	assert.Equal(t, []listing.Versions{before, before, before}, seen, "while a list comes, no place is after its first object")
	assert.Equal(t, listing.Versions{Frameworks: 200}, w.seen)

	again, err := l.Resume(t.Context(), w.Place())
	require.NoError(t, err)
	assert.Nil(t, again, "what went before the list isn't known")
}

func TestAWatchFromElsewhereBeginsAgainWhenAListComes(t *testing.T) {
	l := follows(t, nil)
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
	between := func() {}
	l, other := follows(t, &between), follows(t, nil)
	for _, server := range []*Cache{l, other} {
		require.NoError(t, server.frameworks.Update(framework("c", "120", v1.AttemptRunning)))
	}
	w, err := l.Watch()
	require.NoError(t, err)
	var place string
	between = func() {
		if place == "" {
			_, _, err := w.Next()
			require.NoError(t, err)
			place = w.PlaceBefore()
		}
	}
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
