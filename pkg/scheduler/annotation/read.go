package annotation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// maxBindInfo is the maximum size of the bind info of a gang, in bytes. Kubernetes accepts only a quarter of this size on a
// pod.
const maxBindInfo = 1 << 20

// ReadBound returns the place of a bound pod's gang, and the pod's index in the gang. HiveD's annotations of version 1, version
// 2 or the early releases are enough. Then Order is 0 and Virtual is nil. With PlacementKey, the result is exact. ReadBound
// ignores a PlacementKey that contradicts the other annotations, because the other annotations determine the devices in the
// containers.
func ReadBound(r *cell.Request, annotations map[string]string) (p *cell.Placement, slot int, err error) {
	text := annotations[BindInfoKey]
	if text == "" {
		return nil, 0, fmt.Errorf("annotation %s: it is missing or empty, so that it is unknown which GPUs the pod has", BindInfoKey)
	}
	b, err := parseBindInfo(text)
	if err != nil {
		return nil, 0, fmt.Errorf("annotation %s: %w", BindInfoKey, err)
	}
	if err := b.check(annotations); err != nil {
		return nil, 0, err
	}
	p = &cell.Placement{Chain: b.chain, Pods: b.pods}
	hint := -1
	if text := annotations[PlacementKey]; text != "" {
		if o, err := readOurs(text); err == nil && o.apply(p) == nil {
			hint = o.Slot
		}
	}
	own := b.own(hint)
	if own < 0 {
		return nil, 0, fmt.Errorf("annotation %s: no placement in it is the pod's own, devices %v of node %q", BindInfoKey, b.isolation, b.node)
	}
	return p, b.order(r, own), nil
}

// check checks that the annotations agree, and sorts the device indices.
func (b *bindInfo) check(annotations map[string]string) error {
	isolation, key := annotations[IsolationKey], IsolationKey
	if isolation == "" {
		isolation, key = annotations[LegacyIsolationKey], LegacyIsolationKey
	}
	if isolation != "" {
		seen, err := splitIndices(isolation)
		if err != nil {
			return fmt.Errorf("annotation %s: %w", key, err)
		}
		slices.Sort(seen)
		if b.isolation == nil {
			b.isolation = seen
		}
		slices.Sort(b.isolation)
		if !slices.Equal(seen, b.isolation) {
			return fmt.Errorf("annotation %s says that the pod has devices %v, and %s that it has %v", key, seen, BindInfoKey, b.isolation)
		}
	}
	slices.Sort(b.isolation)
	if b.node == "" || len(b.isolation) == 0 {
		return fmt.Errorf("annotation %s: it has no node, or no leafCellIsolation", BindInfoKey)
	}
	type device struct {
		node  string
		index int32
	}
	seen := make(map[device]bool, len(b.pods)*4)
	for i := range b.pods {
		for _, n := range b.pods[i].Indices {
			d := device{b.pods[i].Node, n}
			if seen[d] {
				return fmt.Errorf("annotation %s: device %d of node %q is in it twice", BindInfoKey, n, d.node)
			}
			seen[d] = true
		}
	}
	return nil
}

func splitIndices(s string) ([]int32, error) {
	out := make([]int32, 0, strings.Count(s, ",")+1)
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a list of device indices such as 0,1", s)
		}
		out = append(out, int32(n))
	}
	return out, nil
}

// own returns the index of the pod's own placement. It tries hint first. Otherwise it searches by node and devices.
func (b *bindInfo) own(hint int) int {
	same := func(i int) bool {
		p := &b.pods[i]
		if p.Node != b.node || len(p.Indices) != len(b.isolation) {
			return false
		}
		for _, n := range p.Indices {
			if !slices.Contains(b.isolation, n) {
				return false
			}
		}
		return true
	}
	if hint >= 0 && hint < len(b.pods) && same(hint) {
		return hint
	}
	for i := range b.pods {
		if same(i) {
			return i
		}
	}
	return -1
}

// order assigns each placement to a pod set of the request, and sorts the placements by set. own is the index of a placement.
// The result is the new index of this placement.
func (b *bindInfo) order(r *cell.Request, own int) int {
	for i := range b.pods {
		sortPod(&b.pods[i])
	}
	sets := r.Sets()
	if !bySize(b.pods, sets) {
		b.byShape(r, sets)
	}
	at := b.pods[own]
	slices.SortStableFunc(b.pods, func(x, y cell.PodPlacement) int {
		return cmp.Compare(uint(x.Set), uint(y.Set)) // placements without a set, -1, come last
	})
	return slices.IndexFunc(b.pods, func(p cell.PodPlacement) bool { return p.Node == at.Node && slices.Equal(p.Indices, at.Indices) })
}

func sortPod(p *cell.PodPlacement) {
	if slices.IsSorted(p.Indices) {
		return
	}
	order := make([]int, len(p.Indices))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(p.Indices[a]) - int(p.Indices[b]) })
	pick := func(from []string) []string {
		if from == nil {
			return nil
		}
		out := make([]string, len(order))
		for i, j := range order {
			out[i] = from[j]
		}
		return out
	}
	indices := make([]int32, len(order))
	for i, j := range order {
		indices[i] = p.Indices[j]
	}
	p.Indices, p.Preassigned, p.Virtual = indices, pick(p.Preassigned), pick(p.Virtual)
}

// bySize assigns placements to sets by their number of GPUs. It returns false if two sets have the same number of GPUs, or a
// set has a cell type.
func bySize(pods []cell.PodPlacement, sets []cell.PodSet) bool {
	for i, s := range sets {
		if s.CellType != "" {
			return false
		}
		for _, other := range sets[:i] {
			if other.Cells == s.Cells {
				return false
			}
		}
	}
	left := make([]int, len(sets))
	for i, s := range sets {
		left[i] = s.Count
	}
	for i := range pods {
		for j, s := range sets {
			if s.Cells == len(pods[i].Indices) && left[j] > 0 {
				pods[i].Set = j
				left[j]--
				break
			}
		}
	}
	fillOpen(pods, left)
	return true
}

// fillOpen assigns placements without a place to the sets that still need pods, in the order of the sets. The size of such
// placements isn't known.
func fillOpen(pods []cell.PodPlacement, left []int) {
	set := 0
	for i := range pods {
		for set < len(left) && left[set] == 0 {
			set++
		}
		if pods[i].Node == "" && set < len(left) {
			pods[i].Set = set
			left[set]--
		}
	}
}

// byShape assigns placements to sets by their order. It requires that the groups of the bind info match the groups of the
// request.
func (b *bindInfo) byShape(r *cell.Request, sets []cell.PodSet) {
	var want []int
	var walk func(g *cell.Group)
	walk = func(g *cell.Group) {
		n := 0
		for _, s := range g.Pods {
			n += s.Count
		}
		want = append(want, n)
		for i := range g.Children {
			walk(&g.Children[i])
		}
	}
	walk(&r.Root)
	if !slices.Equal(want, b.groups) {
		return
	}
	i := 0
	for j, s := range sets {
		for range s.Count {
			if s.CellType == "" && b.pods[i].Node != "" && len(b.pods[i].Indices) != s.Cells {
				for k := range b.pods {
					b.pods[k].Set = -1
				}
				return
			}
			b.pods[i].Set = j
			i++
		}
	}
}
