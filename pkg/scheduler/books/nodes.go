package books

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// node is what was seen of a node last.
type node struct {
	healthy bool
	reason  string
	devices string // the annotation
	seen    bool   // the fields above are those that the core knows
	report  api.Node
	// blocked are devices that pods may use whose cells aren't known.
	blocked map[types.UID][]int32
	// constraints is what decides which pods may run there.
	constraints string
	object      *corev1.Node
}

// reconcileNode tells the core what of a node can be used; obj is nil if Kubernetes has none of that name.
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
	known.report = compare(name, configured, text)
	known.report.Healthy, known.report.Reason = healthy, reason
	s.core.SetNode(name, healthy)
	s.setDevices(name, known)
	if text := difference(&known.report); text != difference(&before) {
		s.log.Info("a node's GPUs were compared with the configuration", "node", name, "difference", text)
		if text != "" && obj != nil {
			s.say(obj, corev1.EventTypeWarning, api.ReasonDifferentGPUs, text)
		}
	}
}

// setDevices tells the core which devices of a node can be given away.
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

// nodeHealth reports whether pods can run on a node, and if not, why.
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

// compare holds the GPUs of the configuration against those that a node tells, if it does.
func compare(name string, configured []int32, text string) api.Node {
	out := api.Node{Name: name, Configured: configured}
	if text == "" {
		return out
	}
	var told api.NodeDevices
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		out.Problem = fmt.Sprintf("the annotation %s can't be read: %v", api.DevicesAnnotation, err)
		return out
	}
	out.Reported = true
	for _, index := range configured {
		i := slices.IndexFunc(told.Devices, func(d api.Device) bool { return d.Index == index })
		switch {
		case i < 0:
			out.Missing = append(out.Missing, index)
		case told.Devices[i].ForPods: // the agent would refuse it to a job; one of both hasn't heard of a change yet
			out.Unhealthy = append(out.Unhealthy, index)
			out.Why = append(out.Why, fmt.Sprintf("GPU %d: it is for ordinary pods", index))
		case !told.Devices[i].Healthy:
			out.Unhealthy = append(out.Unhealthy, index)
			if reason := told.Devices[i].Reason; reason != "" {
				out.Why = append(out.Why, fmt.Sprintf("GPU %d: %s", index, reason))
			}
		}
	}
	for _, d := range told.Devices {
		if !d.ForPods && !slices.Contains(configured, d.Index) && !slices.Contains(out.Unexpected, d.Index) {
			out.Unexpected = append(out.Unexpected, d.Index)
		}
	}
	slices.Sort(out.Unexpected)
	return out
}

// difference says in words how a node differs from the configuration, "" if it doesn't.
func difference(n *api.Node) string {
	if n.Problem != "" {
		return n.Problem
	}
	var parts []string
	for _, p := range []struct {
		indices []int32
		text    string
	}{
		{n.Missing, "GPUs %v of the configuration are not there"},
		{n.Unhealthy, "GPUs %v are not healthy"},
		{n.Unexpected, "GPUs %v are not in the configuration and not used"},
	} {
		if len(p.indices) > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.indices))
		}
	}
	return strings.Join(append(parts, n.Why...), "; ")
}
