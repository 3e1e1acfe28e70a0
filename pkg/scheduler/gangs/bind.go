package gangs

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

const (
	// bindTimeout is the timeout of a request that only a leader may send.
	bindTimeout = 3 * time.Second
	// bindsAtOnce is the maximum number of concurrent bindings per virtual cluster. If all pods of a large gang were bound at
	// once, each binding would exceed its timeout. With a global limit, a large gang would delay other virtual clusters.
	bindsAtOnce = 32
)

// turns limits the concurrent bindings of each virtual cluster. The zero value is ready to use.
type turns struct {
	mu sync.Mutex
	of map[string]chan struct{}
}

// take waits for a turn. The caller must call end afterwards.
func (t *turns) take(ctx context.Context, vc string) (end func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[string]chan struct{}{}
	}
	of := t.of[vc]
	if of == nil {
		of = make(chan struct{}, bindsAtOnce)
		t.of[vc] = of
	}
	t.mu.Unlock()
	select {
	case of <- struct{}{}:
		return func() { <-of }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Bind writes the node and the cells of a pod to Kubernetes.
func (b *Store) Bind(ctx context.Context, uid types.UID, node string) error {
	var vc string
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.gang != nil {
			vc = p.gang.vc
		}
	})
	end, err := b.binding.take(ctx, vc)
	if err != nil {
		return err
	}
	place, _ := b.places.get(uid)
	pod, at, err := b.toClaim(uid, node)
	if err == nil && pod != nil {
		if err = b.writeClaim(ctx, pod, at); err != nil {
			b.count.bound(err, 0)
			b.unclaimed(pod, err)
			b.giveUp(uid, node, err)
		}
	}
	end()
	if err == nil {
		err = b.gather(ctx, uid, at)
	}
	if err != nil {
		return err
	}
	if end, err = b.binding.take(ctx, vc); err != nil {
		return err
	}
	defer end()
	done, ok := b.opts.Election.Begin(bindTimeout)
	if !ok {
		return errNotLeading
	}
	defer done()
	binding, err := b.toBind(uid, node, at, place.Number)
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
		b.giveUp(uid, node, err)
	}
	return err
}

// giveUp releases the places of a pod and its gang if the API server rejects the pod or its claim. The same request would fail
// again until an administrator changes a policy or a permission. Until the next attempt, no cells are held for the gang.
func (b *Store) giveUp(uid types.UID, node string, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return
	}
	var pods []types.UID
	b.locked(func(s *state) {
		p := s.pods[uid]
		if p == nil || p.state != api.Binding || p.sent || p.node != node {
			return
		}
		s.log.Warn("a placement is released: the API server refuses the pod", "pod", p.key, "node", node, "error", err)
		p.gang.refusal = fmt.Sprintf("the API server refuses to bind %s to %s: %v", p.key, node, err)
		for _, q := range s.unbound(p) {
			pods = append(pods, q.uid)
			q.unbound = max(q.unbound, mostHeld+1)
		}
	})
	b.queue.Reject(pods, "the API server refuses a pod of the gang")
	b.signal()
}

// unclaimed reports that a pod's claim couldn't be written.
func (b *Store) unclaimed(obj *corev1.Pod, err error) {
	b.locked(func(s *state) {
		if p := s.pods[obj.UID]; p != nil {
			p.claimError = err.Error()
			s.tell(p, corev1.EventTypeWarning, api.ReasonRefused, p.claimError)
		}
	})
}

// toClaim returns a pod that expects its GPUs in a claim, and the pod's place. It returns nil if the pod expects no claim or is
// already bound.
func (b *Store) toClaim(uid types.UID, node string) (obj *corev1.Pod, at claim.Place, err error) {
	leading := b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.state == api.Binding && p.node == node && Claims(p.object) {
			obj, at = p.object, p.claim()
		}
	})
	if !leading {
		err = errNotLeading
	}
	return obj, at, err
}

// toBind returns the binding for a pod, and records that the binding is sent. It returns nil if the pod is already bound. at is
// the place on the pod's claim, if the pod expects a claim. number is the number of the pod's place when the claims were
// written.
func (b *Store) toBind(uid types.UID, node string, at claim.Place, number uint64) (out *corev1.Binding, err error) {
	leading := b.locked(func(s *state) {
		p := s.pods[uid]
		place, _ := s.places.get(uid)
		switch {
		case p == nil:
			err = fmt.Errorf("the pod %s is gone", uid)
		case p.state == api.Bound && p.node == node:
		case p.state != api.Binding:
			err = fmt.Errorf("the pod %s has no placement: its state is %s", p.key, p.state)
		case node != p.node:
			err = fmt.Errorf("the pod %s is placed on %s, not on %s", p.key, p.node, node)
		case Claims(p.object) && !at.Same(p.claim()):
			err = fmt.Errorf("the pod %s now has other GPUs of %s", p.key, node)
		case Claims(p.object) && !p.claimed, place.Number != number:
			err = fmt.Errorf("the pod %s has lost its placement in the meantime: the claims of its gang must be checked again", p.key)
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

func (p *pod) binding() *corev1.Binding {
	annotations := map[string]string{}
	if p.bound.BindInfo != "" {
		annotations[annotation.BindInfoKey] = p.bound.BindInfo
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
	}
}

// post sends a binding. The API server writes the place and its annotations atomically. known is false if the result is
// unknown. The informer reports the result later.
func (b *Store) post(ctx context.Context, binding *corev1.Binding) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	start := b.now()
	err = b.client.CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	known = true
	if err != nil {
		var bound bool
		if bound, known = b.outcome(ctx, binding); bound {
			err = nil // an earlier request, whose response was lost, has bound the pod
		}
	}
	b.count.bound(err, b.now().Sub(start))
	if err != nil {
		return known, fmt.Errorf("bind %s/%s to %s: %w", binding.Namespace, binding.Name, binding.Target.Name, err)
	}
	return known, nil
}

// outcome reads the result of a binding from the API server.
func (b *Store) outcome(ctx context.Context, binding *corev1.Binding) (bound, known bool) {
	obj, err := b.client.CoreV1().Pods(binding.Namespace).Get(ctx, binding.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, true
	}
	if err != nil {
		return false, false
	}
	return obj.UID == binding.UID && obj.Spec.NodeName == binding.Target.Name &&
		(Claims(obj) || obj.Annotations[annotation.IsolationKey] == binding.Annotations[annotation.IsolationKey]), true
}
