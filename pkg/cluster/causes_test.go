package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Errors of a machine's programs while "kubeadm init" waits for its static pods, in the formats of containerd 2.4 and kubelet 1.36.
const (
	kubeletWaits = `I1128 18:00:01.000000     255 server.go:100] "Started kubelet"
E1128 18:00:02.000000     255 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \"CreatePodSandbox\" for \"etcd-m1_kube-system(7c)\" with CreatePodSandboxError: \"Failed to create sandbox for pod \\\"etcd-m1_kube-system(7c)\\\": rpc error: code = Unknown desc = err: invalid argument\"" pod="kube-system/etcd-m1" podUID="7c"
E1128 18:00:03.000000     255 reflector.go:205] "Failed to watch" err="failed to list *v1.Node: Get \"https://10.0.0.1:6443/api/v1/nodes\": dial tcp 10.0.0.1:6443: connect: connection refused"
E1128 18:00:04.000000     255 eviction_manager.go:292] "Eviction manager: failed to get summary stats" err="failed to get node info: node \"m1\" not found"
E1128 18:00:05.000000     255 kubelet.go:3117] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
`
	containerdFails = `time="2026-11-28T18:00:01Z" level=error msg="failed to load cni during init, please check CRI plugin status before setting up network for pods" error="cni config load failed: no network config found in /etc/cni/net.d: cni plugin not initialized: failed to load cni config"
time="2026-11-28T18:00:02Z" level=info msg="RunPodSandbox for etcd-m1"
time="2026-11-28T18:00:02Z" level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:etcd-m1,Uid:7c,Namespace:kube-system,Attempt:0,} failed, error" error="rpc error: code = Unknown desc = failed to mount rootfs: mount source: \"overlay\", data: \"workdir=DATA\", err: invalid argument"
`
)

func TestAKubeadmThatFailsQuotesWhyStaticPodsDontStart(t *testing.T) {
	f := newFakeRoot(t)
	f.stub("kubeadm", `echo "[wait-control-plane] Waiting" >&2
echo "error execution phase wait-control-plane: context deadline exceeded" >&2
echo "To see the stack trace of this error execute with --v=5 or higher" >&2
exit 1`)
	f.stub("journalctl", `cat "$PAICTL_ROOT/journal.$2"`)
	run := func(call string) error {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
		cmd.Env = []string{"PATH=" + f.bin + ":" + os.Getenv("PATH"), "PAICTL_ROOT=" + f.root}
		cmd.Stdin = strings.NewReader(applyProgram("r", phaseInit, kubeadmScript+"ETCD_DIR=/var/lib/etcd\n"+call+"\n"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.Error(t, cmd.Run())
		return scriptError(&Node{}, "init/apply", ssh.Result{ExitCode: 1, Stderr: stderr.Bytes()})
	}
	f.file("/journal.containerd.service", strings.Replace(containerdFails, "DATA", strings.Repeat("/var/lib/containerd/snapshots:", 40), 1))
	f.file("/journal.kubelet.service", kubeletWaits)
	for _, call := range []string{"k_init '' hash", "k_join '' '' </dev/null"} {
		err := run(call)
		assert.Contains(t, err.Error(), "error execution phase wait-control-plane: context deadline exceeded; containerd: rpc error: code = Unknown desc = failed to mount rootfs: ")
		assert.Contains(t, err.Error(), " … ")
		assert.Contains(t, err.Error(), `snapshots:", err: invalid argument; kubelet: failed to "CreatePodSandbox" for "etcd-m1_kube-system(7c)" with CreatePodSandboxError: `+
			`"Failed to create sandbox for pod "etcd-m1_kube-system(7c)": rpc error: code = Unknown desc = err: invalid argument"`)
		assert.NotContains(t, err.Error(), "\n")
		assert.NotEmpty(t, hint.Of(err))
	}

	// A component that starts and ends says why itself; the newest log is of the container that has just started.
	f.file("/journal.containerd.service", "")
	f.file("/journal.kubelet.service", "E1128 18:00:03.000000     255 event.go:359] \"Server rejected event\" err=\"dial tcp 10.0.0.1:6443: connect: connection refused\"\n")
	pod := "/var/log/pods/kube-system_etcd-m1_7c/etcd/"
	f.file(pod+"0.log", "2026-11-28T18:00:01Z stderr F starting\n2026-11-28T18:00:02Z stderr F walpb: crc mismatch\n")
	f.file(pod+"1.log", "2026-11-28T18:00:09Z stderr F starting\n")
	require.NoError(t, os.Chtimes(f.root+pod+"0.log", preflightNow, preflightNow))
	assert.ErrorContains(t, run("k_init '' hash"), "context deadline exceeded; etcd: walpb: crc mismatch")
}
