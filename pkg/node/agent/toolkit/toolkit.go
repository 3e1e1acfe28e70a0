// Package toolkit determines the edits that a container needs for a real GPU in addition to its device file: the libraries of the
// machine's driver, control devices, and hooks that run before the container starts.
// In: nvidia-ctk, of NVIDIA's container toolkit, and the machine's files. Out: edits of containers, as CDI writes them.
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

// Toolkit runs NVIDIA's program nvidia-ctk. Its methods are safe for concurrent use.
type Toolkit struct {
	// Program is the path of nvidia-ctk.
	Program string
	// Root is the folder with the machine's files, such as /host.
	Root string
	// Proc is the folder that contains the driver's capabilities, such as /proc.
	Proc string
	// Hook is the path of nvidia-cdi-hook on the machine, because the container runtime runs the hook.
	Hook string

	mu sync.Mutex
	// driver is the machine's driver version at the last call of nvidia-ctk, and edits is the result of that call.
	driver string
	edits  *Edits
	// asked are the GPUs in that call. The result may not contain edits for split GPUs.
	asked []string
	// again is the time at which to retry GPUs for which the program failed. It is zero if the program didn't fail for any GPU.
	again time.Time
	// asking is closed when the running program has ended. It is nil if the program isn't running. The program runs only once at a time, because it
	// hangs if a GPU hangs.
	asking chan struct{}
	failed error
}

// Edits are the changes to the specification of a container that give the container GPUs.
type Edits struct {
	// Common are the edits for each container that has a GPU.
	Common specs.ContainerEdits
	// Devices are the edits for individual GPUs, by UUID.
	Devices map[string]specs.ContainerEdits
	// Refused holds the reasons why the program didn't return edits for some GPUs, by UUID.
	Refused map[string]error
}

// refusedFor is how long a GPU stays in Refused before the program runs again, because the GPU may have been reset.
const refusedFor = time.Minute

// patience is how long nvidia-ctk may take.
const patience = 20 * time.Second

// Edits returns the edits for containers on a machine with this driver version and the GPUs with these UUIDs. The program runs once for each driver
// version, and again for GPUs that weren't in its last call. gpus must not contain lost GPUs, because the program fails if there are lost GPUs.
// instances describes the UUIDs that belong to instances. If the instances change, driver must change as well.
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

// knows reports whether the result of the program is valid for this driver and all of these GPUs. The caller holds the lock.
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

// ask runs the program for at most the time patience, stores its result and closes ended.
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

// generateAll runs the program for all GPUs at once. If the program fails because of a GPU, generateAll runs it again for the other GPUs.
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

// ofThose returns the instances that have one of the UUIDs.
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
	// The program identifies GPUs by UUID, because numbers of GPUs change when cards are added or removed. The hook apply-cuda-memory-limits is for
	// NVIDIA's own container runtime, which reads memory limits from the environment. It would search for the driver below Root, which doesn't exist
	// on the machine.
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

// unified is the path of the device file of the module nvidia-uvm.
const unified = "/dev/nvidia-uvm"

// controlDevices creates the device files that all containers with GPUs need, and loads the module for unified memory. The driver does neither at the
// machine's start, but waits for the first CUDA program. Such a program can trigger this only outside of a container. controlDevices returns an error
// as text.
func (t *Toolkit) controlDevices(ctx context.Context) string {
	// nvidia-ctk could load the module only with chroot, which the agent's image doesn't have.
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

// Reset resets the GPU at a PCI address with the machine's nvidia-smi. If persistence mode keeps the GPU open, Reset turns it off during the reset.
// Reset doesn't turn persistence mode on if it was off before. nvidia-smi fails if the GPU can be reset only together with other GPUs, because NVLink
// connects them.
func (t *Toolkit) Reset(ctx context.Context, bus string) error {
	was, err := t.smi(ctx, "--id="+bus, "--query-gpu=persistence_mode", "--format=csv,noheader")
	persists := err == nil && was == "Enabled"
	if persists {
		_, err = t.smi(ctx, "--id="+bus, "--persistence-mode=0")
		persists = err == nil
	}
	_, err = t.smi(ctx, "--id="+bus, "--gpu-reset")
	if persists {
		// Turn persistence mode on again even if ctx has ended.
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_, _ = t.smi(later, "--id="+bus, "--persistence-mode=1") // the GPU also works without it
	}
	return err
}

// smi runs the machine's nvidia-smi, and returns the last line of its output. The error also contains this line.
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
	// SIGKILL doesn't stop a program that hangs within the driver, so don't wait until the program ends.
	select {
	case e := <-ended:
		return e.said, e.err
	case <-time.After(2 * time.Second):
		return "", errors.New("nvidia-smi hangs, and can't be stopped: the GPU or its driver hangs; restart the machine")
	}
}

// path returns the whole environment of the programs. Other variables could set flags of nvidia-ctk.
func path() []string { return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"} }

// run runs nvidia-ctk, and returns its output. The error is the last line of its messages.
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

// onMachine replaces paths below Root with their paths on the machine, because the container runtime uses the edits there.
func (t *Toolkit) onMachine(e *specs.ContainerEdits) {
	for _, m := range e.Mounts {
		m.HostPath = t.below(m.HostPath)
	}
	for _, d := range e.DeviceNodes {
		d.HostPath = t.below(d.HostPath)
	}
}

// below removes Root from a path.
func (t *Toolkit) below(path string) string {
	root := strings.TrimSuffix(t.Root, "/")
	if rest, ok := strings.CutPrefix(path, root+"/"); ok && root != "" {
		return "/" + rest
	}
	return path
}

// lastLine returns the last message of nvidia-ctk without its time.
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

// executable returns an error if the machine may not run a program at this path. The folder of path is a folder of the machine, with the same mount
// options.
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

// noexec is the flag ST_NOEXEC of statfs.
const noexec = 0x8

// InstallHook installs nvidia-cdi-hook at a path from which the container runtime of the machine can run it. It doesn't interrupt a running hook.
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
