package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/nvml"
)

// realGPUs adds the files of a driver and of two GPUs to a machine, and the GPUs to the layout. The kernel has no module of NVIDIA. Opening a
// permitted device file therefore fails because the device doesn't exist (ENXIO), and opening another device file fails because it isn't permitted
// (EPERM). The other parts are real: containerd, the kubelet, NVIDIA's nvidia-ctk in the agent's image, and its hook, which runc runs.
func (a *agents) realGPUs(t *testing.T, worker string) {
	root := t.TempDir()
	nvml.Install(t, root, nvml.Driver)
	files, err := exec.CommandContext(t.Context(), "tar", "-cz", "-C", root, ".").Output()
	require.NoError(t, err)
	a.on(worker, `set -e
mkdir -p /boot
touch /boot/vmlinuz-9.9.9-10-test /boot/vmlinuz-9.9.9-9-test
base64 -d <<'END' | tar -xz --no-same-owner -C /
`+base64.StdEncoding.EncodeToString(files)+`
END
mknod -m 666 /dev/nvidia0 c 195 0
mknod -m 666 /dev/nvidia1 c 195 1
mknod -m 666 /dev/nvidiactl c 195 255
# The module of unified memory is loaded when the agent asks for it: by the machine's own modprobe.
mkdir /usr/local/lib/kmod
mv /usr/sbin/modprobe /usr/local/lib/kmod/modprobe
cat >/usr/sbin/modprobe <<'END'
#!/bin/sh
if [ "$*" = nvidia-uvm ]; then exec mknod -m 666 /dev/nvidia-uvm c 511 0; fi
exec /usr/local/lib/kmod/modprobe "$@"
END
chmod 755 /usr/sbin/modprobe`)

	a.ofSKU(t, worker, "real", map[string]any{"type": "NVIDIA-A100-SXM4-80GB", "count": 2})
}

// ofSKU changes the SKU of a machine to a separate SKU with the given GPUs, until the test ends.
func (a *agents) ofSKU(t *testing.T, worker, name string, gpu map[string]any) {
	path := filepath.Join(a.cluster, "layout.yaml")
	before := read(t, path)
	t.Cleanup(func() { assert.NoError(t, os.WriteFile(path, []byte(before), 0o600)) })
	layout := node(t, before)
	skus := layout["machine-sku"].(map[string]any)
	for _, m := range layout["machine-list"].([]any) {
		machine := m.(map[string]any)
		if machine["hostname"] != worker {
			continue
		}
		sku := node(t, encode(t, skus[machine["machine-type"].(string)]))
		sku["gpu"] = gpu
		skus[name], machine["machine-type"] = sku, name
	}
	require.NoError(t, os.WriteFile(path, []byte(encode(t, layout)), 0o600))
}

// splitGPUs splits the eight simulated GPUs of a machine into two instances each.
func (a *agents) splitGPUs(t *testing.T, worker string) {
	a.ofSKU(t, worker, "split", map[string]any{"type": "NVIDIA-A100-SXM4-80GB", "count": 8, "simulated": true, "mig": "3g.40gb"})
}

// instance is a pod with one instance of the first GPU. The pod prints its device files. The placeholders are the name, the class and the node.
const instance = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %[1]s, labels: {test: agent}}
spec:
  devices:
    requests:
      - name: gpus
        exactly: {deviceClassName: %[2]s, count: 1, selectors: [{cel: {expression: "device.attributes['gpu.paictl.openpai.org'].card == 0"}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {test: agent}}
spec:
  nodeSelector: {kubernetes.io/hostname: %[3]s}
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: docker.io/openpai/examples-python:3
      imagePullPolicy: Never
      command: [python3, -c, "import glob, json, time; print(json.dumps(sorted(glob.glob('/dev/nvidia[0-9]*') + glob.glob('/dev/nvidia-caps/*'))), flush=True); time.sleep(86400)"]
      resources: {claims: [{name: gpus}]}
  resourceClaims: [{name: gpus, resourceClaimName: %[1]s}]
`

// containersHaveInstances creates two pods, each with an instance of the same GPU.
func (a *agents) containersHaveInstances(t *testing.T, worker string) {
	eventually(t, 2*time.Minute, worker+" has two instances of each", func() bool { return len(a.published(worker)) == 16 })
	began := time.Now()
	list := ok(t, a.args("node", "gpu", "list", worker)...).stdout
	t.Logf("paictl node gpu list %s\n%s", worker, list)
	assert.Regexp(t, `0 +NVIDIA-A100-SXM4-80GB +2 x 3g\.40gb +healthy`, list)
	var uses []string
	for _, name := range []string{"half", "other-half"} {
		a.apply(fmt.Sprintf(instance, name, claim.Class, worker))
		saw := a.sees(name)
		require.Len(t, saw, 3, "%v", saw)
		assert.Contains(t, saw, "/dev/nvidia0", "the GPU of both")
		uses = append(uses, saw...)
	}
	slices.Sort(uses)
	assert.Len(t, slices.Compact(uses), 5, "and the capabilities of each are its own")
	metrics := string(a.askPod(a.agentOf(worker), "9104", "/metrics"))
	assert.Regexp(t, `DCGM_FI_DEV_FB_USED\{GPU_I_ID="\d+",GPU_I_PROFILE="3g.40gb"[^}]*pod="half"\}`, metrics)
	labels := a.kubectl("get node " + worker + ` -o jsonpath='{.metadata.labels.nvidia\.com/gpu\.product} {.metadata.labels.nvidia\.com/mig\.strategy} {.metadata.labels.nvidia\.com/gpu\.count}'`)
	assert.Equal(t, "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb single 16", labels)
	a.kubectl("delete pod half other-half --grace-period=1 --timeout=120s")
	a.kubectl("delete resourceclaim half other-half")
	t.Logf("instances took %.0f s", time.Since(began).Seconds())
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// cuda is a pod that prints its device files, the results of opening the device files of both GPUs, and whether the driver's library is found and
// works.
const cuda = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: cuda, labels: {test: agent}}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: %s, count: 1}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: cuda, labels: {test: agent}}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: docker.io/openpai/examples-python:3
      imagePullPolicy: Never
      command:
        - python3
        - -c
        - |
          import ctypes, errno, json, os, stat, time
          def opens(minor):
              path = "/tmp/gpu%%d" %% minor
              os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(195, minor))
              try:
                  os.open(path, os.O_RDWR)
              except OSError as e:
                  return errno.errorcode[e.errno]
          try:
              answer = str(ctypes.CDLL("libcuda.so.1").cuInit(0))
          except OSError as e:
              answer = str(e)
          files = sorted(f for f in os.listdir("/dev") if f.startswith("nvidia"))
          print(json.dumps(files + [opens(0), opens(1), answer, os.environ.get("NVIDIA_VISIBLE_DEVICES", "")]), flush=True)
          time.sleep(86400)
      resources: {claims: [{name: gpus}]}
  resourceClaims: [{name: gpus, resourceClaimName: cuda}]
`

// containersUseADriver is the part of TestTheAgentHandsOutGPUs with a driver's files.
func (a *agents) containersUseADriver(t *testing.T) {
	worker := a.names[2]
	a.apply(fmt.Sprintf(deviceClass, claim.Class)) // for a run of this part alone
	a.realGPUs(t, worker)
	a.splitGPUs(t, a.names[3])
	a.push()
	a.start(0, "-n", "agent")
	a.containersHaveInstances(t, a.names[3])
	eventually(t, 2*time.Minute, worker+" has the GPUs of which the driver's library tells", func() bool {
		return len(a.published(worker)) == 2
	})
	assert.ElementsMatch(t, nvml.UUIDs(), strings.Fields(a.kubectl("get resourceslices --field-selector spec.nodeName="+worker+
		" -o jsonpath='{.items[*].spec.devices[*].attributes.uuid.string}'")))
	a.apply(fmt.Sprintf(cuda, claim.Class, worker))
	saw := a.sees("cuda")
	device := a.kubectl(`get resourceclaim cuda -o jsonpath='{.status.allocation.devices.results[0].device}'`)
	// The library reports the device file of the second GPU for the first GPU.
	own, of := "nvidia1", []string{"EPERM", "ENXIO"}
	if device == "gpu-1" {
		own, of = "nvidia0", []string{"ENXIO", "EPERM"}
	}
	assert.Equal(t, []string{"nvidia-uvm", own, "nvidiactl", of[0], of[1], "100", "void"}, saw, "100 is CUDA's word for a machine without a device")
	said, err := json.Marshal(saw)
	require.NoError(t, err)
	t.Logf("%s: %s", device, said)
	assert.NotEmpty(t, strings.TrimSpace(a.on(worker, "ls /var/lib/kubelet/plugins/*/nvidia-cdi-hook")))
	a.nextKernel(t, worker)
	a.resets(t, worker)
	a.kubectl("delete pod cuda --grace-period=1 --timeout=120s")
	a.kubectl("delete resourceclaim cuda")
}

// nextKernel simulates an upgrade that has installed a kernel without a module of the driver. Later it adds the module.
func (a *agents) nextKernel(t *testing.T, worker string) {
	r := run(t, "node", "list", "-p", a.cluster)
	t.Logf("%s", r)
	assert.Contains(t, r.stdout, "the machine starts kernel 9.9.9-10-test next, for which NVIDIA's driver has no module")
	a.on(worker, "mkdir -p /lib/modules/9.9.9-10-test/updates/dkms && touch /lib/modules/9.9.9-10-test/updates/dkms/nvidia.ko")
	a.kubectl("delete pod -n pai-system -l app.kubernetes.io/name=agent --field-selector spec.nodeName=" + worker)
	eventually(t, time.Minute, "the agent finds the module", func() bool {
		return a.kubectl("get node "+worker+` -o jsonpath='{.status.conditions[?(@.type=="GPUDriverMissingAtNextBoot")].status}'`) == "False"
	})
}

// resets makes the agent reset a GPU. The agent uses the machine's own nvidia-smi, which is a script here that records its arguments.
func (a *agents) resets(t *testing.T, worker string) {
	a.on(worker, `cat >/usr/bin/nvidia-smi <<'END'
#!/bin/sh
if pgrep -x pai-nvml >/dev/null; then echo "GPU is being used by one or more other processes"; exit 1; fi
echo "$*" >>/run/smi # the rest of the machine can only be read there
case "$*" in *--query-gpu=persistence_mode*) echo Enabled;; esac
END
chmod 755 /usr/bin/nvidia-smi`)
	eventually(t, time.Minute, "the agent is back", func() bool {
		return a.kubectl("-n pai-system get pods -l app.kubernetes.io/name=agent --field-selector spec.nodeName="+worker+" -o jsonpath='{.items[0].status.containerStatuses[0].ready}'") == "true"
	})
	r := ok(t, a.args("node", "gpu", "reset", worker, "1")...)
	assert.Equal(t, "GPU 1 of "+worker+": it was reset\n", r.stdout)
	asked := strings.Split(strings.TrimSpace(a.on(worker, "cat /run/smi")), "\n")
	require.Len(t, asked, 4)
	asked = asked[1:]
	assert.Regexp(t, `^--id=0000:[0-9a-f]+:00.0 --persistence-mode=0$`, asked[0])
	assert.Regexp(t, `^--id=0000:[0-9a-f]+:00.0 --gpu-reset$`, asked[1])
	assert.Regexp(t, `^--id=0000:[0-9a-f]+:00.0 --persistence-mode=1$`, asked[2])
	eventually(t, time.Minute, "the agent looks at GPUs again", func() bool {
		_, err := a.try(worker, "pgrep -x pai-nvml")
		return err == nil
	})
}
