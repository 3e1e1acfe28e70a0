package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/amdgputest"
)

// labelled returns a driver whose monitor has received the reports.
func labelled(t *testing.T, v vendor, wanted int, reports ...*gpu.Report) *Driver {
	t.Helper()
	m := newMonitor(t)
	m.wanted = wanted
	for _, r := range reports {
		m.see(r)
	}
	return &Driver{node: "n1", gpus: m, vendor: v, log: slog.New(slog.DiscardHandler)}
}

func hardware(r *gpu.Report) *gpu.Report {
	for i := range r.GPUs {
		r.GPUs[i].Simulated = false
		r.GPUs[i].Facts = map[string]string{gpu.Compute: "8.0", gpu.MIGCapable: "true"}
	}
	return r
}

func nvidiaLabels() map[string]string {
	return map[string]string{
		"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920",
		"nvidia.com/gpu.family": "ampere", "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0", "nvidia.com/mig.capable": "true",
		"nvidia.com/gpu.machine": "PowerEdge-XE8545", "nvidia.com/cuda.driver-version.full": "550.54.15", "nvidia.com/cuda.driver-version.major": "550",
		"nvidia.com/cuda.driver-version.minor": "54", "nvidia.com/cuda.driver-version.revision": "15", "nvidia.com/cuda.driver.major": "550", "nvidia.com/cuda.driver.minor": "54",
		"nvidia.com/cuda.driver.rev": "15", "nvidia.com/cuda.runtime-version.full": "12.4", "nvidia.com/cuda.runtime-version.major": "12",
		"nvidia.com/cuda.runtime-version.minor": "4", "nvidia.com/cuda.runtime.major": "12", "nvidia.com/cuda.runtime.minor": "4",
	}
}

func TestLabelsOfNVIDIAsGPUs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sys/class/dmi/id"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "sys/class/dmi/id/product_name"), []byte("PowerEdge XE8545\n"), 0o600))
	for name, c := range map[string]struct {
		change func(*gpu.Report)
		want   func(map[string]string)
	}{
		"as they are": {func(*gpu.Report) {}, func(map[string]string) {}},
		"a driver of two": {func(r *gpu.Report) { r.Driver = "550.54" }, func(l map[string]string) {
			l["nvidia.com/cuda.driver-version.full"] = "550.54"
			l["nvidia.com/cuda.driver-version.revision"] = ""
			l["nvidia.com/cuda.driver.rev"] = ""
		}},
		"Turing": {func(r *gpu.Report) { r.GPUs[0].Facts[gpu.Compute] = "7.5" }, func(l map[string]string) {
			l["nvidia.com/gpu.compute.major"] = "7"
			l["nvidia.com/gpu.compute.minor"] = "5"
			l["nvidia.com/gpu.family"] = "turing"
		}},
		"Ada": {func(r *gpu.Report) { r.GPUs[0].Facts[gpu.Compute] = "8.9" }, func(l map[string]string) {
			l["nvidia.com/gpu.compute.minor"] = "9"
			l["nvidia.com/gpu.family"] = "ada-lovelace"
		}},
		"one that can be split": {func(r *gpu.Report) { r.GPUs[0].Facts[gpu.MIGCapable] = "false" }, func(map[string]string) {}},
		"none that can be split": {func(r *gpu.Report) {
			for i := range r.GPUs {
				r.GPUs[i].Facts[gpu.MIGCapable] = "false"
			}
		}, func(l map[string]string) { l["nvidia.com/mig.capable"] = "false" }},
		"one that is lost":              {func(r *gpu.Report) { r.GPUs[1].Lost = true }, func(l map[string]string) { l["nvidia.com/gpu.count"] = "3" }},
		"a name that no label may have": {func(r *gpu.Report) { r.GPUs[0].Model = "NVIDIA (R) <b>A/100" }, func(l map[string]string) { l["nvidia.com/gpu.product"] = "NVIDIA-R-bA100" }},
		"a name too long":               {func(r *gpu.Report) { r.GPUs[0].Model = strings.Repeat("x", 64) }, func(l map[string]string) { delete(l, "nvidia.com/gpu.product") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := hardware(reportOf(4))
			r.GPUs[0].Model = "NVIDIA-A100-SXM4-80GB"
			c.change(r)
			want := nvidiaLabels()
			c.want(want)
			got, ok := labelled(t, nvidia{root: root}, 4, r).labels()
			assert.True(t, ok)
			assert.Equal(t, want, got)
		})
	}
}

func TestLabelsOfSimulatedGPUsSayThatTheyAre(t *testing.T) {
	t.Parallel()
	got, ok := labelled(t, simulated{vendor: nvidia{root: "/"}}, 0, reportOf(4)).labels()
	require.True(t, ok)
	assert.Equal(t, "true", got[SimulatedLabel])
	assert.Equal(t, []string{"A100", "4"}, []string{got["nvidia.com/gpu.product"], got["nvidia.com/gpu.count"]})
	assert.NotContains(t, got, "nvidia.com/gpu.machine", "the machine isn't one that has them")

	r := reportOf(4)
	r.GPUs[0].Model, r.GPUs[1].Model, r.GPUs[2].Model, r.GPUs[3].Model = "AMD-Instinct-MI300X", "AMD-Instinct-MI300X", "AMD-Instinct-MI300X", "AMD-Instinct-MI300X"
	got, ok = labelled(t, simulated{vendor: amd{}}, 0, r).labels()
	require.True(t, ok)
	assert.Equal(t, map[string]string{
		SimulatedLabel: "true", "amd.com/gpu.product-name": "AMD_Instinct_MI300X", "beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X", "beta.amd.com/gpu.product-name.AMD_Instinct_MI300X": "4",
		"amd.com/gpu.vram": "80G", "beta.amd.com/gpu.vram": "80G", "beta.amd.com/gpu.vram.80G": "4",
	}, got)
}

func TestLabelsOfAMDsGPUs(t *testing.T) {
	t.Parallel()
	_, look := amdMachine(t, amdgputest.MI300X(0), amdgputest.MI300X(1))
	got, ok := labelled(t, amd{}, 2, look()).labels()
	require.True(t, ok)
	want := map[string]string{"amd.com/gpu.driver-version": "6.8.5"}
	for kind, value := range map[string]string{
		"device-id": "74a1", "product-name": "AMD_Instinct_MI300X_OAM", "vram": "192G", "family": "AI", "simd-count": "1216", "cu-count": "304",
	} {
		want["amd.com/gpu."+kind], want["beta.amd.com/gpu."+kind], want["beta.amd.com/gpu."+kind+"."+value] = value, value, "2"
	}
	assert.Equal(t, want, got)

	_, look = amdMachine(t, amdgputest.MI300X(0), amdgputest.MI250(1))
	got, ok = labelled(t, amd{}, 2, look()).labels()
	require.True(t, ok)
	assert.Equal(t, []string{"1", "1", "1"}, []string{got["amd.com/gpu.device-id.74a1"], got["amd.com/gpu.device-id.740c"], got["beta.amd.com/gpu.device-id.740c"]})
	assert.Equal(t, "1", got["amd.com/gpu.product-name.AMD_INSTINCT_MI250_MCM_OAM_AC_MBA"])
	assert.NotContains(t, got, "amd.com/gpu.device-id")
	assert.Equal(t, "AI", got["amd.com/gpu.family"])
}

func TestNothingIsSaidOfGPUsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	_, ok := labelled(t, nvidia{}, 4).labels()
	assert.False(t, ok, "the driver hasn't answered yet: labels of before stay")
	got, ok := labelled(t, nvidia{}, 4, &gpu.Report{}).labels()
	assert.True(t, ok)
	assert.Empty(t, got)
}

// The test uses a real API server, because the API server stores the field managers of labels.
func TestTheAgentWritesLabelsAndLeavesThoseOfOthers(t *testing.T) {
	t.Parallel()
	client := kubetest.Start(t).Client
	nodes := client.CoreV1().Nodes()
	ctx := t.Context()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "labels-1", Labels: map[string]string{"mine": "x"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	of := func() (map[string]string, string) {
		n, err := nodes.Get(ctx, "labels-1", metav1.GetOptions{})
		require.NoError(t, err)
		return n.Labels, n.ResourceVersion
	}
	// other writes labels like NVIDIA's program, which uses node feature discovery.
	other := func(labels map[string]any) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
		require.NoError(t, err)
		_, err = nodes.Patch(ctx, "labels-1", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "nfd-master"})
		require.NoError(t, err)
	}
	label := func(v vendor, reports ...*gpu.Report) {
		d := labelled(t, v, 4, reports...)
		d.node = "labels-1"
		require.NoError(t, d.label(ctx, client))
	}
	with := func(change func(map[string]string)) map[string]string {
		out := nvidiaLabels()
		delete(out, "nvidia.com/gpu.machine")
		out["nvidia.com/gpu.product"], out["mine"] = "A100", "x"
		change(out)
		return out
	}
	nothing := func(map[string]string) {}

	v := nvidia{root: t.TempDir()}
	label(v, hardware(reportOf(4)))
	got, first := of()
	assert.Equal(t, with(nothing), got)
	label(v, hardware(reportOf(4)))
	_, second := of()
	assert.Equal(t, first, second, "nothing has changed, and nothing is written")
	label(v) // the driver doesn't answer
	_, second = of()
	assert.Equal(t, first, second)

	// Another program writes different values and additional labels.
	other(map[string]any{"nvidia.com/gpu.product": "A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/gpu.count": "28", "nvidia.com/gfd.timestamp": "1"})
	theirs := func(l map[string]string) {
		l["nvidia.com/gpu.product"], l["nvidia.com/gpu.count"], l["nvidia.com/gfd.timestamp"] = "A100-SXM4-80GB-MIG-1g.10gb", "28", "1"
	}
	label(v, hardware(reportOf(4)))
	got, _ = of()
	assert.Equal(t, with(theirs), got)
	newer := hardware(reportOf(3))
	newer.CUDA = ""
	label(v, newer)
	got, _ = of()
	assert.Equal(t, with(func(l map[string]string) {
		theirs(l)
		maps.DeleteFunc(l, func(key, _ string) bool { return strings.HasPrefix(key, "nvidia.com/cuda.runtime") })
	}), got, "what is no more is gone")

	// The other program and its labels are removed.
	other(map[string]any{"nvidia.com/gpu.product": nil, "nvidia.com/gpu.count": nil, "nvidia.com/gfd.timestamp": nil})
	label(v, hardware(reportOf(4)))
	got, _ = of()
	assert.Equal(t, with(nothing), got)

	label(v, hardware(reportOf(4)), &gpu.Report{Driver: "550.54.15"})
	got, _ = of()
	assert.Equal(t, map[string]string{"mine": "x"}, got, "the GPUs are gone")
}

// The test covers the whole path from the files of AMD's GPUs to the Node.
func TestTheAgentOfAMachineWithAMDsGPUs(t *testing.T) {
	t.Parallel()
	client := kubetest.Start(t).Client
	kubelet, err := os.MkdirTemp("", "pai-amd-") //nolint:usetesting // the path of a socket can't be long
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(kubelet)) })
	require.NoError(t, os.Mkdir(filepath.Join(kubelet, "plugins_registry"), 0o700))
	tr, _ := amdMachine(t, amdgputest.MI300X(0), amdgputest.MI300X(1))
	tr.Write("boot/vmlinuz-6.8.0-45-generic", "") // for which NVIDIA's driver has no module
	o := &options{node: "amd-1", kubelet: kubelet, cdi: filepath.Join(kubelet, "cdi"), notices: filepath.Join(kubelet, "notices"), cgroups: kubelet, root: tr.Root,
		machines: filepath.Join(kubelet, "machines.json"), probe: "/nowhere", hook: "/nowhere", toolkit: "/nowhere"}
	require.NoError(t, os.WriteFile(o.machines, []byte(`{"amd-1":{"model":"AMD-Instinct-MI300X","count":2,"vendor":"amd"}}`), 0o600))
	_, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	get := begin(t, client, o)
	require.Eventually(t, func() bool { return nodeOf(t.Context(), t, client, o.node).Labels["amd.com/gpu.vram"] == "192G" }, 30*time.Second, 50*time.Millisecond)
	for _, c := range nodeOf(t.Context(), t, client, o.node).Status.Conditions {
		assert.NotEqual(t, ConditionNextBoot, c.Type, "its driver comes with the kernel")
	}
	_, metrics := get("/metrics")
	assert.Contains(t, metrics, `DCGM_FI_DEV_GPU_UTIL{UUID="GPU-2d4cb1f0a37e0001",device="renderD136",gpu="1",modelName="AMD-Instinct-MI300X",namespace="",pci_bus_id="0000:15:00.0",pod=""} 37`)
	assert.NotContains(t, metrics, "RAS_")
	_, err = os.Stat(filepath.Join(kubelet, "plugins", claim.Driver, "nvidia-cdi-hook"))
	require.ErrorIs(t, err, os.ErrNotExist)

	tr.Remove("0000:15:00.0")
	require.Eventually(t, func() bool {
		return nodeOf(t.Context(), t, client, o.node).Labels["beta.amd.com/gpu.vram.192G"] == "1"
	}, 30*time.Second, 50*time.Millisecond)
	_, metrics = get("/metrics")
	assert.Contains(t, metrics, `pai_gpu_unhealthy{UUID="GPU-2d4cb1f0a37e0001",device="renderD136",gpu="1",modelName="AMD-Instinct-MI300X",namespace="",pci_bus_id="0000:15:00.0",pod=""} 1`)
}

func nodeOf(ctx context.Context, t *testing.T, client kubernetes.Interface, name string) *corev1.Node {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	return n
}
