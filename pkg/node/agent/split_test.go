package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/node/agent/repair"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
	"github.com/openpai/paictl/test/nvml"
	"github.com/openpai/paictl/test/tier"
)

// splitVendor is a vendor that splits GPUs as requested, unless a test sets another result.
type splitVendor struct {
	simulated
	see   func(*gpu.Report)
	mu    sync.Mutex // guards is, which resets and reports use at the same time
	is    map[int32]gpu.Split
	asked []string
	fails error
}

func (v *splitVendor) split(_ context.Context, g *device, want gpu.Split, keep bool) error {
	v.asked = append(v.asked, fmt.Sprintf("%d: %d x %s keep=%v", g.Index, want.Instances, want.Profile, keep))
	if v.fails != nil {
		return v.fails
	}
	v.mu.Lock()
	v.is[g.Index] = want
	v.mu.Unlock()
	v.see(v.report())
	return nil
}

func (v *splitVendor) report() *gpu.Report {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := reportOf(2)
	for i := range r.GPUs {
		g := &r.GPUs[i]
		g.MIG = &gpu.MIG{}
		g.Facts = map[string]string{gpu.MIGCapable: "true"}
		if s := v.is[g.Index]; s.Profile != "" {
			g.MIG.Enabled, g.MIG.Pending = true, true
			for k := range s.Instances {
				g.MIG.Instances = append(g.MIG.Instances, gpu.Instance{
					Profile: s.Profile, GI: 7 + k, Place: uint32(k), UUID: fmt.Sprintf("MIG-%s-%d", g.UUID, k), Memory: 10 << 30,
					Files: gpu.SimulatedInstanceFiles(g.Index, 7+k, 0), Facts: map[string]string{gpu.Multiprocessors: "14", gpu.SlicesGI: "1"},
					Values: map[string]float64{gpu.MemoryUsed: float64(k)},
				})
			}
			delete(g.Values, gpu.Utilization)
		}
		g.Values[gpu.MemoryUsed] = 100
	}
	return r
}

// newSplit returns a machine with two GPUs. The SKU splits each GPU into n instances of a profile.
func newSplit(t *testing.T, profile string, n int32) (*ordered, *splitVendor) {
	t.Helper()
	o := newOrdered(t)
	o.restart(2)
	v := &splitVendor{simulated: simulated{vendor: nvidia{}}, is: map[int32]gpu.Split{}}
	o.configure(v, profile, n)
	o.gpus.see(v.report())
	return o, v
}

// configure simulates the start of an agent with another configuration.
func (o *ordered) configure(v *splitVendor, profile string, n int32) {
	o.gpus.mig, o.gpus.parts = profile, n
	v.see, o.vendor = o.gpus.see, v
}

// nodes returns the device files in a claim's containers, by device.
func (o *ordered) nodes(uid string) map[string]string {
	o.t.Helper()
	out := map[string]string{}
	data, err := os.ReadFile(filepath.Join(o.folders.cdi, specName(claimOf(uid).UID)))
	if errors.Is(err, fs.ErrNotExist) {
		return out
	}
	require.NoError(o.t, err)
	var spec specs.Spec
	require.NoError(o.t, json.Unmarshal(data, &spec))
	for _, d := range spec.Devices {
		var files []string
		for _, n := range d.ContainerEdits.DeviceNodes {
			files = append(files, n.Path)
		}
		out[strings.TrimPrefix(d.Name, uid+"-")] = strings.Join(files, " ")
	}
	return out
}

func TestEachContainerGetsItsInstanceAlone(t *testing.T) {
	o, v := newSplit(t, "1g.10gb", 7)
	_, err := o.prepare(claimOf("early", "gpu-0"))
	require.ErrorContains(t, err, "gpu-0 doesn't exist yet: its GPU should be split into 7 x 1g.10gb (MIG), but is one piece")
	assert.Equal(t, "it should be split into 7 x 1g.10gb (MIG), but is one piece", o.reason(0))
	require.True(t, o.split(t.Context()))
	assert.Equal(t, []string{"0: 7 x 1g.10gb keep=false", "1: 7 x 1g.10gb keep=false"}, v.asked)
	assert.Empty(t, o.gpus.sick())
	require.True(t, o.split(t.Context()))
	assert.Len(t, v.asked, 2, "nothing is left to do")

	published := o.resources().Pools["n1"].Slices[0].Devices
	require.Len(t, published, 14)
	d := published[9]
	assert.Equal(t, "gpu-9", d.Name)
	assert.Equal(t, "MIG-SIM-n1-1-2", *d.Attributes["uuid"].StringValue)
	assert.Equal(t, "SIM-n1-1", *d.Attributes["parentUUID"].StringValue)
	assert.Equal(t, "1g.10gb", *d.Attributes["profile"].StringValue)
	assert.EqualValues(t, 1, *d.Attributes["card"].IntValue)
	memory := d.Capacity["memory"].Value
	assert.EqualValues(t, 10<<30, memory.Value())

	for uid, devices := range map[string][]string{"a": {"gpu-0"}, "b": {"gpu-9"}, "two": {"gpu-1", "gpu-2"}} {
		_, err := o.prepare(claimOf(uid, devices...))
		require.NoError(t, err)
	}
	_, err = o.prepare(claimOf("thief", "gpu-9"))
	require.ErrorContains(t, err, "gpu-9 belongs to the claim")
	assert.Equal(t, map[string]string{"gpu-0": "/dev/nvidia0 /dev/nvidia-caps/nvidia-cap66 /dev/nvidia-caps/nvidia-cap67"}, o.nodes("a"))
	assert.Equal(t, map[string]string{"gpu-9": "/dev/nvidia1 /dev/nvidia-caps/nvidia-cap219 /dev/nvidia-caps/nvidia-cap220"}, o.nodes("b"))
	assert.Equal(t, map[string]string{
		"gpu-1": "/dev/nvidia0 /dev/nvidia-caps/nvidia-cap75 /dev/nvidia-caps/nvidia-cap76",
		"gpu-2": "/dev/nvidia0 /dev/nvidia-caps/nvidia-cap84 /dev/nvidia-caps/nvidia-cap85",
	}, o.nodes("two"), "each for itself: its containers may be two")
	var told notice.GPUs
	data, err := os.ReadFile(filepath.Join(o.noticeFolder("b"), notice.File))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &told))
	assert.Equal(t, "MIG-SIM-n1-1-2", told.GPUs[0].UUID)
}

func TestTheNodeTellsOfInstances(t *testing.T) {
	o, _ := newSplit(t, "3g.40gb", 2)
	require.NoError(t, o.tellNode(t.Context(), o.client))
	assert.Contains(t, o.node().Status.Conditions[0].Message, "GPU 1: it should be split into 2 x 3g.40gb (MIG), but is one piece")
	require.True(t, o.split(t.Context()))
	require.NoError(t, o.tellNode(t.Context(), o.client))
	text := o.node().Annotations["paictl.openpai.org/gpus"]
	assert.Contains(t, text, `"parts":2,"mig":"3g.40gb"`)
	assert.Contains(t, text, `{"index":3,"healthy":true,"model":"A100","instance":"MIG-SIM-n1-1-1"}`)
	assert.Equal(t, "False", string(o.node().Status.Conditions[0].Status))
	labels, ok := o.labels()
	require.True(t, ok)
	assert.Equal(t, []string{"4", "A100-MIG-3g.40gb", "single", "10240", "14", "true"}, []string{labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.product"],
		labels["nvidia.com/mig.strategy"], labels["nvidia.com/gpu.memory"], labels["nvidia.com/gpu.multiprocessors"], labels["nvidia.com/mig.capable"]})

	_, err := o.prepare(claimOf("a", "gpu-3"))
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(o.Driver))
	families, err := registry.Gather()
	require.NoError(t, err)
	used := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == gpu.MemoryUsed {
				used[strings.Join([]string{labels["gpu"], labels["GPU_I_PROFILE"], labels["GPU_I_ID"], labels["namespace"]}, " ")] = m.GetGauge().GetValue()
			}
		}
	}
	assert.Equal(t, map[string]float64{"0 3g.40gb 7 ": 0, "0 3g.40gb 8 ": 1, "1 3g.40gb 7 ": 0, "1 3g.40gb 8 jobs": 1}, used, "the GPU itself has none beside them")
}

func TestAGPUIsNotSplitUnderAJob(t *testing.T) {
	o, v := newSplit(t, "", 0)
	ids, err := o.prepare(claimOf("whole", "gpu-1"))
	require.NoError(t, err)
	o.configure(v, "1g.10gb", 7)
	require.False(t, o.split(t.Context()))
	assert.Equal(t, []string{"0: 7 x 1g.10gb keep=false"}, v.asked)
	assert.Equal(t, "it should be split into 7 x 1g.10gb (MIG), but is one piece; it waits: the claim jobs/claim-whole holds it", o.reason(7))
	assert.Empty(t, o.reason(6), "the other is")
	require.True(t, o.writeSpecs(t.Context()))
	assert.Equal(t, []string{"/dev/nvidia1"}, o.files(ids), "its container starts again with what it had")
	_, err = o.prepare(claimOf("next", "gpu-7"))
	require.ErrorContains(t, err, "gpu-7 belongs to the claim")
	assert.Contains(t, o.give(1, repair.Ignore).Message, "it can't be used: it should be split", "no one gets what isn't there")

	require.NoError(t, o.remove("whole"))
	require.True(t, o.split(t.Context()))
	assert.Empty(t, o.gpus.sick())
	_, err = o.prepare(claimOf("next", "gpu-7"))
	require.NoError(t, err)

	// The configuration is reverted.
	o.configure(v, "", 0)
	require.False(t, o.split(t.Context()))
	assert.Contains(t, o.reason(1), "it is split into instances (MIG): 7 x 1g.10gb; it waits: the claim jobs/claim-next holds it")
	require.True(t, o.writeSpecs(t.Context()))
	assert.Len(t, strings.Fields(o.nodes("next")["gpu-7"]), 3, "it keeps its instance")
	require.NoError(t, o.remove("next"))
	require.True(t, o.split(t.Context()))
	assert.Empty(t, o.gpus.sick())
	_, err = o.prepare(claimOf("whole", "gpu-1"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"gpu-1": "/dev/nvidia1"}, o.nodes("whole"))
}

func TestInstancesAreMadeAgainForThePodsThatHaveThem(t *testing.T) {
	o, v := newSplit(t, "1g.10gb", 7)
	require.True(t, o.split(t.Context()))
	_, err := o.prepare(claimOf("a", "gpu-9"))
	require.NoError(t, err)
	before := o.nodes("a")
	// A restart of the machine removes the instances but not the kubelet's pods.
	v.is, v.asked = map[int32]gpu.Split{}, nil
	o.gpus.see(v.report())
	require.NoError(t, os.Remove(filepath.Join(o.folders.cdi, specName("a"))))
	require.False(t, o.writeSpecs(t.Context()))
	assert.Empty(t, o.nodes("a"), "no container starts without its instance")
	_, err = o.prepare(claimOf("a", "gpu-9"))
	require.ErrorContains(t, err, "gpu-9 doesn't exist at present: it is one of 7 instances of the profile 1g.10gb, and its GPU is one piece")
	require.True(t, o.split(t.Context()))
	assert.Equal(t, []string{"0: 7 x 1g.10gb keep=false", "1: 7 x 1g.10gb keep=true"}, v.asked, "what may be in use is kept")
	require.True(t, o.writeSpecs(t.Context()))
	assert.Equal(t, before, o.nodes("a"))
}

func TestWhatSomeoneElseHasSplitStaysAsItIs(t *testing.T) {
	o, v := newSplit(t, "", 0)
	v.is[1] = gpu.Split{Profile: "2g.20gb", Instances: 3}
	o.gpus.see(v.report())
	require.True(t, o.split(t.Context()))
	assert.Empty(t, v.asked)
	assert.Equal(t, map[int32]string{1: "it is split into instances (MIG): 3 x 2g.20gb; its SKU in layout.yaml doesn't have this: write gpu.mig there, or run nvidia-smi -mig 0 on the machine"}, o.gpus.sick())
	_, err := o.prepare(claimOf("a", "gpu-1"))
	require.ErrorContains(t, err, "its GPU is split into instances")
}

// An agent is killed during a split. The next agent continues the split, because the killed agent has recorded it.
func TestTheNextAgentGoesOn(t *testing.T) {
	o, v := newSplit(t, "1g.10gb", 7)
	v.fails = errors.New("killed")
	require.False(t, o.split(t.Context()))
	v.is[0] = gpu.Split{Profile: "1g.10gb", Instances: 2} // so far it came
	next := o.gpus.again(t, "boot-1")
	o.gpus, v.fails, v.asked = next, nil, nil
	o.configure(v, "", 0)
	o.gpus.see(v.report())
	require.True(t, o.split(t.Context()))
	assert.Equal(t, []string{"0: 0 x  keep=false"}, v.asked)
	assert.Empty(t, o.gpus.sick())
	o.gpus.see(v.report())
	v.is[0] = gpu.Split{Profile: "1g.10gb", Instances: 2}
	o.gpus.see(v.report())
	require.True(t, o.split(t.Context()))
	assert.Len(t, v.asked, 1, "from then on it is someone else's")
}

func TestWhatDoesntWorkIsSaid(t *testing.T) {
	o, v := newSplit(t, "1g.10gb", 7)
	v.fails = &gpu.BusyError{Why: "programs use it: process 4711"}
	require.False(t, o.split(t.Context()))
	assert.Contains(t, o.reason(3), "is one piece; it waits: programs use it: process 4711")
	v.fails = errors.New("the driver hangs")
	require.False(t, o.split(t.Context()))
	assert.Len(t, v.asked, 2, "not at once")
	o.gpus.now = func() time.Time { return time.Now().Add(busyPause + time.Second) }
	require.False(t, o.split(t.Context()))
	assert.Contains(t, o.reason(3), "is one piece; that doesn't work: the driver hangs")
	assert.Empty(t, o.Driver.records.held)
	r := v.report()
	for i := range r.GPUs {
		r.GPUs[i].MIG = nil
	}
	o.gpus.see(r)
	assert.Contains(t, o.reason(3), "it should have instances of the profile 1g.10gb, but can't be split (MIG)")
	v.asked = nil
	o.split(t.Context())
	assert.Empty(t, v.asked)
}

// TestRealInstancesByNVIDIAsPrograms runs pai-nvml and NVIDIA's nvidia-ctk for a machine with two A100 GPUs. Only the driver is simulated.
func TestRealInstancesByNVIDIAsPrograms(t *testing.T) {
	tier.More(t, "it compiles NVIDIA's container toolkit and pai-nvml")
	t.Parallel()
	o := newOrdered(t)
	root := t.TempDir()
	nvml.Install(t, root, nvml.Driver)
	makeDevices(t, root)
	proc := nvml.Proc(t)
	probe := &gpu.Probe{Path: nvml.Probe(t), Args: []string{"--root", root, "--every", "100ms"}, Silence: silence, Pause: again}
	tk := &toolkit.Toolkit{Program: nvml.ToolkitSeeing(t, proc), Root: root, Hook: "/hook", Proc: proc}
	watched := newMonitor(t)
	var later atomic.Int64 // seconds
	watched.now = func() time.Time { return time.Now().Add(time.Duration(later.Load()) * time.Second) }
	watched.wanted, watched.mig, watched.parts = 2, "2g.10gb", 3
	v := nvidia{probe, tk, root}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.watch(ctx, watched.see, watched.unseen) }()
	t.Cleanup(func() { cancel(); <-ended })
	require.NoError(t, watched.first(t.Context(), firstLook))
	o.root = root
	d, err := newDriver(t.Context(), "n1", watched, v, o.folders, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
	require.NoError(t, err)
	o.Driver = d

	nvml.Knob(t, root, "process", 1, "4711")
	require.False(t, d.split(t.Context()))
	assert.Equal(t, map[int32]string{
		3: "it should be split into 3 x 2g.10gb (MIG), but is one piece; it waits: programs use it: process 4711",
		4: "it should be split into 3 x 2g.10gb (MIG), but is one piece; it waits: programs use it: process 4711",
		5: "it should be split into 3 x 2g.10gb (MIG), but is one piece; it waits: programs use it: process 4711",
	}, watched.sick())
	nvml.Knob(t, root, "process", 1, "")
	later.Store(61)
	require.True(t, d.split(t.Context()), "%v", watched.sick())
	all, _ := d.gpus.devices()
	require.Len(t, all, 6)

	_, err = o.prepare(claimOf("a", "gpu-4"))
	require.NoError(t, err)
	// The second GPU contains the instance and has the device file /dev/nvidia0. The instance's number differs from its place.
	one := all[4].instance
	require.NotNil(t, one)
	gi, ci := gpu.Minors(0, one.GI, one.CI)
	assert.Equal(t, map[string]string{"gpu-4": fmt.Sprintf("/dev/nvidia0 /dev/nvidia-caps/nvidia-cap%d /dev/nvidia-caps/nvidia-cap%d", gi, ci)}, o.nodes("a"))
	info, err := os.Stat(filepath.Join(root, fmt.Sprintf("dev/nvidia-caps/nvidia-cap%d", gi)))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o444), info.Mode().Perm())
	data, err := os.ReadFile(filepath.Join(o.folders.cdi, specName("a")))
	require.NoError(t, err)
	assert.Contains(t, string(data), "NVIDIA_VISIBLE_DEVICES=void", "as nvidia-ctk has it: no other hook adds anything")
	assert.NotContains(t, string(data), root)

	nvml.Reboot(t, root)
	require.Eventually(t, func() bool { return watched.sick()[0] != "" }, silence, again/50)
	_, err = o.prepare(claimOf("a", "gpu-4"))
	require.ErrorContains(t, err, "and its GPU is no instances")
	require.True(t, d.split(t.Context()), "%v", watched.sick())
	_, err = o.prepare(claimOf("a", "gpu-4"))
	require.NoError(t, err)

	// The SKU no longer contains instances. The state of a GPU doesn't affect containers with the other GPU.
	watched.mu.Lock()
	watched.mig, watched.parts = "", 0
	watched.mu.Unlock()
	require.False(t, d.split(t.Context()))
	assert.Equal(t, map[int32]string{1: "it is split into instances (MIG): 3 x 2g.10gb; it waits: the claim jobs/claim-a holds it"}, watched.sick())
	require.NoError(t, os.RemoveAll(filepath.Join(proc, "driver/nvidia/capabilities/gpu0")))
	_, err = o.prepare(claimOf("whole", "gpu-0"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"gpu-0": "/dev/nvidia1"}, o.nodes("whole"))
}

func makeDevices(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, os.Mkdir(filepath.Join(root, "dev"), 0o755))
	for name, number := range map[string]int{"nvidia0": 195 << 8, "nvidia1": 195<<8 | 1, "nvidiactl": 195<<8 | 255, "nvidia-uvm": 511 << 8} {
		if err := syscall.Mknod(filepath.Join(root, "dev", name), syscall.S_IFCHR|0o666, number); err != nil {
			t.Skipf("device files can't be made: %v", err)
		}
	}
}
