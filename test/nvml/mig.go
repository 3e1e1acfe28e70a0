package nvml

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Knob makes the library in a root simulate a rare state of a GPU: held, process or full, which testdata/mig.h explains. If content is "", it ends
// the simulation of that state.
func Knob(t testing.TB, root, name string, gpu int, content string) {
	t.Helper()
	file := filepath.Join(state(root), fmt.Sprintf("%s-%d", name, gpu))
	err := os.WriteFile(file, []byte(content), 0o644)
	if content == "" {
		err = os.Remove(file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func state(root string) string {
	return filepath.Join(root, "usr/lib/x86_64-linux-gnu/nvidia/current")
}

// cardSize is the size of a GPU in the library's file. modeSize is the size of the GPU's MIG mode, which is the only part that survives a reboot of
// the machine.
const (
	modeSize = 2 * 4
	cardSize = modeSize + 8*11*4
)

// Reboot changes the library's file like a reboot of the machine. It removes the instances and keeps the MIG mode.
func Reboot(t testing.TB, root string) {
	t.Helper()
	file := filepath.Join(state(root), "instances")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != cardSize*len(UUIDs()) {
		t.Fatalf("%s has %d bytes", file, len(data))
	}
	for at := 0; at < len(data); at += cardSize {
		clear(data[at+modeSize : at+cardSize])
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Activate changes the library's file like a reset of the GPUs. The GPUs switch to their pending MIG mode.
func Activate(t testing.TB, root string) {
	t.Helper()
	file := filepath.Join(state(root), "instances")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(data); at += cardSize {
		copy(data[at:at+4], data[at+4:at+8])
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// CapsMajor is the major number of the devices for capabilities in the tree of Proc.
const CapsMajor = 234

// Proc writes the driver's files in /proc that describe the capabilities of instances on both GPUs. It returns the folder with these files.
func Proc(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	write("devices", fmt.Sprintf("Character devices:\n  1 mem\n195 nvidia\n%d nvidia-caps\n\nBlock devices:\n259 blkext\n", CapsMajor))
	var minors strings.Builder
	number := 0
	access := func(name string, mode int) {
		number++
		write("driver/nvidia/capabilities/"+name, fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: %d\nDeviceFileModify: 1\n", number, mode))
		fmt.Fprintf(&minors, "%s %d\n", strings.Replace(strings.TrimPrefix(name, "mig/"), "/mig/", "/", 1), number)
	}
	access("mig/config", 0o400)
	access("mig/monitor", 0o444)
	for gpu := range UUIDs() {
		for gi := range 15 {
			access(fmt.Sprintf("gpu%d/mig/gi%d/access", gpu, gi), 0o444)
			for ci := range 8 {
				access(fmt.Sprintf("gpu%d/mig/gi%d/ci%d/access", gpu, gi, ci), 0o444)
			}
		}
	}
	write("driver/nvidia-caps/mig-minors", minors.String())
	return dir
}

// ToolkitSeeing returns a script that runs the nvidia-ctk of Toolkit. In the script, the folder driver of a tree of Proc is mounted at /proc/driver.
// If mounts aren't possible, it skips the test.
func ToolkitSeeing(t testing.TB, proc string) string {
	t.Helper()
	script := "mount --bind " + filepath.Join(proc, "driver") + " /proc/driver && exec "
	if out, err := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script+"true").CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted over /proc/driver: %v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "nvidia-ctk")
	content := "#!/bin/sh\nexec unshare -m sh -c '" + script + filepath.Join(Toolkit(t), "nvidia-ctk") + " \"$@\"' nvidia-ctk \"$@\"\n"
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

var probe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pai-nvml-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "pai-nvml")
	return file, build(exec.Command("go", "build", "-o", file, "github.com/openpai/paictl/cmd/pai-nvml"))
})

// Probe returns the path of the program pai-nvml. The program is built once in a process.
func Probe(t testing.TB) string {
	t.Helper()
	return built(t, probe)
}
