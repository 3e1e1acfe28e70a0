package gangs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

func TestAnOutlookDoesNotHoldTheLockForLong(t *testing.T) {
	var nodes []runtime.Object
	for i := range 100 {
		nodes = append(nodes, readyNode(fmt.Sprintf("big-%d", i)))
	}
	c := newCluster(t, bigMachines(100), nodes...)
	ask := func(kinds int) (out *api.Outlook, err error) {
		q := api.OutlookQuery{}
		for i := range kinds {
			q.Pods = append(q.Pods, api.NewPods{Count: 1, Pod: *noGPU(newPod("p", onCPU(spec("A", 5, fmt.Sprintf("g%d:3:1", i)))), "1", "1Mi")})
		}
		gangs, err := newGangs(&q)
		require.NoError(t, err)
		require.True(t, c.b.locked(func(s *state) { out, err = s.outlook(gangs, time.Now().Add(-time.Minute)) }))
		return out, err
	}
	out, err := ask(1)
	require.NoError(t, err)
	assert.Equal(t, api.Starts, out.Gangs[0].Result)
	assert.Nil(t, out.Gangs[0].Largest, "the search among 25,500 cells takes seconds")
	_, err = ask(1000)
	require.ErrorContains(t, err, "1000 kinds of pods, of which 16 took too long")
}
