package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// expectGPUs makes a pod expect its GPUs in a resource claim, which the scheduler creates. The containers that request cells and see GPUs get the
// devices of the claim. Other pods aren't changed.
func expectGPUs(p *corev1.Pod) {
	seesGPUs := func(c *corev1.Container) bool {
		q, asks := c.Resources.Limits[annotation.EnableKey]
		return asks && q.Sign() > 0 && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envGPUs && e.ValueFrom != nil })
	}
	if slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool { return seesGPUs(&c) }) {
		claim.Expect(p, seesGPUs)
	}
}
