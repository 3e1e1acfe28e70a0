package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
)

// checkContainer runs a program with CUDA in a container that gets only the machine's first usable GPU.
func (o *options) checkContainer(ctx context.Context, r *report, gpus *gpu.Report, edits *toolkit.Edits) {
	const subject, name = "container", "CUDA with one GPU"
	not := func(why string) { r.add(subject, name, verdictNotRun, "", why) }
	runtime, err := exec.LookPath(o.oci)
	var mine *gpu.GPU
	for i, g := range gpus.GPUs {
		if !g.Lost && g.Unusable == "" && (g.MIG == nil || !g.MIG.Enabled) {
			mine = &gpus.GPUs[i]
			break
		}
	}
	switch {
	case edits == nil:
		not("there is no specification of its devices")
		return
	case err != nil:
		not(o.oci + " isn't installed")
		return
	case os.Geteuid() != 0:
		not("it needs root")
		return
	case mine == nil:
		not("no GPU works without instances")
		return
	}
	if _, err := os.Stat(o.cuda); err != nil {
		not(filepath.Base(o.cuda) + " is missing: gcc builds it")
		return
	}
	said, err := o.container(ctx, runtime, mine, gpus, edits)
	if err != nil {
		r.add(subject, name, verdictFailed, "", err.Error())
		return
	}
	r.judge(subject, said, mine, len(gpus.GPUs) > 1)
}

// judge compares the output of the program with the output that is expected in a container with one GPU. The lines of the output are "key value".
func (r *report) judge(subject, said string, mine *gpu.GPU, others bool) {
	got := map[string]string{}
	for line := range strings.Lines(said) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[key] = value
	}
	r.equal(subject, "GPUs that CUDA sees", got["count"], "1")
	r.secret(subject, "UUID", got["uuid"], mine.UUID)
	r.equal(subject, "sum that a kernel computes", got["sum"], "523776")
	if !others {
		r.add(subject, "device file of another GPU", verdictNotRun, "", "the machine has one GPU")
		return
	}
	r.equal(subject, "device file of another GPU", got["other"], "refused")
}

// container runs the program in a container, and returns the output.
func (o *options) container(ctx context.Context, runtime string, mine *gpu.GPU, gpus *gpu.Report, edits *toolkit.Edits) (string, error) {
	dir, err := os.MkdirTemp("", "gpu-check-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	rootfs := filepath.Join(dir, "rootfs")
	if err := o.furnish(ctx, rootfs); err != nil {
		return "", err
	}
	args := []string{"/cuda-check"}
	for _, g := range gpus.GPUs {
		if g.UUID != mine.UUID && file(&g) != "" {
			number, err := device(filepath.Join(o.root, file(&g)))
			if err != nil {
				return "", err
			}
			args = append(args, number)
			break
		}
	}
	spec := bare(args)
	common, one := edits.Common, edits.Devices[mine.UUID]
	for _, e := range []*specs.ContainerEdits{&common, &one} {
		if err := (&cdi.ContainerEdits{ContainerEdits: e}).Apply(spec); err != nil {
			return "", fmt.Errorf("apply the specification: %w", err)
		}
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
		return "", err
	}
	id := filepath.Base(dir)
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, runtime, "--root", filepath.Join(dir, "state"), "run", "--bundle", dir, id)
	cmd.WaitDelay = time.Second
	var said, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &failed
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s %s", filepath.Base(runtime), err, firstLine(failed.String()), firstLine(said.String()))
	}
	return said.String(), nil
}

// device returns the device number of a device file, as MAJOR:MINOR.
func device(path string) (string, error) {
	var is unix.Stat_t
	if err := unix.Stat(path, &is); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprintf("%d:%d", unix.Major(is.Rdev), unix.Minor(is.Rdev)), nil
}

// furnish copies the program to a root folder, and the libraries that the program and the driver's library need. All other files come from the
// specification.
func (o *options) furnish(ctx context.Context, rootfs string) error {
	for _, dir := range []string{"etc", "dev", "proc", "sys", "tmp", "usr/lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(rootfs, dir), 0o755); err != nil {
			return err
		}
	}
	if err := copyFile(o.cuda, filepath.Join(rootfs, "cuda-check"), 0o755); err != nil {
		return err
	}
	said, err := output(ctx, "ldd", o.cuda)
	if err != nil {
		return fmt.Errorf("ldd: %w", err)
	}
	libc := ""
	for word := range strings.FieldsSeq(said) {
		if !strings.HasPrefix(word, "/") {
			continue
		}
		if err := copyFile(word, filepath.Join(rootfs, word), 0o755); err != nil {
			return err
		}
		if filepath.Base(word) == "libc.so.6" {
			libc = filepath.Dir(word)
		}
	}
	if libc == "" {
		return errors.New("ldd doesn't name the C library of cuda-check")
	}
	// The driver's library is linked to these libraries, which are empty in newer versions of the C library.
	for _, name := range []string{"libdl.so.2", "libpthread.so.0", "librt.so.1"} {
		path := filepath.Join(libc, name)
		if err := copyFile(path, filepath.Join(rootfs, path), 0o755); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}

// bare returns the specification of a container without GPUs. Like the containers of Kubernetes, it may create device files, but it may not open the
// device files of GPUs.
func bare(args []string) *oci.Spec {
	memory := int64(1) // the major number of null, zero, random and urandom
	allowed := func(minor int64) oci.LinuxDeviceCgroup {
		return oci.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &memory, Minor: &minor, Access: "rwm"}
	}
	capabilities := []string{"CAP_MKNOD", "CAP_CHOWN", "CAP_DAC_OVERRIDE"}
	return &oci.Spec{
		Version: "1.0.2",
		Root:    &oci.Root{Path: "rootfs"},
		Process: &oci.Process{
			Args: args, Cwd: "/", Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp"}, NoNewPrivileges: true,
			Capabilities: &oci.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
		},
		Mounts: []oci.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		},
		Linux: &oci.Linux{
			Namespaces: []oci.LinuxNamespace{{Type: oci.PIDNamespace}, {Type: oci.MountNamespace}, {Type: oci.IPCNamespace}, {Type: oci.UTSNamespace}, {Type: oci.NetworkNamespace}},
			Resources: &oci.LinuxResources{Devices: []oci.LinuxDeviceCgroup{
				{Allow: false, Access: "rwm"}, {Allow: true, Type: "c", Access: "m"}, allowed(3), allowed(5), allowed(8), allowed(9),
			}},
		},
	}
}
