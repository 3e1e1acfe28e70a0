// Package nvml creates the files that NVIDIA's driver installs on a machine, for tests without a GPU. It also builds NVIDIA's own programs that read
// these files.
// In: a C compiler. Out: libraries in the root of a machine, at the paths of Debian's packages, and programs.
package nvml

import (
	"bytes"
	_ "embed" // the library's source
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/openpai/paictl/test/tier"
)

//go:embed testdata/libnvidia-ml.c
var source string

// instances is the part of the library's source for instances (MIG).
//
//go:embed testdata/mig.h
var instances string

// Driver is the version of the driver that tests install.
const Driver = "535.261.03"

// UUIDs returns the UUIDs of the two GPUs, in the order of the library.
func UUIDs() []string {
	return []string{"GPU-11111111-2222-3333-4444-000000000000", "GPU-11111111-2222-3333-4444-000000000001"}
}

// Install installs the libraries of a driver version below a root. They simulate a machine with two A100. The device files of the GPUs are
// /dev/nvidia1 and /dev/nvidia0, in this order; Install doesn't create them.
func Install(t testing.TB, root, version string) {
	t.Helper()
	tier.More(t, "a driver's libraries, which gcc builds")
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("it needs gcc")
	}
	const folder = "/usr/lib/x86_64-linux-gnu"
	lib, alternatives := filepath.Join(root, folder), filepath.Join(root, "etc/alternatives")
	current := filepath.Join(lib, "nvidia/current")
	for _, dir := range []string{current, alternatives} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	header, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatalf("find nvml.h: %v", err)
	}
	compile := func(name, program string, args ...string) {
		cmd := exec.CommandContext(t.Context(), "gcc", append(args, "-shared", "-fPIC", "-x", "c", "-I", strings.TrimSpace(string(header)),
			"-Wl,-soname,"+name+".so.1", "-DDRIVER="+fmt.Sprintf("%q", version), "-o", filepath.Join(current, name+".so."+version), "-")...)
		cmd.Stdin = strings.NewReader(program)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v: %s", err, out)
		}
		for link, to := range map[string]string{
			filepath.Join(current, name+".so.1"):         name + ".so." + version,
			filepath.Join(alternatives, "nvidia--"+name): folder + "/nvidia/current/" + name + ".so.1",
			filepath.Join(lib, name+".so.1"):             "/etc/alternatives/nvidia--" + name,
			filepath.Join(current, name+".so"):           name + ".so.1",
		} {
			_ = os.Remove(link)
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
		}
	}
	compile("libnvidia-ml", strings.Replace(source, "#include \"mig.h\"\n", instances, 1))
	compile("libcuda", "int cuInit(unsigned flags) { return 100; } /* CUDA_ERROR_NO_DEVICE */")
}

// Uninstall removes the files of a version that Install has created below a root.
func Uninstall(t testing.TB, root, version string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "usr/lib/x86_64-linux-gnu/nvidia/current/*.so."+version))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

var toolkit = sync.OnceValues(func() (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "nvidia-container-toolkit-")
	if err != nil {
		return "", err
	}
	const path = "github.com/NVIDIA/nvidia-container-toolkit/cmd/"
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir, path+"nvidia-ctk", path+"nvidia-cdi-hook")
	cmd.Dir = filepath.Join(filepath.Dir(strings.TrimSpace(string(mod))), "bundle", "nvidia-container-toolkit")
	return dir, build(cmd, "GOFLAGS=", "CGO_CFLAGS=-w")
})

// build runs the go command with cgo. If the command fails, the error contains the command's output.
func build(cmd *exec.Cmd, env ...string) error {
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=1"), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said.String())
	}
	return nil
}

// built returns the result of a build. If the build failed, it fails the test.
func built(t testing.TB, made func() (string, error)) string {
	t.Helper()
	path, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Toolkit returns the folder with nvidia-ctk and nvidia-cdi-hook. Their version is the version in bundle/. They are built once in a process.
func Toolkit(t testing.TB) string {
	t.Helper()
	return built(t, toolkit)
}
