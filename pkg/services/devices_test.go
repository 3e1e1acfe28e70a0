package services

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/version"
)

func TestWhoTakesTheAgentAwayIsToldWhichPodsNeedIt(t *testing.T) {
	agent, other := &target{name: "agent", release: &release.Release{}}, &target{name: "grafana", release: &release.Release{}}
	allocated := func(name, driver string) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-jobs", Name: name}, Status: resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
				{Driver: driver, Device: "gpu-0"}, {Driver: driver, Device: "gpu-1"}}}}}}
	}
	waiting := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-jobs", Name: "waits"}}
	tests := map[string]struct {
		targets []*target
		claims  []runtime.Object
		want    string
	}{
		"two pods":          {[]*target{other, agent}, []runtime.Object{allocated("a", claim.Driver), allocated("b", claim.Driver), waiting}, "2 pods have GPUs from the agent: without it they continue to run, but can't stop (Terminating)"},
		"one pod":           {[]*target{agent}, []runtime.Object{allocated("a", claim.Driver)}, "1 pod has GPUs from the agent: without it they continue to run, but can't stop (Terminating)"},
		"devices of others": {[]*target{agent}, []runtime.Object{allocated("a", "gpu.nvidia.com")}, ""},
		"none run":          {[]*target{agent}, []runtime.Object{waiting}, ""},
		"it isn't started":  {[]*target{{name: "agent"}}, []runtime.Object{allocated("a", claim.Driver)}, ""},
		"it stays":          {[]*target{other}, []runtime.Object{allocated("a", claim.Driver)}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Client = fake.NewClientset(tt.claims...)
			r := l.newRun("stop", l.options())
			r.warnOfDevices(t.Context(), tt.targets)
			r.emit(Event{Kind: EventRunStarted})
			told := l.story.of(EventWarning)
			if tt.want == "" {
				assert.Empty(t, told)
				return
			}
			require.Len(t, told, 1)
			assert.Equal(t, tt.want, told[0].Message)
			assert.Contains(t, told[0].Hint, "-x agent")
		})
	}
}

func TestAKubernetesWithoutClaimsHasNoDevicesInUse(t *testing.T) {
	l := newLab(t)
	client := fake.NewClientset()
	client.PrependReactor("list", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, "")
	})
	l.Client = client
	n, err := l.newRun("stop", l.options()).devicesInUse(t.Context())
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestADeleteAsksWithWhatItHasFound(t *testing.T) {
	l := newLab(t)
	client := fake.NewClientset()
	client.PrependReactor("list", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, "", errors.New("no"))
	})
	l.Client = client
	r := l.newRun("delete", l.options())
	r.warnOfDevices(t.Context(), []*target{{name: "agent", release: &release.Release{}}})
	var asked Deletion
	r.o.Confirm = func(_ context.Context, d Deletion) error { asked = d; return nil }
	require.NoError(t, r.confirm(t.Context(), nil, nil))
	require.Len(t, asked.Warnings, 1, "a right that is missing keeps no one from stopping")
	assert.Contains(t, asked.Warnings[0], "it is unknown whether pods have GPUs from the agent: list the claims of pods: ")
}

// A newer paictl can list the services that an older paictl has started. If the newer paictl starts services, the error explains the necessary
// changes.
func TestImagesOfAnotherReleaseKeepFromStartingOnly(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start())
	d := desired(t, "", "")
	d.Config.Services.Cluster.DockerRegistry.Tag = "v1.2.3"
	before := version.Version
	t.Cleanup(func() { version.Version = before })
	version.Version = "v1.3.0"
	l.Load = func(ctx context.Context) (*Desired, error) { return desire(ctx, d.Config) }
	_, err := l.Status(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, l.start(), "the images of v1.2.3 don't match this paictl, which is v1.3.0")
	assert.NoError(t, l.stop())
}
