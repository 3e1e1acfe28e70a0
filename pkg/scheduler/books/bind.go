package books

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

const (
	// bindTimeout bounds one request that only a leader may make.
	bindTimeout = 3 * time.Second
	// bindsAtOnce are under way at a time. With all of a large gang each would take longer than it may.
	bindsAtOnce = 64
)

// Bind tells Kubernetes where a pod runs and which cells it has there.
func (b *Books) Bind(ctx context.Context, uid types.UID, node string) error {
	select {
	case b.binds <- struct{}{}:
		defer func() { <-b.binds }()
	case <-ctx.Done():
		return ctx.Err()
	}
	done, ok := b.opts.Election.Begin(bindTimeout)
	if !ok {
		return errNotLeading
	}
	defer done()
	binding, err := b.binding(uid, node)
	if err != nil || binding == nil {
		return err
	}
	known, err := b.post(ctx, binding)
	if known && err != nil {
		b.locked(func(s *state) {
			if p := s.pods[uid]; p != nil {
				p.sent = false
			}
		})
	}
	return err
}

// binding returns what is to be sent for a pod, and notes that it is; nil if Kubernetes knows already.
func (b *Books) binding(uid types.UID, node string) (out *corev1.Binding, err error) {
	leading := b.locked(func(s *state) {
		p := s.pods[uid]
		switch {
		case p == nil:
			err = fmt.Errorf("the pod %s is gone", uid)
		case p.state == api.Bound && p.node == node:
		case p.state != api.Binding:
			err = fmt.Errorf("the pod %s has no place: its state is %s", p.key, p.state)
		case node != p.node:
			err = fmt.Errorf("the pod %s has its place on %s, not on %s", p.key, p.node, node)
		default:
			p.sent = true
			out = p.binding()
		}
	})
	if !leading {
		return nil, errNotLeading
	}
	return out, err
}

// binding is a pod's place as Kubernetes is told.
func (p *pod) binding() *corev1.Binding {
	annotations := map[string]string{annotation.BindInfoKey: p.bound.BindInfo}
	if p.bound.Isolation != "" {
		annotations[annotation.IsolationKey] = p.bound.Isolation
	}
	if p.bound.Placement != "" {
		annotations[annotation.PlacementKey] = p.bound.Placement
	}
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.object.Namespace, Name: p.object.Name, UID: p.uid, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: p.node},
	}
}

// post sends a binding. The place and its annotations are written in one request, or not at all. known is false where the
// outcome can't be had: the informer will tell it.
func (b *Books) post(ctx context.Context, binding *corev1.Binding) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	start := b.now()
	err = b.client.CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	known = true
	if err != nil {
		var bound bool
		if bound, known = b.outcome(ctx, binding); bound {
			err = nil // an earlier request whose answer was lost
		}
	}
	b.count.bound(err, b.now().Sub(start))
	if err != nil {
		return known, fmt.Errorf("bind %s/%s to %s: %w", binding.Namespace, binding.Name, binding.Target.Name, err)
	}
	return known, nil
}

// outcome asks what came of a binding.
func (b *Books) outcome(ctx context.Context, binding *corev1.Binding) (bound, known bool) {
	obj, err := b.client.CoreV1().Pods(binding.Namespace).Get(ctx, binding.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	return obj.UID == binding.UID && obj.Spec.NodeName == binding.Target.Name &&
		obj.Annotations[annotation.IsolationKey] == binding.Annotations[annotation.IsolationKey], true
}
