// Package toolkit determines the edits that a container with a real GPU needs in addition to the device file: the libraries of the machine's driver,
// control devices, and hooks that run before the container starts. In: the program nvidia-ctk of NVIDIA's container toolkit, and the machine's files.
// Out: edits of containers in the form of CDI.
package toolkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/replace"
)

// Toolkit runs NVIDIA's program nvidia-ctk. All methods can be called concurrently.
type Toolkit struct {
	// Program is the path of nvidia-ctk.
	Program string
	// Root is the folder with the machine's files, such as /host.
	Root string
	// Proc is the folder that contains the driver's capabilities, such as /proc.
	Proc string
	// Hook is the path of nvidia-cdi-hook on the machine. The container runtime runs the hook.
	Hook string

	mu sync.Mutex
	// driver is the machine's driver version at the last call of nvidia-ctk. edits is the result of that call.
	driver string
	edits  *Edits
	// asked are the GPUs in the last call. The result may not contain edits for split GPUs.
	asked []string
	// again is the time of the next attempt for GPUs for which the program failed. again is zero if the program didn't fail.
	again time.Time
	// asking is closed when the running program ends. asking is nil if the program isn't running. Only one program runs at a time, because the program
	// hangs if a GPU hangs.
	asking chan struct{}
	failed error
}

// Edits are the changes of a container's specification that give the container access to GPUs.
type Edits struct {
	// Common are the edits for each container with a GPU.
	Common specs.ContainerEdits
	// Devices are the edits for individual GPUs, by UUID.
	Devices map[string]specs.ContainerEdits
	// Refused maps UUIDs of GPUs to errors. Refused contains the GPUs for which the program returned no edits.
	Refused map[string]error
}

// refusedFor is how long a GPU stays in Refused before the program runs again, because the GPU may have been reset.
const refusedFor = time.Minute

// patience is the time limit of nvidia-ctk.
const patience = 20 * time.Second

// Edits returns the edits for containers. driver is the machine's driver version, and gpus are the UUIDs of the GPUs. The program runs once for each
// driver version, and again for GPUs that weren't in the last call. gpus must not contain lost GPUs, because the program fails for lost GPUs.
// instances describes the UUIDs that belong to instances. If the instances change, driver must also change.
func (t *Toolkit) Edits(ctx context.Context, driver string, gpus []string, instances ...Instance) (*Edits, error) {
	t.mu.Lock()
	if t.knows(driver, gpus) {
		defer t.mu.Unlock()
		return t.edits, nil
	}
	ended := t.asking
	if ended == nil {
		ended = make(chan struct{})
		t.asking = ended
		go t.ask(context.WithoutCancel(ctx), driver, gpus, instances, ended)
	}
	t.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(patience):
		return nil, fmt.Errorf("%s hasn't answered for %s: a GPU or its driver hangs", filepath.Base(t.Program), patience)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.knows(driver, gpus):
		return t.edits, nil
	case t.failed != nil:
		return nil, t.failed
	}
	return nil, errors.New("the machine's GPUs have just changed; checking again")
}

// knows reports whether the stored result is valid for this driver and all of these GPUs. The caller holds the lock.
func (t *Toolkit) knows(driver string, gpus []string) bool {
	if t.edits == nil || t.driver != driver || !t.again.IsZero() && time.Now().After(t.again) {
		return false
	}
	for _, uuid := range gpus {
		if !slices.Contains(t.asked, uuid) {
			return false
		}
	}
	return true
}

// ask runs the program with the time limit patience, stores the result and closes ended.
func (t *Toolkit) ask(ctx context.Context, driver string, gpus []string, instances []Instance, ended chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := t.generateAll(ctx, gpus, instances)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		if t.again = (time.Time{}); len(e.Refused) > 0 {
			t.again = time.Now().Add(refusedFor)
		}
		t.driver, t.asked, t.edits = driver, slices.Clone(gpus), e
	}
	t.failed, t.asking = err, nil
	close(ended)
}

// generateAll runs the program for all GPUs at once. If the program fails because of a GPU, generateAll runs the program again for the other GPUs.
func (t *Toolkit) generateAll(ctx context.Context, gpus []string, instances []Instance) (*Edits, error) {
	all, err := t.generate(ctx, gpus, instances)
	if err == nil || len(gpus) < 2 {
		return all, err
	}
	refused := map[string]error{}
	var good []string
	for _, uuid := range gpus {
		if _, why := t.generate(ctx, []string{uuid}, ofThose(instances, uuid)); why != nil {
			refused[uuid] = why
		} else {
			good = append(good, uuid)
		}
	}
	if len(good) == 0 || len(refused) == 0 {
		return nil, err
	}
	if all, err = t.generate(ctx, good, ofThose(instances, good...)); err == nil {
		all.Refused = refused
	}
	return all, err
}

func ofThose(instances []Instance, uuids ...string) []Instance {
	return slices.DeleteFunc(slices.Clone(instances), func(i Instance) bool { return !slices.Contains(uuids, i.UUID) })
}

func (t *Toolkit) generate(ctx context.Context, gpus []string, instances []Instance) (*Edits, error) {
	if err := executable(t.Hook); err != nil {
		return nil, err
	}
	unmade := t.controlDevices(ctx)
	for _, i := range instances {
		if err := t.capabilityDevices(i); err != nil {
			return nil, fmt.Errorf("the device files of the instance %s: %w", i.UUID, err)
		}
	}
	// Identify GPUs by UUID, because GPU numbers change when cards are added or removed. Disable the hook apply-cuda-memory-limits, which is only useful
	// for NVIDIA's own container runtime. This hook would search for the driver below Root, which doesn't exist on the machine.
	args := []string{"--quiet", "cdi", "generate", "--mode=nvml", "--format=json", "--device-name-strategy=uuid", "--no-all-device",
		"--driver-root=" + t.Root, "--dev-root=" + t.Root, "--nvidia-cdi-hook-path=" + t.Hook, "--disable-hook=apply-cuda-memory-limits"}
	for _, uuid := range gpus {
		args = append(args, "--device-id="+uuid)
	}
	out, err := t.run(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("ask which files of the driver containers need: %w", err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(out, &spec); err != nil {
		return nil, fmt.Errorf("the output of %s is not a CDI specification: %w", filepath.Base(t.Program), err)
	}
	e := &Edits{Common: spec.ContainerEdits, Devices: map[string]specs.ContainerEdits{}}
	t.onMachine(&e.Common)
	for _, d := range spec.Devices {
		t.onMachine(&d.ContainerEdits)
		e.Devices[d.Name] = d.ContainerEdits
	}
	if !slices.ContainsFunc(e.Common.DeviceNodes, func(d *specs.DeviceNode) bool { return d.Path == unified }) {
		return nil, fmt.Errorf("the machine has no %s, without which CUDA doesn't work; modprobe nvidia-uvm there says why (%s)", unified, unmade)
	}
	for _, i := range instances {
		if err := t.check(i, e.Devices[i.UUID]); err != nil {
			return nil, err
		}
	}
	return e, nil
}

const unified = "/dev/nvidia-uvm"

// controlDevices creates the device files that all containers with GPUs need, and loads the module for unified memory. Otherwise the driver waits
// until a CUDA program runs outside of a container. The result is an error message, or "".
func (t *Toolkit) controlDevices(ctx context.Context) string {
	// nvidia-ctk could load the module only with chroot, which the agent's image doesn't contain.
	load := exec.CommandContext(ctx, "/sbin/modprobe", "nvidia-uvm")
	load.Env, load.Dir, load.WaitDelay = path(), "/", time.Second
	load.SysProcAttr = &syscall.SysProcAttr{Chroot: t.Root}
	said, err := load.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s: %v", lastLine(string(said)), err)
	}
	if _, err := t.run(ctx, "--quiet", "system", "create-device-nodes", "--control-devices", "--driver-root="+t.Root, "--dev-root="+t.Root); err != nil {
		return err.Error()
	}
	return "its device file was created, but is gone"
}

// Reset resets the GPU at a PCI address with the machine's nvidia-smi. Reset disables persistence mode during the reset, because persistence mode
// keeps the GPU open. Reset restores the previous mode after the reset. nvidia-smi fails if NVLink connects the GPU to other GPUs that can only be
// reset together.
func (t *Toolkit) Reset(ctx context.Context, bus string) error {
	was, err := t.smi(ctx, "--id="+bus, "--query-gpu=persistence_mode", "--format=csv,noheader")
	persists := err == nil && was == "Enabled"
	if persists {
		_, err = t.smi(ctx, "--id="+bus, "--persistence-mode=0")
		persists = err == nil
	}
	_, err = t.smi(ctx, "--id="+bus, "--gpu-reset")
	if persists {
		// Enable persistence mode again even if ctx has ended.
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_, _ = t.smi(later, "--id="+bus, "--persistence-mode=1") // the GPU also works without it
	}
	return err
}

// smi runs the machine's nvidia-smi, and returns the last line of the output. The error also contains this line.
func (t *Toolkit) smi(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "/usr/bin/nvidia-smi", args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = path(), "/", time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: t.Root}
	type end struct {
		said string
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		said := lastLine(string(out))
		if err != nil {
			err = fmt.Errorf("nvidia-smi: %s: %w", said, err)
		}
		ended <- end{said, err}
	}()
	select {
	case e := <-ended:
		return e.said, e.err
	case <-ctx.Done():
	}
	// SIGKILL doesn't stop a program that hangs in the driver, so don't wait for the program.
	select {
	case e := <-ended:
		return e.said, e.err
	case <-time.After(2 * time.Second):
		return "", errors.New("nvidia-smi hangs, and can't be stopped: the GPU or its driver hangs; restart the machine")
	}
}

// path returns the complete environment of the programs. Other variables could set flags of nvidia-ctk.
func path() []string { return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"} }

// run runs nvidia-ctk, and returns the output. The error is the last line of the program's messages.
func (t *Toolkit) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.Program, args...)
	cmd.Env = path()
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lastLine(said.String()), err)
	}
	return out, nil
}

// onMachine replaces paths below Root with paths on the machine, because the container runtime applies the edits on the machine.
func (t *Toolkit) onMachine(e *specs.ContainerEdits) {
	for _, m := range e.Mounts {
		m.HostPath = t.below(m.HostPath)
	}
	for _, d := range e.DeviceNodes {
		d.HostPath = t.below(d.HostPath)
	}
}

func (t *Toolkit) below(path string) string {
	root := strings.TrimSuffix(t.Root, "/")
	if rest, ok := strings.CutPrefix(path, root+"/"); ok && root != "" {
		return "/" + rest
	}
	return path
}

// lastLine returns the last message of nvidia-ctk without the timestamp.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	last := lines[len(lines)-1]
	if _, msg, ok := strings.Cut(last, " msg="); ok {
		last = strings.Trim(msg, `"`)
	}
	if last == "" {
		return "it printed no message"
	}
	return last
}

// executable returns an error if the machine doesn't allow programs at this path to run. The folder of path is mounted from the machine with the same
// mount options.
func executable(path string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &s); err != nil {
		return nil //nolint:nilerr // the container runtime explains why it can't run it
	}
	if s.Flags&noexec != 0 {
		return fmt.Errorf("%s is on a file system that is mounted noexec, so containers with a GPU can't start; mount it without noexec (mount -o remount,exec, and /etc/fstab)", path)
	}
	return nil
}

const noexec = 0x8

// InstallHook installs nvidia-cdi-hook at a path at which the machine's container runtime can run the hook. InstallHook doesn't interrupt a running
// hook.
func InstallHook(from, to string) error {
	want, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, want) {
		if info, err := os.Stat(to); err == nil && info.Mode().Perm() == hookMode {
			return nil
		}
	}
	return replace.Durably(to, want, hookMode)
}

const hookMode = 0o755
