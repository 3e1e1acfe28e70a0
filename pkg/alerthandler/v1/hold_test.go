package v1

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A machine that is cordoned for several alerts stays cordoned until the mark contains no more alerts.
func TestAMarkHasTheActionsOfSeveralAlerts(t *testing.T) {
	m := Mark{Action: "broken-gpus-0c4f-1-1", Reason: "GPU 2"}
	assert.True(t, m.Holds("broken-gpus-0c4f-1-3"), "a later step")
	assert.True(t, m.Holds("broken-gpus-0c4f-2-1"), "a later incident")
	assert.False(t, m.Holds("broken-gpus-77aa-1-1"), "another alert of the policy")
	assert.False(t, m.Holds("hot-0c4f-1-1"), "another policy")

	both := m.With(Mark{Action: "hot-77aa-1-1", Reason: "it is hot"})
	assert.Empty(t, m.Also)
	assert.True(t, both.Holds("hot-77aa-1-1"))
	assert.Equal(t, &m, both.Without("hot-77aa-1-1"))
	rest := both.Without("broken-gpus-0c4f-1-3")
	require.NotNil(t, rest)
	assert.Equal(t, "it is hot", rest.Reason)
	assert.False(t, rest.Holds("broken-gpus-0c4f-1-1"))
	both.Tainted = time.Unix(1_800_000_000, 0)
	assert.Equal(t, both.Tainted, both.Without("broken-gpus-0c4f-1-3").Tainted, "it is the same cordon")
	assert.Nil(t, rest.Without("hot-77aa-1-2"))

	stays := both.KeptOut("it broke again")
	assert.True(t, stays.Stays)
	assert.Equal(t, "it broke again", stays.Reason)
	assert.Equal(t, m.Action, stays.Action)
	assert.True(t, stays.Holds("hot-77aa-1-1"))
	assert.False(t, both.Stays)

	for i := 0; !m.Full(); i++ {
		require.Less(t, i, 1000)
		m = m.With(Mark{Action: fmt.Sprintf("hot-%d-1-1", i)})
	}
	for _, name := range []string{"", "a", "-", "--", "a-b"} {
		assert.True(t, (&Mark{Action: name}).Holds(name), "%q", name)
	}
}
