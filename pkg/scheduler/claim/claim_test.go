package claim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeviceNames(t *testing.T) {
	t.Parallel()
	for _, want := range []int32{0, 7, 127, 1<<31 - 1} {
		got, ok := DeviceIndex(DeviceName(want))
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	for _, name := range []string{"", "gpu-", "gpu--1", "gpu-07", "gpu-+7", "gpu-2147483648", "nic-3", "3"} {
		_, ok := DeviceIndex(name)
		assert.False(t, ok, name)
	}
}

func TestTheNameOfAClaimIsThatOfItsPodAlone(t *testing.T) {
	t.Parallel()
	for name, ours := range map[string]bool{"p-abcdefgh": true, "p-1-abcdefgh": false, "p-abcdefg": false, "p-": false, "q-abcdefgh": false, "pabcdefgh": false} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: Ref, ResourceClaimName: &name}}}}
		is := Expected(pod)
		assert.Equal(t, ours, is, name)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	Expect(pod, func(*corev1.Container) bool { return true })
	assert.True(t, Expected(pod))
}
