package amdgpu

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// node holds the properties of a GPU that the KFD reports, by name. The KFD is the compute part of the driver.
type node map[string]uint64

// kfdNodes returns the KFD's nodes of GPUs, by the minor numbers of the GPUs' render nodes. readable reports whether all nodes were read. The kernel
// hides a node if a container may not open the device files of the GPU.
func (c *Collector) kfdNodes() (out map[int]node, readable bool) {
	folder := c.sys("class/kfd/kfd/topology/nodes")
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true // without a KFD no GPU can compute
	}
	if err != nil {
		return nil, false
	}
	out = map[int]node{}
	for _, e := range entries {
		id, err := os.ReadFile(filepath.Join(folder, e.Name(), "gpu_id"))
		if err != nil {
			return out, false
		}
		if strings.TrimSpace(string(id)) == "0" {
			continue // a node of processors
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name(), "properties"))
		if err != nil {
			return out, false
		}
		n := node{}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if v, err := strconv.ParseUint(value, 10, 64); err == nil {
				n[name] = v
			}
		}
		if minor := int(n["drm_render_minor"]); minor > 0 {
			if _, taken := out[minor]; !taken {
				out[minor] = n
			}
		}
	}
	return out, true
}

// facts returns the values for labels of the Node. The keys are the names in AMD's node labeller.
func (n node) facts() map[string]string {
	out := map[string]string{}
	if simds := n["simd_count"]; simds > 0 {
		out["simd-count"] = strconv.FormatUint(simds, 10)
		if per := n["simd_per_cu"]; per > 0 {
			out["cu-count"] = strconv.FormatUint(simds/per, 10)
		}
	}
	if family := families()[n["gfx_target_version"]]; family != "" {
		out["family"] = family
	}
	return out
}

// families maps values of gfx_target_version to the names of GPU families. The table is necessary because the driver reports the family only to a
// process that opens the device. For example, gfx90a is 9, 0 and 10. The kernel's file amdgpu_discovery.c contains the family of each graphics IP
// version. The kernel's file amdgpu_drm.h contains the names of the families.
func families() map[uint64]string {
	return map[uint64]string{
		90000: "AI", 90006: "AI", // Vega 10 and 20
		90008: "AI",                           // MI100
		90010: "AI",                           // MI200
		90400: "AI", 90401: "AI", 90402: "AI", // MI300
		110000: "GC_11_0_0", // Navi 31
	}
}
