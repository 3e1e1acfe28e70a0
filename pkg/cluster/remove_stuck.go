package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
)

// blockersShown limits the number of pods in an error.
const blockersShown = 5

// stuckError returns an error that lists the pods that were not evicted from a node, with the reason for each pod.
func stuckError(n *engine.Node, limit time.Duration, said []string, pods, budgets []byte) error {
	var list corev1.PodList
	var pdbs policyv1.PodDisruptionBudgetList
	if err := json.Unmarshal(pods, &list); err != nil {
		return fmt.Errorf("drain %s: %s", n.Hostname, strings.Join(said, " "))
	}
	_ = json.Unmarshal(budgets, &pdbs) // without the budgets, the error still names the pods
	var names []string
	for i := range list.Items {
		p := &list.Items[i]
		if staysOnDrain(p) {
			continue
		}
		names = append(names, p.Namespace+"/"+p.Name+holder(p, pdbs.Items))
	}
	if len(names) == 0 {
		return fmt.Errorf("drain %s: %s", n.Hostname, strings.Join(said, " "))
	}
	more := ""
	if len(names) > blockersShown {
		more = fmt.Sprintf(" and %d more", len(names)-blockersShown)
		names = names[:blockersShown]
	}
	return hint.Errorf("remove the cause (scale the workload up, relax the budget) and run the same command again, or give --force to delete them"+toKeep(n),
		"drain %s: pods were not evicted within %s: %s%s", n.Hostname, limit, strings.Join(names, ", "), more)
}

func staysOnDrain(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// holder returns the reason why the drain hasn't evicted a pod, or "".
func holder(p *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	if metav1.GetControllerOf(p) == nil {
		return " (no controller would start it elsewhere)"
	}
	if p.DeletionTimestamp != nil {
		return " (it is terminating, but has not finished)"
	}
	for _, b := range budgets {
		if b.Namespace != p.Namespace || b.Status.DisruptionsAllowed > 0 {
			continue
		}
		sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && sel.Matches(k8slabels.Set(p.Labels)) {
			return " (held by PodDisruptionBudget " + b.Name + ")"
		}
	}
	return ""
}

// toKeep returns the last part of the remedy for a failed drain: the command that keeps the node in the cluster.
func toKeep(n *engine.Node) string { return "; to keep the node: " + hint.Uncordon(n.Hostname) }
