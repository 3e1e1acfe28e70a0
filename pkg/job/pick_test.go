package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

func TestTheRuntimeThatIsRunInATaskIsOneThatTheTaskCannotReplace(t *testing.T) {
	mounted := []corev1.VolumeMount{{Name: "pai-runtime", MountPath: spec.Image, ReadOnly: true}}
	for name, c := range map[string]struct {
		pod  corev1.PodSpec
		want string
	}{
		"its image is mounted": {corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Command: []string{spec.ImageRuntime, "run"}, VolumeMounts: mounted}}}, "/usr/local/pai-image/pai-runtime"},
		"it was copied":        {corev1.PodSpec{Containers: []corev1.Container{{Name: "side"}, {Name: "app", Command: []string{spec.Runtime, "run"}}}}, "/proc/1/exe"},
		"others' processes are seen, and the first is none of the container": {corev1.PodSpec{ShareProcessNamespace: new(true), Containers: []corev1.Container{{Name: "app", Command: []string{spec.Runtime, "run"}}}}, spec.Runtime},
		"the machine's processes are seen":                                   {corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{Name: "app", Command: []string{spec.Runtime, "run"}}}}, spec.Runtime},
		"another program is the first":                                       {corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Command: []string{"sh"}, VolumeMounts: mounted}}}, spec.Runtime},
		"a folder of the job lies there":                                     {corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Command: []string{spec.ImageRuntime, "run"}, VolumeMounts: []corev1.VolumeMount{{MountPath: spec.Image}}}}}, spec.Runtime},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: c.pod}
			got := program(p, "app")
			assert.Equal(t, c.want, got)
			target := &Target{OwnRuntime: true, Program: got}
			assert.Equal(t, []string{got, "exec", "--", got, "cp-kind", "x"}, target.Runtime("cp-kind", "x"))
		})
	}
}
