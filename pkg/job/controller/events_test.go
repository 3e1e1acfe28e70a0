package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube/watch"
)

func eventOf(framework, uid string, count int32) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}, Count: count, InvolvedObject: corev1.ObjectReference{Kind: "Framework", Name: framework}}
}

// When the API server removes an event, an administrator may already have deleted the job from the archive.
func TestAnEventThatTheAPIServerRemovesIsNotArchivedAgain(t *testing.T) {
	sink := newEventSink()
	store := sink.follow(watch.Source{}, nil)
	require.NoError(t, store.Replace([]any{eventOf("f", "a", 1)}, "1"))
	require.NoError(t, store.Add(eventOf("f", "b", 1)))
	assert.Len(t, sink.take()["f"], 2)
	assert.Empty(t, store.All(), "nothing is kept")
	require.NoError(t, store.Delete(eventOf("f", "a", 1)))
	assert.Empty(t, sink.take())
}

func TestEventsAreKnownUntilTheArchiveHasThem(t *testing.T) {
	c := &Controller{events: newEventSink()}
	store := c.events.follow(watch.Source{}, nil)
	put := func(uid string, count int32) { require.NoError(t, store.Update(eventOf("f", uid, count))) }
	known := func() map[string]int32 {
		out := map[string]int32{}
		for _, e := range c.Events("f") {
			out[e.UID] = e.Count
		}
		return out
	}
	put("a", 1)
	put("b", 1)
	assert.Equal(t, map[string]int32{"a": 1, "b": 1}, known())
	taken := c.events.take()
	put("b", 2)
	assert.Equal(t, map[string]int32{"a": 1, "b": 2}, known(), "while they are written")
	c.events.giveBack("f", taken["f"])
	c.events.written()
	assert.Equal(t, map[string]int32{"a": 1, "b": 2}, known(), "where that failed")
	c.events.take()
	c.events.written()
	assert.Empty(t, known())
	assert.Equal(t, []api.Event(nil), c.Events("other"))
}
