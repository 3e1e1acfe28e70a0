package annotation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Write returns the annotations of a pod that d binds. They are empty if d doesn't bind the pod.
func Write(r *cell.Request, d *cell.Decision) Bound {
	p := d.Placement
	if d.Result != cell.Bind || p == nil {
		return Bound{}
	}
	t := bindText{Node: d.Node, Isolation: d.Indices, Chain: d.Chain}
	t.setGang(r, p)
	return Bound{Isolation: Isolation(d.Indices), BindInfo: t.String(), Placement: WritePlacement(p, d.Slot)}
}

// WritePlacement returns the value of PlacementKey for the pod in a slot. It is used when a gang has lost or regained its
// guarantee.
func WritePlacement(p *cell.Placement, slot int) string {
	return string(appendShared(appendSlot(nil, slot), p))
}

// Isolation returns the value of IsolationKey for device indices, such as "0,1".
func Isolation(indices []int32) string { return string(appendIndices(nil, indices)) }

func appendIndices(b []byte, indices []int32) []byte {
	for i, n := range indices {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

func appendQuoted(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return append(append(append(b, '"'), s...), '"')
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // json.Marshal can encode every string
	}
	return append(b, text...)
}

// String returns JSON. JSON is also YAML, so HiveD's tools can read it.
func (t *bindText) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // json.Marshal can encode strings and numbers
	}
	if !slices.ContainsFunc(text, func(b byte) bool { return b > '~' }) {
		return string(text)
	}
	var b strings.Builder
	for _, r := range string(text) {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether YAML requires an escape for a character that JSON allows.
func hidden(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// maxTypes is the maximum size of the types of preassigned cells in the bind info, in bytes. The bind info contains one type
// per cell. PlacementKey contains one type per run of equal types.
const maxTypes = 32 << 10

// setGang sets the fields that all pods of the gang share.
func (t *bindText) setGang(r *cell.Request, p *cell.Placement) {
	pods, types := make([]bindPod, len(p.Pods)), 0
	for i := range p.Pods {
		in, out := &p.Pods[i], &pods[i]
		out.Node, out.Indices, out.Types = in.Node, append([]int32{}, in.Indices...), make([]string, len(in.Indices))
		for j := range out.Types {
			out.Types[j] = preassigned(in, j)
			types += len(out.Types[j]) + len(`"",`)
		}
	}
	if types > maxTypes {
		for i := range pods {
			pods[i].Types = nil
		}
	}
	switch {
	case !isV2(r):
		t.Members = membersOf(pods)
	case countPods(&r.Root) != len(pods): // a gang whose shape changed when the scheduler took it over
		t.Version, t.Root = "v2", &bindGroup{Pods: pods}
	default:
		root, _ := groupOf(&r.Root, pods)
		t.Version, t.Root = "v2", &root
	}
}

// membersOf converts pods to members. Consecutive pods with the same number of cells form one member.
func membersOf(pods []bindPod) []bindGroup {
	out := []bindGroup{}
	for len(pods) > 0 {
		n := 1
		for n < len(pods) && len(pods[n].Indices) == len(pods[0].Indices) {
			n++
		}
		out, pods = append(out, bindGroup{Pods: pods[:n]}), pods[n:]
	}
	return out
}

// groupOf fills the group g with the first pods. It returns the group and the remaining pods.
func groupOf(g *cell.Group, pods []bindPod) (out bindGroup, rest []bindPod) {
	n := 0
	for _, s := range g.Pods {
		n += s.Count
	}
	out.Pods, rest = pods[:n], pods[n:]
	for i := range g.Children {
		var child bindGroup
		child, rest = groupOf(&g.Children[i], rest)
		out.Children = append(out.Children, child)
	}
	return out, rest
}

// isV2 reports whether only version 2 can express the gang's shape.
func isV2(r *cell.Request) bool {
	if len(r.Root.Children) > 0 || r.Root.Within != "" {
		return true
	}
	for i, s := range r.Root.Pods {
		if s.CellType != "" {
			return true
		}
		for _, other := range r.Root.Pods[:i] {
			if other.Cells == s.Cells {
				return true
			}
		}
	}
	return false
}

func countPods(g *cell.Group) int {
	n := 0
	for _, s := range g.Pods {
		n += s.Count
	}
	for i := range g.Children {
		n += countPods(&g.Children[i])
	}
	return n
}

func preassigned(p *cell.PodPlacement, i int) string {
	if i < len(p.Preassigned) {
		return p.Preassigned[i]
	}
	return ""
}
