package books_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// claiming creates a gang whose pods expect their GPUs in claims.
func (s *stage) claiming(name, vc string, priority, pods, gpus int) *schedulertest.Gang {
	s.t.Helper()
	g := &schedulertest.Gang{Namespace: s.ns, Name: name, VC: vc, Priority: priority, Pods: pods, GPUs: gpus, Claims: true}
	require.NoError(s.t, g.Create(s.t.Context(), s.c.Client))
	return g
}

// users maps each GPU to the pod that uses it, according to the claims of the existing pods. It fails the test if two pods use the same GPU.
func (s *stage) users() map[string]types.UID {
	s.t.Helper()
	pods, err := s.pods().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	there := map[types.UID]bool{}
	for i := range pods.Items {
		there[pods.Items[i].UID] = true
	}
	list, err := s.c.Client.ResourceV1().ResourceClaims(s.ns).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	out := map[string]types.UID{}
	for i := range list.Items {
		pod, at, err := claim.Read(&list.Items[i])
		if err != nil || !there[pod] {
			continue // it isn't filled yet, or its pod has ended
		}
		for _, index := range at.Indices {
			gpu := at.Node + "/" + claim.DeviceName(index)
			require.Empty(s.t, out[gpu], "%s has two users", gpu)
			out[gpu] = pod
		}
	}
	return out
}

func (s *stage) pod(name string) *corev1.Pod {
	s.t.Helper()
	p, err := s.c.Client.CoreV1().Pods(s.ns).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return p
}

// deviceClass creates a class of the devices for which an expression is true.
func (s *stage) deviceClass(name, expression string) {
	s.t.Helper()
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}},
	}}
	_, err := s.c.Client.ResourceV1().DeviceClasses().Create(s.t.Context(), class, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(s.t, err)
	}
}

// publish adds devices of a driver to a node.
func (s *stage) publish(driver, node string, names ...string) {
	s.t.Helper()
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: s.ns + "-" + node}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1, Generation: 1},
	}}
	for _, name := range names {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{Name: name})
	}
	_, err := s.c.Client.ResourceV1().ResourceSlices().Create(s.t.Context(), slice, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func TestGPUsOfPodsStandOnTheirClaims(t *testing.T) {
	s := newStage(t, "claims")
	s.deviceClass(claim.Class, "false")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	first := s.claiming("first", "A", 5, 2, 8)
	s.bound(first, s.claiming("second", "B", 5, 2, 4))
	require.Len(t, s.users(), 24)
	for i := range first.Pods {
		pod := s.pod(first.PodName(i))
		assert.NotContains(t, pod.Annotations, annotation.BindInfoKey)
		assert.Equal(t, "0,1,2,3,4,5,6,7", pod.Annotations[annotation.IsolationKey])
	}
	_, before, err := p.Get("/v1/inspect/clusterstatus")
	require.NoError(t, err)

	// While no scheduler runs, the pod's author changes its annotation, so that the pod seems to have fewer GPUs.
	p.Kill()
	forged := s.pod(first.PodName(0))
	forged.Annotations[annotation.IsolationKey] = "0"
	_, err = s.c.Client.CoreV1().Pods(s.ns).Update(t.Context(), forged, metav1.UpdateOptions{})
	require.NoError(t, err)
	again := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	schedulertest.Eventually(t, time.Minute, func() error {
		if _, after, err := again.Get("/v1/inspect/clusterstatus"); err != nil || after != before {
			return fmt.Errorf("the cells differ: %w", err)
		}
		return nil
	})
	s.waits(again, "A/"+s.claiming("third", "A", 5, 1, 1).Name)
}

// If a task is retried, the new pod has the same name. Kubernetes' own controllers remove the earlier claim, and the new pod gets a new claim.
func TestANameThatIsUsedAgainHasAClaimOfItsOwn(t *testing.T) {
	s := newStage(t, "claims-again")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	g := s.claiming("g", "A", 5, 1, 8)
	s.bound(g)
	former := s.pod("g-0").UID
	zero := int64(0)
	require.NoError(t, s.pods().Delete(t.Context(), "g-0", metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	schedulertest.Eventually(t, time.Minute, func() error { // the kubelet of a simulated node deletes it
		if _, err := s.c.Client.CoreV1().Pods(s.ns).Get(t.Context(), "g-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	start := time.Now()
	require.NoError(t, g.Create(t.Context(), s.c.Client))
	s.bound(g)
	t.Logf("bound again after %s", time.Since(start))
	assert.NotEqual(t, former, s.pod("g-0").UID)
	for gpu, pod := range s.users() {
		assert.Equal(t, s.pod("g-0").UID, pod, gpu)
	}
	assert.Len(t, s.users(), 8)
}

// The scheduler allocates other claims as kube-scheduler does, in the same profile. No other scheduler allocates the claims of its class.
func TestOtherClaimsAreServedAsEver(t *testing.T) {
	s := newStage(t, "claims-other")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.deviceClass(claim.Class, "false")
	s.deviceClass("nics", "device.driver == 'nic.example.org'")
	s.publish("nic.example.org", "test-2", "nic-0", "nic-1")
	s.publish(claim.Driver, "test-3", "gpu-0", "gpu-1")
	for name, class := range map[string]string{"nic": "nics", "thief": claim.Class} {
		_, err := s.c.Client.ResourceV1().ResourceClaims(s.ns).Create(t.Context(), &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
				{Name: "d", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}},
			}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		for _, scheduler := range []string{"pai-scheduler", "default-scheduler"} {
			if class == "nics" && scheduler == "default-scheduler" {
				continue
			}
			pod := (&schedulertest.Gang{Name: name + "-" + scheduler[:3]}).Pod(0)
			pod.Annotations, pod.Spec.Containers[0].Resources, pod.Spec.SchedulerName = nil, corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "d"}}}, scheduler
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "d", ResourceClaimName: &name}}
			_, err = s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	schedulertest.Eventually(t, time.Minute, func() error {
		if at := s.pod("nic-pai-0").Spec.NodeName; at != "test-2" {
			return fmt.Errorf("it is on %q", at)
		}
		return nil
	})
	// A pod with GPUs may have other claims, too. Its claim for GPUs is left to the scheduler, and its other claims are allocated as usual.
	both := schedulertest.Gang{Namespace: s.ns, Name: "both", VC: "A", Priority: 5, Pods: 1, GPUs: 1, Claims: true}
	pod, template := both.Pod(0), "nic"
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "test-2"}
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "nic", ResourceClaimTemplateName: &template})
	pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "nic"})
	_, err := s.c.Client.ResourceV1().ResourceClaimTemplates(s.ns).Create(t.Context(), &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: template}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "d", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "nics"}}},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	schedulertest.Eventually(t, time.Minute, func() error {
		if now := s.pod(pod.Name); now.Spec.NodeName != "test-2" || len(now.Status.ResourceClaimStatuses) != 1 {
			_, why, err := p.Get("/v1/why/A/both")
			return fmt.Errorf("it is on %q with %d claims made: %s %w", now.Spec.NodeName, len(now.Status.ResourceClaimStatuses), why, err)
		}
		return nil
	})
	made, err := s.c.Client.ResourceV1().ResourceClaims(s.ns).Get(t.Context(), *s.pod(pod.Name).Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, []string{"nic-0", "nic-1"}, made.Status.Allocation.Devices.Results[0].Device)
	for _, name := range []string{"thief-pai-0", "thief-def-0"} {
		schedulertest.Eventually(t, time.Minute, func() error {
			now := s.pod(name)
			for _, c := range now.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					return nil
				}
			}
			return fmt.Errorf("nothing was said of %s: %v", name, now.Status.Conditions)
		})
		assert.Empty(t, s.pod(name).Spec.NodeName)
	}
}
