package templates

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"

	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// controllersAccount is the service account of Kubernetes' resource claim controller.
const controllersAccount = "system:serviceaccount:kube-system:resource-claim-controller"

func TestClaimsOfGPUsAreTheSchedulersOwn(t *testing.T) {
	c, _ := placed(t)
	as := func(account string, groups ...string) resourceclient.ResourceClaimInterface {
		return clientAs(t, c, account, groups...).ResourceV1().ResourceClaims("default")
	}
	ctx, pod := t.Context(), asking("of-claim")
	pod.Namespace, pod.UID = "default", "uid-of-claim"
	claim.Expect(pod, func(*corev1.Container) bool { return true })
	const own = "the scheduler's own"
	require.NoError(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := as("ann").Create(ctx, claim.New(pod, 2), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), own), nil
	}), "no one else makes one")

	got, err := as(schedulerAccount).Create(ctx, claim.New(pod, 2), metav1.CreateOptions{})
	require.NoError(t, err)
	got.Status = claim.Status(pod, claim.Place{Node: "n1", Indices: []int32{0, 1}, Details: []byte(`{}`)}, metav1.Now())
	_, err = as("ann").UpdateStatus(ctx, got, metav1.UpdateOptions{})
	require.ErrorContains(t, err, own)
	got, err = as(schedulerAccount).UpdateStatus(ctx, got, metav1.UpdateOptions{})
	require.NoError(t, err)

	bare := got.DeepCopy()
	bare.Finalizers = nil
	_, err = as("ann").Update(ctx, bare, metav1.UpdateOptions{})
	require.ErrorContains(t, err, own, "it would be gone while its pod runs")
	require.ErrorContains(t, as("ann").Delete(ctx, got.Name, metav1.DeleteOptions{}), own)

	shared := got.DeepCopy()
	shared.Status.ReservedFor = append(shared.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "thief", UID: "thief"})
	_, err = as(controllersAccount).UpdateStatus(ctx, shared, metav1.UpdateOptions{})
	require.Error(t, err, "as for a pod with nodeName that names the claim")

	// This claim belongs to another class and gets the same devices, which is possible if an administrator defines a class for another scheduler.
	other := claim.New(pod, 1)
	other.Name, other.Finalizers, other.OwnerReferences = "of-another-class", nil, nil
	other.Spec.Devices.Requests[0].Exactly.DeviceClassName = "any"
	other, err = as("ann").Create(ctx, other, metav1.CreateOptions{})
	require.NoError(t, err, "other classes are none of its business")
	other.Status = claim.Status(pod, claim.Place{Node: "n1", Indices: []int32{0}, Details: []byte(`{}`)}, metav1.Now())
	_, err = as("system:kube-scheduler").UpdateStatus(ctx, other, metav1.UpdateOptions{})
	require.ErrorContains(t, err, own)
	other.Status.Allocation.Devices.Results[0].Driver, other.Status.Allocation.Devices.Config = "nic.example.org", nil
	_, err = as("system:kube-scheduler").UpdateStatus(ctx, other, metav1.UpdateOptions{})
	require.NoError(t, err)

	none := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	_, err = as("ann").Create(ctx, none, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err, "a claim of nothing")

	ended := got.DeepCopy()
	ended.Status = resourceapi.ResourceClaimStatus{}
	got, err = as(controllersAccount).UpdateStatus(ctx, ended, metav1.UpdateOptions{})
	require.NoError(t, err, "it takes back what an ended pod had")
	got.Finalizers = nil
	_, err = as(controllersAccount).Update(ctx, got, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.NoError(t, as("system:serviceaccount:kube-system:generic-garbage-collector").Delete(ctx, got.Name, metav1.DeleteOptions{}))

	stuck := claim.New(pod, 1)
	stuck.Name = "stuck"
	_, err = as(schedulerAccount).Create(ctx, stuck, metav1.CreateOptions{})
	require.NoError(t, err)
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	require.NoError(t, as("kubernetes-admin", "kubeadm:cluster-admins").Delete(ctx, "stuck", dry), "who has kubeadm's admin.conf can")
	assert.NoError(t, c.Client.ResourceV1().ResourceClaims("default").Delete(ctx, "stuck", metav1.DeleteOptions{}), "an administrator can")
}

// Any scheduler may allocate the claims that kube-scheduler creates for nvidia.com/gpu, and the claims that people write.
func TestClaimsOfOrdinaryPodsAreFilledByAnyScheduler(t *testing.T) {
	c, _ := placed(t)
	as := func(account string, groups ...string) resourceclient.ResourceClaimInterface {
		return clientAs(t, c, account, groups...).ResourceV1().ResourceClaims("default")
	}
	ctx, pod := t.Context(), asking("ordinary")
	pod.Namespace, pod.UID = "default", "uid-of-ordinary"
	claim.Expect(pod, func(*corev1.Container) bool { return true })
	const own = "the scheduler's own"
	require.NoError(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := as("ann").Create(ctx, claim.New(pod, 2), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), own), nil
	}), "the rules take no effect")

	exactly := func(class string) resourceapi.DeviceRequest {
		return resourceapi.DeviceRequest{Name: "d", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}
	}
	either := resourceapi.DeviceRequest{Name: "d", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "a", DeviceClassName: "nics"}, {Name: "b", DeviceClassName: claim.PodsClass}}}
	nic := exactly("nics")
	nic.Name = "nic"
	create := func(t *testing.T, name string, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
		t.Helper()
		one := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{resourceapi.Finalizer}}}
		one.Spec.Devices.Requests = requests
		one, err := as("ann").Create(ctx, one, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { // an administrator's change, after Kubernetes has released its devices
			ctx := context.WithoutCancel(t.Context())
			one, err := as(controllersAccount).Get(ctx, one.Name, metav1.GetOptions{})
			require.NoError(t, err)
			one.Status = resourceapi.ResourceClaimStatus{}
			one, err = as(controllersAccount).UpdateStatus(ctx, one, metav1.UpdateOptions{})
			require.NoError(t, err)
			one.Finalizers = nil
			_, err = as(controllersAccount).Update(ctx, one, metav1.UpdateOptions{})
			require.NoError(t, err)
			if one.DeletionTimestamp == nil {
				require.NoError(t, as("ann").Delete(ctx, one.Name, metav1.DeleteOptions{}))
			}
		})
		return one
	}
	given := func(c *resourceapi.ResourceClaim, request string) *resourceapi.ResourceClaim {
		c = c.DeepCopy()
		c.Status = claim.Status(pod, claim.Place{Node: "n1", Indices: []int32{6}, Details: []byte(`{}`)}, metav1.Now())
		c.Status.Allocation.Devices.Config, c.Status.Allocation.Devices.Results[0].Request = nil, request
		return c
	}
	for name, test := range map[string]struct {
		requests []resourceapi.DeviceRequest
		given    string
		refused  bool // to all but pai-scheduler
	}{
		"of-their-class":             {[]resourceapi.DeviceRequest{exactly(claim.PodsClass)}, "d", false},
		"with-nics-beside":           {[]resourceapi.DeviceRequest{nic, exactly(claim.PodsClass)}, "d", false},
		"of-one-of-several":          {[]resourceapi.DeviceRequest{either}, "d/b", false},
		"of-the-other-one":           {[]resourceapi.DeviceRequest{either}, "d/a", true},
		"for-another-request":        {[]resourceapi.DeviceRequest{nic, exactly(claim.PodsClass)}, "nic", true},
		"of-an-administrators-class": {[]resourceapi.DeviceRequest{exactly("any")}, "d", true},
	} {
		t.Run(name, func(t *testing.T) {
			for suffix, account := range map[string]string{"-kube": "system:kube-scheduler", "-pai": schedulerAccount} {
				one := create(t, name+suffix, test.requests...)
				_, err := as("ann").UpdateStatus(ctx, given(one, test.given), metav1.UpdateOptions{})
				require.ErrorContains(t, err, own, "a stolen status")
				one, err = as(account).UpdateStatus(ctx, given(one, test.given), metav1.UpdateOptions{})
				if test.refused && account != schedulerAccount {
					require.ErrorContains(t, err, own)
					continue
				}
				require.NoError(t, err)
				if test.refused {
					require.ErrorContains(t, as("ann").Delete(ctx, one.Name, metav1.DeleteOptions{}), own)
					continue
				}
				bare := one.DeepCopy()
				bare.Finalizers = nil
				_, err = as("ann").Update(ctx, bare, metav1.UpdateOptions{})
				require.ErrorContains(t, err, own, "it would be gone while its pod runs")
				for _, thief := range []string{controllersAccount, "system:kube-scheduler"} {
					shared := one.DeepCopy()
					shared.Status.ReservedFor = append(shared.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "thief", UID: "thief"})
					_, err = as(thief).UpdateStatus(ctx, shared, metav1.UpdateOptions{})
					require.ErrorContains(t, err, "the GPUs of a claim belong to one pod")
				}
				require.NoError(t, as("ann").Delete(ctx, one.Name, metav1.DeleteOptions{}), "it stays until its pod has ended")
				one, err = as("ann").Get(ctx, one.Name, metav1.GetOptions{})
				require.NoError(t, err)
				require.NotNil(t, one.DeletionTimestamp)
			}
		})
	}
}

// Kubernetes itself would create a claim from such a template, and no scheduler would allocate the claim.
func TestNoOneMakesTemplatesOfClaimsOfGPUs(t *testing.T) {
	c, _ := placed(t)
	one := func(class string) *resourceapi.ExactDeviceRequest {
		return &resourceapi.ExactDeviceRequest{DeviceClassName: class}
	}
	for name, test := range map[string]struct {
		request resourceapi.DeviceRequest
		refused bool
	}{
		"exactly": {resourceapi.DeviceRequest{Name: "d", Exactly: one(claim.Class)}, true},
		"one of several": {resourceapi.DeviceRequest{Name: "d", FirstAvailable: []resourceapi.DeviceSubRequest{
			{Name: "a", DeviceClassName: "nics"}, {Name: "b", DeviceClassName: claim.Class}}}, true},
		"nothing":          {resourceapi.DeviceRequest{}, false},
		"of another class": {resourceapi.DeviceRequest{Name: "d", Exactly: one("nics")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
			if test.request.Name != "" {
				template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{test.request}
			}
			var err error
			create := func(ctx context.Context) (bool, error) {
				_, err = clientAs(t, c, "ann").ResourceV1().ResourceClaimTemplates("default").Create(ctx, template, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return (err != nil) == test.refused, nil
			}
			require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, create))
			if test.refused {
				assert.ErrorContains(t, err, "submit a job with paictl job submit")
			}
		})
	}
}
