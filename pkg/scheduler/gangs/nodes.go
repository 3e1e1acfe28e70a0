package gangs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// node is the last known state of a node.
type node struct {
	healthy bool
	reason  string
	devices string // the node's DevicesAnnotation
	seen    bool   // whether the core knows the fields above
	report  api.Node
	// blocked contains the devices that pods with unknown cells may use, by pod.
	blocked map[types.UID][]int32
	// constraints are the node's fields that determine which pods may run there.
	constraints string
	object      *corev1.Node
}

// reconcileNode updates the health and the devices of a node in package cell. obj is nil if the Kubernetes node doesn't exist.
func (s *state) reconcileNode(name string, obj *corev1.Node) {
	configured := s.core.Devices(name)
	if configured == nil {
		delete(s.nodes, name)
		return
	}
	known := s.nodes[name]
	if known == nil {
		known = &node{}
		s.nodes[name] = known
	}
	if constraints := constraintsOf(obj); constraints != known.constraints {
		known.constraints, known.object = constraints, obj
		s.admitted = nil
		s.epoch++
	}
	healthy, reason := nodeHealth(obj)
	text := ""
	if obj != nil {
		text = obj.Annotations[api.DevicesAnnotation]
	}
	if known.seen && known.healthy == healthy && known.reason == reason && known.devices == text {
		return
	}
	before := known.report
	known.seen, known.healthy, known.reason, known.devices = true, healthy, reason, text
	known.report = api.CompareNode(name, s.core.LeafType(name), configured, text)
	known.report.Healthy, known.report.Reason = healthy, reason
	s.core.SetNode(name, healthy)
	s.setDevices(name, known)
	if text := known.report.Difference(); text != before.Difference() {
		s.log.Info("a node's GPUs were compared with the configuration", "node", name, "difference", text)
		if text != "" && obj != nil {
			s.say(obj, corev1.EventTypeWarning, api.ReasonDifferentGPUs, text)
		}
	}
}

// setDevices sets the usable devices of a node in package cell.
func (s *state) setDevices(name string, n *node) {
	bad := append(slices.Clone(n.report.Missing), n.report.Unhealthy...)
	for _, indices := range n.blocked {
		bad = append(bad, indices...)
	}
	for _, index := range s.core.Devices(name) {
		s.core.SetDevice(name, index, !slices.Contains(bad, index))
	}
	s.epoch++
}

// nodeHealth reports whether pods can run on a node. If they can't, it returns the reason.
func nodeHealth(obj *corev1.Node) (healthy bool, reason string) {
	if obj == nil {
		return false, "Kubernetes has no such node"
	}
	if obj.Spec.Unschedulable {
		return false, "the node is cordoned"
	}
	for _, c := range obj.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return true, ""
		}
	}
	return false, "the node isn't ready"
}
