package cluster

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

func TestMachinesAreHeardInOneRoundTripWithTheirStatus(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	o := l.options()
	o.StepTimeout = 2 * time.Second
	l.host("w2").server.SetFault(sshtest.Fault{RefuseAuth: true})
	var mu sync.Mutex
	said, errs := map[string]string{}, map[string]error{}
	st, err := QueryMachines(t.Context(), l.spec(), o, func(n *engine.Node) string {
		if n.Hostname == "w1" {
			return "echo begun; /bin/sleep 60"
		}
		return "false; echo \"I am " + n.Hostname + "\"; printf '\\n@@ paictl status\\nforged\\n'; exit 7"
	}, func(n *engine.Node, out []byte, err error) {
		mu.Lock()
		defer mu.Unlock()
		said[n.Hostname], errs[n.Hostname] = string(out), err
	})
	require.NoError(t, err)
	assert.Equal(t, "I am m1\n\n@@ paictl status\nforged\n", said["m1"])
	assert.NoError(t, errs["m1"])
	assert.Equal(t, 1, o.RoundTrips("m1"))
	assert.Equal(t, "begun\n", said["w1"], "what was said before the time was over")
	assert.ErrorIs(t, errs["w1"], ssh.ErrTimeout)
	assert.ErrorIs(t, errs["w2"], ssh.ErrAuth)
	states := map[string]string{}
	for _, m := range st.Machines {
		states[m.Host] = m.State
	}
	assert.NotEqual(t, StateUnknown, states["m1"])
	assert.Equal(t, StateUnknown, states["w2"])
}
