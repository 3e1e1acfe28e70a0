package annotation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got, "run the test with -update, if the change is meant")
}

// bindInfoYAML is the documented structure of HiveD's bind info in versions 1 and 2.
type bindInfoYAML struct {
	Version   string          `yaml:"version"`
	Node      string          `yaml:"node"`
	Isolation []int32         `yaml:"leafCellIsolation"`
	Chain     string          `yaml:"cellChain"`
	Members   []placementYAML `yaml:"affinityGroupBindInfo"`
	Root      *placementYAML  `yaml:"podRootGroupBindInfo"`
}

type placementYAML struct {
	Pods []struct {
		Node    string   `yaml:"physicalNode"`
		Indices []int32  `yaml:"physicalLeafCellIndices"`
		Types   []string `yaml:"preassignedCellTypes"`
	} `yaml:"podPlacements"`
	Children []placementYAML `yaml:"childGroupBindingInfo"`
}

func bound(b Bound) map[string]string {
	return map[string]string{IsolationKey: b.Isolation, BindInfoKey: b.BindInfo, PlacementKey: b.Placement}
}

func decide(p *cell.Placement, slot int) *cell.Decision {
	return &cell.Decision{Result: cell.Bind, Node: p.Pods[slot].Node, Indices: p.Pods[slot].Indices, Chain: p.Chain, Placement: p, Slot: slot}
}

// trainers returns a gang with pods of two sizes, and its place.
func trainers() (*cell.Request, *cell.Placement) {
	r := &cell.Request{VirtualCluster: "team", Gang: "g", Root: gang("g", cell.PodSet{Count: 2, Cells: 2}, cell.PodSet{Count: 1, Cells: 1}), Set: 1}
	return r, &cell.Placement{Chain: "RACK", Order: 7, Pods: []cell.PodPlacement{
		{Set: 0, Node: "node-0", Indices: []int32{0, 1}, Preassigned: []string{"NODE", "NODE"}, Virtual: []string{"team/0/0/0", "team/0/0/1"}},
		{Set: 0, Node: "node-0", Indices: []int32{2, 3}, Preassigned: []string{"NODE", "NODE"}, Virtual: []string{"team/0/1/2", "team/0/1/3"}},
		{Set: 1, Node: "0.0.0.1", Indices: []int32{5}, Preassigned: []string{"QUAD"}, Virtual: []string{"team/3/0"}},
	}}
}

func TestWriteIsHiveDsFormat(t *testing.T) {
	r, p := trainers()
	b := Write(r, decide(p, 2))
	golden(t, "v1.txt", b.Isolation+"\n"+b.BindInfo+"\n"+b.Placement+"\n")
	var got bindInfoYAML
	require.NoError(t, yaml.Unmarshal([]byte(b.BindInfo), &got))
	assert.Equal(t, "0.0.0.1", got.Node)
	assert.Equal(t, []int32{5}, got.Isolation)
	assert.Equal(t, "RACK", got.Chain)
	require.Len(t, got.Members, 2)
	assert.Equal(t, "node-0", got.Members[0].Pods[1].Node)
	assert.Equal(t, []int32{2, 3}, got.Members[0].Pods[1].Indices)
	assert.Equal(t, []string{"QUAD"}, got.Members[1].Pods[0].Types)
}

func TestWriteIsHiveDsFormatOfVersion2(t *testing.T) {
	r, err := ParseRequest(racks, "a/b")
	require.NoError(t, err)
	p := &cell.Placement{Chain: "ROW"}
	for i := range 5 {
		p.Pods = append(p.Pods, cell.PodPlacement{Set: min((i+1)/2, 2), Node: fmt.Sprintf("n%d", i), Indices: []int32{0, 1}, Preassigned: []string{"", ""}})
	}
	p.Pods[0].Indices, p.Pods[0].Preassigned = []int32{4}, []string{""}
	b := Write(r, decide(p, 1))
	golden(t, "v2.txt", b.Isolation+"\n"+b.BindInfo+"\n"+b.Placement+"\n")
	var got bindInfoYAML
	require.NoError(t, yaml.Unmarshal([]byte(b.BindInfo), &got))
	assert.Equal(t, "v2", got.Version)
	require.NotNil(t, got.Root)
	require.Len(t, got.Root.Pods, 1)
	require.Len(t, got.Root.Children, 2)
	assert.Equal(t, "n3", got.Root.Children[1].Pods[0].Node)

	back, slot, err := ReadBound(r, bound(b))
	require.NoError(t, err)
	assert.Equal(t, 1, slot)
	assert.Equal(t, p, back)
}

func TestWriteOfEachPodOfAGang(t *testing.T) {
	r, p := trainers()
	first, second := Write(r, decide(p, 0)), Write(r, decide(p, 1))
	assert.Equal(t, "0,1", first.Isolation)
	assert.Equal(t, "2,3", second.Isolation)
	assert.True(t, strings.HasSuffix(second.Placement, strings.TrimPrefix(first.Placement, `{"slot":0`)))
	assert.Equal(t, WritePlacement(p, 1), second.Placement)
}

func TestWriteOfAnythingButABind(t *testing.T) {
	r, p := trainers()
	assert.Zero(t, Write(r, &cell.Decision{Result: cell.Wait, Placement: p}))
	assert.Zero(t, Write(r, &cell.Decision{Result: cell.Bind}))
}

func TestADowngradeIsReadBack(t *testing.T) {
	r, p := trainers()
	notes := bound(Write(r, decide(p, 0)))
	down := *p
	down.Downgraded, down.Pods = true, append([]cell.PodPlacement(nil), p.Pods...)
	for i := range down.Pods {
		down.Pods[i].Virtual, down.Pods[i].Preassigned = nil, make([]string, len(down.Pods[i].Indices))
	}
	notes[PlacementKey] = WritePlacement(&down, 0)
	got, slot, err := ReadBound(r, notes)
	require.NoError(t, err)
	assert.Zero(t, slot)
	assert.Equal(t, &down, got)
}

func names() []string {
	return []string{"node-1", "0.0.0.1", "1e3", "null", "Yes", "~", "a b", "- a", "a: b", "#", "it's", `"q"`, `back\slash`, "tab\there", "new\nline", "café", "日本", "\u2028x\ufeff",
		"\x7f", "😀", "{a}", "[b]", "*x", "&y", "!z", "%", "@", "`", "2001-01-01", "0x1F", ".inf", "-", "<<", "=", strings.Repeat("long", 60), "🏁/x", "a\x00b", "\u0085"}
}

func randomGang(rnd *rand.Rand) (*cell.Request, *cell.Placement) {
	pick := func() string {
		if rnd.IntN(3) > 0 {
			return fmt.Sprintf("n%d", rnd.IntN(1000))
		}
		return names()[rnd.IntN(len(names()))]
	}
	r := &cell.Request{VirtualCluster: pick(), Gang: "g", Root: cell.Group{Name: "g"}}
	sizes := rnd.Perm(8)
	v2 := rnd.IntN(2) == 0
	group := func() cell.Group {
		g := cell.Group{Name: pick()}
		for range rnd.IntN(3) {
			set := cell.PodSet{Count: 1 + rnd.IntN(4), Cells: 1 + sizes[0]}
			if sizes = sizes[1:]; v2 && rnd.IntN(2) == 0 {
				set.CellType = "PAIR"
			}
			g.Pods = append(g.Pods, set)
		}
		return g
	}
	r.Root = group()
	for v2 && rnd.IntN(3) > 0 && len(r.Root.Children) < 2 {
		r.Root.Children = append(r.Root.Children, group())
	}
	if len(r.Sets()) == 0 {
		r.Root.Pods = []cell.PodSet{{Count: 1, Cells: 2}}
	}
	return r, randomPlace(rnd, r, pick)
}

// randomPlace returns a place in which each pod has its own node, so that no device is used twice.
func randomPlace(rnd *rand.Rand, r *cell.Request, pick func() string) *cell.Placement {
	p := &cell.Placement{Chain: pick(), Order: rnd.Uint64(), Downgraded: rnd.IntN(4) == 0}
	guaranteed := !p.Downgraded && rnd.IntN(3) > 0
	for i, set := range r.Sets() {
		for range set.Count {
			pod := cell.PodPlacement{Set: i, Node: fmt.Sprintf("%s%d", pick(), len(p.Pods))}
			for j := range set.Cells {
				pod.Indices = append(pod.Indices, int32(j*(1+rnd.IntN(3)+j)))
				if !guaranteed {
					pod.Preassigned = append(pod.Preassigned, "")
					continue
				}
				pod.Preassigned = append(pod.Preassigned, pick())
				pod.Virtual = append(pod.Virtual, fmt.Sprintf("%s/%d/%d/%d", r.VirtualCluster, rnd.IntN(3), rnd.IntN(12), j))
			}
			p.Pods = append(p.Pods, pod)
		}
	}
	return p
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		r, p := randomGang(rnd)
		slot := rnd.IntN(len(p.Pods))
		b := Write(r, decide(p, slot))
		got, gotSlot, err := ReadBound(r, bound(b))
		require.NoError(t, err, "round %d:\n%s", i, b.BindInfo)
		require.Equal(t, slot, gotSlot, "round %d", i)
		require.Equal(t, p, got, "round %d:\n%s\n%s", i, b.BindInfo, b.Placement)

		var y bindInfoYAML
		require.NoError(t, yaml.Unmarshal([]byte(b.BindInfo), &y), b.BindInfo)
		require.Equal(t, []string{p.Pods[slot].Node, p.Chain}, []string{y.Node, y.Chain})
		require.Equal(t, p.Pods[slot].Indices, y.Isolation)

		again, gotSlot, err := ReadBound(r, map[string]string{BindInfoKey: b.BindInfo})
		require.NoError(t, err)
		require.Equal(t, slot, gotSlot)
		require.Zero(t, again.Order)
		for j := range again.Pods {
			require.Equal(t, p.Pods[j].Node, again.Pods[j].Node)
			require.Equal(t, p.Pods[j].Set, again.Pods[j].Set, "round %d: HiveD's annotation alone says which set it is", i)
			require.Nil(t, again.Pods[j].Virtual)
		}
	}
}

// eightByEight returns a gang of 8 pods with 8 GPUs each, and the gang's place.
func eightByEight() (*cell.Request, *cell.Placement) {
	r := &cell.Request{VirtualCluster: "vc-research", Gang: "g", Root: gang("g", cell.PodSet{Count: 8, Cells: 8})}
	p := &cell.Placement{Chain: "RACK", Order: 123456}
	for i := range 8 {
		pod := cell.PodPlacement{Node: fmt.Sprintf("n%04d", i+16), Set: 0}
		for j := range 8 {
			pod.Indices = append(pod.Indices, int32(j))
			pod.Preassigned = append(pod.Preassigned, "RACK")
			pod.Virtual = append(pod.Virtual, fmt.Sprintf("vc-research/3/%d/%d/%d/%d", i, 2*i+j/4, 4*i+j/2, 8*i+j))
		}
		p.Pods = append(p.Pods, pod)
	}
	return r, p
}

func TestThePlacementOfALargeGangIsSmall(t *testing.T) {
	r, p := eightByEight()
	b := Write(r, decide(p, 0))
	assert.Less(t, len(b.Placement), 800, "64 GPUs")
	assert.Less(t, len(b.BindInfo), 1600, "64 GPUs")
	got, _, err := ReadBound(r, bound(b))
	require.NoError(t, err)
	assert.Equal(t, p, got)
}

func TestOpenPlacesAndMovesAreReadBack(t *testing.T) {
	for name, open := range map[string][]int{"the first": {0}, "of two sizes": {1, 2}, "the last": {2}} {
		t.Run(name, func(t *testing.T) {
			r, p := trainers()
			p.Moves = 3
			for _, i := range open {
				p.Pods[i] = cell.PodPlacement{Set: p.Pods[i].Set, Indices: []int32{}, Preassigned: []string{}}
			}
			slot := (open[len(open)-1] + 1) % 3
			got, gotSlot, err := ReadBound(r, bound(Write(r, decide(p, slot))))
			require.NoError(t, err)
			assert.Equal(t, slot, gotSlot)
			assert.Equal(t, p, got)
		})
	}
}
