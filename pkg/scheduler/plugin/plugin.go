//go:build pai_scheduler

// Package plugin connects the scheduler of gangs with kube-scheduler. Pods that request cells run on the nodes that the
// scheduler of gangs chooses, and gangs start as a whole. In: the places that gangs.Store decides, and kube-scheduler's calls.
// Out: pods that wait for a place and are then bound together with their gang, with annotations that contain their cells; gangs
// that are evicted if processors or memory are short.
//
// The plugin doesn't affect pods that request no cells.
package plugin

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"

	"github.com/openpai/paictl/pkg/scheduler/gangs"
)

// Name is the name of the plugin in kube-scheduler's configuration.
const Name = "Pai"

// permitLimit is how long a pod waits for the other pods of its gang.
const permitLimit = time.Minute

// Store lists the methods that the plugin needs. *gangs.Store implements them.
type Store interface {
	Place(pod types.UID) (gangs.Place, bool)
	Permit(pod types.UID) (pods []types.UID, together, has bool)
	Withdraw(pod types.UID)
	Refuse(pod types.UID, node, reason string)
	Lower(pod types.UID) func(other types.UID) (gang string, lower, ok bool)
	Evict(pod types.UID, victims []types.UID)
	Beside(pod types.UID) []*corev1.Pod
	Tried(pod types.UID, node string, could bool, reason string)
	Bind(ctx context.Context, pod types.UID, node string) error
}

// Plugin is the plugin for one profile of kube-scheduler. All profiles share the Store.
type Plugin struct {
	store  Store
	handle framework.Handle
}

// Plugin implements these extension points. It also sorts the queue, which all profiles share.
var (
	_ framework.PreEnqueuePlugin  = (*Plugin)(nil)
	_ framework.QueueSortPlugin   = (*Plugin)(nil)
	_ framework.EnqueueExtensions = (*Plugin)(nil)
	_ framework.PreFilterPlugin   = (*Plugin)(nil)
	_ framework.FilterPlugin      = (*Plugin)(nil)
	_ framework.PostFilterPlugin  = (*Plugin)(nil)
	_ framework.ReservePlugin     = (*Plugin)(nil)
	_ framework.PermitPlugin      = (*Plugin)(nil)
	_ framework.BindPlugin        = (*Plugin)(nil)
)

// New returns the plugin of a profile.
func New(b Store, handle framework.Handle) *Plugin { return &Plugin{b, handle} }

// Name implements framework.Plugin.
func (p *Plugin) Name() string { return Name }

// PreEnqueue blocks a pod until the pod has a place. Events on the pod explain why it waits.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *framework.Status {
	if !gangs.RequestsCells(pod) {
		return nil
	}
	if _, ok := p.store.Place(pod.UID); !ok {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "its gang has no placement yet")
	}
	return nil
}

// EventsToRegister returns no events. The Store watches the cluster itself, and activates pods when they can continue.
func (p *Plugin) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	return nil, nil
}

// Less sorts pods by priority. Within a priority, pods with a place come first, in the order in which they got their places.
// The other pods follow, sorted by age.
func (p *Plugin) Less(a, b framework.QueuedPodInfo) bool {
	x, y := a.GetPodInfo().GetPod(), b.GetPodInfo().GetPod()
	if i, k := priority(x), priority(y); i != k {
		return i > k
	}
	at, ok := p.store.Place(x.UID)
	bt, other := p.store.Place(y.UID)
	switch {
	case ok && other:
		return at.Number < bt.Number
	case ok != other:
		return ok
	}
	return a.GetTimestamp().Before(b.GetTimestamp())
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// PreFilter returns the node of a pod's place, so that the other plugins check only this node.
func (p *Plugin) PreFilter(_ context.Context, _ framework.CycleState, pod *corev1.Pod, _ []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	if !gangs.RequestsCells(pod) {
		return nil, framework.NewStatus(framework.Skip)
	}
	at, ok := p.store.Place(pod.UID)
	if !ok {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, "its gang no longer has a placement")
	}
	return &framework.PreFilterResult{NodeNames: sets.New(at.Node)}, nil
}

// PreFilterExtensions implements framework.PreFilterPlugin. It returns nil, because other pods don't change a place.
func (p *Plugin) PreFilterExtensions() framework.PreFilterExtensions { return nil }

// Filter accepts only the node of a pod's place. This check is necessary because kube-scheduler first tries the node in the
// pod's status.
func (p *Plugin) Filter(_ context.Context, _ framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) *framework.Status {
	if at, ok := p.store.Place(pod.UID); !ok || at.Node != node.Node().Name {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "its gang has another placement")
	}
	return nil
}

// SignPod returns a status that says that no other pod is equivalent to a pod with cells.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]framework.SignFragment, *framework.Status) {
	if gangs.RequestsCells(pod) {
		return nil, framework.NewStatus(framework.Unschedulable, "each pod has its own cells")
	}
	return nil, nil
}

// Reserve checks that the pod still has its place. It rejects a pod on trial after the pod has passed all filters, because the
// pod must not be bound.
func (p *Plugin) Reserve(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) *framework.Status {
	if !gangs.RequestsCells(pod) {
		return nil
	}
	at, ok := p.store.Place(pod.UID)
	switch {
	case !ok || at.Node != node:
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "its gang now has another placement")
	case at.Trial:
		p.try(ctx, cycle, pod, node)
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "others must stop on "+node+" first")
	}
	return nil
}

// Unreserve records that binding a pod failed. The pod keeps its place for the next attempt.
func (p *Plugin) Unreserve(_ context.Context, _ framework.CycleState, pod *corev1.Pod, _ string) {
	if gangs.RequestsCells(pod) {
		p.store.Withdraw(pod.UID)
	}
}

// Permit delays the binding of a pod until all pods of its gang can be bound.
func (p *Plugin) Permit(_ context.Context, _ framework.CycleState, pod *corev1.Pod, _ string) (*framework.Status, time.Duration) {
	if !gangs.RequestsCells(pod) {
		return nil, 0
	}
	pods, together, has := p.store.Permit(pod.UID)
	if !has {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "its gang no longer has a placement"), 0
	}
	if !together {
		return framework.NewStatus(framework.Wait), permitLimit
	}
	for _, uid := range pods {
		if w := p.handle.GetWaitingPod(uid); w != nil {
			w.Allow(Name)
		}
	}
	return nil, 0
}

// Bind writes the node and the cells of a pod to the API server.
func (p *Plugin) Bind(ctx context.Context, _ framework.CycleState, pod *corev1.Pod, node string) *framework.Status {
	if !gangs.RequestsCells(pod) {
		return framework.NewStatus(framework.Skip)
	}
	return framework.AsStatus(p.store.Bind(ctx, pod.UID, node))
}

// Queue gives gangs.Store access to kube-scheduler's queue.
type Queue struct {
	handle framework.Handle
	log    klog.Logger
}

// NewQueue returns the queue that all profiles share.
func NewQueue(handle framework.Handle, log klog.Logger) *Queue { return &Queue{handle, log} }

// Activate implements gangs.Queue.
func (q *Queue) Activate(pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	of := make(map[string]*corev1.Pod, len(pods))
	for _, p := range pods {
		of[p.Namespace+"/"+p.Name] = p
	}
	q.handle.Activate(q.log, of)
}

// Reject implements gangs.Queue.
func (q *Queue) Reject(pods []types.UID, reason string) {
	for _, uid := range pods {
		if w := q.handle.GetWaitingPod(uid); w != nil {
			w.Reject(Name, reason)
		}
	}
}
