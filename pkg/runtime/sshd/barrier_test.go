package sshd

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
)

func (h *host) barrier(t *testing.T, timeout time.Duration, addresses ...string) Barrier {
	t.Helper()
	return Barrier{Layout: layout(t, addresses...), Key: h.key, Timeout: timeout, Log: t.Logf}
}

func TestTheBarrierEndsWhenEveryServerAnswers(t *testing.T) {
	h := serve(t, nil)
	require.NoError(t, h.barrier(t, patience, "127.0.0.1:1", h.address, h.address).Wait(t.Context()), "this task itself isn't asked")
	require.NoError(t, h.barrier(t, patience, "127.0.0.1:1").Wait(t.Context()), "there are no others")
}

func TestTheBarrierNamesWhoCannotBeReached(t *testing.T) {
	h, stranger := serve(t, nil), serve(t, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and sends no banner
	require.NoError(t, err)
	defer silent.Close()
	for name, address := range map[string]string{
		"nobody listens": "127.0.0.1:1", "a server of another job": stranger.address, "one that says nothing": silent.Addr().String(),
	} {
		b := h.barrier(t, 300*time.Millisecond, h.address, h.address, address)
		err := b.Wait(t.Context())
		for err != nil && strings.Contains(err.Error(), "2 tasks") && b.Timeout < patience {
			b.Timeout *= 4 // a busy machine takes longer for a login to the one that answers
			err = b.Wait(t.Context())
		}
		require.ErrorContains(t, err, "SSH barrier reaches max retry count", name)
		assert.ErrorContains(t, err, "1 tasks can't be reached by ssh, as worker-2", name)
		assert.Equal(t, exit.SSHBarrierTimeout, exit.Code(err), name)
		assert.True(t, exit.IsRuntimeCode(err))
	}
	b := h.barrier(t, 10*time.Millisecond, h.address, h.address)
	b.Layout.Tasks[1].Address = ""
	require.ErrorContains(t, b.Wait(t.Context()), "no known address")
}

func TestATaskThatIsStoppedLeavesTheBarrierAtOnce(t *testing.T) {
	h := serve(t, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	b := h.barrier(t, time.Hour, h.address, silent.Addr().String())
	go func() { done <- b.Wait(ctx) }()
	conn, err := silent.Accept() // it is in the middle of a login
	require.NoError(t, err)
	defer conn.Close()
	began := time.Now()
	cancel(context.Canceled)
	require.ErrorIs(t, <-done, context.Canceled)
	assert.Less(t, time.Since(began), dialTime-time.Second)
}

func TestABarrierWithoutAKeyIsRefused(t *testing.T) {
	require.Error(t, Barrier{Layout: layout(t, "127.0.0.1:1"), Timeout: time.Second, Log: t.Logf}.Wait(t.Context()))
}

func TestTasksDoNotAllKnockAtOneDoor(t *testing.T) {
	l := layout(t, "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4")
	for own, want := range map[int][]int{0: {1, 2, 3}, 1: {2, 3, 0}, 3: {0, 1, 2}} {
		l.Own = own
		var got []int
		for _, task := range others(l) {
			got = append(got, task.Index)
		}
		assert.Equal(t, want, got)
	}
	assert.Empty(t, others(&env.Layout{Tasks: l.Tasks[:1]}))
}
