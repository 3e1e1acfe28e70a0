//go:build pai_scheduler

package plugin

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/openpai/paictl/pkg/scheduler/gangs"
)

// PostFilter handles a pod that can't run on the node of its place. It evicts as few pods as possible from gangs on that node,
// or gives up the place. For a pod on trial, it evicts nothing and reports the result of the trial.
func (p *Plugin) PostFilter(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, nodes framework.NodeToStatusReader) (*framework.PostFilterResult, *framework.Status) {
	if !gangs.RequestsCells(pod) {
		return nil, framework.NewStatus(framework.Unschedulable)
	}
	// No other plugin may choose victims, because it could evict single pods of a gang.
	no := framework.NewStatus(framework.UnschedulableAndUnresolvable)
	nominate := func(node string) *framework.PostFilterResult {
		return &framework.PostFilterResult{NominatingInfo: &framework.NominatingInfo{NominatedNodeName: node, NominatingMode: framework.ModeOverride}}
	}
	at, ok := p.store.Place(pod.UID)
	if !ok {
		return nominate(""), no
	}
	why := nodes.Get(at.Node)
	if at.Trial {
		if why.Code() == framework.Unschedulable {
			p.try(ctx, cycle, pod, at.Node)
		} else {
			p.store.Tried(pod.UID, at.Node, false, why.Message())
		}
		return nominate(""), no
	}
	if why.Code() == framework.Unschedulable {
		victims, ok, err := p.victims(ctx, cycle, pod, at.Node)
		if err != nil {
			return nil, framework.AsStatus(err)
		}
		if ok {
			if len(victims) > 0 {
				p.store.Evict(pod.UID, victims)
			}
			return nominate(at.Node), nil // so that pods of lower priority don't take the resources of the evicted pods
		}
	}
	p.store.Refuse(pod.UID, at.Node, why.Message())
	return nominate(""), no
}

// gang holds the pods of a gang on one node.
type gang struct {
	name string
	pods []framework.PodInfo
}

// trial is a copy of a node without some pods. It is used to check whether a pod fits on the node.
type trial struct {
	handle framework.Handle
	cycle  framework.CycleState
	pod    *corev1.Pod
	node   framework.NodeInfo
}

func (t *trial) remove(ctx context.Context, pods ...framework.PodInfo) error {
	for _, v := range pods {
		if err := t.node.RemovePod(klog.FromContext(ctx), v.GetPod()); err != nil {
			return err
		}
		if s := t.handle.RunPreFilterExtensionRemovePod(ctx, t.cycle, t.pod, v, t.node); !s.IsSuccess() {
			return s.AsError()
		}
	}
	return nil
}

func (t *trial) add(ctx context.Context, pods ...framework.PodInfo) error {
	for _, v := range pods {
		t.node.AddPodInfo(v)
		if s := t.handle.RunPreFilterExtensionAddPod(ctx, t.cycle, t.pod, v, t.node); !s.IsSuccess() {
			return s.AsError()
		}
	}
	return nil
}

func (t *trial) fits(ctx context.Context) *framework.Status {
	return t.handle.RunFilterPluginsWithNominatedPods(ctx, t.cycle, t.pod, t.node)
}

// without returns a trial of a node without terminating pods and without evictable pods. It also returns the evictable pods by
// gang.
func (p *Plugin) without(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) (*trial, []*gang, error) {
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(node)
	if err != nil {
		return nil, nil, err
	}
	t := &trial{p.handle, cycle.Clone(), pod, info.Snapshot()}
	lower := p.store.Lower(pod.UID)
	var others []*gang
	for _, v := range info.GetPods() {
		name, may, known := lower(v.GetPod().UID)
		ends := v.GetPod().DeletionTimestamp != nil
		if !ends && (!known || !may) {
			continue
		}
		if err := t.remove(ctx, v); err != nil {
			return nil, nil, err
		}
		if ends {
			continue
		}
		i := slices.IndexFunc(others, func(g *gang) bool { return g.name == name })
		if i < 0 {
			i, others = len(others), append(others, &gang{name: name})
		}
		others[i].pods = append(others[i].pods, v)
	}
	return t, others, nil
}

// try checks whether a pod could run on a node. It removes the pods that the pod's gang may evict, and adds the other pods that
// will run on the node.
func (p *Plugin) try(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) {
	t, _, err := p.without(ctx, cycle, pod, node)
	for _, other := range p.store.Beside(pod.UID) {
		if err == nil && slices.ContainsFunc(t.node.GetPods(), func(there framework.PodInfo) bool { return there.GetPod().UID == other.UID }) {
			continue // kube-scheduler has already placed it on the node
		}
		var info *schedulerframework.PodInfo
		if err == nil {
			info, err = schedulerframework.NewPodInfo(other)
		}
		if err == nil {
			err = t.add(ctx, info)
		}
	}
	if err != nil {
		p.store.Tried(pod.UID, node, false, err.Error())
		return
	}
	fits := t.fits(ctx)
	p.store.Tried(pod.UID, node, fits.IsSuccess(), fits.Message())
}

// victims returns the pods of gangs that must be evicted before a pod can run on a node. It returns no pods if waiting for
// terminating pods is enough. ok is false if the pod wouldn't fit even after all possible evictions.
func (p *Plugin) victims(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) (victims []types.UID, ok bool, err error) {
	t, others, err := p.without(ctx, cycle, pod, node)
	if err != nil || !t.fits(ctx).IsSuccess() {
		return nil, false, err
	}
	// Keep the most important gangs if possible: gangs of higher priority, then larger gangs, then older gangs.
	slices.SortFunc(others, func(a, b *gang) int {
		x, y := a.pods[0].GetPod(), b.pods[0].GetPod()
		return cmp.Or(cmp.Compare(priority(y), priority(x)), cmp.Compare(len(b.pods), len(a.pods)),
			x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(a.name, b.name))
	})
	for _, g := range others {
		if err := t.add(ctx, g.pods...); err != nil {
			return nil, false, err
		}
		if t.fits(ctx).IsSuccess() {
			continue
		}
		if err := t.remove(ctx, g.pods...); err != nil {
			return nil, false, err
		}
		for _, v := range g.pods {
			victims = append(victims, v.GetPod().UID)
		}
	}
	return victims, true, nil
}
