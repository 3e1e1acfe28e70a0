package job

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestAJobWhoseStorageLiesElsewhereIsNotSaidToStart(t *testing.T) {
	scheduler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"items":[{"position":1,"positionInVC":1,"vc":"default","group":"pinned~train/default","state":"Waiting","gpus":8,"pods":1}]}`
		if strings.HasPrefix(r.URL.Path, "/v1/why/") {
			answer = `{"vc":"default","group":"pinned~train/default","state":"Waiting","sentence":"The gang can start now on node free.","explanation":{"code":"Ready","nodes":["free"]}}`
		}
		_, _ = w.Write([]byte(answer))
	})
	c, cluster := onServer(t, jobtest.Services{"scheduler": scheduler, api.Service: &history{}})
	ctx, core := t.Context(), cluster.Client.CoreV1()
	for _, name := range []string{"free", "busy"} {
		_, err := core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		n, err := core.Nodes().Get(ctx, name, metav1.GetOptions{}) // new nodes are tainted until their kubelets respond
		require.NoError(t, err)
		n.Spec.Taints = nil
		_, err = core.Nodes().Update(ctx, n, metav1.UpdateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = core.Nodes().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) }) // the cluster ends anyway
	}
	room := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	_, err := core.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: room, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: "local",
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
		NodeAffinity:           &corev1.VolumeNodeAffinity{Required: onHosts(corev1.NodeSelectorOpIn, "busy")}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	class := "local"
	_, err = core.PersistentVolumeClaims(c.Namespace).Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pinned-data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: &class, VolumeName: "data",
		Resources: corev1.VolumeResourceRequirements{Requests: room}}}, metav1.CreateOptions{})
	require.NoError(t, err)

	_, err = c.Submit(ctx, objects(t, "pinned", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("pinned", "train")
	s := completedStatus()
	s.State, s.CompletionTime, s.AttemptStatus.CompletionStatus = v1.AttemptPreparing, nil, nil
	jobtest.SetStatus(t, cluster, object, s)
	_, err = core.Pods(c.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: object + "-worker1-0", Labels: map[string]string{v1.LabelFramework: object}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}, AutomountServiceAccountToken: new(false),
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "pinned-data"}}}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	j, err := c.Resolve(ctx, "pinned", "train")
	require.NoError(t, err)
	w, err := c.Why(ctx, j)
	require.NoError(t, err)
	assert.Equal(t, "GPUs for it are free on free, but "+object+"-worker1-0 can't go there: its storage pinned-data is on busy.", w.Sentence)
}
