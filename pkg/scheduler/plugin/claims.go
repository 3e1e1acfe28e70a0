//go:build pai_scheduler

package plugin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/scheduler/gangs"
)

// ClaimsName is the plugin name of Claims in kube-scheduler's configuration.
const ClaimsName = "PaiDynamicResources"

// Claims replaces kube-scheduler's plugin DynamicResources. It passes all claims to DynamicResources except the claims that
// this scheduler allocates. Otherwise DynamicResources would allocate these claims itself, and would block their pods until the
// claims exist.
type Claims struct {
	*dynamicresources.DynamicResources
}

var (
	_ framework.PreEnqueuePlugin  = (*Claims)(nil)
	_ framework.EnqueueExtensions = (*Claims)(nil)
	_ framework.PreFilterPlugin   = (*Claims)(nil)
	_ framework.FilterPlugin      = (*Claims)(nil)
	_ framework.PostFilterPlugin  = (*Claims)(nil)
	_ framework.ScorePlugin       = (*Claims)(nil)
	_ framework.ReservePlugin     = (*Claims)(nil)
	_ framework.PreBindPlugin     = (*Claims)(nil)
	_ framework.SignPlugin        = (*Claims)(nil)
)

// NewClaims returns the plugin Claims for a profile.
func NewClaims(ctx context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	args := &config.DynamicResourcesArgs{}
	if features.EnableDRASchedulerFilterTimeout {
		args.FilterTimeout = &metav1.Duration{Duration: configv1.DynamicResourcesFilterTimeoutDefault}
	}
	made, err := dynamicresources.New(ctx, args, handle, features)
	if err != nil {
		return nil, err
	}
	p, ok := made.(*dynamicresources.DynamicResources)
	if !ok {
		return nil, fmt.Errorf("the plugin %s is a %T", dynamicresources.Name, made)
	}
	return &Claims{p}, nil
}

// Name implements framework.Plugin.
func (c *Claims) Name() string { return ClaimsName }

// without returns a copy of a pod without the reference to the claim that this scheduler allocates.
func without(pod *corev1.Pod) *corev1.Pod {
	if !gangs.Claims(pod) {
		return pod
	}
	out := *pod
	out.Spec.ResourceClaims = nil
	for _, c := range pod.Spec.ResourceClaims {
		if c.Name != claim.Ref {
			out.Spec.ResourceClaims = append(out.Spec.ResourceClaims, c)
		}
	}
	return &out
}

// EventsToRegister implements framework.EnqueueExtensions.
func (c *Claims) EventsToRegister(ctx context.Context) ([]framework.ClusterEventWithHint, error) {
	events, err := c.DynamicResources.EventsToRegister(ctx)
	for i := range events {
		hint := events[i].QueueingHintFn
		if hint == nil {
			continue
		}
		events[i].QueueingHintFn = func(log klog.Logger, pod *corev1.Pod, before, after any) (framework.QueueingHint, error) {
			return hint(log, without(pod), withoutIn(before), withoutIn(after))
		}
	}
	return events, err
}

// withoutIn returns the result of without if obj is a pod. Otherwise it returns obj.
func withoutIn(obj any) any {
	if pod, ok := obj.(*corev1.Pod); ok && pod != nil {
		return without(pod)
	}
	return obj
}

// PreEnqueue implements framework.PreEnqueuePlugin.
func (c *Claims) PreEnqueue(ctx context.Context, pod *corev1.Pod) *framework.Status {
	return c.DynamicResources.PreEnqueue(ctx, without(pod))
}

// PreFilter implements framework.PreFilterPlugin.
func (c *Claims) PreFilter(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, nodes []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	return c.DynamicResources.PreFilter(ctx, cycle, without(pod), nodes)
}

// Filter implements framework.FilterPlugin.
func (c *Claims) Filter(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) *framework.Status {
	return c.DynamicResources.Filter(ctx, cycle, without(pod), node)
}

// PostFilter implements framework.PostFilterPlugin.
func (c *Claims) PostFilter(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, nodes framework.NodeToStatusReader) (*framework.PostFilterResult, *framework.Status) {
	return c.DynamicResources.PostFilter(ctx, cycle, without(pod), nodes)
}

// Score implements framework.ScorePlugin.
func (c *Claims) Score(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	return c.DynamicResources.Score(ctx, cycle, without(pod), node)
}

// Reserve implements framework.ReservePlugin.
func (c *Claims) Reserve(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) *framework.Status {
	return c.DynamicResources.Reserve(ctx, cycle, without(pod), node)
}

// Unreserve implements framework.ReservePlugin.
func (c *Claims) Unreserve(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) {
	c.DynamicResources.Unreserve(ctx, cycle, without(pod), node)
}

// PreBindPreFlight implements framework.PreBindPlugin.
func (c *Claims) PreBindPreFlight(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) (*framework.PreBindPreFlightResult, *framework.Status) {
	return c.DynamicResources.PreBindPreFlight(ctx, cycle, without(pod), node)
}

// PreBind implements framework.PreBindPlugin.
func (c *Claims) PreBind(ctx context.Context, cycle framework.CycleState, pod *corev1.Pod, node string) *framework.Status {
	return c.DynamicResources.PreBind(ctx, cycle, without(pod), node)
}
