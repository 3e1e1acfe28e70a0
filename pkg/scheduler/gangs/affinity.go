package gangs

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// nodeSet is a set of nodes. nil contains all nodes.
type nodeSet map[string]bool

// Has implements cell.Nodes.
func (n nodeSet) Has(name string) bool { return n[name] }

// constraints determine the nodes that may run a pod. The first three fields come from a pod. The last two fields come from a
// node.
type constraints struct {
	Selector    map[string]string    `json:",omitempty"`
	Affinity    *corev1.NodeAffinity `json:",omitempty"`
	Tolerations []corev1.Toleration  `json:",omitempty"`

	Labels map[string]string `json:",omitempty"`
	Taints []corev1.Taint    `json:",omitempty"`
}

// text returns the same text for equal constraints.
func (c constraints) text() string {
	data, err := json.Marshal(c)
	if err != nil {
		return "" // Marshal can't fail for strings and lists of strings
	}
	return string(data)
}

func constraintsOf(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return constraints{Labels: n.Labels, Taints: n.Spec.Taints}.text()
}

// limitsOf returns the constraints of a pod.
func limitsOf(p *corev1.Pod) constraints {
	c := constraints{Selector: p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations}
	if p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil {
		c.Affinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	return c
}

// nodesFor returns the nodes that may run all of the pods and that didn't reject them. nil means all nodes. If no node may run
// all of the pods, nodesFor returns the nodes that may run any of them. kube-scheduler then rejects the other pods. If one of
// the pods may not run on any node, the result is empty.
func (s *state) nodesFor(g *gang, pods []*pod) cell.Nodes {
	var common nodeSet
	either, all, nowhere := nodeSet{}, false, false
	last := ""
	for _, p := range pods {
		set := s.admits(p)
		if p.limits != last {
			maps.Copy(either, set)
			all, nowhere = all || set == nil, nowhere || set != nil && len(set) == 0
		}
		switch {
		case p.limits == last || set == nil:
		case common == nil:
			common = set
		default:
			common = common.and(set)
		}
		last = p.limits
	}
	if common != nil && len(common) == 0 && !nowhere {
		if common = either; all {
			common = nil
		}
	}
	now := s.now()
	for name, until := range g.refused {
		if now.After(until) {
			delete(g.refused, name)
		}
	}
	if len(g.refused) > 0 {
		rest := nodeSet{}
		for _, name := range s.core.Nodes() {
			if _, refused := g.refused[name]; !refused && (common == nil || common[name]) {
				rest[name] = true
			}
		}
		common = rest
	}
	if common == nil {
		return nil
	}
	return common
}

func (n nodeSet) and(other nodeSet) nodeSet {
	out := nodeSet{}
	for name := range n {
		if other[name] {
			out[name] = true
		}
	}
	return out
}

// mostAdmitted is the maximum number of cached constraints, because each job may have different constraints.
const mostAdmitted = 256

// admits returns the configured nodes whose labels and taints allow a pod. nil means all nodes.
func (s *state) admits(p *pod) nodeSet {
	if set, known := s.admitted[p.limits]; known {
		return set
	}
	required := nodeaffinity.GetRequiredNodeAffinity(p.object)
	set := nodeSet{}
	for name, n := range s.nodes {
		if n.object == nil || admits(p.object, n.object, required) {
			set[name] = true // a missing node is also unhealthy, which the core explains better
		}
	}
	if len(set) == len(s.nodes) {
		set = nil
	}
	if s.admitted == nil || len(s.admitted) >= mostAdmitted {
		s.admitted = map[string]nodeSet{}
	}
	s.admitted[p.limits] = set
	return set
}

func admits(p *corev1.Pod, n *corev1.Node, required nodeaffinity.RequiredNodeAffinity) bool {
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; keepsOut(t) && !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool { return tolerates(&o, t) }) {
			return false
		}
	}
	match, err := required.Match(n)
	return match && err == nil
}

// keepsOut reports whether a taint excludes pods from a node. It ignores the taint of a cordoned node, because package cell
// already treats such a node as unhealthy.
func keepsOut(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute || t.Effect == corev1.TaintEffectNoSchedule && t.Key != corev1.TaintNodeUnschedulable
}

// tolerates reports whether a toleration matches a taint. It compares values only for the operator Equal. Any other operator
// counts as a match. kube-scheduler evaluates these operators, because their meaning differs between releases.
func tolerates(o *corev1.Toleration, t *corev1.Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect || o.Key != "" && o.Key != t.Key {
		return false
	}
	return o.Operator != corev1.TolerationOpEqual && o.Operator != "" || o.Value == t.Value
}
