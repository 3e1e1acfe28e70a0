package gangs

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// Claims reports whether a claim contains the pod's GPUs. Only the scheduler may allocate this claim. The pod's annotations are
// then only informative.
func Claims(obj *corev1.Pod) bool { return RequestsCells(obj) && claim.Expected(obj) }

// listClaims returns the places on claims by the UID of the pod. Clusters before Kubernetes 1.34 have no claims.
func (b *Store) listClaims(ctx context.Context, pods []*corev1.Pod) (map[types.UID]claim.Place, error) {
	expected := map[string]types.UID{}
	for _, p := range pods {
		if name, ok := claim.Name(p); ok {
			expected[p.Namespace+"/"+name] = p.UID
		}
	}
	out := map[types.UID]claim.Place{}
	options := metav1.ListOptions{Limit: 1000}
	for {
		page, err := b.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, options)
		if apierrors.IsNotFound(err) && !b.opts.Claims {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list claims: %w", err)
		}
		for i := range page.Items {
			c := &page.Items[i]
			if pod, at, err := claim.Read(c); err == nil && claim.Of(c, pod) && expected[c.Namespace+"/"+c.Name] == pod {
				out[pod] = at
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func (s *state) claimed(p *pod) (*cell.Placement, int, error) {
	at, ok := s.claims[p.uid]
	switch {
	case !ok:
		return nil, 0, errors.New("no claim says which GPUs it has")
	case at.Doubt != "":
		return nil, 0, errors.New(at.Doubt)
	case at.Node != p.object.Spec.NodeName:
		return nil, 0, fmt.Errorf("its claim has GPUs of %s", at.Node)
	}
	return annotation.ReadOwn(p.request, at.Node, at.Indices, at.Details)
}

// claim returns the place for the claim of a pod.
func (p *pod) claim() claim.Place {
	return claim.Place{Node: p.node, Indices: p.indices, Details: p.details}
}

// unclaimable explains why a pod that expects its GPUs in a claim can't have a place, or returns "".
func (s *state) unclaimable(p *pod) string {
	switch {
	case !Claims(p.object):
		return ""
	case s.core.WantsCPU(p.request):
		return "it expects GPUs in a claim, but requests CPU cells"
	case p.request.Sets()[p.request.Set].Cells*s.core.Leaves(p.request.Sets()[p.request.Set].CellType) > resourceapi.AllocationResultsMaxSize:
		return fmt.Sprintf("its claim can't have more than %d GPUs", resourceapi.AllocationResultsMaxSize)
	}
	return ""
}

// writeClaim creates the claim of a pod and writes the pod's place to the claim. An earlier attempt may have created the claim.
func (b *Store) writeClaim(ctx context.Context, pod *corev1.Pod, at claim.Place) error {
	claims := b.client.ResourceV1().ResourceClaims(pod.Namespace)
	name, _ := claim.Name(pod)
	var c *resourceapi.ResourceClaim
	err := b.leading(ctx, func(ctx context.Context) (err error) {
		c, err = claims.Create(ctx, claim.New(pod, len(at.Indices)), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			c, err = claims.Get(ctx, name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make the claim of %s: %w", podKey(pod), err)
	}
	if !claim.Of(c, pod.UID) {
		return fmt.Errorf("the claim %s/%s, which %s expects, was created by someone else: delete it first", pod.Namespace, name, pod.Name)
	}
	if asks := claim.RequestedGPUs(c); asks != int64(len(at.Indices)) {
		return fmt.Errorf("the claim %s/%s requests %d GPUs, but %s has %d: the agent would refuse it; delete the pod, so that it is created again with another claim",
			pod.Namespace, name, asks, pod.Name, len(at.Indices))
	}
	update := func(status resourceapi.ResourceClaimStatus) error {
		return b.leading(ctx, func(ctx context.Context) error {
			if !b.stillAt(pod.UID, at) {
				return fmt.Errorf("%s now has another placement", podKey(pod))
			}
			c.Status = status
			written, err := claims.UpdateStatus(ctx, c, metav1.UpdateOptions{})
			if err == nil {
				c = written
			}
			return err
		})
	}
	if c.DeletionTimestamp != nil {
		// Kubernetes doesn't remove the claim while the claim is reserved for an existing pod. After the removal, the pod gets
		// a new claim.
		if len(c.Status.ReservedFor) > 0 || c.Status.Allocation != nil {
			err = update(resourceapi.ResourceClaimStatus{})
		}
		return errors.Join(fmt.Errorf("the claim %s/%s is being deleted", pod.Namespace, name), err)
	}
	if has, there, err := claim.Read(c); err == nil && has == pod.UID && there.Same(at) {
		return nil
	}
	if c.Status.Allocation != nil {
		// An allocation can be removed, but not changed.
		if err := update(resourceapi.ResourceClaimStatus{}); err != nil {
			return fmt.Errorf("take back the claim of %s: %w", podKey(pod), err)
		}
	}
	if err := update(claim.Status(pod, at, metav1.NewTime(b.now()))); err != nil {
		return fmt.Errorf("fill the claim of %s: %w", podKey(pod), err)
	}
	return nil
}

// stillAt reports whether a pod still has the place to be written on its claim.
func (b *Store) stillAt(uid types.UID, at claim.Place) (still bool) {
	b.locked(func(s *state) {
		p := s.pods[uid]
		still = p != nil && (p.state == api.Binding || p.state == api.Bound) && at.Same(p.claim())
	})
	return still
}

const (
	// gatherLimit is how long a pod with a written claim waits for the claims of its gang's other pods. The time starts when
	// the last of these claims was written.
	gatherLimit = 30 * time.Second
	// gatherMost is the maximum duration of the whole wait. It is enough for ten thousand pods if the API server needs half a
	// second per response.
	gatherMost = 10 * time.Minute
	// gatherLook is how often the pod checks whether the wait has timed out.
	gatherLook = time.Second
)

// gather records that a pod's claim is written, if the pod expects a claim. Then it waits until all claims of the pod's gang
// are written. No pod is bound before that. A new leader that takes over during the bindings therefore finds the places of all
// pods.
func (b *Store) gather(ctx context.Context, uid types.UID, at claim.Place) error {
	var all chan struct{}
	var key string
	b.locked(func(s *state) {
		p := s.pods[uid]
		if p == nil || p.state != api.Binding || Claims(p.object) && !at.Same(p.claim()) {
			return // the pod has lost its place, and may have another one
		}
		g := p.gang
		if Claims(p.object) {
			s.claims[uid] = at
			p.claimed, p.claimError = true, ""
		} else if g.claims == 0 || g.written() {
			return
		}
		if !p.wrote {
			p.wrote, g.moved = true, s.now() // only once for each place, so that pods that are retried don't extend the wait of other pods
		}
		key = p.key
		if g.gathered == nil {
			g.gathered = make(chan struct{})
		}
		all = g.gathered
		g.gather()
	})
	if all == nil {
		return nil // toBind checks the state of the pod again
	}
	ticker := time.NewTicker(gatherLook)
	defer ticker.Stop()
	for {
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		over := true
		b.locked(func(s *state) {
			if p := s.pods[uid]; p != nil && p.gang != nil {
				over = !p.gathers(s.now())
			}
		})
		if over {
			return fmt.Errorf("%s isn't bound: the claims of other pods of its gang could not be written within %s, or none of them for %s", key, gatherMost, gatherLimit)
		}
	}
}

// gathers reports whether a pod has to wait for the claims of its gang.
func (p *pod) gathers(now time.Time) bool {
	return now.Sub(p.gang.moved) < gatherLimit && now.Sub(p.assumed) < gatherMost
}

// gather ends the wait of a gang's pods if all their claims are written.
func (g *gang) gather() {
	if g.gathered != nil && g.written() {
		g.ungather()
	}
}

func (g *gang) written() bool {
	return g.all(&g.unwritten, func(p *pod) bool { return p.state != api.Binding || p.claimed || p.sent || !Claims(p.object) })
}

// ungather ends the wait of a gang's pods for claims of other pods.
func (g *gang) ungather() {
	if g.gathered != nil {
		close(g.gathered)
		g.gathered = nil
	}
}

// resume assigns the place on a pod's claim to the pod. The former leader wrote the claim. Other pods of the gang already run,
// because that leader bound them.
func (s *state) resume(p *pod) {
	at, ok := s.claims[p.uid]
	if !ok || at.Doubt != "" || p.gang == nil || p.state != api.Waiting || !p.gang.runs(p.class) || p.object.DeletionTimestamp != nil || len(p.object.Spec.SchedulingGates) > 0 {
		return
	}
	placement, slot, err := annotation.ReadOwn(p.request, at.Node, at.Indices, at.Details)
	if err != nil {
		return
	}
	downgrades, err := s.core.Allocate(cell.PodID(p.uid), p.request, placement, slot)
	if err != nil {
		return // the pod gets another place
	}
	s.hold(p, &cell.Decision{Result: cell.Bind, Node: at.Node, Indices: at.Indices, Chain: placement.Chain, Placement: placement, Slot: slot}, downgrades)
}

// leading sends a request that only a leader may send, with a timeout.
func (b *Store) leading(ctx context.Context, request func(context.Context) error) error {
	done, ok := b.opts.Election.Begin(bindTimeout)
	if !ok {
		return errNotLeading
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	return request(ctx)
}
