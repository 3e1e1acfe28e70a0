package gangs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// The place of a running pod is stored on the pod's claim. If the claim is lost, only the leader's memory contains the place.
// The leader then writes the claim again, so that the next leader finds the place. The new claim gives no GPU to a pod. The
// kubelet and the agent identify claims by their UIDs, and don't give the GPUs of the first claim to the second claim. If a
// claim contradicts the state, the pod may have other GPUs. In this case no GPU of its node is allocated.

// claimsEvery is how often the state is compared with the informer's claims.
const claimsEvery = 5 * time.Second

// checkClaims schedules tasks for the claims of running pods that differ from the state. stored returns a claim of the
// informer. The informer may be outdated, so a claim must be wrong in two consecutive checks.
func (b *Store) checkClaims(stored func(key string) *resourceapi.ResourceClaim) {
	var pods []*pod
	b.locked(func(s *state) {
		if s.now().Sub(s.claimsChecked) >= claimsEvery {
			s.claimsChecked, pods = s.now(), slices.Collect(maps.Values(s.pods))
		}
	})
	inParts(b, pods, func(s *state, p *pod) {
		if s.pods[p.uid] != p || p.state != api.Bound || !Claims(p.object) {
			return
		}
		name, _ := claim.Name(p.object)
		c := stored(p.object.Namespace + "/" + name)
		switch {
		case c != nil && (c == p.seen || p.hasClaim(c)):
			p.seen, p.doubted, p.lost = c, false, false
		case !p.doubted:
			p.doubted = true
		default:
			s.todo(task{reclaim, p.uid})
		}
	})
}

func (b *Store) claimObject(key string) *resourceapi.ResourceClaim {
	obj, _, _ := b.claims.GetStore().GetByKey(key) // the store of an informer returns no errors
	c, _ := obj.(*resourceapi.ResourceClaim)
	return c
}

// reclaim writes the lost claim of a running pod again. If the claim contradicts the state, it ignores the pod.
func (b *Store) reclaim(ctx context.Context, uid types.UID) error {
	var pod *corev1.Pod
	var at claim.Place
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil && p.state == api.Bound {
			pod, at = p.object, p.claim()
		}
	})
	if pod == nil {
		return nil
	}
	now, err := b.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("check whether %s exists: %w", podKey(pod), err)
	case now.UID != pod.UID || completed(now):
		return nil // Kubernetes removes the pod's claim
	}
	name, _ := claim.Name(pod)
	c, err := b.client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	lost := "is gone"
	if err == nil {
		lost = "is another's"
		if claim.Of(c, pod.UID) {
			has, there, err := claim.Read(c)
			switch {
			case err != nil || has != pod.UID:
				lost = "no longer has GPUs"
			case sameGPUs(there, at) && there.Doubt == "":
				return nil // the informer's copy was outdated
			default:
				b.contradicted(pod, at, there)
				return nil
			}
		}
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the claim of %s: %w", podKey(pod), err)
	}
	b.lost(pod, fmt.Sprintf("its claim %s, while it runs with GPUs %s: it is written again", lost, annotation.Isolation(at.Indices)))
	if err := b.writeClaim(ctx, pod, at); err != nil {
		b.unclaimed(pod, err)
		return err
	}
	b.locked(func(s *state) {
		if p := s.pods[uid]; p != nil {
			p.lost, p.claimError = false, ""
		}
	})
	return nil
}

// lost records the loss of a claim only once, even after several attempts to write the claim.
func (b *Store) lost(pod *corev1.Pod, what string) {
	b.locked(func(s *state) {
		p := s.pods[pod.UID]
		if p == nil || p.lost {
			return
		}
		p.lost, p.told = true, "" // the pod may have lost its claim before, so report it again
		b.count.lost.Inc()
		s.log.Warn("a claim was lost", "pod", p.key, "what", what)
		s.tell(p, corev1.EventTypeWarning, api.ReasonClaimLost, what)
	})
}

// contradicted ignores a pod whose claim contradicts the state, and withholds the devices of the pod's node. It also records
// the contradiction on the claim. The next leader rebuilds the state from claims, and must withhold the same devices.
func (b *Store) contradicted(pod *corev1.Pod, at, there claim.Place) {
	var rejected []types.UID
	var why string
	b.locked(func(s *state) {
		if p := s.pods[pod.UID]; p != nil && p.state == api.Bound {
			delete(s.claims, p.uid) // the pod may have the GPUs of the claim or those of the state
			if p.doubt = there.Doubt; p.doubt == "" {
				p.doubt = fmt.Sprintf("its claim has GPUs %s of %s, but it was allocated %s of %s",
					annotation.Isolation(there.Indices), there.Node, annotation.Isolation(at.Indices), at.Node)
			}
			s.ignore(p, p.doubt)
			s.todo(task{doubt, p.uid})
			for _, uid := range s.places.uids() {
				// Other pods may have a place on this node without being bound yet.
				if q := s.pods[uid]; q != nil && q.gang != nil && q.state == api.Binding && !q.sent && q.node == p.node {
					reason := fmt.Sprintf("%s is closed: %s", p.node, p.reason)
					rejected, why = append(rejected, s.takeBack(q.gang, reason)...), reason
				}
			}
		}
	})
	b.queue.Reject(rejected, why)
	b.signal()
}

func sameGPUs(a, b claim.Place) bool { return a.Node == b.Node && slices.Equal(a.Indices, b.Indices) }

// hasClaim reports whether a claim contains the same GPUs for a pod as the state.
func (p *pod) hasClaim(c *resourceapi.ResourceClaim) bool {
	has, there, err := claim.Read(c)
	return err == nil && has == p.uid && claim.Of(c, p.uid) && sameGPUs(there, p.claim()) && there.Doubt == ""
}
