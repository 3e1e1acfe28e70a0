package cell

import (
	"fmt"
	"testing"
)

// BenchmarkTurnover replaces gangs one by one in a cluster that is 60 % full. The mix of sizes is the same for each cluster
// size. An operation places and allocates all pods of a gang, and ends the oldest gang.
func BenchmarkTurnover(b *testing.B) {
	for _, racks := range []int{4, 16, 64, 512} {
		b.Run(fmt.Sprintf("%d", racks*128), func(b *testing.B) { benchTurnover(b, racks) })
	}
}

func benchTurnover(b *testing.B, racks int) {
	s, err := New(benchConfig(racks, 4))
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	t := &turnover{s: s, sizes: []int{1, 8, 2, 1, 4, 16, 1, 8, 4, 1, 2, 32, 1, 8, 4, 1, 64, 8, 1, 2}}
	for t.used < racks*128*6/10 {
		t.start(b)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := t.decisions
	for range b.N {
		t.start(b)
		for t.used > racks*128*6/10 {
			t.end()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(t.decisions-before), "ns/dec")
}

func benchConfig(racks, vcs int) Config {
	c := Config{Types: []Type{{"PAIR", "GPU", 2, false}, {"QUAD", "PAIR", 2, false}, {"NODE", "QUAD", 2, true}, {"RACK", "NODE", 16, false}}}
	for range racks {
		c.Physical = append(c.Physical, Physical{Type: "RACK"})
	}
	for i := range vcs {
		c.VirtualClusters = append(c.VirtualClusters, VirtualCluster{Name: fmt.Sprintf("vc%d", i), Cells: []Virtual{{"RACK", racks / 2 / vcs}, {"RACK.NODE", racks * 8 / vcs}}})
	}
	if racks/2/vcs == 0 {
		for i := range vcs {
			c.VirtualClusters[i].Cells = c.VirtualClusters[i].Cells[1:]
		}
	}
	return c
}

type turnover struct {
	s               *Scheduler
	sizes           []int
	n, oldest, used int
	decisions       int
	gangs           []benchGang
}

type benchGang struct {
	pods []PodID
	gpus int
}

// start places a gang, or skips a gang without a place. Every third gang is opportunistic.
func (t *turnover) start(b *testing.B) {
	size := t.sizes[t.n%len(t.sizes)]
	priority := 0
	if t.n%3 == 2 {
		priority = Opportunistic
	}
	pods, each := 1, size
	if size > 8 {
		pods, each = size/8, 8
	}
	r := &Request{
		VirtualCluster: fmt.Sprintf("vc%d", t.n%4), Priority: priority, Gang: fmt.Sprint(t.n),
		Root: Group{Pods: []PodSet{{Count: pods, Cells: each}}},
	}
	g := benchGang{gpus: size}
	for i := range pods {
		id := PodID(fmt.Sprintf("%d-%d", t.n, i))
		d := t.s.Schedule(id, r, Filtering, nil)
		t.decisions++
		if d.Result != Bind {
			break
		}
		if _, err := t.s.Allocate(id, r, d.Placement, d.Slot); err != nil {
			b.Fatal(err)
		}
		g.pods = append(g.pods, id)
	}
	t.n++
	if len(g.pods) > 0 {
		t.gangs = append(t.gangs, g)
		t.used += size
	} else if len(t.gangs) > t.oldest {
		t.end()
	}
}

func (t *turnover) end() {
	g := t.gangs[t.oldest]
	for _, p := range g.pods {
		t.s.DeleteAllocated(p)
	}
	t.used -= g.gpus
	t.oldest++
}
