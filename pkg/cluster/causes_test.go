package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// journal returns recorded log lines of containerd v2.4.2 and kubelet v1.36.3 without an API server. The lines were recorded at a normal start,
// with a store on an overlay, and with an unknown flag of etcd.
func journal(t *testing.T, names ...string) (text string) {
	t.Helper()
	for _, name := range names {
		data, err := os.ReadFile("testdata/journals/" + name)
		require.NoError(t, err)
		text += string(data)
	}
	return text
}

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
		cmd.Stdin = strings.NewReader(engine.ApplyProgram("r", engine.PhaseInit, phases.KubeadmScript+"ETCD_DIR=/var/lib/etcd\n"+call+"\n"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.Error(t, cmd.Run())
		return engine.ScriptError(&engine.Node{}, "init/apply", ssh.Result{ExitCode: 1, Stderr: stderr.Bytes()})
	}
	f.file("/journal.containerd.service", journal(t, "containerd", "containerd-overlay"))
	f.file("/journal.kubelet.service", journal(t, "kubelet", "kubelet-overlay", "kubelet"))
	for _, call := range []string{"k_init '' hash", "k_join '' '' </dev/null"} {
		err := run(call)
		assert.Contains(t, err.Error(), "error execution phase wait-control-plane: context deadline exceeded; containerd: rpc error: code = Unknown desc = failed to start sandbox ")
		assert.Contains(t, err.Error(), " … ")
		assert.Contains(t, err.Error(), `/snapshots/1/fs,index=off", err: invalid argument; kubelet: failed to "CreatePodSandbox" for "etcd-m1_kube-system(13396bec83019b5f883b216e3656b3e4)" with CreatePodSandboxError: `+
			`"Failed to create sandbox for pod "etcd-m1_kube-system(13396bec`)
		assert.NotContains(t, err.Error(), "\n")
		assert.NotEmpty(t, hint.Of(err))
	}

	// containerd and the kubelet log errors at each start, even at a successful start.
	f.file("/journal.containerd.service", journal(t, "containerd"))
	f.file("/journal.kubelet.service", journal(t, "kubelet"))
	pod := "/var/log/pods/kube-system_etcd-m1_7c/etcd/"
	f.file(pod+"0.log", "2026-11-28T18:00:01Z stderr F ready\n")
	require.EqualError(t, run("k_init '' hash"), "init/apply on : exit status 1: error execution phase wait-control-plane: context deadline exceeded")

	// A component that starts and exits logs the cause itself. The newest log may belong to a container that has just started.
	f.file(pod+"0.log", "2026-11-28T18:00:01Z stderr F starting\n2026-11-28T18:00:02Z stderr F walpb: crc mismatch\n2026-11-28T18:00:02Z stderr F \n")
	f.file(pod+"1.log", "2026-11-28T18:00:09Z stderr F starting\n")
	require.NoError(t, os.Chtimes(f.root+pod+"0.log", preflightNow, preflightNow))
	require.ErrorContains(t, run("k_init '' hash"), "context deadline exceeded; etcd: walpb: crc mismatch")

	// While the kubelet delays the next start, it keeps only the log of the last container.
	f.file("/journal.kubelet.service", journal(t, "kubelet", "kubelet-crash"))
	require.NoError(t, os.Rename(f.root+pod+"0.log", f.root+pod+"3.log"))
	require.NoError(t, os.Remove(f.root+pod+"1.log"))
	require.ErrorContains(t, run("k_init '' hash"), `restarting failed container=etcd pod=etcd-m1_kube-system(13396bec83019b5f883b216e3656b3e4)"; etcd: walpb: crc mismatch`)

	// After a change of settings, the pod has a different name, so the logs of the older pod don't count.
	older := "/var/log/pods/kube-system_etcd-m1_6b/etcd/"
	f.file(older+"7.log", "2026-11-28T18:00:01Z stderr F closed\n")
	require.NoError(t, os.Chtimes(f.root+older, preflightNow, preflightNow))
	require.ErrorContains(t, run("k_init '' hash"), "etcd: walpb: crc mismatch")
}
