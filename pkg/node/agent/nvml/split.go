//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// Split splits the GPU at a PCI address, or removes the split. The library must be initialized. Split can start from any state, including the state
// after an interrupted run. If keep is set, Split doesn't destroy instances of the profile, because a program may use the instances.
func Split(lib nvml.Interface, bus string, want gpu.Split, keep bool) (gpu.Outcome, error) {
	d, err := deviceAt(lib, bus)
	if err != nil {
		return gpu.Outcome{}, err
	}
	s := &splitter{d, lib, bus, want, keep}
	err = s.split()
	var busy *gpu.BusyError
	switch {
	case errors.Is(err, errReset):
		return gpu.Outcome{Reset: true}, nil
	case errors.As(err, &busy):
		return gpu.Outcome{Busy: busy.Why}, nil
	}
	return gpu.Outcome{}, err
}

// SplitBy initializes the library, calls Split, and shuts down the library.
func SplitBy(lib nvml.Interface, bus string, want gpu.Split, keep bool) (gpu.Outcome, error) {
	if r := lib.Init(); r != nvml.SUCCESS {
		return gpu.Outcome{}, fmt.Errorf("open NVIDIA's management library: %w", explain(lib, r))
	}
	defer lib.Shutdown()
	return Split(lib, bus, want, keep)
}

func deviceAt(lib nvml.Interface, bus string) (nvml.Device, error) {
	n, r := lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("count the GPUs: %w", explain(lib, r))
	}
	for i := range n {
		if d, r := lib.DeviceGetHandleByIndex(i); r == nvml.SUCCESS && busOf(d) == bus {
			return d, nil
		}
	}
	return nil, fmt.Errorf("there is no GPU at %s", bus)
}

type splitter struct {
	nvml.Device
	lib  nvml.Interface
	bus  string
	want gpu.Split
	keep bool
}

// errReset means that the change of the MIG mode takes effect after the next reset of the GPU.
var errReset = errors.New("its MIG mode takes effect when it is reset")

// failed returns the error of a failed step, or nil for SUCCESS. failed returns a BusyError if the step may succeed later.
func failed(what string, r nvml.Return) error {
	switch r {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_IN_USE:
		return &gpu.BusyError{Why: what + ": a program uses it"}
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%s: the driver allows this only to root, and not in a virtual machine that has a part of a GPU", what)
	}
	return fmt.Errorf("%s: %w", what, r)
}

func (s *splitter) split() error {
	now, pending, r := s.GetMigMode()
	if r == nvml.ERROR_NOT_SUPPORTED {
		return errors.New("this GPU or its driver doesn't support instances (MIG)")
	}
	if r != nvml.SUCCESS {
		return failed("ask for its MIG mode", r)
	}
	enabled := now == nvml.DEVICE_MIG_ENABLE
	if s.want.Profile == "" {
		return s.join(enabled, pending)
	}
	p, err := s.profile()
	if err != nil {
		return err
	}
	if !enabled || pending != nvml.DEVICE_MIG_ENABLE {
		if err := s.setMode(nvml.DEVICE_MIG_ENABLE); err != nil {
			return err
		}
	}
	return s.fill(p)
}

// join removes the split of the GPU.
func (s *splitter) join(enabled bool, pending int) error {
	if enabled {
		if err := s.clear(""); err != nil {
			return err
		}
	}
	if !enabled && pending == nvml.DEVICE_MIG_DISABLE {
		return nil
	}
	return s.setMode(nvml.DEVICE_MIG_DISABLE)
}

// setMode enables or disables the GPU's MIG mode. Some GPUs require a reset. The library resets the GPU if no program has opened the GPU.
func (s *splitter) setMode(mode int) error {
	err := s.idle()
	if err != nil {
		return err
	}
	if _, r := s.SetMigMode(mode); r != nvml.SUCCESS { // the new mode is checked below
		return failed("set its MIG mode", r)
	}
	now, _, r := s.GetMigMode()
	if r != nvml.SUCCESS {
		return failed("ask for its MIG mode", r)
	}
	if now != mode {
		return errReset
	}
	// The GPU may have been reset or bound to the driver again.
	if s.Device, err = deviceAt(s.lib, s.bus); err != nil {
		return fmt.Errorf("after its MIG mode was set: %w", err)
	}
	return nil
}

// idle returns an error if a program uses the GPU. With some drivers, a container can't detect other programs. In such cases, the driver itself
// rejects harmful changes.
func (s *splitter) idle() error {
	var pids []string
	for _, ask := range []func() ([]nvml.ProcessInfo, nvml.Return){s.GetComputeRunningProcesses, s.GetGraphicsRunningProcesses} {
		list, r := ask()
		if r != nvml.SUCCESS && r != nvml.ERROR_NOT_SUPPORTED {
			return failed("ask which programs use it", r)
		}
		for _, p := range list {
			pids = append(pids, fmt.Sprint(p.Pid))
		}
	}
	if len(pids) > 0 {
		return &gpu.BusyError{Why: "programs use it: process " + strings.Join(pids, ", ")}
	}
	return nil
}

func (s *splitter) profile() (*migProfile, error) {
	all, err := migProfiles(s.Device)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range all {
		if names = append(names, all[i].name); all[i].name != s.want.Profile {
			continue
		}
		if int(all[i].InstanceCount) < s.want.Instances {
			return nil, fmt.Errorf("it has room for %d instances of the profile %s, but should have %d: is the model in layout.yaml right?", all[i].InstanceCount, s.want.Profile, s.want.Instances)
		}
		return &all[i], nil
	}
	return nil, fmt.Errorf("it has no profile %s; it has %s", s.want.Profile, strings.Join(names, ", "))
}

// fill creates the missing instances. Before that, it destroys instances of other profiles, and instances that leave no space for the missing
// instances.
func (s *splitter) fill(p *migProfile) error {
	good, err := s.whole(p)
	if err != nil {
		return err
	}
	if err := s.clear(p.name); err != nil {
		return err
	}
	if good > s.want.Instances && s.keep {
		return &gpu.BusyError{Why: "it has more instances than it should have, and some are in use"}
	}
	if good > s.want.Instances {
		if good, err = 0, s.clear(""); err != nil {
			return err
		}
	}
	err = s.createAll(p, s.want.Instances-good)
	if errors.Is(err, errNoRoom) && good > 0 && !s.keep {
		// The existing instances leave no space for further instances.
		if err := s.clear(""); err != nil {
			return err
		}
		err = s.createAll(p, s.want.Instances)
	}
	return err
}

func (s *splitter) createAll(p *migProfile, n int) error {
	for range n {
		if err := s.create(p); err != nil {
			return err
		}
	}
	return nil
}

var errNoRoom = errors.New("there is no room for another instance")

// create creates a GPU instance with a compute instance. The compute instance contains all processors of the GPU instance.
func (s *splitter) create(p *migProfile) error {
	gi, r := s.CreateGpuInstance(&p.GpuInstanceProfileInfo)
	if r == nvml.ERROR_INSUFFICIENT_RESOURCES {
		return errNoRoom
	}
	if r != nvml.SUCCESS {
		return failed("make a GPU instance of the profile "+p.name, r)
	}
	return s.complete(gi, p)
}

func (s *splitter) complete(gi nvml.GpuInstance, p *migProfile) error {
	for slot := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, r := gi.GetComputeInstanceProfileInfo(slot, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if r != nvml.SUCCESS || info.SliceCount != p.SliceCount {
			continue
		}
		_, r = gi.CreateComputeInstance(&info)
		return failed("make a compute instance of the profile "+p.name, r)
	}
	return fmt.Errorf("a GPU instance of the profile %s has no compute instance of its size", p.name)
}

// whole returns the number of instances of a profile whose compute instance contains all processors. whole creates the compute instances that an
// interrupted run hasn't created.
func (s *splitter) whole(p *migProfile) (int, error) {
	list, r := s.GetGpuInstances(&p.GpuInstanceProfileInfo)
	if r != nvml.SUCCESS {
		return 0, failed("list its instances", r)
	}
	n := 0
	for _, gi := range list {
		cis, full, err := computeInstances(gi, p)
		if err == nil && len(cis) == 0 {
			err = s.complete(gi, p)
			full = true
		}
		if err != nil {
			return 0, err
		}
		if full {
			n++
		}
	}
	return n, nil
}

// computeInstances returns the compute instances of a GPU instance. full reports whether a single compute instance contains all processors.
func computeInstances(gi nvml.GpuInstance, p *migProfile) (out []nvml.ComputeInstance, full bool, err error) {
	for slot := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, r := gi.GetComputeInstanceProfileInfo(slot, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if r == nvml.ERROR_NOT_SUPPORTED || r == nvml.ERROR_INVALID_ARGUMENT {
			continue
		}
		if r != nvml.SUCCESS {
			return nil, false, failed("ask for the profiles of compute instances", r)
		}
		list, r := gi.GetComputeInstances(&info)
		if r != nvml.SUCCESS {
			return nil, false, failed("list compute instances", r)
		}
		out = append(out, list...)
		full = full || len(list) > 0 && info.SliceCount == p.SliceCount
	}
	return out, full && len(out) == 1, nil
}

// clear destroys all instances except the complete instances of the profile but.
func (s *splitter) clear(but string) error {
	all, err := migProfiles(s.Device)
	if err != nil {
		return err
	}
	looked := false
	for i := range all {
		p := &all[i]
		list, r := s.GetGpuInstances(&p.GpuInstanceProfileInfo)
		if r != nvml.SUCCESS {
			return failed("list its instances", r)
		}
		for _, gi := range list {
			cis, full, err := computeInstances(gi, p)
			if err != nil {
				return err
			}
			if full && p.name == but {
				continue
			}
			if !looked {
				if err := s.idle(); err != nil {
					return err
				}
				looked = true
			}
			for _, ci := range cis {
				if r := ci.Destroy(); r != nvml.SUCCESS {
					return failed("destroy a compute instance of the profile "+p.name, r)
				}
			}
			if r := gi.Destroy(); r != nvml.SUCCESS {
				return failed("destroy a GPU instance of the profile "+p.name, r)
			}
		}
	}
	return nil
}
