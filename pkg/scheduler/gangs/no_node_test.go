package gangs

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// No node satisfies the nodeSelector of a gang of two pods. The gang must wait without evicting other gangs.
func TestAGangThatNoNodeAdmitsEndsNoOthers(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, name := range []string{"o0", "o1", "o2", "o3"} {
		c.run(newPod(name, spec("B", -1, name+":1:2")))
	}
	for _, name := range []string{"p0", "p1"} {
		p := newPod(name, spec("A", 1, "p:2:2"))
		p.Spec.NodeSelector = map[string]string{"example.org/zone": "none"}
		p = c.create(p)
		if name == "p1" {
			c.waits(p)
			assert.Equal(t, api.Waiting, c.state(p))
		}
	}
}
