package doctor

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// settleWithin limits the time until a node and the pods of its DaemonSets are ready after a repair of its machine.
	settleWithin = time.Minute
	settleEvery  = time.Second
)

// WaitReady waits until the nodes of repaired machines are Ready and the pods on these nodes run. If the API doesn't respond or the wait takes too long,
// WaitReady returns, and the checks report the problem.
func (c *Cluster) WaitReady(ctx context.Context, fixes []*Fix) {
	repaired := map[string]bool{}
	for _, f := range fixes {
		if f.host != "" {
			repaired[f.host] = true
		}
	}
	if c.Kube == nil || c.apiErr != nil || len(repaired) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		if settled, err := c.settled(ctx, repaired); settled || err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settleEvery):
		}
	}
}

func (c *Cluster) settled(ctx context.Context, repaired map[string]bool) (bool, error) {
	nodes, err := c.Kube.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return repaired[n.Name] && !isReady(&n) }) {
		return false, err
	}
	for name := range repaired {
		pods, err := c.Kube.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			owner := metav1.GetControllerOf(p)
			if owner == nil || owner.Kind != "DaemonSet" || p.Spec.NodeName != name || p.DeletionTimestamp != nil {
				continue
			}
			if ready, _ := podReady(p); !ready {
				return false, nil
			}
		}
	}
	return true, nil
}
