package assembly_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/gangs"
)

// scheduler runs the decisions and the HTTP server of pai-scheduler with the test's API server. The test does the work of kube-scheduler.
type scheduler struct {
	*gangs.Store
	t *testing.T
	c *kube.Cluster
}

// quiet simulates the queue of a kube-scheduler that doesn't run.
type quiet struct{}

func (quiet) Activate([]*corev1.Pod)     {}
func (quiet) Reject([]types.UID, string) {}

func startScheduler(t *testing.T, c *kube.Cluster) *scheduler {
	t.Helper()
	shared := informers.NewSharedInformerFactory(c.Client, 0)
	b := gangs.New(c.Client, shared, quiet{}, gangs.Options{Namespace: kube.SystemNamespace, ConfigMap: "scheduler-configuration", ConfigKey: "hivedscheduler.yaml"},
		slog.New(slog.DiscardHandler), &record.FakeRecorder{}, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	shared.Start(ctx.Done())
	go func() { defer close(ended); _ = b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return &scheduler{b, t, c}
}

// run creates a pod with GPUs of a virtual cluster.
func (s *scheduler) run(name, vc, priority, gpus string) {
	s.t.Helper()
	pods := s.c.Client.CoreV1().Pods(kube.JobNamespace)
	p, err := pods.Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation.SpecKey: "virtualCluster: " + vc + "\npriority: " + priority + "\nleafCellType: G\nleafCellNumber: " + gpus + "\n"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox:1", Env: []corev1.EnvVar{{Name: "KEY", Value: "TOP-SECRET"}}, Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{annotation.EnableKey: resource.MustParse("1")}, Requests: corev1.ResourceList{annotation.EnableKey: resource.MustParse("1")}}}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		at, ok := s.Place(p.UID)
		return ok && s.Bind(s.t.Context(), p.UID, at.Node) == nil
	}, 20*time.Second, 20*time.Millisecond, "the pod has its place")
}

// ready marks machines as ready, as their kubelets do.
func ready(t *testing.T, c *kube.Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"","lastHeartbeatTime":"2030-01-01T00:00:00Z","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`)
		_, err := c.Client.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		_, err = c.Client.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, []byte(`{"spec":{"taints":null,"unschedulable":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
}
