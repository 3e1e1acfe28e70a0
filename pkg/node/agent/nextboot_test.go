package agent

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/test/tier"
)

func TestTheKernelThatStartsNext(t *testing.T) {
	for want, files := range map[string][]string{
		"":                     {"grub", "memtest86+.bin", "initrd.img-6.1.0-28-amd64"},
		"6.1.0-28-amd64":       {"vmlinuz-6.1.0-9-amd64", "vmlinuz-6.1.0-28-amd64", "vmlinuz-6.1.0-28-amd64.old"},
		"6.8.0-101-generic":    {"vmlinuz-6.8.0-101-generic", "vmlinuz-6.8.0-99-generic", "vmlinuz", "vmlinuz.old"},
		"6.12.9+bpo-amd64":     {"vmlinuz-6.12.9+bpo-amd64", "vmlinuz-6.1.0-40-amd64"},
		"5.15.0-1071-nvidia":   {"vmlinuz-5.15.0-1071-nvidia", "vmlinuz-5.15.0-91-generic", "vmlinuz-0-rescue-af1"},
		"6.8.0-100-generic":    {"vmlinuz-6.8.0-100-generic", "vmlinuz-6.8.0-101-generic.dpkg-bak", "vmlinuz-6.8.0-102-generic.dpkg-new", "vmlinuz-6.8.0-103-generic.sig"},
		"6.12.0":               {"vmlinuz-6.12.0", "vmlinuz-6.12.0-rc1"},
		"6.12.0-1-amd64":       {"vmlinuz-6.12.0-rc2-amd64", "vmlinuz-6.12.0-1-amd64"},
		"6.12.0-rc10":          {"vmlinuz-6.12.0-rc9", "vmlinuz-6.12.0-rc10", "vmlinuz-6.11.9"},
		"4.18.0-553.el8_10.64": {"vmlinuz-4.18.0-553.el8_10.64", "vmlinuz-4.18.0-553.el8_9.64"},
	} {
		root := t.TempDir()
		for _, f := range files {
			touch(t, root, "boot", f)
		}
		assert.Equal(t, want, nextKernel(root), "%v", files)
	}
	assert.Empty(t, nextKernel(t.TempDir()), "a machine whose boot loader has its own place for kernels")
}

func TestWhetherTheDriverIsThereAtTheNextStart(t *testing.T) {
	for file, has := range map[string]bool{
		"updates/dkms/nvidia.ko":                                    true,
		"updates/dkms/nvidia-current.ko.xz":                         true,
		"updates/dkms/nvidia-current-open.ko":                       true,
		"updates/dkms/nvidia-tesla-470.ko.zst":                      true,
		"kernel/nvidia-570-server/nvidia.ko":                        true,
		"kernel/nvidia-570-server/nvidia-uvm.ko":                    false,
		"kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko.xz": false,
		"kernel/drivers/video/fbdev/nvidia/nvidiafb.ko":             false,
		"kernel/drivers/net/ethernet/nvidia/forcedeth.ko":           false,
		"updates/dkms/nvidia-drm.ko":                                false,
		"kernel/drivers/infiniband/hw/mlx5/nvidia-peermem.ko":       false,
		"updates/dkms/nvidia-current-modeset.ko":                    false,
		"../6.1.0-9-amd64/updates/dkms/nvidia.ko":                   false,
		"build/drivers/nvidia.ko.cmd":                               false,
		"extra/nvidia-legacy-390xx.ko":                              true,
		"weak-updates/nvidia.ko.gz":                                 true,
		"kernel/drivers/gpu/drm/nouveau/nouveau.ko":                 false,
	} {
		root := t.TempDir()
		touch(t, root, "boot", "vmlinuz-6.1.0-28-amd64")
		touch(t, root, "lib/modules/6.1.0-28-amd64", file)
		b := &nextBoot{root: root}
		kernel, ready := b.look()
		assert.Equal(t, "6.1.0-28-amd64", kernel)
		assert.Equal(t, has, ready, file)
		assert.Equal(t, has, b.trouble() == "", file)
	}
	simulated := &nextBoot{}
	simulated.look()
	assert.Empty(t, simulated.trouble())
}

// module writes a kernel module with the release in its metadata, in the compiler's format.
func module(t *testing.T, release, path string) {
	t.Helper()
	tier.More(t, "a kernel module, which gcc builds")
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("it needs gcc")
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	plain := filepath.Join(t.TempDir(), "nvidia.ko")
	cmd := exec.CommandContext(t.Context(), gcc, "-x", "c", "-c", "-o", plain, "-")
	cmd.Stdin = strings.NewReader(`__attribute__((section(".modinfo"), used)) static const char a[] = "license=Dual MIT/GPL", b[] = "srcversion=5D1", c[] = "version=` + release + `";`)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(plain)
	require.NoError(t, err)
	var packed bytes.Buffer
	switch filepath.Ext(path) {
	case ".gz":
		z := gzip.NewWriter(&packed)
		_, err = z.Write(data)
		require.NoError(t, errors.Join(err, z.Close()))
	case ".zst":
		z, err := zstd.NewWriter(&packed)
		require.NoError(t, err)
		_, err = z.Write(data)
		require.NoError(t, errors.Join(err, z.Close()))
	default:
		packed.Write(data)
	}
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o600))
}

func TestAModuleOfADriverOfBeforeIsNone(t *testing.T) {
	for _, suffix := range []string{"", ".gz", ".zst"} {
		root := t.TempDir()
		touch(t, root, "boot", "vmlinuz-6.1.0-28-amd64")
		modules := filepath.Join(root, "lib/modules/6.1.0-28-amd64")
		module(t, "535.261.03", filepath.Join(modules, "kernel/nvidia-535srv/nvidia.ko"+suffix))
		b := &nextBoot{root: root}
		_, ready := b.look()
		assert.True(t, ready, "it isn't known which libraries there are")
		touch(t, root, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.133.20")
		require.NoError(t, os.Symlink("libnvidia-ml.so.570.133.20", filepath.Join(root, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")))
		for range 2 {
			_, ready = b.look()
			assert.False(t, ready, suffix)
		}
		assert.Contains(t, b.trouble(), "only a module of 535.261.03")
		module(t, "570.133.20", filepath.Join(modules, "updates/dkms/nvidia.ko"+suffix))
		_, ready = b.look()
		assert.True(t, ready, suffix)
		assert.Empty(t, b.trouble())
	}
}

func TestTheNodeSaysWhatItsNextStartBrings(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	m := newMachine(t)
	condition := func() *corev1.NodeCondition {
		require.NoError(t, m.tellNode(t.Context(), client))
		node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		require.NoError(t, err)
		for _, c := range node.Status.Conditions {
			if c.Type == ConditionNextBoot {
				return &c
			}
		}
		return nil
	}
	assert.Nil(t, condition(), "simulated GPUs need no module")
	m.root = t.TempDir()
	m.restart(8)
	assert.Nil(t, condition(), "no kernel is found")
	touch(t, m.root, "boot", "vmlinuz-6.1.0-28-amd64")
	c := condition()
	require.NotNil(t, c)
	assert.Equal(t, corev1.ConditionTrue, c.Status)
	assert.Contains(t, c.Message, "install linux-headers-6.1.0-28-amd64")
	require.NoError(t, testutil.CollectAndCompare(newMetrics(m.Driver), strings.NewReader(`
# HELP pai_gpu_driver_next_boot 1 if NVIDIA's driver has a module for the kernel that the machine starts next, 0 if it has no such module.
# TYPE pai_gpu_driver_next_boot gauge
pai_gpu_driver_next_boot{kernel="6.1.0-28-amd64"} 0
`), "pai_gpu_driver_next_boot"))
	touch(t, m.root, "lib/modules/6.1.0-28-amd64/updates/dkms/nvidia.ko")
	assert.Equal(t, corev1.ConditionFalse, condition().Status)
	before := len(client.Actions())
	condition()
	assert.Len(t, client.Actions(), before+3, "the annotation, and two looks: nothing has changed")
}

func touch(t *testing.T, elements ...string) {
	t.Helper()
	path := filepath.Join(elements...)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
}
