package amdgpu

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// node holds the numbers, by name, that the KFD (the compute part of the driver) reports for a GPU.
type node map[string]uint64

// kfdNodes returns the nodes with GPUs by the numbers of their render nodes. readable reports whether all nodes could be read: the
// kernel hides those whose device files a container may not open.
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

// facts returns the values for labels, by the names of AMD's node labeller.
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

// families returns the families of GPUs, which the driver reports only to a process that opens the device. Source: the kernel's
// amdgpu_discovery.c has the family of each version of graphics IP, and amdgpu_drm.h has the names. The keys are gfx_target_version: gfx90a is
// 9, 0 and 10.
func families() map[uint64]string {
	return map[uint64]string{
		90000: "AI", 90006: "AI", // Vega 10 and 20
		90008: "AI",                           // MI100
		90010: "AI",                           // MI200
		90400: "AI", 90401: "AI", 90402: "AI", // MI300
		110000: "GC_11_0_0", // Navi 31
	}
}
