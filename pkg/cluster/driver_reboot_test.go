package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
)

// restarting is a machine that gets a restart command.
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

// dialed are the answers to connections, one after the other.
type dialed struct {
	answers []error
	n       int
}

func (d *dialed) Dial(context.Context, ssh.Target) (ssh.Host, error) {
	d.n++
	return nil, d.answers[min(d.n, len(d.answers))-1]
}

func TestAMachineThatComesBackWithAnotherHostKeyEndsTheWaitAtOnce(t *testing.T) {
	t.Parallel()
	l := driversLab(t, 1)
	s := l.spec()
	d := &dialed{answers: []error{fmt.Errorf("w1: %w", ssh.ErrHostKey)}}
	h := &restarting{}
	u := &driverUpgrade{rotation: rotation{Run: engine.NewRun(s, engine.Options{Dialer: d, Sink: &sink{}, Clock: time.Now, StepTimeout: time.Minute}), restarted: map[string]bool{}}}
	var n *engine.Node
	for _, one := range s.Nodes {
		if one.Hostname == "w1" {
			n = one
		}
	}
	u.Hosts = map[string]ssh.Host{"w1": h}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := u.reboot(ctx, n)
	require.ErrorIs(t, err, ssh.ErrHostKey)
	assert.Equal(t, 1, d.n, "no one waits for half an hour")
	assert.True(t, h.closed)
	assert.True(t, u.restarted["w1"])
}
