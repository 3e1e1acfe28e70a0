package cell

import (
	"fmt"
	"testing"
)

// BenchmarkLargePreemption measures one decision in a cluster that gangs of lower priority fill. The request is for a part or
// all of the cluster. "almost" requests one node more than half of the cluster, while a gang with a higher priority holds a GPU
// on every other node.
func BenchmarkLargePreemption(b *testing.B) {
	for _, racks := range []int{4, 32, 128, 512} {
		nodes := racks * 16
		for _, fill := range []struct {
			name     string
			priority int
			cells    int
		}{{"guaranteed/nodes", 0, 8}, {"guaranteed/GPUs", 0, 1}, {"opportunistic/nodes", Opportunistic, 8}, {"opportunistic/GPUs", Opportunistic, 1}} {
			for _, want := range []int{nodes / 4, nodes} {
				b.Run(fmt.Sprintf("%d/%s/%d", nodes, fill.name, want), func(b *testing.B) { benchPreemption(b, racks, fill.priority, fill.cells, want, false) })
			}
			if fill.priority == Opportunistic {
				continue
			}
			b.Run(fmt.Sprintf("%d/%s/almost", nodes, fill.name), func(b *testing.B) {
				benchPreemption(b, racks, fill.priority, fill.cells, nodes/2+1, true)
			})
		}
	}
}

func benchPreemption(b *testing.B, racks, priority, cells, want int, almost bool) {
	c := benchConfig(racks, 1)
	c.VirtualClusters = []VirtualCluster{{Name: "a", Cells: []Virtual{{"RACK", racks}}}}
	s, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	start := func(name string, priority, cells int) {
		r := &Request{VirtualCluster: "a", Priority: priority, Gang: name, Root: Group{Pods: []PodSet{{Count: 1, Cells: cells}}}}
		d := s.Schedule(PodID(name), r, Filtering, nil)
		if d.Result != Bind {
			b.Fatal(d.Result, d.Reason)
		}
		if _, err := s.Allocate(PodID(name), r, d.Placement, d.Slot); err != nil {
			b.Fatal(err)
		}
	}
	for i := range racks * 16 {
		rest := 8
		if almost && i%2 == 0 {
			rest--
		}
		for k := 0; k < rest; k += min(cells, rest) {
			start(fmt.Sprint(i, " ", k), priority, min(cells, rest))
		}
		if rest < 8 {
			start(fmt.Sprint(i, " held"), 10, 1)
		}
	}
	r := &Request{VirtualCluster: "a", Priority: 5, Gang: "large", Root: Group{Pods: []PodSet{{Count: want, Cells: 8}}}}
	b.ReportAllocs()
	for b.Loop() {
		if d := s.Schedule("large", r, Filtering, nil); (d.Result == Preempt) == almost {
			b.Fatal(d.Result, d.Reason)
		}
	}
}
