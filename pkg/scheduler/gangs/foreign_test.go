package gangs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// A pod of a different gang with the same name can't join the gang. It must not represent the gang, even if it is older than
// the gang's pods.
func TestAForeignPodDoesNotKeepAGangFromStarting(t *testing.T) {
	for _, name := range []string{"other", "p"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, twoTeams)
			o := c.run(newPod("o", spec("B", 1, "o:1:2")))
			foreign := newPod("foreign", spec("B", 1, name+":7:1"))
			foreign.Labels = map[string]string{api.UserLabel: "mallory"}
			foreign.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/never"}}
			c.create(foreign)
			p := newPod("p", spec("B", 1, "p:1:2"))
			p.Labels = map[string]string{api.UserLabel: "alice"}
			p = c.create(p)
			c.waits(p)
			c.delete(o)
			c.place(p)
		})
	}
}

// A reload of the configuration changes the policy, and a rollback restores it. Running gangs aren't affected.
func TestAPolicyComesAndGoesWithReloads(t *testing.T) {
	c := newCluster(t, twoTeams)
	a := c.run(newPod("a", spec("A", 1, "a:1:2")))
	o := c.run(newPod("o", spec("A", -1, "o:1:2")))
	policy := func() string {
		var all api.VirtualClusters
		c.get(api.PathVirtualClusters, &all)
		require.Empty(t, all.Problem)
		return all.Items[0].Policy
	}
	with := strings.Replace(twoTeams, "  A:\n", "  A:\n    policy: fewer-kills\n", 1)
	for range 2 {
		assert.Equal(t, "balanced", policy())
		c.reconfigure(with)
		assert.Equal(t, "fewer-kills", policy())
		c.reconfigure(twoTeams)
	}
	c.reconfigure(strings.Replace(with, "fewer-kills", "Fewer-Kills", 1))
	var all api.VirtualClusters
	c.get(api.PathVirtualClusters, &all)
	assert.Contains(t, all.Problem, `there is no policy "Fewer-Kills"`)
	assert.Equal(t, "balanced", all.Items[0].Policy)
	for _, p := range []string{c.state(a), c.state(o)} {
		assert.Equal(t, api.Bound, p)
	}
}
