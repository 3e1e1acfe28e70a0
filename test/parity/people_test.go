package parity

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd/cmdtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// The commands about people are run through the server by an administrator and by another person, and with a kubeconfig. The archive is the real
// archive of the job controller.
func TestPeopleAreLookedAfterByWhoeverSignedIn(t *testing.T) {
	b := openWith(t, servertest.Options{})
	b.signIn("root", "administrators", "operators")
	b.signIn("uma", "team")
	_, err := b.cluster.Client.CoreV1().PersistentVolumeClaims(kube.JobNamespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	cmdtest.RunIn(t, "testdata/people", map[string]string{"XDG_CONFIG_HOME": b.home, "KUBECONFIG": "", "OPERATOR": b.kubeconfig})
}
