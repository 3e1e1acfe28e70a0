package books_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/test/scheduler/schedulertest"
)

// storage creates a bound claim for a folder on a node, in the state in which the volume controller leaves a claim.
func (s *stage) storage(name, node string) {
	s.t.Helper()
	room := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	many := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	class, volume := "folders", s.ns+"-"+name
	claim, err := s.c.Client.CoreV1().PersistentVolumeClaims(s.ns).Create(s.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: many, StorageClassName: &class, VolumeName: volume,
			Resources: corev1.VolumeResourceRequirements{Requests: room}}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = s.c.Client.CoreV1().PersistentVolumes().Create(s.t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{
		Capacity: room, AccessModes: many, StorageClassName: class, PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.ns, Name: name, UID: claim.UID},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// Only kube-scheduler considers volumes. The storage of a task without GPUs is on the machine with GPUs, while the machines without GPUs have free
// cells.
func TestATaskWithoutGPUsRunsWhereItsStorageIs(t *testing.T) {
	s := newStage(t, "storage")
	schedulertest.Configure(t, s.c.Client, s.ns, strings.Split(mixedDivision, "virtualClusters:")[0]+
		"virtualClusters:\n  A:\n    virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: CPU-NODE, cellNumber: 2}]\n")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.storage("team", "test-1")
	prep := &schedulertest.Gang{Namespace: s.ns, Name: "prep", VC: "A", Priority: 5, Pods: 2, GPUs: 2, CPU: "1500m", NoGPU: true,
		Extra: "leafCellType: CPU\norElse: {leafCellNumber: 1, affinityGroup: {name: prep, members: [{podNumber: 2, leafCellNumber: 1}]}}\n"}
	s.createPods(prep, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "team"}}}}
	})
	schedulertest.Eventually(t, 2*time.Minute, func() error { return prep.Bound(t.Context(), s.c.Client) })
	list, err := s.pods().List(t.Context(), metav1.ListOptions{LabelSelector: "gang=prep"})
	require.NoError(t, err)
	for i := range list.Items {
		assert.Equal(t, "test-1", list.Items[i].Spec.NodeName)
	}
	require.NoError(t, schedulertest.DoubleUse(list.Items))
}
