package annotation

import (
	"strconv"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Write returns the annotations of a pod that d binds; they are empty if d doesn't bind.
//
// What all pods of a gang share is made once and kept in d.Placement.Text, so that the pods of a gang
// must be written one after the other.
func Write(r *cell.Request, d *cell.Decision) Bound {
	p := d.Placement
	if d.Result != cell.Bind || p == nil {
		return Bound{}
	}
	if p.Text == "" {
		p.Text = shared(r, p)
	}
	gang, placement, _ := strings.Cut(p.Text, separator)
	var b strings.Builder
	b.Grow(len(gang) + len(placement) + len(d.Node) + len(d.Chain) + 8*len(d.Indices) + 96)
	var small [128]byte
	buf := appendIndices(small[:0], d.Indices)
	b.Write(buf)
	isolation := b.Len()
	b.WriteString("node: ")
	buf = append(appendText(buf, d.Node), "\nleafCellIsolation: ["...)
	b.Write(buf[isolation:])
	b.Write(buf[:isolation])
	buf = append(appendText(append(buf[:0], "]\ncellChain: "...), d.Chain), '\n')
	b.Write(buf)
	b.WriteString(gang)
	bindInfo := b.Len()
	b.Write(appendSlot(buf[:0], d.Slot))
	b.WriteString(placement)
	all := b.String()
	return Bound{Isolation: all[:isolation], BindInfo: all[isolation:bindInfo], Placement: all[bindInfo:]}
}

// separator divides the shared part of the bind info from that of the placement.
const separator = "\x00"

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// typed is up to how many bytes the bind info has the types of preassigned cells, one per leaf. They are the
// most of it, and the placement has them once per run of equal ones.
const typed = 128 << 10

// shared makes what all pods of the gang share.
func shared(r *cell.Request, p *cell.Placement) string {
	buf, _ := buffers.Get().(*[]byte)
	if *buf = appendGang((*buf)[:0], r, p, true); len(*buf) > typed {
		*buf = appendGang((*buf)[:0], r, p, false)
	}
	*buf = appendShared(append(*buf, separator...), p)
	text := string(*buf)
	if cap(*buf) <= 1<<20 {
		buffers.Put(buf)
	}
	return text
}

// WritePlacement returns the value of PlacementKey alone, for the pod in a slot of a gang that lost or
// regained its guarantee.
func WritePlacement(p *cell.Placement, slot int) string {
	return string(appendShared(appendSlot(nil, slot), p))
}

// appendIndices appends device indices, joined by commas.
func appendIndices(b []byte, indices []int32) []byte {
	for i, n := range indices {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// appendText appends text as a YAML scalar, in quotes if it could be read as something else.
func appendText(b []byte, s string) []byte {
	if isPlain(s) {
		return append(b, s...)
	}
	return appendQuoted(b, s)
}

func isPlain(s string) bool {
	if s == "" || len(s) > maxFastText || !isLetter(s[0]) || reserved(s) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

// appendQuoted appends a text in double quotes; the result is JSON as well as YAML.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	unit := func(b []byte, r rune) []byte {
		return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r <= '~':
			b = append(b, byte(r))
		case r < 0xa0:
			b = unit(b, r)
		default:
			// Escapes beyond 16 bits differ between YAML and JSON, so the character stands for itself
			// where YAML allows that.
			if r <= 0xffff && (r >= 0xd800 && r < 0xe000 || r >= 0xfff0 || r == 0x2028 || r == 0x2029 || r == 0xfeff) {
				b = unit(b, r)
			} else {
				b = append(b, string(r)...)
			}
		}
	}
	return append(b, '"')
}

// isV2 reports whether version 1 can't express the gang's shape.
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

// appendGang appends the part of the bind info that all pods of the gang share.
func appendGang(b []byte, r *cell.Request, p *cell.Placement, types bool) []byte {
	if isV2(r) {
		b = append(b, "version: v2\npodRootGroupBindInfo:\n"...)
		root, pods := &r.Root, p.Pods
		if countPods(root) != len(pods) {
			// A gang that was taken over in another shape.
			b = append(b, "  podPlacements:\n"...)
			return append(appendPods(b, "  ", pods, types), "  childGroupBindingInfo: []\n"...)
		}
		b, _ = appendGroup(b, "  ", root, pods, types)
		return b
	}
	b = append(b, "affinityGroupBindInfo:\n"...)
	for pods := p.Pods; len(pods) > 0; {
		n := 1
		for n < len(pods) && len(pods[n].Indices) == len(pods[0].Indices) {
			n++
		}
		b = append(b, "- podPlacements:\n"...)
		b = appendPods(b, "  ", pods[:n], types)
		pods = pods[n:]
	}
	return b
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

// appendGroup appends a group, whose pods are the first of pods, and returns the others.
func appendGroup(b []byte, indent string, g *cell.Group, pods []cell.PodPlacement, types bool) ([]byte, []cell.PodPlacement) {
	n := 0
	for _, s := range g.Pods {
		n += s.Count
	}
	b = append(append(b, indent...), "podPlacements:"...)
	if n == 0 {
		b = append(b, " []"...)
	}
	b = appendPods(append(b, '\n'), indent, pods[:n], types)
	pods = pods[n:]
	b = append(append(b, indent...), "childGroupBindingInfo:"...)
	if len(g.Children) == 0 {
		return append(b, " []\n"...), pods
	}
	b = append(b, '\n')
	for i := range g.Children {
		start := len(b)
		b, pods = appendGroup(b, indent+"  ", &g.Children[i], pods, types)
		b[start+len(indent)] = '-'
	}
	return b, pods
}

// appendPods appends a list of pods' placements.
func appendPods(b []byte, indent string, pods []cell.PodPlacement, types bool) []byte {
	for i := range pods {
		p := &pods[i]
		b = append(append(b, indent...), "- physicalNode: "...)
		b = append(appendText(b, p.Node), '\n')
		b = append(append(b, indent...), "  physicalLeafCellIndices: ["...)
		b = append(appendIndices(b, p.Indices), "]\n"...)
		if types {
			b = append(append(b, indent...), "  preassignedCellTypes: ["...)
			b = append(appendTypeList(b, p), "]\n"...)
		}
	}
	return b
}

// appendTypeList appends the types of the preassigned cells, most of which are equal.
func appendTypeList(b []byte, p *cell.PodPlacement) []byte {
	last, from, to := "", 0, 0
	for j := range p.Indices {
		if j > 0 {
			b = append(b, ',')
		}
		if t := preassigned(p, j); to > 0 && t == last {
			b = append(b, b[from:to]...)
		} else {
			from, last = len(b), t
			b = appendText(b, t)
			to = len(b)
		}
	}
	return b
}

func preassigned(p *cell.PodPlacement, i int) string {
	if i < len(p.Preassigned) {
		return p.Preassigned[i]
	}
	return ""
}
