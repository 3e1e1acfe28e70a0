package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// The value of PlacementKey is JSON:
//
//	{"slot":1,"order":7,"types":["NODE",16],"virtual":[["0/team/0/0","2/1"],["1/1/0","2/1"]]}
//
// types lists the types of the preassigned cells of all leaves in the gang. The number of consecutive leaves with this type
// follows each type. virtual lists the addresses of the virtual leaves for each pod. Each address begins with the number of
// components that it shares with the previous address. A gang without its former guarantee has "downgraded":true instead of
// types and virtual. For an opportunistic gang, all three fields are missing. If the scheduler has moved pods of the gang twice,
// "moves":2 follows the order.

func appendSlot(b []byte, slot int) []byte {
	return append(strconv.AppendInt(append(b, `{"slot":`...), int64(slot), 10), ',')
}

// appendShared appends the fields after slot. They are the same for all pods of a gang.
func appendShared(b []byte, p *cell.Placement) []byte {
	b = strconv.AppendUint(append(b, `"order":`...), p.Order, 10)
	if p.Moves > 0 {
		b = strconv.AppendUint(append(b, `,"moves":`...), p.Moves, 10)
	}
	switch {
	case p.Downgraded:
		b = append(b, `,"downgraded":true`...)
	case hasVirtual(p.Pods):
		b = appendVirtual(appendTypes(b, p.Pods), p.Pods)
	}
	return append(b, '}')
}

func hasVirtual(pods []cell.PodPlacement) bool {
	for i := range pods {
		if len(pods[i].Virtual) > 0 {
			return true
		}
	}
	return false
}

func appendTypes(b []byte, pods []cell.PodPlacement) []byte {
	b = append(b, `,"types":[`...)
	last, run := "", 0
	flush := func() {
		if run == 0 {
			return
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(appendQuoted(b, last), ','), int64(run), 10)
	}
	for i := range pods {
		for j := range pods[i].Indices {
			t := preassigned(&pods[i], j)
			if t != last || run == 0 {
				flush()
				last, run = t, 0
			}
			run++
		}
	}
	flush()
	return append(b, ']')
}

func appendVirtual(b []byte, pods []cell.PodPlacement) []byte {
	b = append(b, `,"virtual":[`...)
	last := ""
	for i := range pods {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for j, address := range pods[i].Virtual {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendAddress(b, last, address)
			last = address
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

// appendAddress appends the number of components that an address shares with the previous address, and the remaining
// components.
func appendAddress(b []byte, last, address string) []byte {
	shared, from := 0, 0
	for i := range min(len(address), len(last)) {
		c := address[i]
		if c != last[i] {
			break
		}
		if c == '/' {
			shared, from = shared+1, i+1
		}
	}
	return appendQuoted(b, strconv.Itoa(shared)+"/"+address[from:])
}

// ours is the parsed value of PlacementKey.
type ours struct {
	Slot       int        `json:"slot"`
	Order      uint64     `json:"order"`
	Moves      uint64     `json:"moves"`
	Downgraded bool       `json:"downgraded"`
	Types      []any      `json:"types"`
	Virtual    [][]string `json:"virtual"`
}

var errOtherShape = errors.New("its parts belong to different gangs")

// apply sets the fields of p that the bind info can't express. The pods of p must be in the order of the bind info. After an
// error, p is unchanged.
func (o *ours) apply(p *cell.Placement) error {
	if o.Downgraded || o.Virtual == nil {
		p.Order, p.Moves, p.Downgraded = o.Order, o.Moves, o.Downgraded
		if o.Downgraded {
			for i := range p.Pods {
				p.Pods[i].Preassigned = make([]string, len(p.Pods[i].Indices))
			}
		}
		return nil
	}
	types, err := expandTypes(o.Types, p.Pods)
	if err != nil {
		return err
	}
	virtual, err := expandVirtual(o.Virtual, p.Pods)
	if err != nil {
		return err
	}
	p.Order, p.Moves = o.Order, o.Moves
	for i := range p.Pods {
		n := len(p.Pods[i].Indices)
		if n == 0 {
			continue
		}
		p.Pods[i].Preassigned, p.Pods[i].Virtual = types[:n:n], virtual[i]
		types = types[n:]
	}
	return nil
}

func expandTypes(runs []any, pods []cell.PodPlacement) ([]string, error) {
	total := 0
	for i := range pods {
		total += len(pods[i].Indices)
	}
	if len(runs)%2 != 0 {
		return nil, errOtherShape
	}
	out := make([]string, 0, total)
	for i := 0; i < len(runs); i += 2 {
		name, isText := runs[i].(string)
		n, isNumber := runs[i+1].(float64)
		if !isText || !isNumber || n < 1 || n != float64(int(n)) || int(n) > total-len(out) {
			return nil, errOtherShape
		}
		for range int(n) {
			out = append(out, name)
		}
	}
	if len(out) != total {
		return nil, errOtherShape
	}
	return out, nil
}

func expandVirtual(lists [][]string, pods []cell.PodPlacement) ([][]string, error) {
	if len(lists) != len(pods) {
		return nil, errOtherShape
	}
	out, last := make([][]string, len(lists)), ""
	for i, list := range lists {
		if len(list) == 0 {
			continue
		}
		if len(list) != len(pods[i].Indices) {
			return nil, errOtherShape
		}
		out[i] = make([]string, len(list))
		for j, entry := range list {
			count, rest, ok := strings.Cut(entry, "/")
			shared, err := strconv.Atoi(count)
			if !ok || err != nil || shared < 0 {
				return nil, fmt.Errorf("%q is not the address of a virtual cell", entry)
			}
			at := 0
			for range shared {
				next := strings.IndexByte(last[at:], '/')
				if next < 0 {
					return nil, fmt.Errorf("%q shares more than possible with the previous address", entry)
				}
				at += next + 1
			}
			last = last[:at] + rest
			out[i][j] = last
		}
	}
	return out, nil
}

func readOurs(text string) (*ours, error) {
	if len(text) > maxBindInfo {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(text), maxBindInfo)
	}
	o := &ours{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, fmt.Errorf("it is not JSON of the scheduler: %w", err)
	}
	return o, nil
}
