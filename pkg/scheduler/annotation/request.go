package annotation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

const (
	// maxSpec is the maximum size of a request, in bytes. Useful requests are far smaller.
	maxSpec = 64 << 10
	// maxNumber is the maximum number of pods in a gang, and of cells in a pod.
	maxNumber = 1_000_000
)

// ParseRequest parses the value of the annotation SpecKey. It accepts versions 1 and 2 of HiveD's request, and the field names
// of HiveD's early releases (gpuType, gpuNumber). pod is the pod's namespace/name, which also names a gang without a name.
// Errors contain the field and the remedy.
func ParseRequest(text, pod string) (*cell.Request, error) {
	if text == "" {
		return nil, fmt.Errorf("annotation %s: it is missing or empty; write at least virtualCluster and leafCellNumber", SpecKey)
	}
	r, err := parseRequest(text, pod)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", SpecKey, err)
	}
	return r, nil
}

func parseRequest(text, pod string) (*cell.Request, error) {
	d, err := parse(text, maxSpec)
	if err != nil {
		return nil, err
	}
	h := head{IgnoreSuggested: true}
	if err := d.decode(&h); err != nil {
		return nil, err
	}
	_, pinned, err := either(d, nil, "pinnedCellId", h.PinnedCell, "reservationId", h.Reservation)
	if err != nil {
		return nil, err
	}
	r := &cell.Request{VirtualCluster: h.VirtualCluster, Priority: h.Priority, PinnedCell: pinned, LazyPreemption: h.LazyPreemption}
	if err := h.check(d, r); err != nil {
		return nil, err
	}
	if h.Version == "v2" { // version 2 has no ignoreK8sSuggestedNodes: the pods may use all nodes
		return r, d.v2(r, pod)
	}
	r.OnlySuggested = !h.IgnoreSuggested
	return r, d.v1(r, pod)
}

// head holds the common fields of versions 1 and 2. As in HiveD, unknown fields are ignored.
type head struct {
	Version         string  `yaml:"version"`
	VirtualCluster  string  `yaml:"virtualCluster"`
	Priority        int     `yaml:"priority"`
	PinnedCell      *string `yaml:"pinnedCellId"`
	Reservation     *string `yaml:"reservationId"`
	LazyPreemption  bool    `yaml:"lazyPreemptionEnable"`
	IgnoreSuggested bool    `yaml:"ignoreK8sSuggestedNodes"`
	Others          others  `yaml:",inline"`
}

func (h *head) check(d document, r *cell.Request) error {
	switch {
	case h.Version != "" && h.Version != "v1" && h.Version != "v2":
		return fmt.Errorf("version %q is unknown; write v1 or v2, or remove it", h.Version)
	case r.VirtualCluster == "":
		return errors.New("virtualCluster is missing; write the name of a virtual cluster")
	case r.Priority < cell.Opportunistic || r.Priority > cell.MaxGuaranteed:
		return d.fault(strictyaml.Path{"priority"}, "priority is %d; write %d to %d for guaranteed work, or %d for opportunistic work",
			r.Priority, cell.MinGuaranteed, cell.MaxGuaranteed, cell.Opportunistic)
	case r.Priority == cell.Opportunistic && r.PinnedCell != "":
		return d.fault(strictyaml.Path{"pinnedCellId"}, "pinnedCellId is for guaranteed work, and priority %d is opportunistic; remove one of the two", r.Priority)
	}
	return nil
}

// v1Spec holds the other fields of version 1.
type v1Spec struct {
	LeafCellType   *string  `yaml:"leafCellType"`
	GPUType        *string  `yaml:"gpuType"`
	LeafCellNumber *int     `yaml:"leafCellNumber"`
	GPUNumber      *int     `yaml:"gpuNumber"`
	AffinityGroup  *v1Group `yaml:"affinityGroup"`
	// OrElse isn't part of HiveD's format. It requests alternative cells for the same pods.
	OrElse *v1Spec `yaml:"orElse"`
	Others others  `yaml:",inline"`
}

type v1Group struct {
	Name    string     `yaml:"name"`
	Members []v1Member `yaml:"members"`
	Others  others     `yaml:",inline"`
}

type v1Member struct {
	PodNumber      int    `yaml:"podNumber"`
	LeafCellNumber *int   `yaml:"leafCellNumber"`
	GPUNumber      *int   `yaml:"gpuNumber"`
	Others         others `yaml:",inline"`
}

func (d document) v1(r *cell.Request, pod string) error {
	var s v1Spec
	if err := d.decode(&s); err != nil {
		return err
	}
	if err := d.v1Cells(nil, &s, r, pod); err != nil || s.OrElse == nil {
		return err
	}
	at, or := strictyaml.Path{"orElse"}, *r
	if err := d.v1Cells(at, s.OrElse, &or, pod); err != nil {
		return err
	}
	switch {
	case r.PinnedCell != "":
		return d.fault(at, "orElse requests other cells, and pinnedCellId certain ones; remove one of the two")
	case s.OrElse.OrElse != nil:
		return d.fault(at.With("orElse"), "orElse can have no orElse itself; remove it")
	case or.Gang != r.Gang || podsOf(r) != podsOf(&or):
		return d.fault(at, "orElse has a different gang than the request; give its affinityGroup the same name and number of pods")
	}
	r.Alternative = &or
	return nil
}

// v1Cells sets the cells of the pod and its gang in r. at is the path of s.
func (d document) v1Cells(at strictyaml.Path, s *v1Spec, r *cell.Request, pod string) (err error) {
	if _, r.LeafType, err = either(d, at, "leafCellType", s.LeafCellType, "gpuType", s.GPUType); err != nil {
		return err
	}
	set, field, err := d.v1Set(at, 1, s.LeafCellNumber, s.GPUNumber)
	if err != nil {
		return err
	}
	if s.AffinityGroup == nil {
		r.Gang = pod
		r.Root = cell.Group{Name: pod, Pods: []cell.PodSet{set}}
		return nil
	}
	path := at.With("affinityGroup")
	if r.Root, err = d.v1Group(path, s.AffinityGroup); err != nil {
		return err
	}
	r.Gang, r.Set = r.Root.Name, slices.IndexFunc(r.Root.Pods, func(s cell.PodSet) bool { return s.Cells == set.Cells })
	if r.Set < 0 {
		return d.fault(path, "affinityGroup.members has no entry with this pod's %s %d; add it", field, set.Cells)
	}
	return nil
}

func (d document) v1Group(path strictyaml.Path, g *v1Group) (cell.Group, error) {
	out := cell.Group{Name: g.Name}
	if g.Name == "" {
		return out, d.fault(path, "affinityGroup.name is missing; write a name that all pods of the gang share, or remove affinityGroup")
	}
	total := 0
	for i := range g.Members {
		m, at := &g.Members[i], path.With("members", i)
		if err := d.positive(at, "podNumber", m.PodNumber); err != nil {
			return out, err
		}
		set, _, err := d.v1Set(at, m.PodNumber, m.LeafCellNumber, m.GPUNumber)
		if err != nil {
			return out, err
		}
		if total += set.Count; total > maxNumber {
			return out, d.fault(at, "the gang has more than %d pods", maxNumber)
		}
		out.Pods = addSet(out.Pods, set)
	}
	return out, nil
}

// v1Set returns a set of pods. It also returns the name of the field that contains the number of cells.
func (d document) v1Set(path strictyaml.Path, pods int, cells, gpus *int) (set cell.PodSet, field string, err error) {
	field, n, err := either(d, path, "leafCellNumber", cells, "gpuNumber", gpus)
	if err == nil {
		err = d.positive(path.With(field), field, n)
	}
	return cell.PodSet{Count: pods, Cells: n}, field, err
}

// addSet adds a set to sets. If sets contains a set with pods of the same size, it adds the pods to that set.
func addSet(sets []cell.PodSet, set cell.PodSet) []cell.PodSet {
	for i := range sets {
		if sets[i].Cells == set.Cells {
			sets[i].Count += set.Count
			return sets
		}
	}
	return append(sets, set)
}

func podsOf(r *cell.Request) int {
	n := 0
	for _, set := range r.Sets() {
		n += set.Count
	}
	return n
}
