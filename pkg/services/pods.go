package services

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods returns the pods of a running service.
func (p *Platform) Pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	t, err := p.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.podsOf(ctx, t)
}

// podsOf returns the pods of a release's workloads and Jobs, without duplicates.
func (p *Platform) podsOf(ctx context.Context, t *target) ([]corev1.Pod, error) {
	all, err := workloads(t.release.Manifest, t.namespace)
	if err != nil {
		return nil, err
	}
	once, err := jobs(t.release.Manifest, t.namespace)
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	seen := map[string]bool{}
	for _, w := range append(all, once...) {
		list, err := p.Client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: w.selector.String()})
		if err != nil {
			return nil, fmt.Errorf("list the pods of %s: %w", w.name, err)
		}
		for i := range list.Items {
			if id := list.Items[i].Namespace + "/" + list.Items[i].Name; !seen[id] {
				seen[id] = true
				out = append(out, list.Items[i])
			}
		}
	}
	return out, nil
}
