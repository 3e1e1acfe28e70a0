package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/archive"
)

const measured = `# HELP DCGM_FI_DEV_GPU_UTIL The same as in NVIDIA's dcgm-exporter.
DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",device="nvidia0",gpu="0",modelName="H100",namespace="pai-jobs",pci_bus_id="0",pod="x-worker-0"} 97
DCGM_FI_DEV_FB_USED{UUID="GPU-a",device="nvidia0",gpu="0",modelName="H100",namespace="pai-jobs",pci_bus_id="0",pod="x-worker-0"} 1.024e+03
DCGM_FI_DEV_POWER_USAGE{UUID="GPU-b",device="nvidia1",gpu="1",modelName="H100",namespace="",pci_bus_id="0",pod=""} 70.5
DCGM_FI_DEV_GPU_UTIL{broken} what
pai_gpu_unhealthy{gpu="7"} 1
`

func TestTheGPUsOfAMachineAreAskedOfWhatMeasuresThem(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("s3cret\n"), 0o600))
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(measured)) })
	srv := httptest.NewServer(access.Metrics(password, metrics))
	t.Cleanup(srv.Close)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "agent-1", Labels: map[string]string{"app.kubernetes.io/name": "agent"}},
		Spec:       corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: int32(n)}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: host},
	})
	_, err = newGPUs(client.CoreV1().Pods("pai-system"), "").Of(t.Context(), "gpu-1")
	require.ErrorContains(t, err, "401")
	got, err := newGPUs(client.CoreV1().Pods("pai-system"), password).Of(t.Context(), "gpu-1")
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "x-worker-0", got[0].Pod)
	assert.InDelta(t, 97, *got[0].Utilization, 0)
	assert.InDelta(t, 1024, *got[0].MemoryUsedMiB, 0)
	assert.Nil(t, got[0].PowerWatts)
	assert.InDelta(t, 70.5, *got[1].PowerWatts, 0)
	_, err = newGPUs(fake.NewClientset().CoreV1().Pods("pai-system"), password).Of(t.Context(), "gpu-2")
	require.ErrorIs(t, err, archive.ErrNotFound)
}
