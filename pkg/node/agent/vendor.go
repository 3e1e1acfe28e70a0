package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/amdgpu"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// vendor holds the operations that differ between GPU vendors. The SKU of a machine determines the vendor.
type vendor interface {
	// watch reports the machine's GPUs until ctx ends. watch calls see with each report. When the reports stop, watch calls failed with the reason.
	watch(ctx context.Context, see func(*gpu.Report), failed func(error))
	// equip adds the edits for containers with real GPUs to spec. The devices of spec correspond to gpus in order. all are the GPUs of the machine, and
	// driver is the driver version.
	equip(ctx context.Context, spec *specs.Spec, gpus []*device, all []device, driver string) error
	// reset resets a GPU that isn't allocated to a pod, and returns a message.
	reset(ctx context.Context, g *device) (string, error)
	// split splits a GPU into instances, or removes its split. If keep is set, split doesn't destroy instances of the profile. split returns a
	// gpu.BusyError if a program uses the GPU.
	split(ctx context.Context, g *device, want gpu.Split, keep bool) error
	// labels returns the labels that the vendor's own program would write to a Node with these GPUs.
	labels(gpus []device, driver, cuda string) map[string]string
}

// vendor returns the vendor of a machine's GPUs. faults is the file with the faults of simulated GPUs, and splits is the file with their splits. hook
// is the path of nvidia-cdi-hook on the machine.
func (o *options) vendor(m gpu.Machine, faults, splits, hook string) (vendor, error) {
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
		v = nvidia{probe(o.probe, "--root", o.root), &toolkit.Toolkit{Program: o.toolkit, Root: o.root, Hook: hook, Proc: "/proc"}, o.root}
	}
	if m.Simulated {
		v = simulated{v, probe(o.probe, "--simulated", o.machines, "--node", o.node, "--faults", faults, "--splits", splits), splits}
	}
	return v, nil
}

// nvidia is the vendor NVIDIA. NVIDIA's library reports the GPUs, and NVIDIA's container toolkit returns the edits for containers.
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
	var instances []toolkit.Instance
	state := driver // the state for which the toolkit's answer is valid
	for _, g := range all {
		switch {
		case g.Lost || g.missing:
		case g.unlike != "" && !slices.ContainsFunc(gpus, func(one *device) bool { return one.card == g.card }):
			// Skip this GPU, because the edits for other GPUs don't depend on this GPU.
		case g.MIG != nil && g.MIG.Enabled:
			state += " " + g.MIG.Named()
			for _, i := range g.MIG.Instances {
				there = append(there, i.UUID)
				instances = append(instances, toolkit.Instance{UUID: i.UUID, File: deviceFile(&g), GI: i.GI, CI: i.CI})
			}
		default:
			there = append(there, g.UUID)
		}
	}
	edits, err := n.toolkit.Edits(ctx, state, there, instances...)
	if err != nil {
		return err
	}
	for i, g := range gpus {
		one, ok := edits.Devices[g.uuid()]
		if why := edits.Refused[g.uuid()]; why != nil {
			return fmt.Errorf("%s: %w", claim.DeviceName(g.Index), why)
		}
		if !ok {
			return fmt.Errorf("NVIDIA's container toolkit doesn't know %s (%s)", claim.DeviceName(g.Index), g.uuid())
		}
		spec.Devices[i].ContainerEdits = one
	}
	spec.ContainerEdits = edits.Common
	return nil
}

func (n nvidia) split(ctx context.Context, g *device, want gpu.Split, keep bool) error {
	// Stop the program that reads the GPUs, because it has opened the GPUs.
	resume, err := n.probe.Hold(ctx)
	if err != nil {
		return err
	}
	defer resume()
	n.toolkit.ConfigDevices()
	args := []string{"--split", g.Bus, "--profile", want.Profile, "--instances", strconv.Itoa(want.Instances)}
	if keep {
		args = append(args, "--keep")
	}
	run := func() (out gpu.Outcome, err error) {
		said, err := n.probe.Once(ctx, args...)
		if err == nil {
			err = json.Unmarshal(said, &out)
		}
		return out, err
	}
	out, err := run()
	if err == nil && out.Reset {
		if err := n.toolkit.Reset(ctx, g.Bus); err != nil {
			return fmt.Errorf("its MIG mode is set, and takes effect with a reset, which fails (%w), or with the machine's next start", err)
		}
		out, err = run()
	}
	switch {
	case err != nil:
		return err
	case out.Busy != "":
		return &gpu.BusyError{Why: out.Busy}
	case out.Reset:
		return errors.New("its MIG mode is set, and a reset hasn't made it take effect: restart the machine")
	}
	return nil
}

func (n nvidia) reset(ctx context.Context, g *device) (string, error) {
	// Stop the program that reads the GPUs, because it has opened the GPUs.
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

// amd is the vendor AMD. The files of the kernel's driver describe the GPUs. Containers need only device files, because their images contain all
// libraries.
type amd struct{ probe *gpu.Probe }

func (a amd) watch(ctx context.Context, see func(*gpu.Report), failed func(error)) {
	a.probe.Watch(ctx, see, failed)
}

// kfd is the device file for computing on all AMD GPUs. A program can compute only on the GPUs whose render nodes it may open.
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
	return "", errors.New("paictl can't reset GPUs of AMD: restart the machine")
}

func (a amd) split(context.Context, *device, gpu.Split, bool) error {
	return errors.New("paictl can't split GPUs of AMD")
}

// openToAll returns a device file that any user in a container may open. On the machine, the file belongs to the group render, whose ID is unknown in
// containers. The file is accessible only in containers that receive it.
func openToAll(path, host string) *specs.DeviceNode {
	mode := fs.FileMode(0o666)
	return &specs.DeviceNode{Path: path, HostPath: host, FileMode: &mode, Permissions: "rw"}
}

// simulated is a vendor's machine with simulated GPUs. NVIDIA's library is simulated for all vendors.
type simulated struct {
	vendor
	probe *gpu.Probe
	// splits is the path of the file with the splits of the GPUs.
	splits string
}

func (s simulated) watch(ctx context.Context, see func(*gpu.Report), failed func(error)) {
	s.probe.Watch(ctx, see, failed)
}

func (s simulated) equip(context.Context, *specs.Spec, []*device, []device, string) error {
	return errors.New("the machine has real GPUs, but its SKU in layout.yaml has simulated ones")
}

func (s simulated) reset(context.Context, *device) (string, error) {
	return "the faults of the simulated GPU are cleared", nil
}

func (s simulated) split(_ context.Context, g *device, want gpu.Split, _ bool) error {
	return gpu.WriteSplit(s.splits, g.Index, want)
}
