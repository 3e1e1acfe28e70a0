package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

func TestContainersThatSeeGPUsExpectThemInAClaim(t *testing.T) {
	t.Parallel()
	cells := corev1.ResourceRequirements{Limits: corev1.ResourceList{annotation.EnableKey: apiresource.MustParse("1")}}
	none := []corev1.EnvVar{{Name: envGPUs, Value: "none"}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-0"}, Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "app", Resources: cells}, {Name: "beside", Resources: cells, Env: none}},
	}}
	guard(p, "") // shows which of them see GPUs
	expectGPUs(p)
	assert.True(t, claim.Expected(p))
	assert.Equal(t, []corev1.ResourceClaim{{Name: claim.Ref}}, p.Spec.Containers[0].Resources.Claims)
	assert.Empty(t, p.Spec.Containers[1].Resources.Claims)
	assert.Empty(t, p.Spec.InitContainers[0].Resources.Claims)

	processors := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-0"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: cells, Env: none}}}}
	guard(processors, "")
	expectGPUs(processors)
	assert.Empty(t, processors.Spec.ResourceClaims, "work without GPUs has no claim")
}
