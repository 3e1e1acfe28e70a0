package v1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A template that is packed, copied and packed again is unchanged. The packer chooses which part is kept as fields.
func TestAPackedTemplateIsUnchanged(t *testing.T) {
	for name, text := range map[string]string{"long": strings.Repeat("echo step; ", 2000), "odd": "\x00 é \u2028 \"\\ </script> %", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			task := Task{Pod: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": text}},
				Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "app", Command: []string{"sh", "-c", text}}}}}}
			want, err := task.Template()
			require.NoError(t, err)
			part := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kept": "yes"}}}
			require.NoError(t, task.Pack(part))
			for range 2 {
				assert.Equal(t, part, task.Pod)
				got, err := task.DeepCopy().Template()
				require.NoError(t, err)
				assert.Equal(t, want, got)
				require.NoError(t, task.Pack(part))
			}
		})
	}
}
