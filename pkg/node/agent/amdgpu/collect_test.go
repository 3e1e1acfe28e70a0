package amdgpu

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/test/amdgputest"
)

// clock is a clock that advances by itself.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

func collector(tr *amdgputest.Tree) (*Collector, *clock) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return &Collector{Root: tr.Root, Now: c.time}, c
}

func report(t *testing.T, c *Collector) *gpu.Report {
	t.Helper()
	r, err := c.Report()
	require.NoError(t, err)
	return r
}

func files(render, card string) []gpu.File {
	return []gpu.File{{Host: "/dev/dri/" + render, Container: "/dev/dri/" + render}, {Host: "/dev/dri/" + card, Container: "/dev/dri/" + card}}
}

func TestWhatIsSaidOfMI300X(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	for i := range 8 {
		tr.Add(amdgputest.MI300X(i))
	}
	c, _ := collector(tr)
	r := report(t, c)
	assert.Equal(t, "6.8.5", r.Driver)
	assert.Empty(t, r.CUDA)
	require.Len(t, r.GPUs, 8)
	zero := int64(0)
	assert.Equal(t, gpu.GPU{
		Index: 3, Bus: "0000:35:00.0", UUID: "GPU-2d4cb1f0a37e0003", Model: "AMD-Instinct-MI300X", Memory: 206141652992, NUMA: &zero, Files: files("renderD152", "card25"),
		Facts: map[string]string{"device-id": "74a1", "product-name": "AMD Instinct MI300X OAM", "simd-count": "1216", "cu-count": "304", "family": "AI"},
		Values: map[string]float64{
			gpu.Utilization: 37, gpu.MemoryUtilization: 12, gpu.MemoryUsed: 284, gpu.MemoryFree: 196308, gpu.Temperature: 44, gpu.Power: 131, gpu.SMClock: 132, gpu.MemoryClock: 900,
			gpu.PCIeReplays: 0, gpu.PCIeGeneration: 5, gpu.PCIeWidth: 16, gpu.SingleBitVolatile: 4, gpu.DoubleBitVolatile: 0, gpu.OtherUncorrectable: 0,
		},
	}, r.GPUs[3])
}

func TestWhatIsSaidOfMI250(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	require.NoError(t, os.Remove(filepath.Join(tr.Root, "sys/module/amdgpu/version")))
	tr.Add(amdgputest.MI250(0))
	second := amdgputest.MI250(1)
	second.Files["numa_node"] = "-1\n"
	tr.Add(second)
	c, _ := collector(tr)
	r := report(t, c)
	assert.Equal(t, "5.15.0-122-generic", r.Driver, "the driver of the kernel has no version of its own")
	require.Len(t, r.GPUs, 2)
	g := r.GPUs[1]
	assert.Equal(t, []any{"0000:2c:00.0", "GPU-f86ee7b4d0c30001", "AMD-Instinct-MI250X", uint64(68702699520), files("renderD129", "card2")}, []any{g.Bus, g.UUID, g.Model, g.Memory, g.Files})
	assert.Nil(t, g.NUMA)
	assert.Equal(t, map[string]string{"device-id": "740c", "product-name": "AMD INSTINCT MI250 (MCM) OAM AC MBA", "simd-count": "416", "cu-count": "104", "family": "AI"}, g.Facts)
	for name, want := range map[string]float64{gpu.Temperature: 31, gpu.Power: 92.5, gpu.PCIeReplays: 3, gpu.PCIeGeneration: 4, gpu.SMClock: 800, gpu.MemoryClock: 1600} {
		assert.InDelta(t, want, g.Values[name], 1e-9, name)
	}
}

func TestOnlyGPUsForComputingAreTold(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	workstation := amdgputest.MI250(0)
	workstation.Device, workstation.Class = "7448", "0x030000" // a W7900 can also have a screen
	tr.Add(workstation)
	screen := amdgputest.MI250(1)
	screen.Device, screen.Class = "164e", "0x030000" // that of a CPU
	tr.Add(screen)
	audio := amdgputest.MI250(2)
	audio.Class = "0x040300"
	tr.Add(audio)
	c, _ := collector(tr)
	r := report(t, c)
	require.Len(t, r.GPUs, 1)
	assert.Equal(t, "AMD-Radeon-Pro-W7900", r.GPUs[0].Model)
}

func TestAGPUWithoutAnIDOfItsOwnIsToldByItsBus(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	for i, id := range []string{"", "0000000000000000", "abc", "abc", "def"} {
		card := amdgputest.MI250(i)
		card.UniqueID = id
		tr.Add(card)
	}
	c, _ := collector(tr)
	var uuids []string
	for _, g := range report(t, c).GPUs {
		uuids = append(uuids, g.UUID)
	}
	assert.Equal(t, []string{"GPU-0000:29:00.0", "GPU-0000:2c:00.0", "GPU-0000:2f:00.0", "GPU-0000:32:00.0", "GPU-def"}, uuids)
}

func TestAGPUThatIsGone(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	for i := range 3 {
		tr.Add(amdgputest.MI300X(i))
	}
	c, _ := collector(tr)
	report(t, c)
	tr.Remove("0000:05:00.0")
	tr.Write(filepath.Join(amdgputest.Folder("0000:15:00.0"), "config"), "\xff\xff\xff\xff\xff\xff")
	r := report(t, c)
	require.Len(t, r.GPUs, 2)
	assert.True(t, r.GPUs[0].Lost)
	assert.Equal(t, "GPU-2d4cb1f0a37e0001", r.GPUs[0].UUID)
	assert.Empty(t, r.GPUs[0].Values)
	assert.False(t, r.GPUs[1].Lost)

	require.NoError(t, os.RemoveAll(filepath.Join(tr.Root, "sys/bus/pci/drivers/amdgpu")))
	_, err := c.Report()
	require.ErrorContains(t, err, "the driver amdgpu isn't loaded")
}

func TestAGPUThatCantBeHandedOutSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, *amdgputest.Tree)
		want   string // "" for one that can
	}{
		"as it is": {func(*testing.T, *amdgputest.Tree) {}, ""},
		"split": {func(_ *testing.T, tr *amdgputest.Tree) {
			tr.Write(filepath.Join(amdgputest.Folder("0000:05:00.0"), "current_compute_partition"), "CPX\n")
		}, "it is split into partitions (CPX), which can't be allocated; write SPX into its current_compute_partition"},
		"no device file": {func(t *testing.T, tr *amdgputest.Tree) {
			require.NoError(t, os.RemoveAll(filepath.Join(tr.Root, amdgputest.Folder("0000:05:00.0"), "drm")))
		}, "it has no device file /dev/dri/renderD*: see dmesg"},
		"not in the KFD": {func(t *testing.T, tr *amdgputest.Tree) {
			require.NoError(t, os.RemoveAll(filepath.Join(tr.Root, "sys/class/kfd/kfd/topology/nodes/2")))
		}, "the driver doesn't offer it for computing (/sys/class/kfd): see dmesg"},
		"no KFD": {func(t *testing.T, tr *amdgputest.Tree) {
			require.NoError(t, os.RemoveAll(filepath.Join(tr.Root, "sys/class/kfd")))
		}, "the driver doesn't offer it for computing (/sys/class/kfd): see dmesg"},
		"hidden": {func(t *testing.T, tr *amdgputest.Tree) {
			// A folder can't be read as a file, so a folder simulates a file without read permission.
			file := filepath.Join(tr.Root, "sys/class/kfd/kfd/topology/nodes/2/properties")
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o755))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := amdgputest.New(t)
			tr.Add(amdgputest.MI300X(0))
			c.change(t, tr)
			collector, _ := collector(tr)
			assert.Equal(t, c.want, report(t, collector).GPUs[0].Unusable)
		})
	}
}

func TestErrorsAreCountedNowAndThen(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	tr.Add(amdgputest.MI300X(0))
	c, clock := collector(tr)
	says := func(memory, corrected, others float64, why string) {
		t.Helper()
		v := report(t, c).GPUs[0].Values
		assert.Equal(t, []float64{memory, corrected, others}, []float64{v[gpu.DoubleBitVolatile], v[gpu.SingleBitVolatile], v[gpu.OtherUncorrectable]}, why)
	}
	folder := amdgputest.Folder("0000:05:00.0")
	says(0, 4, 0, "at first")
	tr.Write(filepath.Join(folder, "ras/umc_err_count"), "ue: 1\nce: 5\nde: 9\n")
	tr.Write(filepath.Join(folder, "ras/gfx_err_count"), "ue: 2\nce: 0\n")
	tr.Write(filepath.Join(folder, "ras/xgmi_wafl_err_count"), "ue: 3\nce: 7\n")
	clock.now = clock.now.Add(2 * time.Second)
	says(0, 4, 0, "the driver would ask the hardware each time")
	clock.now = clock.now.Add(countEvery)
	says(1, 5, 5, "later")
	for _, f := range []string{"umc", "gfx"} {
		tr.Write(filepath.Join(folder, "ras", f+"_err_count"), "Query currently inaccessible\n")
	}
	clock.now = clock.now.Add(countEvery)
	says(1, 5, 5, "during a reset")
}

func TestWhatCantBeReadIsLeftOut(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	card := amdgputest.MI300X(0) // as a virtual function is
	card.Device, card.Files, card.UniqueID = "74b5", nil, ""
	tr.Add(card)
	c, _ := collector(tr)
	g := report(t, c).GPUs[0]
	assert.Equal(t, "AMD-Instinct-MI300X-VF", g.Model)
	assert.Empty(t, g.Values)
	assert.Empty(t, g.Unusable)
}

func TestTheProgramWritesLines(t *testing.T) {
	t.Parallel()
	tr := amdgputest.New(t)
	tr.Add(amdgputest.MI300X(0))
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, []string{"--root", tr.Root, "--every", "1ms"}, out) }()
	lines := bufio.NewScanner(in)
	for range 2 {
		require.True(t, lines.Scan())
		var r gpu.Report
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		assert.Len(t, r.GPUs, 1)
	}
	cancel()
	require.NoError(t, in.Close())
	err := <-ended
	assert.True(t, err == nil || err == io.ErrClosedPipe, "%v", err) //nolint:errorlint // Encode returns it as it is
	assert.ErrorContains(t, Run(t.Context(), []string{"--root", t.TempDir()}, io.Discard), "the driver amdgpu isn't loaded")
}
