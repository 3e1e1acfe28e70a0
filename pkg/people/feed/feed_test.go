package feed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/people/feed"
)

func object(name, uid, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetName(name)
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	return u
}

func open() *feed.Feed[string] {
	return feed.New(feed.Options[string]{Name: "tokens", Decode: func(u *unstructured.Unstructured) (string, error) { return u.GetResourceVersion(), nil }})
}

func TestAnAnswerThatArrivesLateDoesNotBringBackWhatWent(t *testing.T) {
	for what, end := range map[string]func(*feed.Feed[string]) error{
		"the watch says that it is deleted": func(f *feed.Feed[string]) error { return f.Delete(object("a", "1", "20")) },
		"it was deleted here, and the watch says so then": func(f *feed.Feed[string]) error {
			f.Drop("a", "1")
			return f.Delete(object("a", "1", "20"))
		},
		"a list doesn't have it": func(f *feed.Feed[string]) error { return f.Replace(nil, "20") },
	} {
		t.Run(what, func(t *testing.T) {
			f := open()
			require.NoError(t, f.Replace([]any{object("a", "1", "10")}, "12"))
			require.NoError(t, end(f))
			f.Put(object("a", "1", "10")) // read before, by a request that took long
			_, there := f.Get("a")
			assert.False(t, there)
			assert.True(t, f.Deleted("1"))
			f.Put(object("a", "2", "21"))
			_, there = f.Get("a")
			assert.True(t, there, "another object of that name")
		})
	}
}

func TestAnObjectThatIsSelectedAgainIsBack(t *testing.T) {
	f := open()
	require.NoError(t, f.Add(object("a", "1", "10")))
	require.NoError(t, f.Delete(object("a", "1", "20"))) // its label was removed
	require.NoError(t, f.Add(object("a", "1", "30")))
	got, there := f.Get("a")
	assert.True(t, there)
	assert.Equal(t, "30", got)
	assert.False(t, f.Deleted("1"))
}

func TestWhatIsHeardLateOfAnEarlierLifeDoesNotHideTheLaterOne(t *testing.T) {
	for what, late := range map[string]func(*feed.Feed[string]) error{
		"a change":   func(f *feed.Feed[string]) error { return f.Update(object("a", "1", "15")) },
		"a list":     func(f *feed.Feed[string]) error { return f.Replace([]any{object("a", "1", "15")}, "16") },
		"a deletion": func(f *feed.Feed[string]) error { return f.Delete(object("a", "1", "20")) },
	} {
		t.Run(what, func(t *testing.T) {
			f := open()
			require.NoError(t, f.Add(object("a", "1", "10")))
			f.Put(object("a", "2", "21")) // it was made again here
			require.NoError(t, late(f))
			got, there := f.Get("a")
			assert.True(t, there)
			assert.Equal(t, "21", got)
		})
	}
}
