//go:build cgo

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// This file simulates instances of GPUs. The code for real instances creates the instances in the mock. The mock simulates the capacity of a real
// card.

// resplit applies changes of the file with the splits. The file doesn't contain GPUs that aren't split.
func (w *simulation) resplit() error {
	want, err := w.splits()
	if err != nil {
		return nil //nolint:nilerr // the splits don't change
	}
	for i, d := range w.devices {
		index := int32(i)
		if want[index] == w.split[index] {
			continue
		}
		out, err := Split(w.lib, busOf(d), want[index], false)
		if err == nil && out != (gpu.Outcome{}) {
			err = errors.New(out.Busy)
		}
		if err != nil {
			return fmt.Errorf("split the simulated GPU %d: %w", index, err)
		}
		w.split[index] = want[index]
	}
	return nil
}

// furnishMIG adds functions for instances that the mock doesn't implement.
func (w *simulation) furnishMIG(d *server.Device) {
	none := func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.SUCCESS }
	d.GetComputeRunningProcessesFunc, d.GetGraphicsRunningProcessesFunc = none, none
	of := d.GetGpuInstanceProfileInfoFunc
	d.GetGpuInstanceProfileInfoFunc = func(slot int) (nvml.GpuInstanceProfileInfo, nvml.Return) {
		info, r := of(slot)
		if eighth := d.Config.MemoryMB / 8; r == nvml.SUCCESS && eighth > 0 {
			// The memory of some profiles in the mock slightly exceeds the profile's eighths of the GPU's memory. Real cards don't have this error.
			info.MemorySizeMB = min(info.MemorySizeMB, (info.MemorySizeMB+eighth/2)/eighth*eighth)
		}
		return info, r
	}
	place := d.CreateGpuInstanceWithPlacementFunc
	d.CreateGpuInstanceFunc = func(info *nvml.GpuInstanceProfileInfo) (nvml.GpuInstance, nvml.Return) {
		if d.MigMode != nvml.DEVICE_MIG_ENABLE {
			return nil, nvml.ERROR_NOT_SUPPORTED
		}
		places, r := d.GetGpuInstancePossiblePlacements(info)
		if r != nvml.SUCCESS {
			return nil, r
		}
		for _, p := range places {
			free := true
			for gi := range d.GpuInstances {
				at := gi.Info.Placement
				free = free && (p.Start+p.Size <= at.Start || at.Start+at.Size <= p.Start)
			}
			if free {
				return place(info, &p)
			}
		}
		return nil, nvml.ERROR_INSUFFICIENT_RESOURCES
	}
	d.GetGpuInstanceByIdFunc = func(id int) (nvml.GpuInstance, nvml.Return) {
		for gi := range d.GpuInstances {
			if int(gi.Info.Id) == id {
				return gi, nvml.SUCCESS
			}
		}
		return nil, nvml.ERROR_NOT_FOUND
	}
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return maxInstances, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		all := computeInstancesOf(d)
		if i >= len(all) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return w.migDevice(d, all[i]), nvml.SUCCESS
	}
}

// maxInstances is the maximum number of instances of a GPU.
const maxInstances = 7

func computeInstancesOf(d *server.Device) (out []*server.ComputeInstance) {
	for gi := range d.GpuInstances {
		for ci := range gi.ComputeInstances {
			out = append(out, ci)
		}
	}
	slices.SortFunc(out, func(a, b *server.ComputeInstance) int {
		return cmp.Or(cmp.Compare(parent(a).Info.Placement.Start, parent(b).Info.Placement.Start), cmp.Compare(a.Info.Id, b.Info.Id))
	})
	return out
}

func parent(ci *server.ComputeInstance) *server.GpuInstance {
	gi, ok := ci.Info.GpuInstance.(*server.GpuInstance)
	if !ok {
		panic(fmt.Sprintf("the mock's GPU instance is a %T", ci.Info.GpuInstance))
	}
	return gi
}

// migDevice returns the device that represents an instance.
func (w *simulation) migDevice(d *server.Device, ci *server.ComputeInstance) nvml.Device {
	gi := parent(ci)
	var giInfo nvml.GpuInstanceProfileInfo
	for slot := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		if info, r := d.GetGpuInstanceProfileInfo(slot); r == nvml.SUCCESS && info.Id == gi.Info.ProfileId {
			giInfo = info
		}
	}
	var ciInfo nvml.ComputeInstanceProfileInfo
	for slot := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		if info, r := gi.GetComputeInstanceProfileInfo(slot, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED); r == nvml.SUCCESS && info.Id == ci.Info.ProfileId {
			ciInfo = info
		}
	}
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) {
			return fmt.Sprintf("MIG-%s-%d", d.UUID, gi.Info.Placement.Start), nvml.SUCCESS
		},
		GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return int(gi.Info.Id), nvml.SUCCESS },
		GetComputeInstanceIdFunc: func() (int, nvml.Return) { return int(ci.Info.Id), nvml.SUCCESS },
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: giInfo.MemorySizeMB << 20, Free: giInfo.MemorySizeMB << 20}, nvml.SUCCESS
		},
		GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
			return nvml.DeviceAttributes{
				MultiprocessorCount: ciInfo.MultiprocessorCount, SharedCopyEngineCount: ciInfo.SharedCopyEngineCount,
				SharedDecoderCount: ciInfo.SharedDecoderCount, SharedEncoderCount: ciInfo.SharedEncoderCount, SharedJpegCount: ciInfo.SharedJpegCount,
				SharedOfaCount: ciInfo.SharedOfaCount, GpuInstanceSliceCount: giInfo.SliceCount, ComputeInstanceSliceCount: ciInfo.SliceCount,
				MemorySizeMB: giInfo.MemorySizeMB,
			}, nvml.SUCCESS
		},
	}
}
