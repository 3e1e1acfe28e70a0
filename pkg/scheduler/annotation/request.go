package annotation

import (
	"fmt"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

const (
	// maxSpec is the size of a request, far above any that makes sense.
	maxSpec = 64 << 10
	// maxNumber bounds pods of a gang and cells of a pod.
	maxNumber = 1_000_000
)

// ParseRequest reads the annotation SpecKey: versions 1 and 2 of HiveD's request, and the names of its
// early releases (gpuType, gpuNumber). pod is namespace/name, which names a gang that has no name. An
// error says which field is wrong and what to write.
func ParseRequest(text, pod string) (*cell.Request, error) {
	if text == "" {
		return nil, fmt.Errorf("annotation %s: it is missing or empty; write at least virtualCluster and leafCellNumber", SpecKey)
	}
	var r *cell.Request
	err := read(text, maxSpec, func(t *tree) error {
		var err error
		r, err = t.request(pod)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", SpecKey, err)
	}
	return r, nil
}

// spec are the fields of a request as they stand in the annotation.
type spec struct {
	version, cellType  string
	numberField        string // leafCellNumber, or the name that stands there instead
	number             int
	numberAt           int32
	priorityAt, pinAt  int32
	affinityGroup      int32 // 0 where there is none
	podRootGroup       int32
	ignoreSuggested    bool
	leafType, typeName string
}

func (t *tree) request(pod string) (*cell.Request, error) {
	if t.nodes[0].kind != kindMap {
		return nil, t.wrongKind(0, "the request", "a map")
	}
	r := &cell.Request{}
	s := spec{ignoreSuggested: true}
	for i := range t.children(0) {
		if err := t.requestField(i, r, &s); err != nil {
			return nil, err
		}
	}
	if err := t.checkHead(r, &s); err != nil {
		return nil, err
	}
	if s.version == "v2" {
		return r, t.v2(r, &s, pod)
	}
	return r, t.v1(r, &s, pod)
}

// requestField reads one field. Unknown ones are ignored, as HiveD does.
func (t *tree) requestField(i int32, r *cell.Request, s *spec) error {
	var unused bool
	switch key := t.key(i); key {
	case "version":
		return t.str(i, key, &s.version)
	case "virtualCluster":
		return t.str(i, key, &r.VirtualCluster)
	case "priority":
		s.priorityAt = i
		return t.number(i, key, &r.Priority)
	case "pinnedCellId", "reservationId":
		if s.pinAt != 0 {
			return t.fault(i, "pinnedCellId is there twice, the second time as %s; keep one of the two", key)
		}
		s.pinAt = i
		return t.str(i, key, &r.PinnedCell)
	case "leafCellType", "gpuType":
		if s.typeName != "" {
			return t.fault(i, "%s and %s mean the same; keep one of the two", s.typeName, key)
		}
		s.typeName = key
		return t.str(i, key, &s.leafType)
	case "leafCellNumber", "gpuNumber":
		if s.numberField != "" {
			return t.fault(i, "%s and %s mean the same; keep one of the two", s.numberField, key)
		}
		s.numberField, s.numberAt = key, i
		return t.number(i, key, &s.number)
	case "cellType", "cellNumber":
		return nil // of version 2, which may be found out later
	case "gangReleaseEnable":
		return t.boolean(i, key, &unused)
	case "lazyPreemptionEnable":
		return t.boolean(i, key, &r.LazyPreemption)
	case "ignoreK8sSuggestedNodes":
		return t.boolean(i, key, &s.ignoreSuggested)
	case "affinityGroup":
		s.affinityGroup = i
	case "podRootGroup":
		s.podRootGroup = i
	}
	return nil
}

// checkHead checks what both versions have.
func (t *tree) checkHead(r *cell.Request, s *spec) error {
	switch {
	case s.version != "" && s.version != "v1" && s.version != "v2":
		return fmt.Errorf("version %q is unknown; write v1 or v2, or leave it out", s.version)
	case r.VirtualCluster == "":
		return fmt.Errorf("virtualCluster is missing; write the name of a virtual cluster")
	case r.Priority < cell.Opportunistic || r.Priority > cell.MaxGuaranteed:
		return t.fault(s.priorityAt, "priority is %d; write %d to %d for guaranteed work, or %d for opportunistic work",
			r.Priority, cell.MinGuaranteed, cell.MaxGuaranteed, cell.Opportunistic)
	case r.Priority == cell.Opportunistic && r.PinnedCell != "":
		return t.fault(s.pinAt, "pinnedCellId is for guaranteed work, and priority %d is opportunistic; remove one of the two", r.Priority)
	}
	return nil
}

// positive reads a number that must be there and above 0.
func (t *tree) positive(i int32, field string, n int) error {
	switch {
	case n <= 0:
		return t.fault(i, "%s is %d or missing; write a number above 0", field, n)
	case n > maxNumber:
		return t.fault(i, "%s is %d; the limit is %d", field, n, maxNumber)
	}
	return nil
}

func (t *tree) v1(r *cell.Request, s *spec, pod string) error {
	if s.numberField == "" {
		s.numberField = "leafCellNumber"
	}
	if err := t.positive(s.numberAt, s.numberField, s.number); err != nil {
		return err
	}
	r.LeafType, r.OnlySuggested = s.leafType, !s.ignoreSuggested
	if s.affinityGroup == 0 || t.nodes[s.affinityGroup].kind == kindNull {
		r.Gang = pod
		r.Root = cell.Group{Name: pod, Pods: []cell.PodSet{{Count: 1, Cells: s.number}}}
		return nil
	}
	return t.v1Gang(r, s)
}

func (t *tree) v1Gang(r *cell.Request, s *spec) error {
	if t.nodes[s.affinityGroup].kind != kindMap {
		return t.wrongKind(s.affinityGroup, "affinityGroup", "a map")
	}
	members := int32(0)
	for i := range t.children(s.affinityGroup) {
		switch t.key(i) {
		case "name":
			if err := t.str(i, "affinityGroup.name", &r.Gang); err != nil {
				return err
			}
		case "members":
			members = i
		}
	}
	if r.Gang == "" {
		return t.fault(s.affinityGroup, "affinityGroup.name is missing; write a name that all pods of the gang share, or leave affinityGroup out")
	}
	r.Root.Name, r.Set = r.Gang, -1
	if members != 0 {
		if err := t.v1Members(r, members); err != nil {
			return err
		}
	}
	for i := range r.Root.Pods {
		if r.Root.Pods[i].Cells == s.number {
			r.Set = i
		}
	}
	if r.Set < 0 {
		return t.fault(s.affinityGroup, "affinityGroup.members has no entry with this pod's %s %d; add it", s.numberField, s.number)
	}
	return nil
}

func (t *tree) v1Members(r *cell.Request, members int32) error {
	switch t.nodes[members].kind {
	case kindNull:
		return nil
	case kindList:
	default:
		return t.wrongKind(members, "affinityGroup.members", "a list")
	}
	n, total := 0, 0
	for range t.children(members) {
		n++
	}
	r.Root.Pods = make([]cell.PodSet, 0, n)
	for m := range t.children(members) {
		set, err := t.v1Member(m)
		if err != nil {
			return err
		}
		if total += set.Count; total > maxNumber {
			return t.fault(m, "the gang has more than %d pods", maxNumber)
		}
		r.Root.Pods = addSet(r.Root.Pods, set)
	}
	return nil
}

// addSet sums pods of one size up.
func addSet(sets []cell.PodSet, set cell.PodSet) []cell.PodSet {
	for i := range sets {
		if sets[i].Cells == set.Cells {
			sets[i].Count += set.Count
			return sets
		}
	}
	return append(sets, set)
}

func (t *tree) v1Member(m int32) (cell.PodSet, error) {
	var set cell.PodSet
	if t.nodes[m].kind != kindMap {
		return set, t.wrongKind(m, "an entry of affinityGroup.members", "a map")
	}
	named, field := "", "leafCellNumber"
	for i := range t.children(m) {
		var err error
		switch key := t.key(i); key {
		case "podNumber":
			err = t.number(i, "podNumber", &set.Count)
		case "leafCellNumber", "gpuNumber":
			if named != "" {
				err = t.fault(i, "%s and %s mean the same; keep one of the two", named, key)
				break
			}
			named, field = key, key
			err = t.number(i, key, &set.Cells)
		}
		if err != nil {
			return set, err
		}
	}
	if err := t.positive(m, "podNumber", set.Count); err != nil {
		return set, err
	}
	return set, t.positive(m, field, set.Cells)
}
