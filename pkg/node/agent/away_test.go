package agent

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/runnable"
)

// If a machine starts while the API server is unavailable, the machine's pods continue to run, and their GPUs may fail.
func TestContainersAreToldOfTheirGPUsThoughNoAPIServerAnswers(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	kubelet, err := os.MkdirTemp("", "pai-agent-") //nolint:usetesting // the path of a socket can't be long
	require.NoError(t, err)
	// The agent's servers may still write files while the folder is removed.
	t.Cleanup(func() {
		assert.Eventually(t, func() bool { return os.RemoveAll(kubelet) == nil }, 10*time.Second, 50*time.Millisecond)
	})
	handed := filepath.Join(kubelet, "plugins", claim.Driver, "claims")
	for _, dir := range []string{filepath.Join(kubelet, "plugins_registry"), filepath.Join(kubelet, "pids"), handed} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	o := &options{node: "agent-3", kubelet: kubelet, cdi: filepath.Join(kubelet, "cdi"), notices: filepath.Join(kubelet, "notices"), cgroups: kubelet,
		machines: filepath.Join(kubelet, "machines.json"), probe: filepath.Join(kubelet, "probe"), hook: filepath.Join(kubelet, "hook")}
	require.NoError(t, os.WriteFile(o.hook, nil, 0o755))
	require.NoError(t, os.WriteFile(o.machines, []byte(`{"agent-3":{"model":"A100","count":2,"simulated":true}}`), 0o600))
	sick := reportOf(2)
	sick.Events = []gpu.Event{{Bus: busOf(1), At: time.Now().Add(time.Minute), XID: 79}}
	report, err := json.Marshal(sick)
	require.NoError(t, err)
	runnable.Write(t, o.probe, "#!/bin/sh\necho '"+string(report)+"'\nexec sleep 600\n")
	before, err := json.Marshal(record{UID: "c", Namespace: "pai-jobs", Name: "c", Since: time.Now(), Devices: []assigned{{Request: "gpus", Device: "gpu-1"}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(handed, "c.json"), before, 0o600))

	get := begin(t, client, o)
	registrar := registration.NewRegistrationClient(dial(t, filepath.Join(kubelet, "plugins_registry", claim.Driver+"-reg.sock")))
	_, err = registrar.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{PluginRegistered: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		told, ok, err := notice.Read(filepath.Join(o.notices, "c"))
		return err == nil && ok && len(told.GPUs) == 1 && len(told.GPUs[0].XIDs) == 1 && told.GPUs[0].XIDs[0] == 79
	}, 30*time.Second, 50*time.Millisecond)
	code, text := get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "waiting for the API server")
	code, _ = get("/healthz")
	assert.Equal(t, http.StatusOK, code)
}
