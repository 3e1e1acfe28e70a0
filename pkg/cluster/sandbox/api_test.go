package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/layout"
)

func TestANodeHasItsMachinesHardware(t *testing.T) {
	l := layout.Layout{
		MachineSKU: map[string]layout.SKU{"a100": {Mem: "1Ti", CPU: layout.CPU{VCore: 96}, GPU: &layout.GPU{Type: "NVIDIA A100 (80GB)", Count: 8}}},
		MachineList: []layout.Machine{{Hostname: "gpu-1", HostIP: "10.1.0.2", SKU: "a100", Roles: []string{"worker"},
			Labels: map[string]string{"rack": "r1"}, Taints: []string{"dedicated=ml:NoSchedule", "maintenance:NoExecute"}}},
	}
	nodes, err := NodesOf(l, func(m layout.Machine) map[string]string { return m.Labels }, func(m layout.Machine) []string { return m.Taints })
	require.NoError(t, err)
	n, err := nodes[0].object("v1.36.3")
	require.NoError(t, err)
	assert.Equal(t, "8", quantity(n, "nvidia.com/gpu"))
	assert.Equal(t, "96", quantity(n, "cpu"))
	assert.Equal(t, "1Ti", quantity(n, "memory"))
	assert.Equal(t, n.Status.Capacity, n.Status.Allocatable)
	assert.Equal(t, "NVIDIA-A100--80GB", n.Labels["nvidia.com/gpu.product"])
	assert.Equal(t, "r1", n.Labels["rack"])
	assert.Contains(t, n.Labels, "node-role.kubernetes.io/worker")
	assert.Equal(t, []corev1.Taint{{Key: "dedicated", Value: "ml", Effect: "NoSchedule"}, {Key: "maintenance", Effect: "NoExecute"}}, n.Spec.Taints)
	assert.Equal(t, "v1.36.3-simulated", n.Status.NodeInfo.KubeletVersion)
	assert.True(t, sameNode(n, n))
}

func quantity(n *corev1.Node, resource corev1.ResourceName) string {
	q := n.Status.Capacity[resource]
	return q.String()
}

func TestALayoutThatCantBeSimulatedIsRefused(t *testing.T) {
	none := func(layout.Machine) map[string]string { return nil }
	noTaints := func(layout.Machine) []string { return nil }
	skus := map[string]layout.SKU{"cpu": {Mem: "64Gi", CPU: layout.CPU{VCore: 16}}, "empty": {}, "odd": {Mem: "lots", CPU: layout.CPU{VCore: 1}}}
	for name, tt := range map[string]struct {
		machine layout.Machine
		want    string
	}{
		"an unknown SKU":       {layout.Machine{Hostname: "a", HostIP: "10.0.0.1", SKU: "x"}, `machine a has the SKU "x"`},
		"a SKU to be filled":   {layout.Machine{Hostname: "a", HostIP: "10.0.0.1", SKU: "empty"}, `SKU "empty" has no cpu.vcore or no mem`},
		"no address":           {layout.Machine{Hostname: "a", HostIP: "?", SKU: "cpu"}, `hostip "?"`},
		"memory of no number":  {layout.Machine{Hostname: "a", HostIP: "10.0.0.1", SKU: "odd"}, `node a has the memory "lots"`},
		"a taint of no effect": {layout.Machine{Hostname: "a", HostIP: "10.0.0.1", SKU: "cpu", Taints: []string{"k=v"}}, `"k=v" is not a taint`},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, err := NodesOf(layout.Layout{MachineSKU: skus, MachineList: []layout.Machine{tt.machine}}, none, noTaints)
			if err == nil {
				nodes[0].Taints = tt.machine.Taints
				_, err = nodes[0].object("v1.36.3")
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestANodeIsReplacedWhereItDiffers(t *testing.T) {
	want, err := Node{Name: "a", CPU: 1, Memory: "1Gi", GPUs: 1, GPUType: "x"}.object("v1")
	require.NoError(t, err)
	for name, change := range map[string]func(*corev1.Node){
		"another label":    func(n *corev1.Node) { n.Labels["nvidia.com/gpu.product"] = "y" },
		"another capacity": func(n *corev1.Node) { delete(n.Status.Capacity, "nvidia.com/gpu") },
		"one resource more": func(n *corev1.Node) {
			n.Status.Capacity["example.com/x"] = n.Status.Capacity["cpu"]
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := want.DeepCopy()
			change(old)
			assert.False(t, sameNode(old, want))
		})
	}
	old := want.DeepCopy()
	old.Labels["beta.kubernetes.io/os"] = "linux"
	old.Spec.Taints = []corev1.Taint{{Key: notReadyTaint, Effect: "NoSchedule"}}
	assert.True(t, sameNode(old, want), "what Kubernetes adds is no difference")
}

func TestABareAPINeedsNoOtherProgramsOfABundle(t *testing.T) {
	dir, sum := t.TempDir(), strings.Repeat("0", 64)
	manifest := "apiVersion: paictl.openpai.org/v1\nkind: Bundle\nkubernetes: v1.36.3\narch: amd64\norigin: build\nartifacts:\n"
	for _, name := range []string{"etcd", "kube-apiserver"} {
		manifest += fmt.Sprintf("    - {name: %[1]s, version: v1, kind: tool, path: tools/%[1]s, source: x, sha256: %[2]s, size: 1}\n", name, sum)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.ManifestFile), []byte(manifest), 0o600))
	s := &Sandbox{state: state{Bundle: dir}}
	programs, version, err := s.findPrograms(bareNames())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"etcd": filepath.Join(dir, "tools/etcd"), "kube-apiserver": filepath.Join(dir, "tools/kube-apiserver")}, programs)
	assert.Equal(t, "v1.36.3", version)
	_, _, err = s.findPrograms(programNames())
	require.ErrorContains(t, err, "has no kube-controller-manager to run here")
}

func TestCertificatesAreMadeOnceAndRenewedInTime(t *testing.T) {
	s := &Sandbox{dir: t.TempDir(), state: state{API: &apiState{}}}
	require.NoError(t, s.ensurePKI())
	first, _, err := s.readPair("apiserver")
	require.NoError(t, err)
	require.NoError(t, s.ensurePKI())
	again, _, err := s.readPair("apiserver")
	require.NoError(t, err)
	assert.Equal(t, first.SerialNumber, again.SerialNumber)

	ca, caKey, err := s.readPair("ca")
	require.NoError(t, err)
	require.NoError(t, s.issue("apiserver", first, time.Hour, ca, caKey))
	require.NoError(t, s.ensurePKI())
	renewed, _, err := s.readPair("apiserver")
	require.NoError(t, err)
	assert.Greater(t, time.Until(renewed.NotAfter), leafRenewal)
	require.NoError(t, renewed.VerifyHostname("127.0.0.1"))
	require.NoError(t, renewed.CheckSignatureFrom(ca))

	store, _, err := s.readPair("etcd-ca")
	require.NoError(t, err)
	admin, _, err := s.readPair("admin")
	require.NoError(t, err)
	require.Error(t, admin.CheckSignatureFrom(store), "who may talk to the API may not read its store")
}

func TestKeysAreForTheirOwnerAlone(t *testing.T) {
	s := &Sandbox{dir: t.TempDir(), state: state{Name: "pai", API: &apiState{}}}
	require.NoError(t, s.ensurePKI())
	require.NoError(t, s.writeKubeconfigs())
	keys, err := filepath.Glob(s.pki("*.key"))
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, path := range append(keys, s.Kubeconfig(), s.apiFile("kwok.kubeconfig")) {
		fi, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), fi.Mode().Perm(), path)
	}
}

func TestTheAPIIsRealAndItsNodesAreReady(t *testing.T) {
	opts := Options{Dir: filepath.Join(t.TempDir(), "sandbox"), Bundle: bundletest.ControlPlane(t), Hosts: 3, Progress: func(s string) { t.Log(s) }}
	s, err := UpAPI(t.Context(), opts, nil)
	t.Cleanup(func() { down(t, opts.Dir) })
	require.NoError(t, err)
	client, err := s.client()
	require.NoError(t, err)
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 3)
	for i := range list.Items {
		assert.True(t, isReady(&list.Items[i]), list.Items[i].Name)
	}
	assert.Equal(t, metav1.StatusReasonForbidden, simulatorMayReadSecrets(t, s))
	require.NoError(t, waitForPod(t.Context(), client))

	// UpAPI restarts a program that has ended, and changes the nodes to the requested nodes.
	pids, err := findProcesses(opts.Dir)
	require.NoError(t, err)
	p, err := os.FindProcess(pids["kube-scheduler"][0])
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.NoError(t, poll(t.Context(), func() (bool, error) { return !alive(p.Pid), nil }))
	ended, err := s.Ended()
	require.NoError(t, err)
	require.Len(t, ended, 1)
	assert.Contains(t, ended[0], "kube-scheduler: ")
	s, err = UpAPI(t.Context(), Options{Dir: opts.Dir, Progress: opts.Progress}, []Node{
		{Name: "pai-1", Address: netip.MustParseAddr("10.77.0.1"), CPU: 16, Memory: "64Gi", Roles: []string{"worker"}},
		{Name: "gpu-1", Address: netip.MustParseAddr("10.77.0.2"), CPU: 96, Memory: "1Ti", GPUs: 8, GPUType: "A100"},
	})
	require.NoError(t, err)
	client, err = s.client()
	require.NoError(t, err)
	list, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
	assert.Equal(t, "gpu-1", list.Items[0].Name)
	assert.Equal(t, "8", quantity(&list.Items[0], "nvidia.com/gpu"))

	require.NoError(t, s.Down(t.Context()))
	assert.NoDirExists(t, opts.Dir)
	left, err := findProcesses(opts.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// simulatorMayReadSecrets tries to read Secrets with KWOK's certificate. It returns the reason for the rejection.
func simulatorMayReadSecrets(t *testing.T, s *Sandbox) metav1.StatusReason {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.apiFile("kwok.kubeconfig"))
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	return apierrors.ReasonForError(err)
}

func waitForPod(ctx context.Context, client kubernetes.Interface) error {
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	return poll(ctx, func() (bool, error) {
		// Retry, because the default service account is created a moment after its namespace.
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
			return false, err
		}
		p, err := pods.Get(ctx, "p", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "", err
	})
}
