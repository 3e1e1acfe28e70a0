package ready

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/ui/plural"
)

func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

func podReady(p *corev1.Pod) bool {
	c := condition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// active returns the pods that haven't finished and aren't being deleted.
func active(pods []*corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			out = append(out, p)
		}
	}
	return out
}

func countReady(pods []*corev1.Pod) int {
	n := 0
	for _, p := range pods {
		if podReady(p) {
			n++
		}
	}
	return n
}

// nodeOf returns the node of a pod. For an unscheduled pod, nodeOf returns the node that the DaemonSet controller has selected.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" || p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil ||
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p.Spec.NodeName
	}
	for _, t := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// onBadNode returns the node of a pod, and reports whether the node is missing or not ready.
func (s *snapshot) onBadNode(p *corev1.Pod) (string, bool) {
	name := nodeOf(p)
	return name, name != "" && nodeCondition(s.byNode[name]).Status != corev1.ConditionTrue
}

func nodeCondition(n *corev1.Node) corev1.NodeCondition {
	if n != nil {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c
			}
		}
	}
	return corev1.NodeCondition{}
}

// badNode returns the problem of a node. The problem is always reported, but a service waits for the node only if the service needs the node.
func (s *snapshot) badNode(name string) suspicion {
	out := suspicion{group: object("node", name), Problem: Problem{
		Object: object("node", name), Reason: "NodeNotReady", Message: "the node is gone",
		Hint: "remove it from the layout, or join it again: paictl cluster up",
	}}
	if s.byNode[name] == nil {
		return out
	}
	c := nodeCondition(s.byNode[name])
	out.Message = "the node is not ready"
	if !c.LastTransitionTime.IsZero() {
		out.Message += " since " + c.LastTransitionTime.UTC().Format("2006-01-02 15:04:05 MST")
	}
	if c.Message != "" {
		out.Message += ": " + c.Message
	}
	out.Hint = "is the machine on and connected? see: paictl node list; its pods start when it is back"
	return out
}

// roomComing reports whether terminating pods may free resources for the pod.
func (s *snapshot) roomComing(p *corev1.Pod) bool {
	return p.Status.NominatedNodeName != "" || slices.ContainsFunc(s.pods, func(o *corev1.Pod) bool { return o.DeletionTimestamp != nil })
}

func reference(kind string, o metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

// serviceOf returns the name of a pod's service for a command line. serviceOf returns SERVICE if the name is unknown.
func serviceOf(p *corev1.Pod) string {
	for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/name"} {
		if name := p.Labels[label]; name != "" {
			return name
		}
	}
	return "SERVICE"
}

func restarts(p *corev1.Pod, container string) int32 {
	for _, cs := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if cs.Name == container {
			return cs.RestartCount
		}
	}
	return 0
}

func isInit(p *corev1.Pod, container string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container })
}

// finished reports whether a container has exited successfully as expected. Init containers and containers of Jobs are expected to exit.
func finished(p *corev1.Pod, cs corev1.ContainerStatus) bool {
	return cs.State.Terminated.ExitCode == 0 && (isInit(p, cs.Name) || p.Spec.RestartPolicy != corev1.RestartPolicyAlways)
}

// crashedLately reports whether a container crashed recently, runs again, and isn't ready yet.
func crashedLately(now time.Time, cs corev1.ContainerStatus) bool {
	t := cs.LastTerminationState.Terminated
	return cs.State.Running != nil && !cs.Ready && t != nil && (t.ExitCode != 0 || t.Reason == "OOMKilled") && now.Sub(t.FinishedAt.Time) < crashMemory
}

func memoryLimit(p *corev1.Pod, container string) string {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == container {
			return q.String()
		}
	}
	return "its node"
}

func exit(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	switch {
	case t.ExitCode == 0:
		text += " although it should keep running"
	case t.Signal != 0:
		text = fmt.Sprintf("signal %d", t.Signal)
	case t.ExitCode == 126 || t.ExitCode == 127:
		text += " (the command can't be run)"
	case t.ExitCode == 137:
		text += " (killed)"
	case t.ExitCode == 139:
		text += " (segmentation fault)"
	}
	if t.Message != "" {
		text += ": " + strings.TrimSpace(t.Message)
	}
	return text
}

func times(n int) string {
	return plural.Times(max(n, 1))
}

func evictedHint(p *corev1.Pod) string {
	if p.Status.Reason == "Evicted" {
		return "free disk or memory on node " + p.Spec.NodeName + ", or set requests that say what the service needs"
	}
	return "see: kubectl describe node " + p.Spec.NodeName
}
