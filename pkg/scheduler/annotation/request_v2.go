package annotation

import (
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// maxGroupDepth is the maximum depth of nested groups of pods.
const maxGroupDepth = 16

// v2Spec holds the other fields of version 2.
type v2Spec struct {
	CellType     string   `yaml:"cellType"`
	CellNumber   int      `yaml:"cellNumber"`
	PodRootGroup *v2Group `yaml:"podRootGroup"`
	Others       others   `yaml:",inline"`
}

type v2Group struct {
	Name     string    `yaml:"name"`
	Within   string    `yaml:"withinOneCell"`
	Pods     v2Sets    `yaml:"pods"`
	Pod      v2Sets    `yaml:"pod"`
	Children []v2Group `yaml:"childGroups"`
	Others   others    `yaml:",inline"`
}

// v2Sets is a list of sets of pods. A single set is also accepted.
type v2Sets []v2Set

func (s *v2Sets) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	if n.Kind == yaml.MappingNode {
		*s = make(v2Sets, 1)
		d.Value(n, path, &(*s)[0])
		return
	}
	d.Value(n, path, (*[]v2Set)(s))
}

type v2Set struct {
	Least   int     `yaml:"podMinNumber"`
	Most    int     `yaml:"podMaxNumber"`
	Current bool    `yaml:"containsCurrentPod"`
	Cells   v2Cells `yaml:"cellsPerPod"`
	Others  others  `yaml:",inline"`
}

type v2Cells struct {
	Type   string `yaml:"cellType"`
	Number int    `yaml:"cellNumber"`
	Others others `yaml:",inline"`
}

func (d document) v2(r *cell.Request, pod string) error {
	var s v2Spec
	if err := d.decode(&s); err != nil {
		return err
	}
	if err := d.positive(strictyaml.Path{"cellNumber"}, "cellNumber", s.CellNumber); err != nil {
		return err
	}
	own := cell.PodSet{Count: 1, CellType: s.CellType, Cells: s.CellNumber}
	if s.PodRootGroup == nil {
		r.Gang = pod
		r.Root = cell.Group{Name: pod, Pods: []cell.PodSet{own}}
		return nil
	}
	path := strictyaml.Path{"podRootGroup"}
	g := groupReader{document: d, own: own, current: -1}
	var err error
	if r.Root, err = g.group(path, s.PodRootGroup, 0); err != nil {
		return err
	}
	switch {
	case r.Root.Name == "":
		return d.fault(path, "podRootGroup.name is missing; write a name that all pods of the gang share")
	case g.current < 0:
		return d.fault(path, "no entry of podRootGroup has containsCurrentPod: true; write it where this pod belongs")
	case g.total > maxNumber:
		return d.fault(path, "the gang has more than %d pods", maxNumber)
	}
	r.Gang, r.Set = r.Root.Name, g.current
	return nil
}

// groupReader reads and checks the tree of groups. sets and current count sets in the order of Request.Sets, depth first.
type groupReader struct {
	document
	own     cell.PodSet // the set of this pod, from the head of the request
	sets    int
	current int
	total   int
}

func (g *groupReader) group(path strictyaml.Path, in *v2Group, depth int) (cell.Group, error) {
	out := cell.Group{Name: in.Name, Within: in.Within}
	if depth > maxGroupDepth {
		return out, g.fault(path, "groups of pods are nested deeper than %d levels", maxGroupDepth)
	}
	field, sets := "pods", in.Pods
	if in.Pod != nil {
		field, sets = "pod", in.Pod
	}
	if in.Pods != nil && in.Pod != nil {
		return out, g.fault(path.With(field), "pod and pods mean the same; keep one of the two")
	}
	for i := range sets {
		set, err := g.set(path.With(field, i), &sets[i])
		if err != nil {
			return out, err
		}
		out.Pods = append(out.Pods, set)
	}
	for i := range in.Children {
		child, err := g.group(path.With("childGroups", i), &in.Children[i], depth+1)
		if err != nil {
			return out, err
		}
		out.Children = append(out.Children, child)
	}
	return out, nil
}

func (g *groupReader) set(path strictyaml.Path, in *v2Set) (cell.PodSet, error) {
	out := cell.PodSet{Count: in.Most, CellType: in.Cells.Type, Cells: in.Cells.Number}
	if err := g.positive(path, "podMinNumber", in.Least); err != nil {
		return out, err
	}
	if err := g.positive(path, "podMaxNumber", in.Most); err != nil {
		return out, err
	}
	if in.Least != in.Most {
		return out, g.fault(path, "podMinNumber is %d and podMaxNumber is %d; gangs have a fixed size, write the same number", in.Least, in.Most)
	}
	if err := g.positive(path, "cellsPerPod.cellNumber", out.Cells); err != nil {
		return out, err
	}
	g.total += in.Most
	if out.CellType == "" {
		out.CellType = g.own.CellType
	}
	if in.Current {
		if err := g.isCurrent(path, out); err != nil {
			return out, err
		}
	}
	g.sets++
	return out, nil
}

func (g *groupReader) isCurrent(path strictyaml.Path, set cell.PodSet) error {
	if g.current >= 0 {
		return g.fault(path, "containsCurrentPod is true twice; write it once, where this pod belongs")
	}
	if set.Cells != g.own.Cells || set.CellType != g.own.CellType {
		return g.fault(path, "this pod requests %d %q cells, but its entry in podRootGroup %d %q; write the same",
			g.own.Cells, g.own.CellType, set.Cells, set.CellType)
	}
	g.current = g.sets
	return nil
}
