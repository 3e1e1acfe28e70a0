package annotation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

func TestAClaimHasThePlacesOfItsGang(t *testing.T) {
	t.Parallel()
	r, p := trainers()
	p.Moves = 2
	for slot := range p.Pods {
		at := &p.Pods[slot]
		got, i, err := ReadOwn(r, at.Node, at.Indices, WriteOwn(p, slot))
		require.NoError(t, err)
		assert.Equal(t, slot, i)
		assert.Equal(t, p, got)
	}
	t.Run("one of which is open", func(t *testing.T) {
		_, p := trainers()
		p.Pods[1] = cell.PodPlacement{Set: 0}
		got, _, err := ReadOwn(r, p.Pods[0].Node, p.Pods[0].Indices, WriteOwn(p, 0))
		require.NoError(t, err)
		assert.Equal(t, p, got)
	})
	t.Run("without a guarantee", func(t *testing.T) {
		_, p := trainers()
		p.Downgraded = true
		for i := range p.Pods {
			p.Pods[i].Virtual, p.Pods[i].Preassigned = nil, make([]string, len(p.Pods[i].Indices))
		}
		got, _, err := ReadOwn(r, p.Pods[0].Node, p.Pods[0].Indices, WriteOwn(p, 0))
		require.NoError(t, err)
		assert.Equal(t, p, got)
	})
}

// large returns a gang with eight GPUs per pod, and its place.
func large(pods int) (*cell.Request, *cell.Placement) {
	r := &cell.Request{VirtualCluster: "team", Gang: "g", Root: gang("g", cell.PodSet{Count: pods, Cells: 8})}
	p := &cell.Placement{Chain: "RACK", Order: 1 << 30}
	for i := range pods {
		at := cell.PodPlacement{Node: fmt.Sprintf("gpu-worker-%04d", i)}
		for k := range int32(8) {
			at.Indices = append(at.Indices, k)
			at.Preassigned = append(at.Preassigned, "RACK")
			at.Virtual = append(at.Virtual, fmt.Sprintf("team/%d/%d/%d", i/32, i%32, k))
		}
		p.Pods = append(p.Pods, at)
	}
	return r, p
}

func TestAClaimOfAPodOfALargeGangHasItsOwnPlaceAlone(t *testing.T) {
	t.Parallel()
	for pods, whole := range map[int]bool{64: true, 1000: false, 10_000: false} {
		r, p := large(pods)
		details := WriteOwn(p, pods/2)
		assert.LessOrEqual(t, len(details), maxOwn, "more than Kubernetes takes")
		at := p.Pods[pods/2]
		got, slot, err := ReadOwn(r, at.Node, at.Indices, details)
		require.NoError(t, err)
		assert.Equal(t, pods/2, slot)
		assert.Equal(t, at, got.Pods[slot])
		if whole {
			assert.Equal(t, p, got)
		} else {
			assert.Equal(t, cell.PodPlacement{}, got.Pods[0], "it isn't known where the others are")
		}
	}
}

func TestDetailsOfAClaimThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	r, p := trainers()
	_, other := large(64)
	at := p.Pods[0]
	for name, c := range map[string]struct {
		node    string
		indices []int32
		details string
	}{
		"no JSON":           {at.Node, at.Indices, `{`},
		"nothing":           {at.Node, at.Indices, ``},
		"another gang's":    {at.Node, at.Indices, string(WriteOwn(other, 0))},
		"another slot's":    {at.Node, at.Indices, string(WriteOwn(p, 1))},
		"another node":      {"x", at.Indices, string(WriteOwn(p, 0))},
		"other devices":     {at.Node, []int32{0, 2}, string(WriteOwn(p, 0))},
		"a negative slot":   {at.Node, at.Indices, `{"chain":"RACK","slot":-1}`},
		"a number too high": {at.Node, at.Indices, `{"chain":"RACK","slot":0,"pods":[["node-0",0,4294967296],["n",1],["n",2]]}`},
		"a fraction":        {at.Node, at.Indices, `{"chain":"RACK","slot":0,"pods":[["node-0",0,0.5],["n",1],["n",2]]}`},
		"devices of no one": {at.Node, at.Indices, `{"chain":"RACK","slot":0,"pods":[["node-0",0,1],["",1],["n",2]]}`},
		"a node with none":  {at.Node, at.Indices, `{"chain":"RACK","slot":0,"pods":[["node-0",0,1],["n"],["n",2]]}`},
		"an empty pod":      {at.Node, at.Indices, `{"chain":"RACK","slot":0,"pods":[["node-0",0,1],[],["n",2]]}`},
	} {
		_, _, err := ReadOwn(r, c.node, c.indices, []byte(c.details))
		assert.ErrorContains(t, err, "its claim", name)
	}
}

func FuzzReadOwn(f *testing.F) {
	r, p := trainers()
	for slot := range p.Pods {
		f.Add(WriteOwn(p, slot))
	}
	f.Add([]byte(`{"slot":2,"types":["N",1],"virtual":[["0/a"]],"pods":[[""],["n",1],["m",3]]}`))
	f.Fuzz(func(t *testing.T, details []byte) {
		got, slot, err := ReadOwn(r, "node-0", []int32{0, 1}, details)
		if err == nil && (got.Pods[slot].Node != "node-0" || len(got.Pods) != len(p.Pods)) {
			t.Fatalf("%s: %v", details, got)
		}
	})
}
