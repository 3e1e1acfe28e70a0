//go:build cgo

package nvml

import (
	"fmt"
	"math"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

type migProfile struct {
	name string
	nvml.GpuInstanceProfileInfo
}

// migProfiles returns the profiles of instances that the GPU supports, even if the GPU isn't split.
func migProfiles(d nvml.Device) ([]migProfile, error) {
	memory, r := d.GetMemoryInfo()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("ask how much memory it has: %w", r)
	}
	var out []migProfile
	for slot := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		// The library returns "invalid argument" for an unknown profile, and "not supported" for a profile that the GPU doesn't support.
		switch info, r := d.GetGpuInstanceProfileInfo(slot); r {
		case nvml.SUCCESS:
			out = append(out, migProfile{profileName(slot, &info, memory.Total), info})
		case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT:
		default:
			return nil, fmt.Errorf("ask into which instances it can be split: %w", r)
		}
	}
	return out, nil
}

// profileName returns the name of a profile in nvidia-smi's form. profileName computes the name, because not all drivers can return names. The size
// in the name is a number of eighths of the GPU's memory, rounded to GiB. The memory of an instance is slightly smaller.
func profileName(slot int, p *nvml.GpuInstanceProfileInfo, total uint64) string {
	const eighths, gib = 8, 1 << 30
	share := math.Ceil(float64(p.MemorySizeMB<<20)*eighths/float64(max(total, 1))) / eighths
	name := fmt.Sprintf("%dg.%.0fgb", p.SliceCount, math.Round(share*float64((total+gib-1)/gib)))
	switch slot {
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1, nvml.GPU_INSTANCE_PROFILE_2_SLICE_REV1:
		name += "+me"
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME, nvml.GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME:
		name += "+me.all"
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_NO_ME, nvml.GPU_INSTANCE_PROFILE_2_SLICE_NO_ME:
		name += "-me"
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_GFX, nvml.GPU_INSTANCE_PROFILE_2_SLICE_GFX, nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX, nvml.GPU_INSTANCE_PROFILE_4_SLICE_GFX:
		name += "+gfx"
	}
	return name
}

// mig returns how a GPU is split, or nil if the GPU can't be split.
func (c *Collector) mig(index int32, d nvml.Device) *gpu.MIG {
	if !c.has("nvmlDeviceGetMigMode") {
		return nil
	}
	now, pending, r := d.GetMigMode()
	if r != nvml.SUCCESS {
		return nil
	}
	out := &gpu.MIG{Enabled: now == nvml.DEVICE_MIG_ENABLE, Pending: pending == nvml.DEVICE_MIG_ENABLE}
	if !out.Enabled {
		return out
	}
	most, r := d.GetMaxMigDeviceCount()
	profiles, err := migProfiles(d)
	if r != nvml.SUCCESS || err != nil {
		return out // its instances can't be allocated
	}
	for i := range most {
		m, r := d.GetMigDeviceHandleByIndex(i)
		if r != nvml.SUCCESS {
			continue // numbers have gaps
		}
		if one, ok := c.instance(index, d, m, profiles); ok {
			out.Instances = append(out.Instances, one)
		}
	}
	out.Sort()
	return out
}

// instance reads the properties of an instance. ok is false if the instance can't be identified.
func (c *Collector) instance(index int32, d, m nvml.Device, profiles []migProfile) (gpu.Instance, bool) {
	out := gpu.Instance{Facts: map[string]string{}, Values: map[string]float64{}}
	var r [4]nvml.Return
	out.UUID, r[0] = m.GetUUID()
	out.GI, r[1] = m.GetGpuInstanceId()
	out.CI, r[2] = m.GetComputeInstanceId()
	var gi nvml.GpuInstance
	gi, r[3] = d.GetGpuInstanceById(out.GI)
	for _, r := range r {
		if r != nvml.SUCCESS {
			return out, false
		}
	}
	info, ret := gi.GetInfo()
	if ret != nvml.SUCCESS {
		return out, false
	}
	out.Place = info.Placement.Start
	for _, p := range profiles {
		if p.Id == info.ProfileId {
			out.Profile = p.name
		}
	}
	if a, r := m.GetAttributes(); r == nvml.SUCCESS {
		out.Memory = a.MemorySizeMB << 20
		if a.ComputeInstanceSliceCount != a.GpuInstanceSliceCount {
			out.Profile = fmt.Sprintf("%dc.%s", a.ComputeInstanceSliceCount, out.Profile)
		}
		for name, n := range map[string]uint32{
			gpu.Multiprocessors: a.MultiprocessorCount, gpu.SlicesGI: a.GpuInstanceSliceCount, gpu.SlicesCI: a.ComputeInstanceSliceCount,
			gpu.EnginesCopy: a.SharedCopyEngineCount, gpu.EnginesDecoder: a.SharedDecoderCount, gpu.EnginesEncoder: a.SharedEncoderCount,
			gpu.EnginesJPEG: a.SharedJpegCount, gpu.EnginesOFA: a.SharedOfaCount,
		} {
			out.Facts[name] = strconv.FormatUint(uint64(n), 10)
		}
	}
	if memory, r := m.GetMemoryInfo(); r == nvml.SUCCESS {
		out.Values[gpu.MemoryUsed], out.Values[gpu.MemoryFree] = float64(memory.Used>>20), float64(memory.Free>>20)
	}
	if c.simulated != nil {
		out.Files = gpu.SimulatedInstanceFiles(index, out.GI, out.CI)
	}
	return out, true
}
