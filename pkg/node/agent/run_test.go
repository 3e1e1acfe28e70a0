package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/node/agent/amdgpu"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/runnable"
)

// TestMain also runs the program that reads AMD's GPUs, because the agent runs its own executable as that program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == amdgpu.Command {
		if Run(context.Background(), os.Args[1:], os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(kubetest.Wrap(m).Run())
}

// dial waits until a socket exists, and connects to it like the kubelet.
func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, 30*time.Second, 10*time.Millisecond)
	// The file exists shortly before the program listens on the socket.
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return conn
}

// begin runs the agent of a node with a real API server. The test acts as the kubelet.
func begin(t *testing.T, client kubernetes.Interface, o *options) (get func(path string) (int, string)) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, client, l, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return func(path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
}

func TestTheAgentServesTheKubelet(t *testing.T) {
	t.Parallel()
	client := kubetest.Start(t).Client
	kubelet, err := os.MkdirTemp("", "pai-agent-") //nolint:usetesting // the path of a socket can't be long
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(kubelet)) })
	require.NoError(t, os.Mkdir(filepath.Join(kubelet, "plugins_registry"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(kubelet, "pids"), 0o700))
	o := &options{node: "agent-1", kubelet: kubelet, cdi: filepath.Join(kubelet, "cdi"), notices: filepath.Join(kubelet, "notices"), cgroups: kubelet,
		machines: filepath.Join(kubelet, "machines.json"), probe: filepath.Join(kubelet, "probe"), hook: filepath.Join(kubelet, "hook")}
	require.NoError(t, os.WriteFile(o.hook, nil, 0o755))
	reports := filepath.Join(kubelet, "reports")
	report, err := json.Marshal(reportOf(4))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(reports, append(report, '\n'), 0o600))
	runnable.Write(t, o.probe, "#!/bin/sh\nexec tail -n +1 -f "+reports+"\n")
	require.NoError(t, os.WriteFile(o.machines, []byte(`{"agent-1":{"model":"A100","count":4,"simulated":true}}`), 0o600))
	_, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	healthyAt := begin(t, client, o)
	healthy := func() (int, string) { return healthyAt("/readyz") }

	registrar := registration.NewRegistrationClient(dial(t, filepath.Join(kubelet, "plugins_registry", claim.Driver+"-reg.sock")))
	code, text := healthy()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "the kubelet hasn't asked for the driver yet")
	info, err := registrar.GetInfo(t.Context(), &registration.InfoRequest{})
	require.NoError(t, err)
	assert.Equal(t, []string{registration.DRAPlugin, claim.Driver}, []string{info.GetType(), info.GetName()})
	_, err = registrar.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{Error: "too old"})
	require.Error(t, err)
	code, text = healthy()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "the kubelet refused the driver: too old")
	_, err = registrar.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{PluginRegistered: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool { code, _ := healthy(); return code == http.StatusOK }, 30*time.Second, 50*time.Millisecond)

	published := func() (names []string) {
		list, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + o.node})
		require.NoError(t, err)
		for _, s := range list.Items {
			for _, d := range s.Spec.Devices {
				names = append(names, d.Name)
			}
		}
		return names
	}
	require.Eventually(t, func() bool { return len(published()) == 4 }, 30*time.Second, 50*time.Millisecond)
	assert.Equal(t, []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, published())

	made := func(name, device string) *dra.Claim {
		c := claimOf(name, device)
		c.Namespace, c.Name, c.UID = "agent", name, ""
		status := c.Status
		c, err := client.ResourceV1().ResourceClaims("agent").Create(t.Context(), c, metav1.CreateOptions{})
		require.NoError(t, err)
		c.Status = status
		c.Status.Allocation.Devices.Results[0].Pool = o.node
		c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: "uid-of-" + c.UID}}
		c, err = client.ResourceV1().ResourceClaims("agent").UpdateStatus(t.Context(), c, metav1.UpdateOptions{})
		require.NoError(t, err)
		return &dra.Claim{Namespace: "agent", Name: name, Uid: string(c.UID)}
	}
	plugin := dra.NewDRAPluginClient(dial(t, info.GetEndpoint()))
	a, b := made("a", "gpu-2"), made("b", "gpu-2")
	answer, err := plugin.NodePrepareResources(t.Context(), &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{a, b}})
	require.NoError(t, err)
	require.Empty(t, answer.GetClaims()[a.GetUid()].GetError())
	assert.Equal(t, []string{kind + "=" + a.GetUid() + "-gpu-2"}, answer.GetClaims()[a.GetUid()].GetDevices()[0].GetCdiDeviceIds())
	assert.Contains(t, answer.GetClaims()[b.GetUid()].GetError(), "gpu-2 belongs to the claim agent/a")

	_, err = plugin.NodeUnprepareResources(t.Context(), &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{a}})
	require.NoError(t, err)
	answer, err = plugin.NodePrepareResources(t.Context(), &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{b}})
	require.NoError(t, err)
	assert.Empty(t, answer.GetClaims()[b.GetUid()].GetError())

	health, err := drahealth.NewDRAResourceHealthClient(dial(t, info.GetEndpoint())).NodeWatchResources(t.Context(), &drahealth.NodeWatchResourcesRequest{})
	require.NoError(t, err)
	sick := reportOf(4)
	sick.Events = []gpu.Event{{Bus: busOf(2), At: time.Now(), XID: 79}}
	report, err = json.Marshal(sick)
	require.NoError(t, err)
	f, err := os.OpenFile(reports, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.Write(append(report, '\n'))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for told := ""; !strings.HasPrefix(told, "XID 79: it has fallen off the bus"); {
		answer, err := health.Recv()
		require.NoError(t, err)
		require.Len(t, answer.GetDevices(), 4)
		for _, d := range answer.GetDevices() {
			if d.GetDevice().GetDeviceName() == "gpu-2" && d.GetHealth() == drahealth.HealthStatus_UNHEALTHY {
				told = d.GetMessage()
			}
		}
	}
	require.Eventually(t, func() bool {
		node, err := client.CoreV1().Nodes().Get(t.Context(), o.node, metav1.GetOptions{})
		require.NoError(t, err)
		var told api.NodeDevices
		if json.Unmarshal([]byte(node.Annotations[api.DevicesAnnotation]), &told) != nil || len(told.Devices) != 4 || told.Devices[2].Healthy {
			return false
		}
		assert.True(t, told.Devices[1].Healthy)
		return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return node.Labels[SimulatedLabel] == "true" && node.Labels["nvidia.com/gpu.count"] == "4" && c.Type == ConditionGPUs && c.Status == corev1.ConditionTrue && strings.HasPrefix(c.Message, "GPU 2: XID 79: it has fallen off the bus")
		})
	}, 30*time.Second, 50*time.Millisecond)
	told, ok, err := notice.Read(filepath.Join(o.notices, b.GetUid()))
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, []int{79}, told.GPUs[0].XIDs)
	assert.Contains(t, told.GPUs[0].Reason, "restart the machine")
	code, text = healthyAt("/metrics")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `DCGM_FI_DEV_XID_ERRORS{UUID="SIM-n1-2",device="nvidia2",gpu="2",modelName="A100",namespace="agent",pci_bus_id="0000:03:00.0",pod="b"} 79`)
	assert.Contains(t, text, `pai_gpu_unhealthy{UUID="SIM-n1-1",device="nvidia1",gpu="1",modelName="A100",namespace="",pci_bus_id="0000:02:00.0",pod=""} 0`)
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--node is missing":                          {"--machines=x", "--node="},
		"--machines is missing":                      {"--node=n1"},
		`unexpected argument "more"`:                 {"--node=n1", "--machines=x", "more"},
		"flag provided but not defined: -privileged": {"--privileged"},
		"no such file or directory":                  {"--node=n1", "--machines=/nowhere", "--kubeconfig=/nowhere"},
	} {
		assert.ErrorContains(t, Run(t.Context(), args, io.Discard), want)
	}
	assert.NoError(t, Run(t.Context(), []string{"--help"}, io.Discard))
}

// A restart removes the instances of the machine. The agent doesn't publish devices that can't be allocated.
func TestInstancesAreMadeBeforeAnyoneIsToldOfThem(t *testing.T) {
	t.Parallel()
	client := kubetest.Start(t).Client
	kubelet, err := os.MkdirTemp("", "pai-agent-") //nolint:usetesting // the path of a socket can't be long
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(kubelet)) })
	for _, dir := range []string{"plugins_registry", "pids"} {
		require.NoError(t, os.Mkdir(filepath.Join(kubelet, dir), 0o700))
	}
	o := &options{node: "agent-2", kubelet: kubelet, cdi: filepath.Join(kubelet, "cdi"), notices: filepath.Join(kubelet, "notices"), cgroups: kubelet,
		machines: filepath.Join(kubelet, "machines.json"), probe: filepath.Join(kubelet, "probe"), hook: filepath.Join(kubelet, "hook")}
	require.NoError(t, os.WriteFile(o.hook, nil, 0o755))
	require.NoError(t, os.WriteFile(o.machines, []byte(`{"agent-2":{"model":"A100","count":2,"simulated":true,"mig":"3g.40gb","parts":2}}`), 0o600))
	_, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	v := &splitVendor{is: map[int32]gpu.Split{}}
	write := func(name string) {
		report, err := json.Marshal(v.report())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(kubelet, name), append(report, '\n'), 0o600))
	}
	write("whole")
	v.is[0], v.is[1] = gpu.Split{Profile: "3g.40gb", Instances: 2}, gpu.Split{Profile: "3g.40gb", Instances: 2}
	write("split")
	splits := filepath.Join(kubelet, "plugins", claim.Driver, gpu.SplitsFile)
	require.NoError(t, os.WriteFile(o.probe, []byte(`#!/bin/sh
cd `+kubelet+`
while sleep 0.1; do
	if grep -q '"1"' `+splits+` 2>/dev/null; then cat split; else cat whole; fi
done
`), 0o755))
	watch, err := client.ResourceV1().ResourceSlices().Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + o.node})
	require.NoError(t, err)
	defer watch.Stop()
	begin(t, client, o)
	select {
	case e := <-watch.ResultChan():
		first, ok := e.Object.(*resourceapi.ResourceSlice)
		require.True(t, ok, "%T", e.Object)
		require.Len(t, first.Spec.Devices, 4)
		for i, d := range first.Spec.Devices {
			assert.Equal(t, fmt.Sprintf("MIG-SIM-n1-%d-%d", i/2, i%2), *d.Attributes["uuid"].StringValue)
			assert.Empty(t, d.Taints)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was published")
	}
	text, err := os.ReadFile(splits)
	require.NoError(t, err)
	assert.JSONEq(t, `{"0":{"profile":"3g.40gb","instances":2},"1":{"profile":"3g.40gb","instances":2}}`, string(text))
}
