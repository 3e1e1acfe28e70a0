package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/plural"
)

func controlPlane(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	list, err := c.Kube.Client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "tier=control-plane"})
	if err != nil {
		return nil, fmt.Errorf("list the control plane's pods: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if ready, why := podReady(p); !ready {
			if starting(p, c.Now()) {
				out = append(out, note(p.Name, "is starting on %s", p.Spec.NodeName))
				continue
			}
			where := p.Name
			out = append(out, problem(where, fmt.Sprintf("on %s: crictl ps -a | grep %s, then crictl logs CONTAINER; its manifest is in /etc/kubernetes/manifests", p.Spec.NodeName, p.Labels["component"]),
				"isn't ready on %s", p.Spec.NodeName).seen(why))
		}
	}
	if c.Spec == nil {
		if len(list.Items) == 0 {
			return skip("the control plane doesn't run as pods of the cluster"), nil
		}
		return out, nil
	}
	for _, n := range c.Spec.ControlPlane() {
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
			if c.joined(n.Hostname) && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Hostname && p.Labels["component"] == component }) {
				out = append(out, problem(n.Hostname, "check that /etc/kubernetes/manifests/"+component+".yaml exists on the machine; paictl cluster up restores it", "%s has no pod on this master", component))
			}
		}
	}
	return out, nil
}

// podReady reports whether a pod is ready. If the pod isn't ready, podReady also returns the reason.
func podReady(p *corev1.Pod) (bool, string) {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return true, ""
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "PodInitializing":
			return false, strings.TrimSuffix(rules.WithTerm(s.State.Waiting.Reason)+": "+s.State.Waiting.Message, ": ")
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return false, fmt.Sprintf("%s with exit code %d", rules.WithTerm(s.State.Terminated.Reason), s.State.Terminated.ExitCode)
		}
	}
	for _, cond := range p.Status.Conditions {
		if cond.Status == corev1.ConditionFalse && cond.Message != "" {
			return false, cond.Message
		}
	}
	return false, string(p.Status.Phase)
}

// starting reports whether a pod that isn't ready is still starting. A pod that has failed or takes longer than settles isn't starting.
func starting(p *corev1.Pod, now time.Time) bool {
	since := p.CreationTimestamp.Time
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" && s.State.Waiting.Reason != "PodInitializing",
			s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return false
		case s.State.Running != nil && s.State.Running.StartedAt.After(since):
			since = s.State.Running.StartedAt.Time
		}
	}
	return now.Sub(since) < settles
}

// young reports whether a workload has pods that aren't ready, and all of these pods are still starting.
func young(pods []corev1.Pod, namespace string, selector *metav1.LabelSelector, now time.Time) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false
	}
	found := false
	for i := range pods {
		p := &pods[i]
		if p.Namespace != namespace || !s.Matches(labels.Set(p.Labels)) {
			continue
		}
		if ready, _ := podReady(p); !ready {
			found = true
			if !starting(p, now) {
				return false
			}
		}
	}
	return found
}

// settles is how long a workload may take to replace its pods before the doctor reports it.
const settles = 2 * time.Minute

func systemWorkloads(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	for _, ns := range []string{metav1.NamespaceSystem, "kube-flannel"} {
		deployments, err := c.Kube.Client.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the Deployments of %s: %w", ns, err)
		}
		sets, err := c.Kube.Client.AppsV1().DaemonSets(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the DaemonSets of %s: %w", ns, err)
		}
		look := func(kind, name string, selector *metav1.LabelSelector, ready, want int32) {
			if ready >= want {
				return
			}
			if young(pods, ns, selector, c.Now()) {
				out = append(out, note(ns+"/"+name, "is starting: %d of %s ready", ready, plural.Of(want, "pod")))
				return
			}
			verdict := problem
			if ready > 0 && kind == "deployment" {
				verdict = warning
			}
			out = append(out, verdict(ns+"/"+name, fmt.Sprintf("see why: kubectl -n %s describe %s %s, and the events of its pods", ns, kind, name), "%d of %s ready", ready, plural.Of(want, "pod")))
		}
		for _, d := range deployments.Items {
			want := int32(1)
			if d.Spec.Replicas != nil {
				want = *d.Spec.Replicas
			}
			look("deployment", d.Name, d.Spec.Selector, d.Status.ReadyReplicas, want)
		}
		for _, d := range sets.Items {
			look("daemonset", d.Name, d.Spec.Selector, d.Status.NumberReady, d.Status.DesiredNumberScheduled)
		}
	}
	return out, nil
}
