package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// The device plugin ignores a container that requests zero GPUs, so the image's default of all GPUs would apply.
func TestNoGPUOfThePluginIsAllGPUs(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nvidia/cuda",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{resourceGPU: apiresource.MustParse("0")}}}}}}
	guard(p, "test")
	assert.True(t, slices.ContainsFunc(p.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == envGPUs }))
}
