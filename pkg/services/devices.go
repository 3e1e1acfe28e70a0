package services

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// warnOfDevices warns if a run removes the agent while pods use devices. These pods can't stop without the agent.
func (r *run) warnOfDevices(ctx context.Context, targets []*target) {
	if !slices.ContainsFunc(targets, func(t *target) bool { return t.name == catalogue.AgentService && t.release != nil }) {
		return
	}
	n, err := r.devicesInUse(ctx)
	if err != nil {
		r.warn("it is unknown whether pods have GPUs from the agent: "+err.Error(), "")
		return
	}
	if n == 0 {
		return
	}
	have := plural.Of(n, "pod") + " have"
	if n == 1 {
		have = "1 pod has"
	}
	r.warn(have+" GPUs from the agent: without it they continue to run, but can't stop (Terminating)",
		"wait until the jobs have finished, or exclude the agent with -x "+catalogue.AgentService+"; paictl service start -n "+catalogue.AgentService+" lets such pods stop")
}

// devicesInUse returns the number of claims with devices of the agent. devicesInUse returns 0 if the API server doesn't support ResourceClaims.
func (r *run) devicesInUse(ctx context.Context) (n int, err error) {
	list := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return r.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, o)
	}))
	err = list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if c, ok := o.(*resourceapi.ResourceClaim); ok && usesAgent(c) {
			n++
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("list the claims of pods: %w", err)
	}
	return n, nil
}

func usesAgent(c *resourceapi.ResourceClaim) bool {
	return c.Status.Allocation != nil && slices.ContainsFunc(c.Status.Allocation.Devices.Results,
		func(d resourceapi.DeviceRequestAllocationResult) bool { return d.Driver == claim.Driver })
}
