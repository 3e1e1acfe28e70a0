// Package amdgputest creates trees of files in which the kernel's driver amdgpu shows GPUs, for tests.
// In: the GPUs. Out: a folder with sys, like that of a machine with these GPUs. It isn't based on real GPUs; names and formats come from the sources
// of the kernel.
package amdgputest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tree is a machine, as a tree of files.
type Tree struct {
	t    *testing.T
	Root string
	next int // the number of the next node of the KFD
}

// New returns a machine with the driver and two CPUs, but without GPUs.
func New(t *testing.T) *Tree {
	t.Helper()
	tr := &Tree{t: t, Root: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(tr.Root, "sys/bus/pci/drivers/amdgpu"), 0o755))
	tr.Write("sys/bus/pci/drivers/amdgpu/uevent", "")
	tr.Write("sys/module/amdgpu/version", "6.8.5\n")
	tr.Write("proc/sys/kernel/osrelease", "5.15.0-122-generic\n")
	for range 2 {
		tr.kfd("0", "cpu_cores_count 96\nsimd_count 0\nmem_banks_count 1\nvendor_id 0\ndevice_id 0\ndrm_render_minor 0\n")
	}
	return tr
}

// Write writes a file. Its path is relative to the root of the tree.
func (tr *Tree) Write(path, data string) {
	tr.t.Helper()
	file := filepath.Join(tr.Root, path)
	require.NoError(tr.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(tr.t, os.WriteFile(file, []byte(data), 0o600))
}

func (tr *Tree) kfd(id, properties string) {
	tr.t.Helper()
	folder := filepath.Join("sys/class/kfd/kfd/topology/nodes", strconv.Itoa(tr.next))
	tr.next++
	tr.Write(filepath.Join(folder, "gpu_id"), id+"\n")
	tr.Write(filepath.Join(folder, "properties"), properties)
}

// Folder returns the folder of a device, relative to the root.
func Folder(bus string) string { return filepath.Join("sys/devices/pci0000:00", bus) }

// Card describes a GPU.
type Card struct {
	Bus, Device, Class, UniqueID string
	Minor                        int    // the minor number of its render node; that of its card is 127 less, since the server's screen is card0
	Properties                   string // the properties of its node of the KFD, without the number of the render node
	Files                        map[string]string
}

// Add adds the files of a GPU.
func (tr *Tree) Add(c Card) {
	tr.t.Helper()
	folder := Folder(c.Bus)
	vendor := "0x1002"
	for name, text := range map[string]string{"vendor": vendor, "device": "0x" + c.Device, "class": c.Class, "unique_id": c.UniqueID, "numa_node": "0"} {
		if text != "" {
			tr.Write(filepath.Join(folder, name), text+"\n")
		}
	}
	tr.Write(filepath.Join(folder, "config"), "\x02\x10\xa1\x74"+strings.Repeat("\x00", 60))
	for name, text := range c.Files {
		tr.Write(filepath.Join(folder, name), text)
	}
	for _, node := range []string{fmt.Sprintf("renderD%d", c.Minor), fmt.Sprintf("card%d", c.Minor-127)} {
		tr.Write(filepath.Join(folder, "drm", node, "dev"), fmt.Sprintf("226:%d\n", c.Minor))
	}
	tr.kfd(strconv.Itoa(20000+c.Minor), c.Properties+fmt.Sprintf("drm_render_minor %d\n", c.Minor))
	require.NoError(tr.t, os.Symlink(filepath.Join("../../../../devices/pci0000:00", c.Bus), filepath.Join(tr.Root, "sys/bus/pci/drivers/amdgpu", c.Bus)))
}

// Remove removes a GPU, as if the bus has lost the device.
func (tr *Tree) Remove(bus string) {
	tr.t.Helper()
	require.NoError(tr.t, os.Remove(filepath.Join(tr.Root, "sys/bus/pci/drivers/amdgpu", bus)))
	require.NoError(tr.t, os.RemoveAll(filepath.Join(tr.Root, Folder(bus))))
}

// MI300X returns a whole card with 192 GB. It has no temperature sensor at its edge, but it reports its current power and deferred errors.
func MI300X(index int) Card {
	return Card{
		Bus: fmt.Sprintf("0000:%02x:00.0", 5+0x10*index), Device: "74a1", Class: "0x120000", UniqueID: fmt.Sprintf("2d4cb1f0a37e%04x", index), Minor: 128 + 8*index,
		Properties: "cpu_cores_count 0\nsimd_count 1216\nmem_banks_count 1\ncaches_count 674\nmax_waves_per_simd 8\nwave_front_size 64\narray_count 32\nsimd_per_cu 4\n" +
			"gfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\nlocation_id 1280\ndomain 0\nnum_xcc 8\n",
		Files: map[string]string{
			"product_name": "AMD Instinct MI300X OAM\n", "mem_info_vram_total": "206141652992\n", "mem_info_vram_used": "297795584\n",
			"gpu_busy_percent": "37\n", "mem_busy_percent": "12\n", "pcie_replay_count": "0\n", "current_link_speed": "32.0 GT/s PCIe\n", "current_link_width": "16\n",
			"current_compute_partition": "SPX\n", "available_compute_partition": "SPX, DPX, QPX, CPX\n", "current_memory_partition": "NPS1\n",
			"hwmon/hwmon3/name": "amdgpu\n", "hwmon/hwmon3/temp2_input": "44000\n", "hwmon/hwmon3/temp2_label": "junction\n", "hwmon/hwmon3/temp3_input": "35000\n",
			"hwmon/hwmon3/temp3_label": "mem\n", "hwmon/hwmon3/power1_input": "131000000\n", "hwmon/hwmon3/power1_cap": "750000000\n", "hwmon/hwmon3/power1_label": "PPT\n",
			"hwmon/hwmon3/freq1_input": "132000000\n", "hwmon/hwmon3/freq1_label": "sclk\n", "hwmon/hwmon3/freq2_input": "900000000\n", "hwmon/hwmon3/freq2_label": "mclk\n",
			"ras/features": "feature mask: 0x5fff\n", "ras/umc_err_count": "ue: 0\nce: 4\nde: 2\n", "ras/gfx_err_count": "ue: 0\nce: 0\n", "ras/sdma_err_count": "ue: 0\nce: 0\n",
			"ras/xgmi_wafl_err_count": "ue: 0\nce: 0\n", "ras/gpu_vram_bad_pages": "",
		},
	}
}

// MI250 returns one of the two dies of a card. Each die is a separate GPU.
func MI250(index int) Card {
	return Card{
		Bus: fmt.Sprintf("0000:%02x:00.0", 0x29+3*index), Device: "740c", Class: "0x038000", UniqueID: fmt.Sprintf("f86ee7b4d0c3%04x", index), Minor: 128 + index,
		Properties: "cpu_cores_count 0\nsimd_count 416\nmem_banks_count 1\ncaches_count 217\nmax_waves_per_simd 8\nwave_front_size 64\narray_count 8\nsimd_per_cu 4\n" +
			"gfx_target_version 90010\nvendor_id 4098\ndevice_id 29708\nlocation_id 10496\ndomain 0\n",
		Files: map[string]string{
			"product_name": "AMD INSTINCT MI250 (MCM) OAM AC MBA\n", "mem_info_vram_total": "68702699520\n", "mem_info_vram_used": "10485760\n",
			"gpu_busy_percent": "0\n", "mem_busy_percent": "0\n", "pcie_replay_count": "3\n", "current_link_speed": "16.0 GT/s PCIe\n", "current_link_width": "16\n",
			"hwmon/hwmon7/name": "amdgpu\n", "hwmon/hwmon7/temp1_input": "31000\n", "hwmon/hwmon7/temp1_label": "edge\n", "hwmon/hwmon7/temp2_input": "36000\n",
			"hwmon/hwmon7/temp2_label": "junction\n", "hwmon/hwmon7/power1_average": "92500000\n", "hwmon/hwmon7/freq1_input": "800000000\n", "hwmon/hwmon7/freq1_label": "sclk\n",
			"hwmon/hwmon7/freq2_input": "1600000000\n", "hwmon/hwmon7/freq2_label": "mclk\n",
			"ras/umc_err_count": "ue: 0\nce: 0\n", "ras/gfx_err_count": "ue: 0\nce: 0\n",
		},
	}
}
