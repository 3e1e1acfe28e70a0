package cell

import "errors"

// Level is a type in a hierarchy of cell types.
type Level struct {
	Type     string
	Children int // number of children of each cell; 0 for the leaf
	Node     bool
}

// Hierarchy contains the child type of each cell type. If a type is defined twice, the first definition counts.
type Hierarchy struct {
	types  map[string]Type
	leaves map[string]bool
	levels map[string][]Level // cached results of Levels, by type
}

// maxLevels is larger than any real hierarchy. Only a type that contains itself exceeds it.
const maxLevels = 64

var (
	errUnknownType = errors.New("unknown cell type")
	errBadType     = errors.New("the cell type is malformed")
)

// Hierarchy returns the hierarchy of the configuration's types.
func (c Config) Hierarchy() *Hierarchy {
	h := &Hierarchy{types: make(map[string]Type, len(c.Types)), leaves: map[string]bool{}, levels: map[string][]Level{}}
	for _, t := range c.Types {
		if _, twice := h.types[t.Name]; !twice {
			h.types[t.Name] = t
		}
	}
	for _, t := range c.Types {
		if _, inner := h.types[t.Child]; !inner && t.Child != "" {
			h.leaves[t.Child] = true
		}
	}
	return h
}

// Levels returns the levels from a type to its leaf type. Callers must not change the result. It returns an error if the type
// is unknown, or if a type below it is invalid.
func (h *Hierarchy) Levels(name string) ([]Level, error) {
	if l, ok := h.levels[name]; ok {
		return l, nil
	}
	if _, ok := h.types[name]; !ok && !h.leaves[name] {
		return nil, errUnknownType
	}
	var l []Level
	for next := name; ; {
		t, inner := h.types[next]
		if !inner {
			l = append(l, Level{Type: next})
			break
		}
		if t.Children < 1 || t.Child == "" || len(l) == maxLevels {
			return nil, errBadType
		}
		l = append(l, Level{next, t.Children, t.Node})
		next = t.Child
	}
	h.levels[name] = l
	return l, nil
}
