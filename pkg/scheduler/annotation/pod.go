package annotation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// visibleDevices is the environment variable that selects the GPUs of a container. The values "none" and "void" hide all GPUs.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

// SeesNoGPU reports whether the environment hides all GPUs from the container that requests cells. The pod may have cells
// anyway.
func SeesNoGPU(p *corev1.Pod) bool {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if q, ok := c.Resources.Limits[EnableKey]; !ok || q.Sign() <= 0 {
			continue
		}
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == visibleDevices && (e.Value == "none" || e.Value == "void")
		})
	}
	return false
}
