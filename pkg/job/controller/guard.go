package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// envGPUs is the environment variable that NVIDIA's container toolkit reads.
const envGPUs = "NVIDIA_VISIBLE_DEVICES"

// resourceGPU is the resource of NVIDIA's device plugin, which tasks request in clusters without a GPU scheduler.
const resourceGPU = "nvidia.com/gpu"

// guard removes the fields of a pod that only the platform may set, and sets safe values for fields that a template doesn't set. The API server
// rejects other forbidden fields, according to the chart cluster-configuration.
func guard(p *corev1.Pod, priority string) {
	p.Finalizers = nil // it would stay forever
	for _, key := range []string{annotation.BindInfoKey, annotation.IsolationKey, annotation.LegacyIsolationKey, annotation.PlacementKey} {
		delete(p.Annotations, key) // only the scheduler sets these
	}
	if p.Spec.PriorityClassName == "" {
		if !slices.Contains(v1.Priorities(), priority) {
			priority = v1.PriorityTest
		}
		p.Spec.PriorityClassName = v1.PriorityClass(priority)
	}
	if p.Spec.SecurityContext == nil {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if p.Spec.SecurityContext.SeccompProfile == nil {
		p.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for _, cs := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range cs {
			guardContainer(&cs[i])
		}
	}
}

func guardContainer(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	if c.SecurityContext.Capabilities == nil {
		c.SecurityContext.Capabilities = &corev1.Capabilities{}
	}
	// With this capability, a task could take over the addresses of other tasks on its machine.
	caps := c.SecurityContext.Capabilities
	if raw := corev1.Capability("NET_RAW"); !slices.Contains(caps.Drop, raw) && !slices.Contains(caps.Drop, "ALL") && !slices.Contains(caps.Add, raw) {
		caps.Drop = append(slices.Clone(caps.Drop), raw)
	}
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envGPUs }) {
		return
	}
	if n := c.Resources.Limits[resourceGPU]; !n.IsZero() {
		return // the plugin sets it; for zero GPUs it doesn't
	}
	// CUDA images set the variable to "all" by default.
	gpus := corev1.EnvVar{Name: envGPUs, Value: "none"}
	if _, cells := c.Resources.Limits[annotation.EnableKey]; cells {
		gpus = corev1.EnvVar{Name: envGPUs, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: "metadata.annotations['" + annotation.IsolationKey + "']"}}}
	}
	c.Env = append([]corev1.EnvVar{gpus}, c.Env...)
}
