package agent

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/runnable"
)

// machine simulates a machine with eight GPUs. machine contains the agent's driver and the folders that survive a restart of the agent.
type machine struct {
	t *testing.T
	folders
	*Driver
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, folders: folders{records: filepath.Join(t.TempDir(), "claims"), orderFile: filepath.Join(t.TempDir(), "orders.json"), cdi: filepath.Join(t.TempDir(), "cdi"), notices: filepath.Join(t.TempDir(), "notices"), cgroups: t.TempDir()}}
	require.NoError(t, os.Mkdir(filepath.Join(m.cgroups, "pids"), 0o755))
	m.restart(8)
	return m
}

func (m *machine) restart(gpus int) {
	m.t.Helper()
	d, err := m.open(gpus)
	require.NoError(m.t, err)
	m.Driver = d
}

func (m *machine) open(gpus int) (*Driver, error) {
	watched := newMonitor(m.t)
	watched.see(reportOf(gpus))
	return newDriver(m.t.Context(), "n1", watched, simulated{vendor: nvidia{}}, m.folders, slog.New(slog.DiscardHandler), func(err error) { m.t.Error(err) })
}

func reportOf(gpus int) *gpu.Report {
	out := &gpu.Report{Driver: "550.54.15", CUDA: "12.4"}
	for i := range int32(gpus) {
		out.GPUs = append(out.GPUs, gpu.GPU{
			Index: i, Bus: busOf(i), UUID: fmt.Sprintf("SIM-n1-%d", i), Model: "A100", Memory: 80 << 30, Simulated: true,
			Files: gpu.SimulatedFiles(i), Values: map[string]float64{gpu.Temperature: 34, gpu.DoubleBitVolatile: 0, gpu.RowRemapFailed: 0},
		})
	}
	return out
}

func busOf(index int32) string { return fmt.Sprintf("0000:%02x:00.0", index+1) }

func claimOf(uid string, devices ...string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "claim-" + uid, UID: types.UID(uid)}}
	c.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpus", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: claim.Driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(len(devices)),
	}}}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "gpus", Driver: claim.Driver, Pool: "n1", Device: d,
		})
	}
	return c
}

// prepare allocates the devices of a claim, and returns the device IDs for the claim's container.
func (m *machine) prepare(c *resourceapi.ResourceClaim) (ids []string, err error) {
	m.t.Helper()
	out, err := m.PrepareResourceClaims(m.t.Context(), []*resourceapi.ResourceClaim{c})
	require.NoError(m.t, err)
	require.Len(m.t, out, 1)
	for _, d := range out[c.UID].Devices {
		assert.Equal(m.t, "n1", d.PoolName)
		assert.Equal(m.t, []string{"gpus"}, d.Requests)
		ids = append(ids, d.CDIDeviceIDs...)
	}
	return ids, out[c.UID].Err
}

func (m *machine) end(uid string) {
	m.t.Helper()
	out, err := m.UnprepareResourceClaims(m.t.Context(), []kubeletplugin.NamespacedObject{{UID: types.UID(uid)}})
	require.NoError(m.t, err)
	require.Contains(m.t, out, types.UID(uid))
	require.NoError(m.t, out[types.UID(uid)])
}

// files returns the device files of a container. files uses the container runtime's own library.
func (m *machine) files(ids []string) []string {
	m.t.Helper()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(m.folders.cdi), cdi.WithAutoRefresh(false))
	require.NoError(m.t, err)
	require.Empty(m.t, cache.GetErrors())
	spec := &oci.Spec{}
	_, err = cache.InjectDevices(spec, ids...)
	require.NoError(m.t, err)
	var out []string
	for _, d := range spec.Linux.Devices {
		assert.Equal(m.t, []int64{1, 3}, []int64{d.Major, d.Minor}, "it does what /dev/null does")
		out = append(out, d.Path)
	}
	assert.Len(m.t, spec.Linux.Resources.Devices, len(out), "the container may open these and no others")
	return out
}

func TestAContainerHasTheGPUsOfItsClaim(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	a, err := m.prepare(claimOf("a", "gpu-5", "gpu-2"))
	require.NoError(t, err)
	b, err := m.prepare(claimOf("b", "gpu-0"))
	require.NoError(t, err)
	assert.Equal(t, []string{"/dev/nvidia5", "/dev/nvidia2"}, m.files(a))
	assert.Equal(t, []string{"/dev/nvidia0"}, m.files(b))

	again, err := m.prepare(claimOf("a", "gpu-5", "gpu-2"))
	require.NoError(t, err, "the kubelet may ask twice")
	assert.Equal(t, a, again)
}

// The API server, kube-scheduler and the kubelet accept these claims, so the driver must reject them.
func TestAClaimThatMayNotHaveItsDevicesIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, err := m.prepare(claimOf("a", "gpu-3"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*resourceapi.ResourceClaim)
		want   string
	}{
		"of another claim": {func(*resourceapi.ResourceClaim) {}, "gpu-3 belongs to the claim jobs/claim-a (a) until its pod has ended"},
		"not there":        {func(c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "gpu-8" }, "this machine has no gpu-8"},
		"of another node":  {func(c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Pool = "n2" }, "it was allocated gpu-3 of n2; this machine is n1"},
		"not allocated":    {func(c *resourceapi.ResourceClaim) { c.Status.Allocation = nil }, "nothing was allocated for it"},
		"twice": {func(c *resourceapi.ResourceClaim) {
			*c = *claimOf("b", "gpu-4", "gpu-4")
		}, "it was allocated gpu-4 twice"},
		"more than asked": {func(c *resourceapi.ResourceClaim) {
			*c = *claimOf("b", "gpu-4", "gpu-5", "gpu-6")
			c.Spec.Devices.Requests[0].Exactly.Count = 1
		}, "it requests 1 devices (gpus), but was allocated 3"},
		"of another class": {func(c *resourceapi.ResourceClaim) {
			*c = *claimOf("b", "gpu-4")
			c.Spec.Devices.Requests[0].Exactly.DeviceClassName = "mine"
		}, `it was allocated gpu-4 for its request "gpus", which doesn't have the class gpu.paictl.openpai.org`},
		"for no request": {func(c *resourceapi.ResourceClaim) {
			*c = *claimOf("b", "gpu-4")
			c.Status.Allocation.Devices.Results[0].Request = "more"
		}, `it was allocated gpu-4 for "more", which it doesn't request`},
		"one of several classes": {func(c *resourceapi.ResourceClaim) {
			*c = *claimOf("b", "gpu-4")
			c.Spec.Devices.Requests[0] = resourceapi.DeviceRequest{Name: "gpus", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "a", DeviceClassName: claim.Class}}}
			c.Status.Allocation.Devices.Results[0].Request = "gpus/a"
		}, `for "gpus/a", which it doesn't request`},
		"beside its user": {func(c *resourceapi.ResourceClaim) {
			*c = *claimOf("b", "gpu-4")
			yes := true
			c.Status.Allocation.Devices.Results[0].AdminAccess = &yes
		}, "with adminAccess"},
	} {
		t.Run(name, func(t *testing.T) {
			b := claimOf("b", "gpu-3")
			c.change(b)
			ids, err := m.prepare(b)
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, "claim jobs/claim-b")
			assert.Empty(t, ids)
			assert.NoFileExists(t, filepath.Join(m.folders.cdi, specName("b")))
			assert.Len(t, m.Driver.records.of, 1)
		})
	}
	m.end("a")
	_, err = m.prepare(claimOf("b", "gpu-3"))
	require.NoError(t, err, "the pod that had it has ended")
}

func TestAClaimThatNamesOtherDevicesThanBeforeIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, err := m.prepare(claimOf("a", "gpu-3"))
	require.NoError(t, err)
	_, err = m.prepare(claimOf("a", "gpu-4"))
	require.ErrorContains(t, err, "it was allocated [gpu-3] on this machine, but now names [gpu-4]")
	_, err = m.prepare(claimOf("b", "gpu-4"))
	require.NoError(t, err)
}

func TestDevicesOfOtherDriversAreLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := claimOf("a", "gpu-3")
	c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
		Request: "nic", Driver: "nic.example.com", Pool: "n1", Device: "gpu-3",
	})
	ids, err := m.prepare(c)
	require.NoError(t, err)
	assert.Equal(t, []string{"/dev/nvidia3"}, m.files(ids))
}

func TestTheAgentKnowsAfterItsStartWhatItHandedOut(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	ids, err := m.prepare(claimOf("a", "gpu-3"))
	require.NoError(t, err)

	// A restart of the machine removes the container runtime's folder, but not the kubelet's folder.
	require.NoError(t, os.RemoveAll(m.folders.cdi))
	m.restart(8)
	assert.Equal(t, []string{"/dev/nvidia3"}, m.files(ids), "its containers can be started again")
	_, err = m.prepare(claimOf("b", "gpu-3"))
	require.ErrorContains(t, err, "gpu-3 belongs to the claim jobs/claim-a")

	m.end("a")
	m.end("a") // the kubelet may ask twice
	m.restart(8)
	assert.NoFileExists(t, filepath.Join(m.folders.cdi, specName("a")))
	_, err = m.prepare(claimOf("b", "gpu-3"))
	require.NoError(t, err)
}

func TestNoticesGoWithTheirClaims(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, err := m.prepare(claimOf("a", "gpu-3"))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(m.noticeFolder("a"), notice.File))
	r := m.Driver.records.all()[0]
	m.end("a")
	assert.NoDirExists(t, m.noticeFolder("a"))
	require.NoError(t, m.notify(r)) // a notification was still in progress
	m.notifyAll(t.Context())
	m.restart(8)
	assert.NoDirExists(t, m.noticeFolder("a"))
}

// If a GPU no longer exists, only the claim with this GPU fails.
func TestAGPUIsGoneAfterTheStart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	a, err := m.prepare(claimOf("a", "gpu-1"))
	require.NoError(t, err)
	_, err = m.prepare(claimOf("b", "gpu-7"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(m.folders.cdi))
	m.restart(4)
	assert.Equal(t, []string{"/dev/nvidia1"}, m.files(a))
	assert.NoFileExists(t, filepath.Join(m.folders.cdi, specName("b")))
	_, err = m.prepare(claimOf("b", "gpu-7"))
	require.ErrorContains(t, err, "this machine has no gpu-7")
}

// The agent is killed between two writes.
func TestWritesThatWereInterrupted(t *testing.T) {
	t.Parallel()
	t.Run("noted, not handed out", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		c := claimOf("a", "gpu-3")
		r, err := m.read(c)
		require.NoError(t, err)
		require.NoError(t, m.Driver.records.add(r))
		m.restart(8)
		_, err = m.prepare(claimOf("b", "gpu-3"))
		require.ErrorContains(t, err, "gpu-3 belongs to the claim jobs/claim-a")
		ids, err := m.prepare(c)
		require.NoError(t, err)
		assert.Equal(t, []string{"/dev/nvidia3"}, m.files(ids))
	})
	t.Run("half a record", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		require.NoError(t, os.WriteFile(filepath.Join(m.folders.records, ".new-123"), []byte(`{"uid":"a"`), 0o600))
		m.restart(8)
		entries, err := os.ReadDir(m.folders.records)
		require.NoError(t, err)
		assert.Empty(t, entries)
	})
	t.Run("a file for the container runtime without a record", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		_, err := m.prepare(claimOf("a", "gpu-3"))
		require.NoError(t, err)
		require.NoError(t, os.Remove(m.Driver.records.file("a")))
		other := filepath.Join(m.folders.cdi, "nvidia.json")
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		m.restart(8)
		assert.NoFileExists(t, filepath.Join(m.folders.cdi, specName("a")))
		assert.FileExists(t, other, "others have files there, too")
	})
}

// An unreadable record may contain GPUs that a container uses, so no device may be allocated.
func TestARecordThatCantBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"uid":`:                                "unexpected end of JSON input; remove it once no pod of the claim runs on this machine",
		`{"uid":"b","namespace":"x","name":"y"}`: "it is the record of claim x/y, b; remove it once",
	} {
		m := newMachine(t)
		file := filepath.Join(m.folders.records, "a.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := m.open(8)
		require.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, file)
	}
}

func TestGPUsAsKubernetesIsTold(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.restart(130)
	pools := m.resources().Pools
	require.Len(t, pools, 1)
	s := pools["n1"].Slices
	require.Len(t, s, 3, "an object of the API server holds 64")
	assert.Len(t, s[0].Devices, 64)
	assert.Len(t, s[2].Devices, 2)
	assert.Equal(t, "gpu-129", s[2].Devices[1].Name)
	of := s[0].Devices[2]
	assert.Equal(t, "gpu-2", of.Name)
	assert.Equal(t, int64(2), *of.Attributes["index"].IntValue)
	assert.Equal(t, "SIM-n1-2", *of.Attributes["uuid"].StringValue)
	assert.Equal(t, "A100", *of.Attributes["model"].StringValue)
	assert.True(t, *of.Attributes["simulated"].BoolValue)
	assert.Equal(t, "0000:03:00.0", *of.Attributes["resource.kubernetes.io/pciBusID"].StringValue)
	assert.Equal(t, "550.54.15", *of.Attributes["driverVersion"].VersionValue)
	assert.Equal(t, "12.4.0", *of.Attributes["cudaVersion"].VersionValue)
	memory := of.Capacity["memory"].Value
	assert.Equal(t, int64(80<<30), memory.Value())
}

func TestContainersWithRealGPUsGetWhatTheToolkitSays(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	watched := newMonitor(t)
	watched.wanted = 3
	report := reportOf(2)
	for i := range report.GPUs {
		report.GPUs[i].Simulated = false
		report.GPUs[i].Files = []gpu.File{{Host: "/dev/nvidia7", Container: "/dev/nvidia7"}} // the toolkit's counts
	}
	watched.see(report)
	ctk := filepath.Join(t.TempDir(), "nvidia-ctk")
	say := func(driver string) {
		text := fmt.Sprintf(`{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","containerEdits":{"env":["DRIVER=%s"],"deviceNodes":[{"path":"/dev/nvidiactl","type":"c","major":1,"minor":3},{"path":"/dev/nvidia-uvm","type":"c","major":1,"minor":3}]},
			"devices":[{"name":"SIM-n1-0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia1","type":"c","major":1,"minor":3}]}}]}`, driver)
		runnable.Write(t, ctk, "#!/bin/sh\ncat <<'END'\n"+text+"\nEND\n")
	}
	say("550")
	tk := &toolkit.Toolkit{Program: ctk, Root: "/host/root", Hook: "/hook"}
	d, err := newDriver(t.Context(), "n1", watched, nvidia{toolkit: tk}, m.folders, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
	require.NoError(t, err)
	m.Driver = d
	ids, err := m.prepare(claimOf("a", "gpu-0"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}, m.files(ids))

	_, err = m.prepare(claimOf("b", "gpu-1"))
	require.ErrorContains(t, err, "doesn't know gpu-1 (SIM-n1-1)")
	_, err = m.prepare(claimOf("c", "gpu-2"))
	require.ErrorContains(t, err, "this machine has no gpu-2", "the configuration alone has it")
	assert.Len(t, d.resources().Pools["n1"].Slices[0].Devices, 2)

	// When the driver changes, the container runtime's files are rewritten.
	say("580")
	go d.followDriver(t.Context())
	report.Driver = "580.65.06"
	watched.see(report)
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(filepath.Join(m.folders.cdi, specName("a")))
		return err == nil && strings.Contains(string(data), "DRIVER=580")
	}, 10*time.Second, 20*time.Millisecond)
}

// podsClaimOf returns a claim of an ordinary pod with allocated devices of the node n1. Each container has one device.
func podsClaimOf(uid string, devices ...string) *resourceapi.ResourceClaim {
	c := claimOf(uid, devices...)
	c.Spec.Devices.Requests = nil
	for i := range devices {
		name := fmt.Sprintf("container-%d-request-0", i) // as kube-scheduler names them
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: claim.PodsClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		}})
		c.Status.Allocation.Devices.Results[i].Request = name
	}
	return c
}

func TestOrdinaryPodsGetTheGPUsThatTheLayoutGivesThem(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.gpus.forPods = []int32{6, 7}
	c := podsClaimOf("a", "gpu-7", "gpu-6")
	out, err := m.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
	require.NoError(t, err)
	require.NoError(t, out["a"].Err)
	require.Len(t, out["a"].Devices, 2)
	for i, want := range []string{"/dev/nvidia7", "/dev/nvidia6"} {
		d := out["a"].Devices[i]
		assert.Equal(t, []string{fmt.Sprintf("container-%d-request-0", i)}, d.Requests)
		assert.Equal(t, []string{want}, m.files(d.CDIDeviceIDs), "a container has those of its requests")
	}

	refused := func(c *resourceapi.ResourceClaim, want string) {
		t.Helper()
		out, err := m.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
		require.NoError(t, err)
		assert.ErrorContains(t, out[c.UID].Err, want)
		assert.Empty(t, out[c.UID].Devices)
	}
	refused(podsClaimOf("b", "gpu-6"), "gpu-6 belongs to the claim jobs/claim-a")
	refused(podsClaimOf("b", "gpu-5"), "doesn't have the class "+claim.Class)
	m.end("a")
	refused(claimOf("b", "gpu-6"), "it was allocated gpu-6, which is for ordinary pods")

	choice := podsClaimOf("c", "gpu-6")
	choice.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpus", FirstAvailable: []resourceapi.DeviceSubRequest{
		{Name: "two", DeviceClassName: claim.PodsClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 2},
		{Name: "one", DeviceClassName: claim.PodsClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}}
	choice.Status.Allocation.Devices.Results[0].Request = "gpus/one"
	more := choice.DeepCopy()
	more.Status.Allocation.Devices.Results = append(more.Status.Allocation.Devices.Results, more.Status.Allocation.Devices.Results[0])
	more.Status.Allocation.Devices.Results[1].Device = "gpu-7"
	refused(more, "it requests 1 devices (gpus/one), but was allocated 2")
	out, err = m.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{choice})
	require.NoError(t, err)
	require.NoError(t, out["c"].Err)

	// The layout changes while the pod runs. The pod's container can still be restarted.
	m.gpus.forPods = nil
	out, err = m.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{choice})
	require.NoError(t, err)
	require.NoError(t, out["c"].Err)
	m.end("c")
	refused(podsClaimOf("d", "gpu-6"), "doesn't have the class "+claim.Class)
}

func TestKubernetesIsToldWhichGPUsAreSickAndWhichAreForOrdinaryPods(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.restart(70)
	m.gpus.forPods = []int32{3, 65}
	sick := reportOf(70)
	sick.Events = []gpu.Event{{Bus: busOf(3), XID: 79}, {Bus: busOf(66), XID: 13}}
	m.gpus.see(sick)
	for _, s := range m.resources().Pools["n1"].Slices {
		assert.LessOrEqual(t, len(s.Devices), 64)
		for _, d := range s.Devices {
			assert.Equal(t, d.Name == "gpu-3" || d.Name == "gpu-65", *d.Attributes[claim.ForPods].BoolValue, d.Name)
			if d.Name == "gpu-3" {
				assert.Equal(t, []resourceapi.DeviceTaint{{Key: claim.Unhealthy, Effect: resourceapi.DeviceTaintEffectNoSchedule}}, d.Taints)
			} else {
				assert.Empty(t, d.Taints, d.Name)
			}
		}
	}
}

func TestAnAPIServerThatKnowsNoTaintsStopsNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t) // whose fatal fails the test
	tainted, bare := &resourceapi.ResourceSlice{}, &resourceapi.ResourceSlice{}
	tainted.Spec.Devices = []resourceapi.Device{{Name: "gpu-0", Taints: []resourceapi.DeviceTaint{{Key: claim.Unhealthy}}}}
	bare.Spec.Devices = []resourceapi.Device{{Name: "gpu-0"}}
	m.HandleError(t.Context(), &resourceslice.DroppedFieldsError{PoolName: "n1", DesiredSlice: tainted, ActualSlice: bare}, "update ResourceSlice")
}
