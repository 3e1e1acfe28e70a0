// Package claim reads and writes the ResourceClaim of a pod: the names of GPUs, the driver that may allocate them, and the GPUs
// of the pod. The job controller chooses the claim's name, the scheduler creates the claim, and the agent of the machine reads
// it. In: a pod and its place. Out: the pod's claim, and the place on a claim.
package claim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
)

const (
	// Driver is the DRA driver of a machine's agent. The driver publishes the machine's GPUs and prepares them for pods.
	Driver = "gpu.paictl.openpai.org"
	// Class is the DeviceClass of claims that the scheduler allocates. It matches no device, so no other program can allocate
	// these claims.
	Class = Driver
	// PodsClass is the DeviceClass of GPUs for ordinary pods, which any scheduler may allocate. The agent's chart creates the
	// DeviceClass.
	PodsClass = "pods." + Driver
	// ForPods is the device attribute that marks GPUs for ordinary pods.
	ForPods = "forPods"
	// Unhealthy is the key of the taint on a sick device.
	Unhealthy = Driver + "/unhealthy"
	// DetailsKey is the claim annotation with changed details of the place. An allocation itself can't be changed.
	DetailsKey = "paictl.openpai.org/placement"
	// DoubtKey is the claim annotation that explains why the pod may use other GPUs than the claim contains.
	DoubtKey = "paictl.openpai.org/contradicted"
	// Ref is the name of a pod's claim in the pod's spec, and of the claim's only request.
	Ref = "gpus"
	// suffix is the number of random characters at the end of a claim's name. They keep users from guessing the name and
	// creating the claim first.
	suffix = 8
	// prefix is the beginning of a device name. The GPU's index follows.
	prefix = "gpu-"
)

// DeviceName returns the name of a device, such as "gpu-3". The index is NVML's index. The pool has the same name as the node.
func DeviceName(index int32) string { return prefix + strconv.Itoa(int(index)) }

// DeviceIndex returns the index in a name from DeviceName. It returns false for any other name.
func DeviceIndex(name string) (int32, bool) {
	text, ok := strings.CutPrefix(name, prefix)
	index, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil || index < 0 || DeviceName(int32(index)) != name {
		return 0, false
	}
	return int32(index), true
}

// Name returns the name of the claim that provides a pod's GPUs, or false if the pod doesn't use a claim. The name consists of
// the pod's name, a dash and eight random characters. The random characters distinguish pods with the same name, because
// Kubernetes may take long to remove the claim of a finished pod.
func Name(pod *corev1.Pod) (name string, ok bool) {
	for _, c := range pod.Spec.ResourceClaims {
		if c.Name == Ref && c.ResourceClaimName != nil {
			// A name of this length can't belong to the claim of a different pod, such as NAME-1.
			end, ok := strings.CutPrefix(*c.ResourceClaimName, pod.Name+"-")
			return *c.ResourceClaimName, ok && len(end) == suffix
		}
	}
	return "", false
}

// Expected reports whether a pod expects its GPUs in its own claim.
func Expected(pod *corev1.Pod) bool {
	_, ok := Name(pod)
	return ok
}

// Expect makes a pod expect its GPUs in a claim. All containers for which has returns true share the claim.
func Expect(pod *corev1.Pod, has func(*corev1.Container) bool) {
	name := pod.Name + "-" + rand.String(suffix)
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: Ref, ResourceClaimName: &name})
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if has(&list[i]) {
				list[i].Resources.Claims = append(list[i].Resources.Claims, corev1.ResourceClaim{Name: Ref})
			}
		}
	}
}

// Place is the node and the GPUs of a pod.
type Place struct {
	Node string
	// Indices are the indices of the devices, in ascending order.
	Indices []int32
	// Details are JSON that only the scheduler reads.
	Details []byte
	// Doubt explains why the pod may use other devices, or is "".
	Doubt string
}

// Same reports whether two places are the same. It ignores Doubt.
func (p Place) Same(other Place) bool {
	return p.Node == other.Node && slices.Equal(p.Indices, other.Indices) && string(p.Details) == string(other.Details)
}

// New returns a claim without a place for a pod that expects a claim. Kubernetes deletes the claim together with the pod.
func New(pod *corev1.Pod, gpus int) *resourceapi.ResourceClaim {
	yes := true
	name, _ := Name(pod)
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes}},
			// Without this finalizer, a deleted claim would disappear while its pod still runs.
			Finalizers: []string{resourceapi.Finalizer},
		},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: Ref, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(gpus)},
		}}}},
	}
}

// Of reports whether a claim was created for a pod. Normally, the pod owns the claim. The owner may have been removed, for
// example if the pod was deleted with --cascade=orphan. In that case, the claim must be reserved for only that pod. Only the
// scheduler can write that reservation.
func Of(c *resourceapi.ResourceClaim, pod types.UID) bool {
	owner := metav1.GetControllerOf(c)
	owned := owner != nil && owner.UID == pod
	if owner == nil {
		owned = c.Status.Allocation != nil && len(c.Status.ReservedFor) == 1 && c.Status.ReservedFor[0].UID == pod
	}
	return owned && len(c.Spec.Devices.Requests) == 1 && c.Spec.Devices.Requests[0].Exactly != nil &&
		c.Spec.Devices.Requests[0].Exactly.DeviceClassName == Class
}

// RequestedGPUs returns the number of GPUs that a claim requests. This number can't change.
func RequestedGPUs(c *resourceapi.ResourceClaim) int64 {
	return c.Spec.Devices.Requests[0].Exactly.Count
}

// Status returns the status of a claim whose pod has a place. now is the time of the allocation.
func Status(pod *corev1.Pod, at Place, now metav1.Time) resourceapi.ResourceClaimStatus {
	results := make([]resourceapi.DeviceRequestAllocationResult, len(at.Indices))
	for i, index := range at.Indices {
		results[i] = resourceapi.DeviceRequestAllocationResult{Request: Ref, Driver: Driver, Pool: at.Node, Device: DeviceName(index)}
	}
	return resourceapi.ResourceClaimStatus{
		Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: results, Config: []resourceapi.DeviceAllocationConfiguration{{
				Source: resourceapi.AllocationConfigSourceClaim, Requests: []string{Ref},
				DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
					Driver: Driver, Parameters: runtime.RawExtension{Raw: at.Details},
				}},
			}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{at.Node}},
			}}}},
			AllocationTimestamp: &now,
		},
		ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
	}
}

// Read returns the place on a claim, and the UID of the pod at this place. The error explains why the claim has no place.
func Read(c *resourceapi.ResourceClaim) (pod types.UID, at Place, err error) {
	if c.Status.Allocation == nil {
		return "", Place{}, fmt.Errorf("claim %s/%s is not allocated", c.Namespace, c.Name)
	}
	if len(c.Status.ReservedFor) != 1 {
		return "", Place{}, fmt.Errorf("claim %s/%s has %d pods, and should have one", c.Namespace, c.Name, len(c.Status.ReservedFor))
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		index, ok := DeviceIndex(r.Device)
		switch {
		case r.Driver != Driver:
			continue // the device belongs to another driver, and the agent ignores it, too
		case !ok:
			return "", Place{}, fmt.Errorf("claim %s/%s has the device %s of %s, which is not a GPU", c.Namespace, c.Name, r.Device, r.Driver)
		case at.Node != "" && at.Node != r.Pool:
			return "", Place{}, fmt.Errorf("claim %s/%s has devices of %s and of %s", c.Namespace, c.Name, at.Node, r.Pool)
		case slices.Contains(at.Indices, index):
			return "", Place{}, fmt.Errorf("claim %s/%s has %s twice", c.Namespace, c.Name, r.Device)
		}
		at.Node, at.Indices = r.Pool, append(at.Indices, index)
	}
	if at.Node == "" {
		return "", Place{}, fmt.Errorf("claim %s/%s has no devices", c.Namespace, c.Name)
	}
	slices.Sort(at.Indices)
	at.Doubt = c.Annotations[DoubtKey]
	if text := c.Annotations[DetailsKey]; text != "" {
		at.Details = []byte(text)
		return c.Status.ReservedFor[0].UID, at, nil
	}
	for _, config := range c.Status.Allocation.Devices.Config {
		if config.Opaque != nil && config.Opaque.Driver == Driver {
			at.Details = config.Opaque.Parameters.Raw
		}
	}
	return c.Status.ReservedFor[0].UID, at, nil
}
