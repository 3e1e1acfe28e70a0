package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// packedPod is a pod in the cache. It is encoded, because a cluster has tens of thousands of pods, and a decoded pod takes six times the memory.
type packedPod struct {
	namespace, name, version string
	data                     []byte
}

// packPod converts a pod to a packedPod with only the fields that the controller reads.
func packPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	data, err := slimPod(p).Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack pod %s: %w", p.Name, err)
	}
	return &packedPod{namespace: p.Namespace, name: p.Name, version: p.ResourceVersion, data: data}, nil
}

// GetObjectMeta returns the metadata that an informer needs.
func (p *packedPod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: p.version}
}

// podFrom returns the pod in an event of an informer, or nil if the object isn't a pod. The caller may change the pod.
func podFrom(o any) *corev1.Pod {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	packed, ok := o.(*packedPod)
	if !ok {
		return nil
	}
	p := &corev1.Pod{}
	if err := p.Unmarshal(packed.data); err != nil {
		// This can't happen, because Marshal wrote the data.
		utilruntime.HandleError(fmt.Errorf("cached pod %s: %w", packed.name, err))
	}
	return p
}

// slimPod returns a copy of a pod with only the fields that the controller reads.
func slimPod(p *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, CreationTimestamp: p.CreationTimestamp,
			DeletionTimestamp: p.DeletionTimestamp, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
			Labels: pick(p.Labels, v1.LabelFramework, v1.LabelTaskRole, v1.LabelTaskIndex),
			Annotations: pick(p.Annotations, v1.AnnotationFrameworkAttempt, v1.AnnotationTaskAttempt,
				machine.AnnotationTaskUID, annotation.IsolationKey),
			OwnerReferences: p.OwnerReferences,
		},
		Spec: corev1.PodSpec{NodeName: p.Spec.NodeName, TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, Reason: p.Status.Reason, Message: p.Status.Message, PodIP: p.Status.PodIP, HostIP: p.Status.HostIP,
			InitContainerStatuses: slimContainers(p.Status.InitContainerStatuses), ContainerStatuses: slimContainers(p.Status.ContainerStatuses),
		},
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			slim.Status.Conditions = append(slim.Status.Conditions, c)
		}
	}
	return slim
}

func slimContainers(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(in))
	for _, c := range in {
		if c.State.Terminated != nil || c.State.Running != nil {
			out = append(out, corev1.ContainerStatus{Name: c.Name, State: c.State})
		}
	}
	return out
}
