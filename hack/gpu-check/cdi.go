package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
)

// unified is the device for unified memory. The driver creates it only when the first program uses CUDA.
const unified = "dev/nvidia-uvm"

// checkCDI requests the edits of containers as the agent does, and checks them. It returns nil if it can't get any edits.
func (o *options) checkCDI(ctx context.Context, r *report, gpus *gpu.Report) *toolkit.Edits {
	const subject = "CDI"
	for _, program := range []string{o.ctk, o.hook} {
		if _, err := os.Stat(program); err != nil {
			r.add(subject, "specification", verdictNotRun, "", fmt.Sprintf("%s is missing", filepath.Base(program)))
			return nil
		}
	}
	if _, err := os.Stat(filepath.Join(o.root, unified)); err != nil && !o.load {
		r.add(subject, "specification", verdictNotRun, "", "/dev/nvidia-uvm is missing; --load-module loads its module")
		return nil
	}
	uuids, instances := allocatable(gpus)
	t := &toolkit.Toolkit{Program: o.ctk, Root: o.root, Proc: filepath.Join(o.root, "proc"), Hook: o.hook}
	edits, err := t.Edits(ctx, gpus.Driver, uuids, instances...)
	if err != nil {
		r.add(subject, "specification", verdictFailed, "", err.Error())
		return nil
	}
	faults := o.faults(edits, gpus)
	if len(faults) == 0 {
		r.add(subject, "specification", verdictPassed, fmt.Sprintf("%d devices, %d files of the driver, %d hooks", len(edits.Devices), len(edits.Common.Mounts), len(edits.Common.Hooks)), "")
	}
	for _, f := range faults {
		r.add(subject, "specification", verdictFailed, f, "")
	}
	return edits
}

// allocatable returns the UUIDs that containers can request. These are the UUIDs of GPUs, or of the instances of split GPUs.
func allocatable(r *gpu.Report) (uuids []string, instances []toolkit.Instance) {
	for _, g := range r.GPUs {
		switch {
		case g.Lost:
		case g.MIG != nil && g.MIG.Enabled:
			for _, i := range g.MIG.Instances {
				uuids = append(uuids, i.UUID)
				instances = append(instances, toolkit.Instance{UUID: i.UUID, File: filepath.Base(file(&g)), GI: i.GI, CI: i.CI})
			}
		default:
			uuids = append(uuids, g.UUID)
		}
	}
	return uuids, instances
}

// file returns the device file of a GPU, or "" if the file isn't known.
func file(g *gpu.GPU) string {
	if len(g.Files) == 0 {
		return ""
	}
	return g.Files[0].Container
}

// faults returns the mistakes in a specification, such as files that the machine doesn't have, and GPUs that a container would get without a
// request.
func (o *options) faults(e *toolkit.Edits, gpus *gpu.Report) (out []string) {
	if err := specification(e); err != nil {
		out = append(out, err.Error())
	}
	for uuid, why := range e.Refused {
		out = append(out, fmt.Sprintf("the toolkit refuses %s: %v", uuid, why))
	}
	if !slices.ContainsFunc(e.Common.Mounts, func(m *specs.Mount) bool { return strings.HasPrefix(filepath.Base(m.HostPath), "libcuda.so") }) {
		out = append(out, "no libcuda.so is mounted")
	}
	all := []specs.ContainerEdits{e.Common}
	for _, g := range gpus.GPUs {
		if g.Lost || g.MIG != nil && g.MIG.Enabled {
			continue // the toolkit checks instances
		}
		one, ok := e.Devices[g.UUID]
		if !ok {
			out = append(out, fmt.Sprintf("GPU %d has no device", g.Index))
			continue
		}
		for _, d := range one.DeviceNodes {
			if others(d.Path, &g, gpus) {
				out = append(out, fmt.Sprintf("a container with GPU %d gets %s, which is another GPU's", g.Index, d.Path))
			}
		}
		if !slices.ContainsFunc(one.DeviceNodes, func(d *specs.DeviceNode) bool { return d.Path == file(&g) }) {
			out = append(out, fmt.Sprintf("a container with GPU %d doesn't get %s", g.Index, file(&g)))
		}
		all = append(all, one)
	}
	for _, edits := range all {
		for _, m := range edits.Mounts {
			if _, err := os.Stat(filepath.Join(o.root, m.HostPath)); err != nil {
				out = append(out, fmt.Sprintf("%s is to be mounted and doesn't exist", m.HostPath))
			}
		}
		for _, d := range edits.DeviceNodes {
			if info, err := os.Stat(filepath.Join(o.root, d.HostPath)); err != nil || info.Mode()&os.ModeCharDevice == 0 {
				out = append(out, fmt.Sprintf("%s isn't a device file", d.HostPath))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// others reports whether a path is the device file of another GPU.
func others(path string, g *gpu.GPU, gpus *gpu.Report) bool {
	return slices.ContainsFunc(gpus.GPUs, func(one gpu.GPU) bool { return one.UUID != g.UUID && file(&one) == path && path != "" })
}

// specification validates the edits with the library that container runtimes use.
func specification(e *toolkit.Edits) error {
	for _, edits := range append(slices.Collect(maps.Values(e.Devices)), e.Common) {
		if err := (&cdi.ContainerEdits{ContainerEdits: &edits}).Validate(); err != nil {
			return err
		}
	}
	return nil
}
