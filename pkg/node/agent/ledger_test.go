package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// killing is a vendor whose reset stops the agent before it can answer the request.
type killing struct {
	vendor
	resets int
}

type killed struct{}

func (k *killing) reset(context.Context, *device) (string, error) {
	k.resets++
	panic(killed{})
}

func TestAnOrderIsCarriedOutAtMostOnceThoughTheAgentIsKilled(t *testing.T) {
	o := newOrdered(t)
	k := &killing{vendor: o.vendor}
	o.vendor = k
	o.breaks(5, 48)
	require.NoError(t, repair.Add(t.Context(), o.client, "n1", repair.Request{ID: "one", GPU: 5, Action: repair.Reset, At: o.gpus.now()}))
	assert.PanicsWithValue(t, killed{}, func() { _ = o.answerRequests(t.Context(), o.client, o.node()) })
	require.Equal(t, 1, k.resets)

	o.restart(8)
	o.vendor = k
	for range 2 {
		require.NoError(t, o.answerRequests(t.Context(), o.client, o.node()))
	}
	assert.Equal(t, 1, k.resets)
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(t, err)
	require.Len(t, answers, 1)
	assert.False(t, answers[0].Done)
	assert.Contains(t, answers[0].Message, "the result is unknown")

	o.vendor = simulated{vendor: nvidia{}}
	o.after = eight
	assert.True(t, o.give(5, repair.Reset).Done, "ordered again")
	seen := o.node()
	seen.Annotations[repair.Answers] = ""
	o.restart(8)
	o.vendor = k
	require.NoError(t, o.answerRequests(t.Context(), o.client, seen), "an answer that was lost")
	assert.Equal(t, 1, k.resets)
}

func TestAnAnswerThatCouldntBeToldIsToldLater(t *testing.T) {
	o := newOrdered(t)
	o.breaks(5, 48)
	require.NoError(t, repair.Add(t.Context(), o.client, "n1", repair.Request{ID: "one", GPU: 5, Action: repair.Reset, At: o.gpus.now()}))
	seen := o.node()
	o.after = eight
	defer o.reporting()()
	cut := fake.NewClientset() // it knows no Node
	require.Error(t, o.answerRequests(t.Context(), cut, seen))
	require.NoError(t, o.answerRequests(t.Context(), o.client, seen))
	answers, err := repair.ReadAnswers(o.node())
	require.NoError(t, err)
	require.Len(t, answers, 1)
	assert.True(t, answers[0].Done)
}

func TestAnOrderThatCantBeNotedIsNotCarriedOut(t *testing.T) {
	o := newOrdered(t)
	k := &killing{vendor: o.vendor}
	o.vendor = k
	o.ledger.file = filepath.Join(t.TempDir(), "gone", "orders.json")
	a := o.give(5, repair.Reset)
	assert.False(t, a.Done)
	assert.Contains(t, a.Message, "the agent can't record its start")
	assert.Zero(t, k.resets)
}

func TestTheLedgerIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.json")
	l, err := openLedger(file)
	require.NoError(t, err)
	for i := range mostEntries + 5 {
		id := string(rune('a'+i%26)) + string(rune('a'+i/26))
		require.NoError(t, l.begin(entry{ID: id}))
		require.NoError(t, l.end(repair.Answer{ID: id, Done: true}))
	}
	again, err := openLedger(file)
	require.NoError(t, err)
	assert.Equal(t, l.entries, again.entries)
	assert.Len(t, again.entries, mostEntries)
	_, known := again.answer("aa")
	assert.False(t, known)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = openLedger(file)
	require.ErrorContains(t, err, "remove it")
}
