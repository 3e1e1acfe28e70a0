package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// This file writes files for the container runtime that define the devices of each claim's containers.

// rewriting limits the time for writing the container runtime's files of all claims. If a GPU hangs, the agent can't determine the edits. Without the
// limit, the termination of pods would wait.
const rewriting = 20 * time.Second

// writeSpecs writes the container runtime's files of all claims. writeSpecs returns false if a file couldn't be written.
func (d *Driver) writeSpecs(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, rewriting)
	defer cancel()
	all := true
	for _, r := range d.records.all() {
		if err := d.writeSpec(ctx, r); err != nil {
			// The claim's GPU no longer exists. Continue with the other claims.
			d.log.WarnContext(ctx, "a container of the claim can't be started again", "claim", r.Namespace+"/"+r.Name, "err", err)
			all = false
		}
	}
	return all
}

// followDriver rewrites the container runtime's files of all claims when the driver or the GPU instances change, because the files of the previous
// driver no longer exist. followDriver retries failed writes, and returns when ctx ends.
func (d *Driver) followDriver(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		_, changed := d.gpus.devices()
		driver, _ := d.gpus.versions()
		if state := driver + d.gpus.named(); state != told && driver != "" && d.writeSpecs(ctx) {
			told = state
		}
		d.pause(ctx, changed, tellEvery)
	}
}

func (d *Driver) removeLeftSpecs() error {
	entries, err := os.ReadDir(d.cdi)
	if err != nil {
		return err
	}
	for _, e := range entries {
		uid, ok := strings.CutPrefix(e.Name(), claim.Driver+"-")
		if uid, suffixed := strings.CutSuffix(uid, specSuffix); ok && (!suffixed || d.records.of[types.UID(uid)] == nil) {
			if err := os.Remove(filepath.Join(d.cdi, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

const specSuffix = ".json"

func specName(uid types.UID) string { return claim.Driver + "-" + string(uid) + specSuffix }

// specDevice returns a name for a claim's device. The name contains the claim's UID, because the container runtime may cache devices by name.
// Therefore no name may be used twice.
func specDevice(uid types.UID, device string) string { return string(uid) + "-" + device }

func (d *Driver) writeSpec(ctx context.Context, r *record) error {
	spec := &specs.Spec{Kind: kind}
	var hardware []*device // the devices that aren't simulated
	cards := map[int32]bool{}
	var more []specs.Device // further parts of GPUs
	simulated := false
	for _, a := range r.Devices {
		g, ok := d.gpus.cardOf(r.card(a.Device))
		switch {
		case !ok:
			return fmt.Errorf("this machine no longer has %s", a.Device)
		case len(g.Files) == 0:
			return fmt.Errorf("%s doesn't exist at present: %s", a.Device, cmp.Or(g.reason, "nothing is known of it"))
		}
		if err := r.pick(&g, a.Device); err != nil {
			return err
		}
		one := specs.Device{Name: specDevice(r.UID, a.Device)}
		if cards[g.card] && g.instance == nil {
			// The claim already contains another part of this GPU. The container runtime rejects devices without edits.
			one.ContainerEdits.Env = []string{fmt.Sprintf("PAICTL_%s=1", strings.ToUpper(strings.ReplaceAll(a.Device, "-", "_")))}
			more = append(more, one)
			continue
		}
		cards[g.card] = true
		if g.Simulated {
			simulated = true
			files := g.Files
			if g.instance != nil {
				files = g.instance.Files
			}
			for _, f := range files {
				one.ContainerEdits.DeviceNodes = append(one.ContainerEdits.DeviceNodes, &specs.DeviceNode{Path: f.Container, HostPath: f.Host})
			}
		} else {
			hardware = append(hardware, &g)
		}
		spec.Devices = append(spec.Devices, one)
	}
	if len(spec.Devices) == 0 {
		return nil
	}
	if len(hardware) > 0 {
		if simulated {
			return errors.New("it was allocated both real and simulated GPUs") // a machine has one kind
		}
		all, _ := d.gpus.cards()
		driver, _ := d.gpus.versions()
		if err := d.vendor.equip(ctx, spec, hardware, all, driver); err != nil {
			return err
		}
	}
	spec.Devices = append(spec.Devices, more...)
	if err := d.notify(r); err != nil {
		return err
	}
	spec.ContainerEdits.Mounts = append(slices.Clone(spec.ContainerEdits.Mounts), &specs.Mount{
		HostPath: d.noticeFolder(r.UID), ContainerPath: notice.Folder, Options: []string{"ro", "nosuid", "nodev", "noexec", "bind"},
	})
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return err
	}
	spec.Version = version
	d.writing.Lock()
	defer d.writing.Unlock()
	if !d.records.known(r.UID) {
		return nil // the claim has ended in the meantime
	}
	return d.specs.WriteSpec(spec, specName(r.UID))
}
