package gangs

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// BenchmarkWholeCluster adds a gang that needs all 8,192 nodes with 8 GPUs each. Opportunistic gangs fill these nodes. For each
// step until the gang may be bound, the benchmark reports the duration, and the longest time that another request waits for the
// lock.
func BenchmarkWholeCluster(b *testing.B) {
	for _, gpus := range []int{1, 8} {
		b.Run(fmt.Sprintf("gangs of %d", gpus), func(b *testing.B) { benchWholeCluster(b, 512, gpus) })
	}
}

// TestAGangGetsAWholeCluster runs the same steps in a small cluster, so that the benchmark keeps working.
func TestAGangGetsAWholeCluster(t *testing.T) {
	for _, gpus := range []int{1, 8} {
		wholeCluster(t, 4, gpus, func(_ *benchCluster, _ string, do func()) { do() })
	}
}

var steps = []string{"fill", "come", "decide", "trials", "preempt", "evict", "look", "metrics", "leave", "again", "place", "permit"}

func benchWholeCluster(b *testing.B, racks, gpus int) {
	all, held := map[string]time.Duration{}, map[string]time.Duration{}
	for b.Loop() {
		wholeCluster(b, racks, gpus, func(c *benchCluster, step string, do func()) {
			took, longest := c.timed(do)
			all[step], held[step] = max(all[step], took), max(held[step], longest)
		})
	}
	b.ReportMetric(0, "ns/op")
	for _, step := range steps {
		b.ReportMetric(float64(all[step].Microseconds())/1000, step+"-ms")
		b.ReportMetric(float64(held[step].Microseconds())/1000, step+"-hold-ms")
	}
}

// wholeCluster passes each step to the function by.
func wholeCluster(t testing.TB, racks, gpus int, by func(c *benchCluster, step string, do func())) {
	t.Helper()
	c := newBenchCluster(t, racks, gpus)
	for _, step := range steps {
		by(c, step, func() { c.step(step) })
	}
	for _, p := range c.large {
		require.Equal(t, api.Binding, c.b.state.pods[p.UID].state)
	}
}

type benchCluster struct {
	b     *Store
	clock *clock
	t     testing.TB
	gpus  int // the GPUs of each gang that must be evicted
	tasks []task
	large []*corev1.Pod
}

func newBenchCluster(t testing.TB, racks, gpus int) *benchCluster {
	t.Helper()
	var yaml strings.Builder
	yaml.WriteString("physicalCluster:\n  cellTypes:\n    PAIR: {childCellType: G, childCellNumber: 2}\n    QUAD: {childCellType: PAIR, childCellNumber: 2}\n" +
		"    NODE: {childCellType: QUAD, childCellNumber: 2, isNodeLevel: true}\n    RACK: {childCellType: NODE, childCellNumber: 16}\n  physicalCells:\n")
	for r := range racks {
		yaml.WriteString("    - {cellType: RACK, cellChildren: [")
		for n := range 16 {
			fmt.Fprintf(&yaml, "{cellAddress: node-%d}, ", r*16+n)
		}
		yaml.WriteString("]}\n")
	}
	fmt.Fprintf(&yaml, "virtualClusters:\n  A: {virtualCells: [{cellType: RACK, cellNumber: %d}]}\n", racks)
	config, findings := parseConfiguration("config", yaml.String())
	require.Empty(t, findings.Errors())
	client := fake.NewClientset()
	c := &benchCluster{t: t, gpus: gpus, clock: &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}
	c.b = New(client, informers.NewSharedInformerFactory(client, 0), &testQueue{}, testOptions, slog.New(slog.DiscardHandler),
		&record.FakeRecorder{}, c.clock.now)
	c.b.grace = 0
	c.b.active = config
	s, err := c.b.newState(config, nil, nil)
	require.NoError(t, err)
	s.todo = func(w task) { c.tasks = append(c.tasks, w) }
	for _, name := range s.core.Nodes() {
		s.reconcileNode(name, readyNode(name))
	}
	c.b.state = s
	for i := range racks * 16 * 8 / gpus {
		c.gang(fmt.Sprintf("small-%d", i), -1, 1, gpus)
	}
	return c
}

// gang creates the pods of a gang, which expect their GPUs in claims.
func (c *benchCluster) gang(name string, priority, pods, gpus int) []*corev1.Pod {
	text := spec("A", priority, fmt.Sprintf("%s:%d:%d", name, pods, gpus))
	out := make([]*corev1.Pod, pods)
	for i := range out {
		p := newPod(fmt.Sprintf("%s-%d", name, i), text)
		p.CreationTimestamp = metav1.NewTime(c.clock.now())
		claim.Expect(p, func(*corev1.Container) bool { return true })
		c.b.locked(func(s *state) { s.observe(p) })
		out[i] = p
	}
	return out
}

func (c *benchCluster) uids() []types.UID { return slices.Collect(maps.Keys(c.b.state.pods)) }

// bound makes the pods with a place run.
func (c *benchCluster) bound() {
	for _, p := range c.b.state.pods {
		c.b.locked(func(s *state) {
			require.Equal(c.t, api.Binding, p.state, p.reason)
			bound := p.object.DeepCopy()
			bound.Spec.NodeName = p.node
			p.object = bound
			s.markBound(p)
		})
	}
	c.clock.add(time.Minute)
}

func (c *benchCluster) leave(victims []cell.Victim) {
	for _, v := range victims {
		c.b.locked(func(s *state) { s.gone(types.UID(v.Pod)) })
	}
}

func (c *benchCluster) decide() {
	for again := true; again; {
		select {
		case <-c.b.changed:
		default:
		}
		c.b.Decide()
		again = len(c.b.changed) > 0
	}
}

func (c *benchCluster) step(name string) {
	switch name {
	case "fill", "decide", "preempt", "place":
		c.decide()
	case "look": // check what is being preempted, and everything else that is checked from time to time
		c.clock.add(refreshEvery)
		c.decide()
	case "come":
		c.bound()
		c.large = c.gang("large", 5, len(c.b.state.nodes), 8)
	case "trials":
		for _, p := range c.large {
			at, ok := c.b.Place(p.UID)
			require.True(c.t, ok && at.Trial)
			c.b.Beside(p.UID)
			c.b.Tried(p.UID, at.Node, true, "")
		}
	case "metrics":
		_, err := c.b.registry().Gather()
		require.NoError(c.t, err)
	case "evict":
		require.Len(c.t, c.tasks, len(c.b.state.nodes)*8/c.gpus)
		for _, w := range c.tasks {
			obj, _ := c.b.subject(w)
			require.NotNil(c.t, obj)
		}
	case "leave":
		c.leave(c.b.state.core.VictimsOf("A", "large")[1:])
	case "again":
		c.decide()
		c.leave(c.b.state.core.VictimsOf("A", "large"))
	case "permit":
		for i, p := range c.large {
			_, together, has := c.b.Permit(p.UID)
			require.True(c.t, has && together == (i == len(c.large)-1))
		}
	}
}

// timed returns how long a function takes, and the longest time that another goroutine waited for the lock.
func (c *benchCluster) timed(f func()) (took, longest time.Duration) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			start := time.Now()
			c.b.mu.Lock()
			longest = max(longest, time.Since(start))
			c.b.mu.Unlock()
			time.Sleep(100 * time.Microsecond)
		}
	}()
	start := time.Now()
	f()
	took = time.Since(start)
	close(end)
	<-ended
	return took, longest
}
