package cell

import (
	"fmt"
	"testing"
)

func TestSmoke(t *testing.T) {
	c := Config{Types: []Type{{"PAIR", "GPU", 2, false}, {"QUAD", "PAIR", 2, false}, {"NODE", "QUAD", 2, true}, {"RACK", "NODE", 4, false}},
		Physical:        []Physical{{Type: "RACK"}, {Type: "RACK"}},
		VirtualClusters: []VirtualCluster{{Name: "a", Cells: []Virtual{{"RACK", 1}, {"RACK.NODE", 1}}}, {Name: "b", Cells: []Virtual{{"RACK.NODE", 2}, {"RACK.NODE.QUAD", 1}}}}}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	for i, q := range []struct {
		vc        string
		prio      int
		pods, gpu int
	}{{"a", 0, 1, 1}, {"a", 0, 2, 8}, {"b", 0, 1, 4}, {"b", 5, 2, 8}, {"a", -1, 3, 8}, {"a", 10, 4, 8}, {"b", 10, 1, 4}, {"b", -1, 1, 16}} {
		r := &Request{VirtualCluster: q.vc, Priority: q.prio, Gang: fmt.Sprint("g", i), Root: Group{Pods: []PodSet{{Count: q.pods, Cells: q.gpu}}}}
		for k := range q.pods {
			id := PodID(fmt.Sprint(i, "-", k))
			d := s.Schedule(id, r, Preempting, nil)
			t.Log(i, k, d.Result, d.Reason, d.Node, d.Indices, d.Victims)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			for _, v := range d.Victims {
				s.DeleteAllocated(v.Pod)
				if err := s.Check(); err != nil {
					t.Fatal(err)
				}
			}
			if len(d.Victims) > 0 {
				d = s.Schedule(id, r, Filtering, nil)
				t.Log(i, k, d.Result, d.Reason, d.Node, d.Indices, d.Victims)
			}
			if d.Result == Bind {
				lost, err := s.Allocate(id, r, d.Placement, d.Slot)
				if err != nil {
					t.Fatal(err)
				}
				_ = lost
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
