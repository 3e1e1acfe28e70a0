package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

type restarting struct {
	ssh.Host
	closed bool
}

func (*restarting) Name() string { return "w1" }

func (*restarting) Run(context.Context, ssh.Script) (ssh.Result, error) {
	return ssh.Result{Stdout: []byte("first\n1\n")}, nil
}

func (h *restarting) Close() error {
	h.closed = true
	return nil
}

type dialed struct {
	answers []error
	n       int
}

func (d *dialed) Dial(context.Context, ssh.Target) (ssh.Host, error) {
	d.n++
	return nil, d.answers[min(d.n, len(d.answers))-1]
}

// rebooted returns a driverUpgrade with the host h as w1, and w1's node.
func rebooted(t *testing.T, d ssh.Dialer, h ssh.Host) (*driverUpgrade, *engine.Node) {
	t.Helper()
	s := driversLab(t, 1).spec()
	u := &driverUpgrade{rotation: rotation{Run: engine.NewRun(s, engine.Options{Dialer: d, Sink: &sink{}, Clock: time.Now, StepTimeout: time.Minute}), restarted: map[string]bool{}}}
	u.Hosts = map[string]ssh.Host{"w1": h}
	at := slices.IndexFunc(s.Nodes, func(n *engine.Node) bool { return n.Hostname == "w1" })
	require.GreaterOrEqual(t, at, 0)
	return u, s.Nodes[at]
}

// deaf is a machine that ignores the first restart commands.
type deaf struct {
	ssh.Host
	ignores, orders int
}

func (*deaf) Name() string { return "w1" }

func (h *deaf) Run(_ context.Context, s ssh.Script) (ssh.Result, error) {
	if s.Name == phaseReboot+"/restart" {
		h.orders++
	}
	return ssh.Result{Stdout: fmt.Appendf(nil, "first\n%d\n", max(h.orders-h.ignores, 0))}, nil
}

func (*deaf) Close() error { return nil }

func (h *deaf) Dial(context.Context, ssh.Target) (ssh.Host, error) { return h, nil }

// A restart command may have no effect, for example if systemd rejects the command. The machine then hasn't restarted.
func TestAMachineThatDoesNotRestartIsRestartedAgain(t *testing.T) {
	h := &deaf{ignores: 2}
	u, n := rebooted(t, h, h)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		changes, err := u.reboot(t.Context(), n)
		require.NoError(t, err)
		assert.Len(t, changes, 1)
		assert.Equal(t, 3, h.orders)
		assert.InDelta(t, 2*rebootAgain, time.Since(start), float64(4*rebootLook))
		assert.Same(t, h, u.Hosts["w1"], "the connection stays")
	})
}

func TestTheErrorOfAMachineThatDoesNotComeBackSaysWhy(t *testing.T) {
	for why, d := range map[string]ssh.Dialer{
		"it answers, but has not restarted": &deaf{ignores: 1000},
		"no route to host":                  &dialed{answers: []error{errors.New("no route to host")}},
	} {
		u, n := rebooted(t, d, &deaf{ignores: 1000})
		synctest.Test(t, func(t *testing.T) {
			_, err := u.reboot(t.Context(), n)
			require.EqualError(t, err, "w1 hasn't answered for 30m0s since its restart: "+why)
			assert.Equal(t, "check its console; when it is back, run the same command again", hint.Of(err))
		})
	}
}

func TestAMachineThatComesBackWithAnotherHostKeyEndsTheWaitAtOnce(t *testing.T) {
	t.Parallel()
	d := &dialed{answers: []error{fmt.Errorf("w1: %w", ssh.ErrHostKey)}}
	h := &restarting{}
	u, n := rebooted(t, d, h)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := u.reboot(ctx, n)
	require.ErrorIs(t, err, ssh.ErrHostKey)
	assert.Equal(t, 1, d.n, "no one waits for half an hour")
	assert.True(t, h.closed)
	assert.True(t, u.restarted["w1"])
}
