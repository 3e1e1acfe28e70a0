package books_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// Pods that request nvidia.com/gpu get only GPUs that are reserved for pods, and only while these GPUs are healthy.
func TestOrdinaryPodsGetGPUsForPods(t *testing.T) {
	s := newStage(t, "ordinary")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	name, node := "nvidia.com/gpu", "test-1"                                                                                   // other tests leave slices of test-3
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: claim.PodsClass}, Spec: resourceapi.DeviceClassSpec{ // as the agent's chart makes it
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
			Expression: "device.driver == 'gpu.paictl.openpai.org' && device.attributes['gpu.paictl.openpai.org'].?forPods.orValue(false)"}}},
		ExtendedResourceName: &name,
	}}
	_, err := s.c.Client.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.c.Client.ResourceV1().DeviceClasses().Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{}))
	})
	device := func(name string, forPods bool) resourceapi.Device {
		return resourceapi.Device{Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{claim.ForPods: {BoolValue: &forPods}}}
	}
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: s.ns}, Spec: resourceapi.ResourceSliceSpec{
		Driver: claim.Driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1, Generation: 1},
		Devices: []resourceapi.Device{{Name: "gpu-0"}, device("gpu-1", false), device("gpu-6", true), device("gpu-7", true)},
	}}
	slice.Spec.Devices[3].Taints = []resourceapi.DeviceTaint{{Key: claim.Unhealthy, Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	slice, err = s.c.Client.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.c.Client.ResourceV1().ResourceSlices().Delete(context.WithoutCancel(t.Context()), slice.Name, metav1.DeleteOptions{}))
	})

	submit := func(name string) {
		pod := (&schedulertest.Gang{Name: name}).Pod(0)
		pod.Name, pod.Annotations = name, nil
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
		_, err := s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	has := func(name, gpu string) {
		t.Helper()
		schedulertest.Eventually(t, time.Minute, func() error {
			pod := s.pod(name)
			if pod.Spec.NodeName != node || pod.Status.ExtendedResourceClaimStatus == nil {
				return fmt.Errorf("%s is on %q: %v", name, pod.Spec.NodeName, pod.Status.Conditions)
			}
			c, err := s.c.Client.ResourceV1().ResourceClaims(s.ns).Get(t.Context(), pod.Status.ExtendedResourceClaimStatus.ResourceClaimName, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, claim.PodsClass, c.Spec.Devices.Requests[0].Exactly.DeviceClassName)
			require.Len(t, c.Status.Allocation.Devices.Results, 1)
			assert.Equal(t, gpu, c.Status.Allocation.Devices.Results[0].Device)
			return nil
		})
	}
	waits := func(name string) {
		t.Helper()
		schedulertest.Eventually(t, time.Minute, func() error {
			pod := s.pod(name)
			require.Empty(t, pod.Spec.NodeName)
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					return nil
				}
			}
			return fmt.Errorf("nothing was said of %s: %v", name, pod.Status.Conditions)
		})
	}
	submit("a")
	has("a", "gpu-6")
	submit("b")
	waits("b") // gpu-7 is sick
	slice.Spec.Devices[3].Taints = nil
	_, err = s.c.Client.ResourceV1().ResourceSlices().Update(t.Context(), slice, metav1.UpdateOptions{})
	require.NoError(t, err)
	has("b", "gpu-7")
	submit("c")
	waits("c")
	s.bound(s.claiming("job", "B", 5, 1, 4)) // beside them, in the same profile
	waits("c")
}
