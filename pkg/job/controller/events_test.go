package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
)

func TestEventsAreKnownUntilTheArchiveHasThem(t *testing.T) {
	c := &Controller{events: newEventSink()}
	put := func(uid string, count int32) {
		c.events.put(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Count: count, InvolvedObject: corev1.ObjectReference{Kind: "Framework", Name: "f"}})
	}
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
