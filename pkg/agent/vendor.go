package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/agent/amdgpu"
	"github.com/openpai/paictl/pkg/agent/gpu"
	"github.com/openpai/paictl/pkg/agent/toolkit"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// vendor is what differs from one maker of GPUs to the next. A machine's SKU says whose GPUs it has.
type vendor interface {
	// watch tells of the machine's GPUs until ctx ends: see gets each report, failed the reason whenever there are none.
	watch(ctx context.Context, see func(*gpu.Report), failed func(error))
	// equip adds what containers need for real GPUs, which are the devices of spec in their order. all are those of the machine, which has this version
	// of the driver.
	equip(ctx context.Context, spec *specs.Spec, gpus []*device, all []device, driver string) error
	// reset resets a GPU that no pod has, and says so.
	reset(ctx context.Context, g *device) (string, error)
	// labels are those that the vendor's own program writes on the Node of a machine with these GPUs.
	labels(gpus []device, driver, cuda string) map[string]string
}

// vendor returns that of a machine. faults is the file with what is wrong with simulated GPUs, hook where nvidia-cdi-hook lies on the machine.
func (o *options) vendor(m gpu.Machine, faults, hook string) (vendor, error) {
	probe := func(program string, args ...string) *gpu.Probe {
		return &gpu.Probe{Path: program, Args: args, Silence: silence, Pause: again}
	}
	var v vendor
	if m.Vendor == gpu.AMD {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		v = amd{probe(self, amdgpu.Command, "--root", o.root)}
	} else {
		v = nvidia{probe(o.probe, "--root", o.root), &toolkit.Toolkit{Program: o.toolkit, Root: o.root, Hook: hook}, o.root}
	}
	if m.Simulated {
		v = simulated{v, probe(o.probe, "--simulated", o.machines, "--node", o.node, "--faults", faults)}
	}
	return v, nil
}

// nvidia is NVIDIA: its library tells of the GPUs, and its container toolkit what containers need.
type nvidia struct {
	probe   *gpu.Probe
	toolkit *toolkit.Toolkit
	root    string
}

func (n nvidia) watch(ctx context.Context, see func(*gpu.Report), failed func(error)) {
	n.probe.Watch(ctx, see, failed)
}

func (n nvidia) equip(ctx context.Context, spec *specs.Spec, gpus []*device, all []device, driver string) error {
	var there []string
	for _, g := range all {
		if !g.Lost && !g.missing {
			there = append(there, g.UUID)
		}
	}
	edits, err := n.toolkit.Edits(ctx, driver, there)
	if err != nil {
		return err
	}
	for i, g := range gpus {
		one, ok := edits.Devices[g.UUID]
		if why := edits.Refused[g.UUID]; why != nil {
			return fmt.Errorf("%s: %w", claim.DeviceName(g.Index), why)
		}
		if !ok {
			return fmt.Errorf("NVIDIA's container toolkit knows no %s (%s): a GPU that is split (MIG) can't be handed out", claim.DeviceName(g.Index), g.UUID)
		}
		spec.Devices[i].ContainerEdits = one
	}
	spec.ContainerEdits = edits.Common
	return nil
}

func (n nvidia) reset(ctx context.Context, g *device) (string, error) {
	// The program that looks at GPUs has them open.
	resume, err := n.probe.Hold(ctx)
	if err != nil {
		return "", err
	}
	defer resume()
	if err := n.toolkit.Reset(ctx, g.Bus); err != nil {
		return "", err
	}
	return "it was reset", nil
}

// amd is AMD: the files of the kernel's driver tell of the GPUs. Containers bring all libraries along, and need device files alone.
type amd struct{ probe *gpu.Probe }

func (a amd) watch(ctx context.Context, see func(*gpu.Report), failed func(error)) {
	a.probe.Watch(ctx, see, failed)
}

// kfd is the device file by which programs compute on all of AMD's GPUs. The kernel lets them do so on those alone whose render nodes they may open.
const kfd = "/dev/kfd"

func (a amd) equip(_ context.Context, spec *specs.Spec, gpus []*device, _ []device, _ string) error {
	for i, g := range gpus {
		if g.Unusable != "" {
			return fmt.Errorf("%s: %s", claim.DeviceName(g.Index), g.Unusable)
		}
		for _, f := range g.Files {
			spec.Devices[i].ContainerEdits.DeviceNodes = append(spec.Devices[i].ContainerEdits.DeviceNodes, openToAll(f.Container, f.Host))
		}
	}
	spec.ContainerEdits.DeviceNodes = append(spec.ContainerEdits.DeviceNodes, openToAll(kfd, kfd))
	return nil
}

func (a amd) reset(context.Context, *device) (string, error) {
	return "", errors.New("paictl resets no GPU of AMD: restart the machine")
}

// openToAll is a device file that any user in a container may open. On the machine it belongs to the group render, whose number no container knows; who
// else may open it is decided by who has it.
func openToAll(path, host string) *specs.DeviceNode {
	mode := fs.FileMode(0o666)
	return &specs.DeviceNode{Path: path, HostPath: host, FileMode: &mode, Permissions: "rw"}
}

// simulated are GPUs of a vendor that aren't there. NVIDIA's library is simulated for all of them.
type simulated struct {
	vendor
	probe *gpu.Probe
}

func (s simulated) watch(ctx context.Context, see func(*gpu.Report), failed func(error)) {
	s.probe.Watch(ctx, see, failed)
}

func (s simulated) equip(context.Context, *specs.Spec, []*device, []device, string) error {
	return errors.New("the machine has real GPUs, and its SKU in layout.yaml simulated ones")
}

func (s simulated) reset(context.Context, *device) (string, error) {
	return "the simulated GPU has forgotten what was wrong with it", nil
}
