package annotation

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// own is the text on a pod's claim with the pod's place. The claim itself contains the node and devices:
//
//	{"chain":"NODE","slot":1,"order":7,"types":["NODE",4],"virtual":[["0/team/0/0","2/1"],["1/1/0","2/1"]],"pods":[["a",0,1],["b",2,3]]}
//
// pods contains the places of the whole gang. Then types and virtual also describe the whole gang, as in PlacementKey.
// If the text is too long for a claim, pods is missing, and types and virtual describe only this pod.
type own struct {
	ours
	Chain string  `json:"chain"`
	Pods  [][]any `json:"pods"`
}

// maxOwn is Kubernetes' limit for the details on a claim, in bytes.
const maxOwn = 10 << 10

// WriteOwn returns the details of a pod's place as JSON. They contain the places of the pod's gang if the text isn't too long.
func WriteOwn(p *cell.Placement, slot int) []byte {
	head := append(appendQuoted([]byte(`{"chain":`), p.Chain), ',')
	head = append(head, appendSlot(nil, slot)[1:]...)
	if mayFit(p) {
		if all := appendPlaces(appendShared(slices.Clone(head), p), p.Pods); len(all) <= maxOwn {
			return all
		}
	}
	one := cell.Placement{Order: p.Order, Moves: p.Moves, Downgraded: p.Downgraded, Pods: p.Pods[slot : slot+1]}
	return appendShared(head, &one)
}

// mayFit reports whether the places of a gang may fit on a claim. It only estimates the length, and stops at the limit.
func mayFit(p *cell.Placement) bool {
	n := 0
	for i := range p.Pods {
		if n += len(`[""],`) + len(p.Pods[i].Node) + len(",0")*len(p.Pods[i].Indices); n > maxOwn {
			return false
		}
	}
	return true
}

// appendPlaces appends the field pods to an unfinished JSON object.
func appendPlaces(b []byte, pods []cell.PodPlacement) []byte {
	b = append(b[:len(b)-1], `,"pods":[`...)
	for i := range pods {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(append(b, '['), pods[i].Node)
		if len(pods[i].Indices) > 0 {
			b = appendIndices(append(b, ','), pods[i].Indices)
		}
		b = append(b, ']')
	}
	return append(b, "]}"...)
}

// ReadOwn reads the place of a pod from the output of WriteOwn, and from the node and devices of the pod's claim. If the text
// of the whole gang was too long, the result contains no places for the other pods of the gang.
func ReadOwn(r *cell.Request, node string, indices []int32, details []byte) (p *cell.Placement, slot int, err error) {
	var o own
	if err := json.Unmarshal(details, &o); err != nil {
		return nil, 0, fmt.Errorf("its claim has no details of the scheduler: %w", err)
	}
	p = &cell.Placement{Chain: o.Chain}
	for set, s := range r.Sets() {
		for range s.Count {
			p.Pods = append(p.Pods, cell.PodPlacement{Set: set})
		}
	}
	if o.Slot < 0 || o.Slot >= len(p.Pods) {
		return nil, 0, fmt.Errorf("its claim says that it is pod %d of its gang, which has %d", o.Slot, len(p.Pods))
	}
	self := cell.PodPlacement{Set: p.Pods[o.Slot].Set, Node: node, Indices: slices.Clone(indices), Preassigned: make([]string, len(indices))}
	known := p.Pods
	switch {
	case o.Pods == nil:
		known = []cell.PodPlacement{self}
	case len(o.Pods) != len(known):
		return nil, 0, fmt.Errorf("the details of its claim have places of %d pods, and its gang has %d", len(o.Pods), len(known))
	default:
		if err := o.places(known); err != nil {
			return nil, 0, fmt.Errorf("the details of its claim: %w", err)
		}
		if at := known[o.Slot]; at.Node != node || !slices.Equal(at.Indices, indices) {
			return nil, 0, fmt.Errorf("the details of its claim say that it has %v of %s, and the claim has %v of %s", at.Indices, at.Node, indices, node)
		}
	}
	of := cell.Placement{Pods: known}
	if err := o.apply(&of); err != nil {
		return nil, 0, fmt.Errorf("the details of its claim: %w", err)
	}
	p.Order, p.Moves, p.Downgraded = of.Order, of.Moves, of.Downgraded
	if o.Pods == nil {
		p.Pods[o.Slot] = of.Pods[0]
	}
	return p, o.Slot, nil
}

func (o *own) places(pods []cell.PodPlacement) error {
	for i, entry := range o.Pods {
		if len(entry) == 0 {
			return errOtherShape
		}
		node, ok := entry[0].(string)
		if !ok || (node == "") != (len(entry) == 1) {
			return errOtherShape
		}
		for _, e := range entry[1:] {
			n, ok := e.(float64)
			if !ok || n < 0 || n != float64(int32(n)) || slices.Contains(pods[i].Indices, int32(n)) {
				return errOtherShape
			}
			pods[i].Indices = append(pods[i].Indices, int32(n))
		}
		if pods[i].Node = node; node != "" {
			pods[i].Preassigned = make([]string, len(pods[i].Indices))
		}
	}
	return nil
}
