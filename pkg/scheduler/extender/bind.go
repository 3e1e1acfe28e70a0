package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// bind tells Kubernetes where a pod runs. It is asked by kube-scheduler, with the node that filter answered.
func (e *Extender) bind(ctx context.Context, args *bindArgs) error {
	if args.PodNamespace == "" || args.PodName == "" || args.PodUID == "" || args.Node == "" {
		return badRequest("one of PodNamespace, PodName, PodUID and Node is empty")
	}
	if err := e.lead(ctx, bindTimeout); err != nil {
		return err
	}
	binding, err := e.binding(args.PodUID, args.Node)
	if err != nil || binding == nil {
		return err
	}
	return e.post(ctx, binding)
}

// binding returns what is to be sent for a pod; nil if Kubernetes knows already. An empty node
// is the right one.
func (e *Extender) binding(uid types.UID, node string) (*corev1.Binding, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == nil {
		return nil, errNotLeading
	}
	p := e.state.pods[uid]
	switch {
	case p == nil:
		return nil, badRequest("the pod %s is not known", uid)
	case p.state != api.Binding && p.state != api.Bound:
		return nil, badRequest("the pod %s has no place: its state is %s", p.key, p.state)
	case node != "" && node != p.node:
		return nil, badRequest("the pod %s has its place on %s, not on %s", p.key, p.node, node)
	case p.state == api.Bound:
		return nil, nil
	}
	annotations := map[string]string{
		annotation.BindInfoKey: p.bound.BindInfo,
	}
	if p.bound.Isolation != "" {
		annotations[annotation.IsolationKey] = p.bound.Isolation
	}
	if p.bound.Placement != "" {
		annotations[annotation.PlacementKey] = p.bound.Placement
	}
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.object.Namespace, Name: p.object.Name, UID: p.uid, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: p.node},
	}, nil
}

// post sends a binding. The place and its annotations are written in one request, or not at all.
func (e *Extender) post(ctx context.Context, b *corev1.Binding) error {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	start := e.now()
	err := e.client.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
	if apierrors.IsConflict(err) && e.isBound(ctx, b) {
		err = nil // an earlier request whose answer was lost
	}
	e.count.bound(err, e.now().Sub(start))
	if err != nil {
		return fmt.Errorf("bind %s/%s to %s: %w", b.Namespace, b.Name, b.Target.Name, err)
	}
	return nil
}

func (e *Extender) isBound(ctx context.Context, b *corev1.Binding) bool {
	obj, err := e.client.CoreV1().Pods(b.Namespace).Get(ctx, b.Name, metav1.GetOptions{})
	return err == nil && obj.UID == b.UID && obj.Spec.NodeName == b.Target.Name &&
		obj.Annotations[annotation.IsolationKey] == b.Annotations[annotation.IsolationKey]
}
