package ready

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openpai/paictl/pkg/hint"
)

// These patterns match the scheduler's message, such as "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node
// affinity/selector. preemption: 0/3 nodes are available: ...".
var (
	unavailable = regexp.MustCompile(`^\d+/(\d+) nodes are available: (.*?)\.?( preemption: .*| no new claims .*)?$`)
	perNodes    = regexp.MustCompile(`^(\d+) (.+)$`)
	taint       = regexp.MustCompile(`taint(?:\(s\))? \{([^}]*)\}`)
)

// unschedulable returns the problem of a pod that no node can run. room means that terminating pods may free sufficient resources.
func unschedulable(p *corev1.Pod, message string, room bool) Problem {
	out := Problem{Object: object(kindPod, p.Name), Reason: "Unschedulable", Final: true}
	m := unavailable.FindStringSubmatch(strings.Join(strings.Fields(message), " "))
	if m == nil {
		out.Message, out.Final = "it fits on no node: "+message, !containsAny(message, "gated")
		out.Hint = volumeHint(p, message)
		return out
	}
	var clauses []string
	for _, part := range splitClauses(m[2]) {
		c := explainClause(p, part)
		clauses = append(clauses, c.text)
		if out.Hint == "" || c.first {
			out.Hint = c.hint
		}
		out.Final = out.Final && !c.passes && (!c.room || !room)
	}
	out.Message = fmt.Sprintf("it fits on no node; of %s: %s", m[1], strings.Join(clauses, "; "))
	return out
}

// splitClauses splits the reasons in a scheduler's message. splitClauses splits at commas before a number or before "pod has".
func splitClauses(text string) []string {
	var out []string
	for _, part := range strings.Split(text, ", ") {
		if len(out) > 0 && !perNodes.MatchString(part) && !strings.HasPrefix(part, "pod has") {
			out[len(out)-1] += ", " + part
			continue
		}
		out = append(out, part)
	}
	return out
}

type clause struct {
	text, hint string
	first      bool // its hint has precedence
	passes     bool // it may disappear by itself
	room       bool // it is solved when other pods end
}

// remedyPlacement is the remedy if no node has the role that the pods require.
const remedyPlacement = "give a machine the role in layout.yaml, push it, and label the nodes with: paictl cluster up -p DIR " +
	"(paictl service start does, where paictl did not install Kubernetes); or change placement in the service's section"

func explainClause(p *corev1.Pod, part string) clause {
	n, what := "", part
	if m := perNodes.FindStringSubmatch(part); m != nil {
		n, what = m[1], m[2]
	}
	switch {
	case containsAny(what, "node affinity/selector", "node selector", "node(s) didn't match"):
		if strings.Contains(what, "anti-affinity") || strings.Contains(what, "pod affinity") {
			return clause{text: n + " with a pod that this one avoids, or without a pod that it needs", hint: "use as many nodes with the role as replicas, or fewer replicas", room: true}
		}
		return clause{
			text: n + " without the label " + wantedLabels(p), first: true,
			hint: remedyPlacement,
		}
	case strings.HasPrefix(what, "Insufficient "):
		name := corev1.ResourceName(strings.TrimPrefix(what, "Insufficient "))
		return clause{
			text: fmt.Sprintf("%s without enough free %s (it requests %s)", n, name, requested(p, name)), room: true,
			hint: "lower resources.requests in the service's section, or add a node",
		}
	case strings.Contains(what, "Too many pods"):
		return clause{text: n + " full of pods", room: true, hint: "add a node"}
	case strings.Contains(what, "taint"):
		return taintClause(n, what)
	case strings.Contains(what, "unschedulable"):
		return clause{text: n + " cordoned", hint: "let a node accept pods again: " + hint.Uncordon("NODE")}
	case strings.Contains(strings.ToLower(what), "volume"):
		return clause{text: strings.TrimSpace(n + " " + strings.TrimPrefix(what, "node(s) ")), hint: volumeHint(p, what), passes: !strings.Contains(what, "not found")}
	case strings.Contains(what, "free ports"):
		return clause{text: n + " with its host port in use", room: true, hint: "find the program that uses the port, or change the port in the service's section"}
	}
	return clause{text: part}
}

func taintClause(n, what string) clause {
	name := "a taint"
	if m := taint.FindStringSubmatch(what); m != nil {
		name = "the taint " + strings.TrimSuffix(m[1], ": ")
	}
	if containsAny(what, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/network-unavailable") {
		return clause{text: n + " not ready", hint: "see what is wrong with them: paictl node list", passes: true}
	}
	if strings.Contains(what, "-pressure") {
		return clause{text: fmt.Sprintf("%s with %s", n, name), hint: "free disk or memory on those nodes", passes: true}
	}
	return clause{text: fmt.Sprintf("%s with %s", n, name), hint: "add the role that has this taint to placement of the service's section, or remove the taint: kubectl taint nodes NODE KEY-"}
}

func volumeHint(p *corev1.Pod, message string) string {
	if !containsAny(strings.ToLower(message), "volume", "claim") {
		return ""
	}
	claims := claimNames(p)
	return "its volume is missing or is bound to another node; start the storage service (paictl service start -n storage) and see: kubectl -n " +
		p.Namespace + " describe pvc " + strings.Join(claims, " ")
}

func claimNames(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

// wantedLabels returns the labels that a pod's node must have, such as "pai-worker=true".
func wantedLabels(p *corev1.Pod) string { return wanted(p.Spec.NodeSelector, p.Spec.Affinity) }

func wanted(selector map[string]string, affinity *corev1.Affinity) string {
	var out []string
	for k, v := range selector {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return strings.Join(out, " and ")
	}
	var terms []string
	for _, t := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var all []string
		for _, e := range t.MatchExpressions {
			all = append(all, expression(e))
		}
		if len(all) > 0 {
			terms = append(terms, strings.Join(all, " and "))
		}
	}
	if len(terms) > 0 {
		out = append(out, strings.Join(terms, " or "))
	}
	return strings.Join(out, " and ")
}

func expression(e corev1.NodeSelectorRequirement) string {
	switch {
	case e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1:
		return e.Key + "=" + e.Values[0]
	case len(e.Values) == 0:
		return e.Key + " " + string(e.Operator)
	}
	return fmt.Sprintf("%s %s (%s)", e.Key, e.Operator, strings.Join(e.Values, ", "))
}

// requested returns the amount of a resource that the pod requests.
func requested(p *corev1.Pod, name corev1.ResourceName) string {
	var sum, largest resource.Quantity
	for _, c := range p.Spec.Containers {
		sum.Add(c.Resources.Requests[name])
	}
	for _, c := range p.Spec.InitContainers {
		if q := c.Resources.Requests[name]; q.Cmp(largest) > 0 {
			largest = q
		}
	}
	if largest.Cmp(sum) > 0 {
		sum = largest
	}
	return sum.String()
}
