package gangs

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// This test is for the race detector: kube-scheduler calls the Store while the Store makes decisions.
func TestTrialsAreAnsweredWhileTheBooksDecide(t *testing.T) {
	yaml, nodes, names := rackYAML(8)
	c := newCluster(t, yaml, nodes...)
	for i := range names {
		name := fmt.Sprintf("o%02d", i)
		c.run(newPod(name, spec("A", -1, name+":1:2")))
	}
	c.holdDeletes()
	for i := range 4 {
		c.create(newPod(fmt.Sprintf("p%d", i), spec("A", 5, "p:4:2")))
	}
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			for i := range 2000 {
				uid := types.UID(fmt.Sprintf("uid-p%d", i%4))
				at, ok := c.b.Place(uid)
				c.b.Beside(uid)
				c.b.Lower(uid)("uid-o00")
				if ok && at.Trial {
					c.b.Tried(uid, at.Node, (i+k)%3 != 0, "port")
				}
				c.b.Permit(uid)
				c.b.Withdraw(uid)
				c.b.Refuse(uid, at.Node, "x")
			}
		})
	}
	for range 1000 {
		c.b.Decide()
		c.clock.add(3e9)
	}
	wg.Wait()
}
