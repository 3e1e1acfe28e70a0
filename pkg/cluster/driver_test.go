package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/cluster/bundle/driver"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/test/tier"
)

// debianDriver lists the packages of a repository: two releases of a driver branch, each package with its dependencies.
const debianDriver = `nvidia-kernel-dkms 535.261.03-1
nvidia-kernel-dkms 535.247.01-1
nvidia-smi 535.261.03-1 libnvidia-cfg1
nvidia-smi 535.247.01-1 libnvidia-cfg1
libnvidia-cfg1 535.261.03-1
libnvidia-cfg1 535.247.01-1
libnvidia-ml1 535.261.03-1
libnvidia-ml1 535.247.01-1
libcuda1 535.261.03-1
libcuda1 535.247.01-1
nvidia-persistenced 535.171.04-1~deb12u1
nvidia-modprobe 535.161.07-1~deb12u1
linux-headers-6.1.0-fake 6.1.140-1
`

// gpus gives a machine two H100 GPUs as in the layout, and gives apt a repository of drivers.
func (h *fakeHost) gpus() {
	for _, address := range []string{"0000:07:00.0", "0000:0a:00.0"} {
		for file, v := range map[string]string{"vendor": "0x10de", "device": "0x2330", "class": "0x030200"} {
			h.write("/sys/bus/pci/devices/"+address+"/"+file, v+"\n")
		}
	}
	h.write("/.fake/repository", debianDriver)
	require.NoError(h.lab.t, os.MkdirAll(h.root+"/.fake/dpkg", 0o755))
	l := h.lab
	l.conf.Layout.MachineSKU["gpu"] = layout.SKU{Mem: "16Gi", CPU: layout.CPU{VCore: 8}, OS: "debian12", Arch: "amd64", GPU: &layout.GPU{Type: "NVIDIA-H100-80GB-HBM3", Count: 2}}
	for i := range l.conf.Layout.MachineList {
		if m := &l.conf.Layout.MachineList[i]; m.Hostname == h.name {
			m.SKU = "gpu"
		}
	}
}

func gpuLab(t *testing.T) (*lab, *fakeHost) {
	t.Helper()
	l := newLab(t, 1, 1)
	h := l.host("w1")
	h.gpus()
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall})
	return l, h
}

func (l *lab) driver(d config.GPUDriver) { l.conf.Kubernetes.Kubernetes.GPUDriver = d }

func (l *lab) driverUp() *outcome {
	l.t.Helper()
	return l.up(l.t.Context(), func(o *labOptions, _ *ssh.Options) { o.Phases = []string{phases.PhaseDriver} })
}

// driverFails runs the driver's phase. The error must contain all given texts.
func (l *lab) driverFails(says ...string) {
	l.t.Helper()
	o := l.driverUp()
	require.Error(l.t, o.err)
	for _, words := range says {
		assert.Contains(l.t, l.story(o), words)
	}
}

// packages returns a machine's packages as "name version flags".
func (h *fakeHost) packages() []string {
	files, err := filepath.Glob(h.root + "/.fake/dpkg/*")
	require.NoError(h.lab.t, err)
	out := []string{}
	for _, f := range files {
		out = append(out, filepath.Base(f)+" "+strings.TrimSpace(h.read(strings.TrimPrefix(f, h.root))))
	}
	return out
}

func (h *fakeHost) has(name, state string) { h.write("/.fake/dpkg/"+name, state+"\n") }

func (h *fakeHost) loaded() string { return h.read("/proc/driver/nvidia/version") }

var wholeDriver = []string{
	"libcuda1 535.261.03-1 hi", "libnvidia-cfg1 535.261.03-1 hi", "libnvidia-ml1 535.261.03-1 hi", "linux-headers-6.1.0-fake 6.1.140-1 ii",
	"nvidia-kernel-dkms 535.261.03-1 hi", "nvidia-modprobe 535.161.07-1~deb12u1 ii", "nvidia-persistenced 535.171.04-1~deb12u1 ii", "nvidia-smi 535.261.03-1 hi",
}

func actions(cs []engine.Change) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Action+" "+c.Target)
	}
	return out
}

func TestADriverIsInstalledHeldLoadedAndTakenAwayAgain(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	before := strings.Join(h.tree("w1"), "\n")
	o := l.mustUp()
	assert.Equal(t, wholeDriver, h.packages())
	assert.Contains(t, h.loaded(), "535.261.03")
	assert.Contains(t, h.read("/etc/modprobe.d/paictl-nvidia.conf"), "blacklist nouveau")
	assert.FileExists(t, h.root+"/.fake/units/nvidia-persistenced.service.active")
	var mine []engine.Change
	for _, c := range o.changes {
		if c.Phase == phases.PhaseDriver {
			mine = append(mine, c)
		}
	}
	assert.Equal(t, []string{"create " + phases.NouveauFile, "create " + phases.ModulesFile, "create " + phases.PersistenceFile, "install " + phases.DriverTarget, "hold " + phases.HoldTarget, "load " + phases.ModuleTarget, "enable " + phases.PersistenceUnit}, actions(mine))
	i := slices.IndexFunc(mine, func(c engine.Change) bool { return c.Target == phases.DriverTarget })
	assert.Equal(t, "535.261.03, closed module, built by DKMS, CUDA up to 12.2: nvidia-smi libnvidia-ml1 libcuda1 nvidia-kernel-dkms nvidia-persistenced nvidia-modprobe linux-headers-6.1.0-fake", mine[i].Detail)
	assert.Contains(t, h.read(engine.StateDir+"/owned"), "package\tlibnvidia-cfg1\tcreated", "what it depends on is on record, too")
	assert.NoFileExists(t, h.root+engine.StateDir+"/driver-change")

	l.forgetCalls()
	assert.Empty(t, l.mustUp().changes)
	for _, c := range h.calls() {
		assert.NotContains(t, c, "apt-", "a driver that is as wanted is not looked at any further")
	}
	judged := func() (out []string) {
		look, err := Inspect(t.Context(), l.spec(), l.options(), func(*engine.Node) string { return "" })
		require.NoError(t, err)
		for _, f := range look.Preflight {
			if f.By == "gpu-driver" {
				out = append(out, f.Host+" "+f.Severity+" "+f.Check)
			}
		}
		return out
	}
	assert.Empty(t, judged(), "a look reads the driver, too")
	version := h.loaded()
	require.NoError(t, os.Remove(h.root+"/proc/driver/nvidia/version"))
	assert.Equal(t, []string{"w1 error gpu-driver-not-loaded"}, judged(), "without asking which driver paictl would install")
	h.write("/proc/driver/nvidia/version", version)
	require.NoError(t, l.down(t.Context(), false).err)
	assert.Empty(t, h.packages())
	assert.Empty(t, h.loaded())
	left := []string{}
	for _, line := range h.tree("w1") {
		if !strings.Contains(before, line) && !strings.Contains(line, "/.fake") && !strings.Contains(line, "/sys/module") {
			left = append(left, line)
		}
	}
	assert.NotContains(t, strings.Join(left, "\n"), "nvidia")
}

func TestWithoutGPUsInTheLayoutOrWithSimulatedOnesNothingIsAsked(t *testing.T) {
	t.Parallel()
	for name, gpu := range map[string]*layout.GPU{"none": nil, "simulated": {Type: "NVIDIA-A100", Count: 2, Simulated: true}} {
		l, h := gpuLab(t)
		sku := l.conf.Layout.MachineSKU["gpu"]
		sku.GPU = gpu
		l.conf.Layout.MachineSKU["gpu"] = sku
		l.mustUp()
		assert.Empty(t, h.packages(), name)
	}
}

func TestADriverIsKeptWhereNothingElseIsSaid(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.driver(config.GPUDriver{})
	o := l.mustUp()
	warnings := l.warnings(o)
	assert.Contains(t, warnings, "2 NVIDIA GPUs but no driver")
	assert.Contains(t, warnings, "policy: install")
	assert.Empty(t, h.packages())
	h.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.13  Wed Nov 30 06:39:21 UTC 2022\n")
	lib := h.root + "/usr/lib/x86_64-linux-gnu"
	require.NoError(t, os.MkdirAll(lib, 0o755))
	h.write("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.525.60.13", "")
	require.NoError(t, os.Symlink("libnvidia-ml.so.525.60.13", lib+"/libnvidia-ml.so.1"))
	o = l.mustUp()
	assert.Empty(t, o.changes)
	assert.NotContains(t, l.warnings(o), "driver")
	l.driver(config.GPUDriver{Version: "535"})
	assert.Contains(t, l.warnings(l.mustUp()), "525.60.13 is older than 535")
	l.driver(config.GPUDriver{Policy: config.GPUDriverNone, Version: ""})
	assert.NotContains(t, l.warnings(l.mustUp()), "driver")
}

func (l *lab) warnings(o *outcome) string {
	var b strings.Builder
	for _, e := range o.events {
		if e.Kind == engine.EventWarning {
			fmt.Fprintf(&b, "%s: %s (%s)\n", e.Host, e.Message, e.Hint)
		}
	}
	return b.String()
}

func TestWhatStandsInTheWayIsFoundBeforeAnythingIsTouched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(*lab, *fakeHost)
		says    string
	}{
		{"the repository is away", func(_ *lab, h *fakeHost) {
			h.write("/.fake/repository", "linux-headers-6.1.0-fake 6.1.140-1\n")
			h.write("/.fake/fail/repository", "")
		}, "Could not connect to deb.example.org"},
		{"a release that isn't there", func(l *lab, _ *fakeHost) { l.driver(config.GPUDriver{Policy: "install", Version: "535.104.05"}) }, "apt on the machine has no packages of the driver 535.104.05"},
		{"no headers", func(_ *lab, h *fakeHost) {
			h.write("/.fake/repository", strings.Replace(debianDriver, "linux-headers", "other", 1))
		}, "linux-headers-6.1.0-fake"},
		{"Secure Boot", func(_ *lab, h *fakeHost) {
			h.write("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\x06\x00\x00\x00\x01")
		}, "Secure Boot is on"},
		{"a runfile", func(_ *lab, h *fakeHost) { h.write("/usr/bin/nvidia-uninstall", "") }, "runfile"},
		{"nouveau under a display", func(_ *lab, h *fakeHost) {
			h.write("/sys/module/nouveau/refcnt", "3\n")
			h.opens("700", "Xorg", "/dev/dri/card0")
		}, "nouveau is in use by Xorg (pid 700)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, h := gpuLab(t)
			c.prepare(l, h)
			o := l.up(t.Context())
			require.Error(t, o.err)
			assert.ErrorAs(t, o.err, new(*engine.PreflightError))
			assert.Contains(t, l.story(o), c.says)
			assert.Empty(t, h.packages())
			assert.NoFileExists(t, h.root+engine.StateDir+"/owned", "nothing was changed, not even by other phases")
		})
	}
}

func (h *fakeHost) opens(pid, program, file string) {
	h.write("/proc/"+pid+"/comm", program+"\n")
	require.NoError(h.lab.t, os.MkdirAll(h.root+"/proc/"+pid+"/fd", 0o755))
	require.NoError(h.lab.t, os.Symlink(file, h.root+"/proc/"+pid+"/fd/3"))
}

func TestNetworkCardsReachTheGPUsMemory(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	require.NoError(t, l.driverUp().err)
	assert.NotContains(t, h.read(phases.NouveauFile), "peermem")
	for file, v := range map[string]string{"link_layer": "InfiniBand", "rate": "200 Gb/sec (4X HDR)", "state": "4: ACTIVE"} {
		h.write("/sys/class/infiniband/mlx5_0/ports/1/"+file, v+"\n")
	}
	o := l.driverUp()
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Contains(t, h.read(phases.NouveauFile), "\nsoftdep nvidia post: nvidia-peermem\n")
	assert.Empty(t, l.driverUp().changes)
}

// nvlink5 gives a machine the cards that manage the switches of an HGX B200, as they appear before their driver is loaded. It also gives apt
// NVIDIA's own repository.
func (h *fakeHost) nvlink5() {
	for address, product := range map[string]string{"0000:05:00.0": "ConnectX-7 SW_MNG V2", "0000:0c:00.0": "ConnectX-7 HHHL"} {
		for file, v := range map[string]string{"vendor": "0x15b3", "device": "0x1021", "class": "0x020700", "vpd": "\x82\x14\x00" + product} {
			h.write("/sys/bus/pci/devices/"+address+"/"+file, v+"\n")
		}
	}
	h.write("/.fake/repository", `nvidia-driver-cuda 580.65.06-1 libnvidia-ml1
libnvidia-ml1 580.65.06-1
nvidia-persistenced 580.65.06-1
nvidia-kernel-open-dkms 580.65.06-1
nvidia-fabricmanager 580.65.06-1
nvlsm 2025.06.5-1
infiniband-diags 44.0-2
linux-headers-6.1.0-fake 6.1.140-1
`)
	h.lab.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Source: config.GPUSourceNVIDIA})
}

func TestSwitchesOfNVLink5HaveTheirSubnetManager(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.nvlink5()
	h.write("/.fake/fail/modprobe-ib_umad", "")
	l.driverFails("the kernel module ib_umad can't be loaded", "linux-modules-extra-")
	assert.NoFileExists(t, h.root+"/.fake/units/nvidia-fabricmanager.service.active")

	h.remove("/.fake/fail/modprobe-ib_umad")
	o := l.driverUp()
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Subset(t, h.packages(), []string{"nvidia-fabricmanager 580.65.06-1 hi", "nvlsm 2025.06.5-1 ii", "infiniband-diags 44.0-2 ii"})
	assert.Contains(t, h.read(phases.ModulesFile), "\nmlx5_ib\nib_umad\n", "also when the machine starts")
	assert.FileExists(t, h.root+"/.fake/units/nvidia-fabricmanager.service.active")
	assert.Empty(t, l.driverUp().changes)

	h.remove("/sys/module/ib_umad") // by an administrator, or after another kernel was booted
	o = l.driverUp()
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"load " + phases.ModuleTarget}, actions(o.changes))
	assert.DirExists(t, h.root+"/sys/module/ib_umad")

	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall}) // which Debian's own packages don't include
	h.remove("/proc/driver/nvidia")
	l.driverFails("with a fabric manager and nvlsm for its NVSwitches", "another gpu-driver.source, nvidia")
}

func TestAFabricManagerThatDoesntFitIsNamedForADriverThatIsKept(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.nvlink5()
	require.NoError(t, l.driverUp().err)
	require.NoError(t, l.down(t.Context(), false).err)
	for _, policy := range []string{config.GPUDriverKeep, config.GPUDriverInstall} {
		l.driver(config.GPUDriver{Policy: policy, Source: config.GPUSourceNVIDIA})
		h.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n")
		h.write("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "")
		h.write("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.65.06", "")
		h.remove("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
		require.NoError(t, os.Symlink("libnvidia-ml.so.580.65.06", h.root+"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"))
		h.remove("/usr/bin/nv-fabricmanager")
		says := func(words string) {
			t.Helper()
			o := l.driverUp()
			require.NoError(t, o.err, "%s", l.story(o))
			if words == "" {
				assert.NotContains(t, l.warnings(o), "802", policy)
				return
			}
			assert.Contains(t, l.warnings(o), words, policy)
			assert.Contains(t, l.warnings(o), "CUDA fails with error 802", policy)
		}
		program := func(file, says string) {
			h.write(file, "#!/bin/sh\n"+says)
			require.NoError(t, os.Chmod(h.root+file, 0o755))
		}
		for _, f := range []string{"/opt/nvidia", "/sys/module/mlx5_ib", "/sys/module/ib_umad", "/.fake/units/nvidia-fabricmanager.service.active"} {
			h.remove(f)
		}
		says("no fabric manager is installed")
		program("/usr/bin/nv-fabricmanager", "echo 'Fabric Manager version is : 570.86.15'\n")
		says("the fabric manager is 570.86.15, and the driver 580.65.06")
		program("/usr/bin/nv-fabricmanager", "echo 'Fabric Manager version is : 580.65.06'\n")
		says("nvlsm isn't installed")
		program("/opt/nvidia/nvlsm/sbin/nvlsm", "")
		says("mlx5_ib and ib_umad aren't loaded")
		h.write("/sys/module/mlx5_ib/refcnt", "0\n")
		h.write("/sys/module/ib_umad/refcnt", "0\n")
		says("nvidia-fabricmanager.service doesn't run")
		h.write("/.fake/units/nvidia-fabricmanager.service.active", "")
		says("")
	}
}

func TestAPackageThatBreaksIsTakenAwayAgain(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/fail/postinst-nvidia-kernel-dkms-535.261.03-1", "")
	l.driverFails("dpkg: error processing package nvidia-kernel-dkms", "removed again")
	assert.Empty(t, h.packages())
	assert.NotContains(t, h.read(engine.StateDir+"/owned"), "package\t")
	h.remove("/.fake/fail/postinst-nvidia-kernel-dkms-535.261.03-1")
	require.NoError(t, l.driverUp().err)
	assert.Equal(t, wholeDriver, h.packages())
}

func at(version string) config.GPUDriver {
	return config.GPUDriver{Policy: config.GPUDriverInstall, Version: version}
}

func TestADriverIsUpgradedDowngradedAndRolledBack(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.driver(at("535.247.01"))
	require.NoError(t, l.driverUp().err)
	assert.Contains(t, h.loaded(), "535.247.01")

	l.driver(at("535"))
	assert.Empty(t, l.driverUp().changes, "it stays while it is of the branch")

	l.driver(at("535.261.03"))
	h.write("/.fake/fail/postinst-libcuda1-535.261.03-1", "")
	o := l.driverUp()
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "the earlier ones are restored")
	assert.Contains(t, h.loaded(), "535.247.01")
	assert.Contains(t, h.packages(), "nvidia-smi 535.247.01-1 hi", "held as before")
	assert.Contains(t, h.packages(), "libcuda1 535.247.01-1 hi")

	h.remove("/.fake/fail/postinst-libcuda1-535.261.03-1")
	o = l.driverUp()
	require.NoError(t, o.err)
	assert.Contains(t, actions(o.changes), "upgrade "+phases.DriverTarget)
	assert.Equal(t, wholeDriver, h.packages())
	assert.Contains(t, h.loaded(), "535.261.03")
	assert.FileExists(t, h.root+"/.fake/units/nvidia-persistenced.service.active", "what was stopped for it is started again")

	l.driver(at("535.247.01"))
	h.write("/.fake/repository", strings.ReplaceAll(debianDriver, "535.261.03-1", "535.274.02-1"))
	o = l.driverUp()
	require.NoError(t, o.err, "the release that is there is gone from the repository, and was kept")
	assert.Contains(t, actions(o.changes), "downgrade "+phases.DriverTarget)
	assert.Contains(t, h.loaded(), "535.247.01")
	assert.Empty(t, l.driverUp().changes)
}

func TestADriverThatSomeoneElseInstalledComesBack(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	for _, name := range []string{"nvidia-smi", "libnvidia-cfg1", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms"} {
		h.has(name, "535.247.01-1 ii")
	}
	h.has("libcuda1", "535.247.01-1 hi")
	auto := func() []string {
		entries, err := os.ReadDir(h.root + "/.fake/auto")
		require.NoError(t, err)
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	marked := []string{"libcuda1", "libnvidia-cfg1", "libnvidia-ml1"} // they came as dependencies
	for _, name := range marked {
		h.write("/.fake/auto/"+name, "")
	}
	before := h.packages()
	l.driver(at("535.261.03"))
	require.NoError(t, l.driverUp().err)
	assert.Contains(t, h.packages(), "libcuda1 535.261.03-1 hi")
	assert.Contains(t, auto(), "libnvidia-cfg1", "it still came along")
	assert.NotContains(t, auto(), "libcuda1", "paictl asks for it by name")
	down := l.down(t.Context(), false)
	require.NoError(t, down.err, "%s", l.story(down))
	assert.Contains(t, actions(down.changes), "restore package libcuda1")
	assert.Equal(t, before, h.packages())
	for _, name := range marked {
		assert.Contains(t, auto(), name)
	}
}

func TestMarksComeBackWithAnUndoing(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	for _, name := range []string{"nvidia-smi", "libnvidia-cfg1", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms"} {
		h.has(name, "535.247.01-1 ii")
	}
	h.has("libcuda1", "535.247.01-1 hi")
	h.write("/.fake/auto/libcuda1", "")
	h.write("/.fake/fail/postinst-nvidia-kernel-dkms-535.261.03-1", "")
	before := h.packages()
	l.driver(at("535.261.03"))
	l.driverFails("the earlier ones are restored")
	assert.Equal(t, before, h.packages())
	assert.FileExists(t, h.root+"/.fake/auto/libcuda1")
}

func TestGPUsOfVirtualMachinesAreNotTheDrivers(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/fail/gpu-0000:0a:00.0", "")
	require.NoError(t, os.Symlink("../../../bus/pci/drivers/vfio-pci", h.root+"/sys/bus/pci/devices/0000:0a:00.0/driver"))
	require.NoError(t, l.driverUp().err)
}

// The test queries the real apt for the version to install.
func TestAReleaseIsPreferredBehindAnEpochToo(t *testing.T) {
	tier.More(t, "apt")
	for _, p := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("it needs apt")
		}
	}
	dir := t.TempDir()
	run := func(script string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.NoError(t, os.MkdirAll(dir+"/repository", 0o755))
	index := ""
	for _, p := range []struct{ name, version string }{{"libnvidia-a", "1:570.1.2-1"}, {"libnvidia-a", "1:570.12-1"}, {"libnvidia-a", "1:580.1-1"}, {"libnvidia-b", "570.1.2-1"}, {"libnvidia-b", "580.1-1"}} {
		file := bundletest.Deb(t, dir+"/repository", p.name, p.version, "all")
		index += fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nFilename: ./%s\nSize: 1\nSHA256: %064d\n\n", p.name, p.version, filepath.Base(file), 0)
	}
	require.NoError(t, os.WriteFile(dir+"/repository/Packages", []byte(index), 0o600))
	run("mkdir -p S lists/partial cache/archives/partial none; : >status; echo \"deb [trusted=yes] file:$PWD/repository ./\" >sources\n" + engine.PreludeScript + phases.DriverScript + `
driver_apt() { :; }
repository= RELEASE=570.1.2 R=$PWD/none S=$PWD/S
driver_simulate libnvidia-a
`)
	said := run(`o="-o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache -o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root -o Dir::State::status=$PWD/status"
apt-get $o update >/dev/null
apt-cache $o -o Dir::Etc::preferences=$PWD/S/driver.preferences -o Dir::Etc::preferencesparts=/dev/null policy libnvidia-a libnvidia-b | grep Candidate`)
	assert.Equal(t, "  Candidate: 1:570.1.2-1\n  Candidate: 570.1.2-1\n", said)
}

func TestTheModuleInUseIsFoundBeforeItsPackagesChange(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.driver(at("535.247.01"))
	require.NoError(t, l.driverUp().err)
	l.driver(at("535.261.03"))
	h.opens("700", "python3", "/dev/nvidia0")
	h.opens("701", "nvidia-persiste", "/dev/nvidiactl")
	o := l.driverUp()
	assert.ErrorAs(t, o.err, new(*engine.PreflightError))
	assert.Contains(t, l.story(o), "GPUs are in use, so the driver can't change from 535.247.01 to 535.261.03: python3 (pid 700)")
	h.remove("/proc/700")
	h.write("/.fake/fail/rmmod-nvidia", "") // by a process without an open file
	l.driverFails("the kernel module 535.247.01 is in use", "no package was changed")
	assert.Contains(t, h.packages(), "nvidia-smi 535.247.01-1 hi")
	assert.FileExists(t, h.root+"/.fake/units/nvidia-persistenced.service.active", "what was stopped for it is started again")
}

func TestWhileAnotherInstallsPackagesGPUsWork(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.driver(at("535.247.01"))
	require.NoError(t, l.driverUp().err)
	l.driver(at("535.261.03"))
	h.write("/.fake/fail/dpkg-lock", "")
	l.driverFails("another program installs packages: dpkg: error: dpkg frontend lock was locked by another process with pid 4711")
	assert.Contains(t, h.loaded(), "535.247.01")
	assert.DirExists(t, h.root+"/sys/module/nvidia_uvm")
	assert.Contains(t, h.packages(), "nvidia-smi 535.247.01-1 hi")
	h.remove("/.fake/fail/dpkg-lock")
	require.NoError(t, l.driverUp().err)
	assert.Contains(t, h.loaded(), "535.261.03")
}

// As in Ubuntu, the packages of branch 570 are empty, and depend on the packages of branch 580.
func TestABranchThatIsAnotherUnderItsNameIsRefused(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/removes", "Inst libnvidia-compute-580-server (580.95.05-0ubuntu0.24.04.2 Ubuntu:24.04/noble-updates [amd64])\n")
	l.driverFails("the packages of the driver 535.261.03 are those of the branch 580 under another name", `write version: "580" under gpu-driver`)
	assert.Empty(t, h.packages())
}

func TestWhereTheModuleDoesntLoad(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/fail/modprobe-nvidia", "")
	o := l.driverUp()
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "modprobe: FATAL: Module nvidia not found; the packages stay installed")
	assert.Contains(t, l.story(o), "make.log")
	assert.Equal(t, wholeDriver, h.packages())
	h.remove("/.fake/fail/modprobe-nvidia")
	o = l.driverUp()
	require.NoError(t, o.err)
	assert.Equal(t, []string{"load " + phases.ModuleTarget, "enable " + phases.PersistenceUnit}, actions(o.changes))
}

// Containers can't load the module. Without the module, programs in containers can't use CUDA.
func TestTheModuleOfUnifiedMemoryIsLoadedToo(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/fail/modprobe-nvidia-uvm", "")
	o := l.driverUp()
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "the kernel module nvidia-uvm can't be loaded, without which CUDA doesn't work: modprobe: FATAL: Module nvidia-uvm not found")
	h.remove("/.fake/fail/modprobe-nvidia-uvm")
	require.NoError(t, l.driverUp().err)
	assert.DirExists(t, h.root+"/sys/module/nvidia_uvm")
	assert.Contains(t, h.read(phases.ModulesFile), "\nnvidia-uvm\n", "also when the machine starts")

	h.remove("/sys/module/nvidia_uvm")
	o = l.driverUp()
	require.NoError(t, o.err)
	assert.Equal(t, []string{"load " + phases.ModuleTarget}, actions(o.changes))
}

func TestNouveauInUseNeedsARebootAndTheNextRunCompletes(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/sys/module/nouveau/refcnt", "1\n")
	h.write("/sys/class/vtconsole/vtcon1/name", "(M) frame buffer device\n")
	h.write("/.fake/fail/rmmod-nouveau", "")
	o := l.driverUp()
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "a reboot is needed: the kernel's own driver nouveau is in use")
	assert.Equal(t, wholeDriver, h.packages())
	assert.Equal(t, "1\n", h.read("/sys/class/vtconsole/vtcon1/bind"), "the console has its screen again")
	h.remove("/sys/module/nouveau") // the machine was restarted
	o = l.driverUp()
	require.NoError(t, o.err)
	assert.Contains(t, h.loaded(), "535.261.03")
	assert.Empty(t, l.driverUp().changes)
}

func TestPackagesThatWereLeftHalfConfiguredAreFinishedFirst(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.has("tzdata", "2025b-0 iF")
	o := l.driverUp()
	require.NoError(t, o.err)
	assert.Contains(t, actions(o.changes), "repair "+phases.UnfinishedTarget)
	assert.Contains(t, h.packages(), "tzdata 2025b-0 ii")

	l, h = gpuLab(t)
	h.has("tzdata", "2025b-0 iF")
	h.write("/.fake/fail/postinst-tzdata-2025b-0", "")
	l.driverFails("dpkg can't finish packages of an earlier installation: dpkg: error processing package tzdata")
	assert.Equal(t, []string{"tzdata 2025b-0 iF"}, h.packages())
}

func TestAnInstallationThatWasCutOffIsUndoneWhereNoneIsWantedAnyMore(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*lab, *fakeHost){
		"keep": func(l *lab, _ *fakeHost) { l.driver(config.GPUDriver{}) },
		"none": func(l *lab, _ *fakeHost) { l.driver(config.GPUDriver{Policy: config.GPUDriverNone}) },
		"its SKU no longer has GPUs": func(l *lab, _ *fakeHost) {
			sku := l.conf.Layout.MachineSKU["gpu"]
			sku.GPU = nil
			l.conf.Layout.MachineSKU["gpu"] = sku
		},
		"GPUs were taken out": func(l *lab, h *fakeHost) {
			l.driver(config.GPUDriver{})
			require.NoError(t, os.RemoveAll(h.root+"/sys/bus/pci/devices"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, h := gpuLab(t)
			h.write(engine.StateDir+"/driver-change", "nvidia-smi - \nlibcuda1 - \nlibnvidia-ml1 - \n")
			h.write(engine.StateDir+"/owned", "package\tnvidia-smi\tcreated\npackage\tlibcuda1\tcreated\npackage\tlibnvidia-ml1\tcreated\n")
			h.has("nvidia-smi", "535.261.03-1 iU")
			h.has("libcuda1", "535.261.03-1 iF")
			change(l, h)
			o := l.driverUp()
			require.NoError(t, o.err, "%s", l.story(o))
			assert.Equal(t, []string{"undo " + phases.CutOffTarget}, actions(o.changes))
			assert.Empty(t, h.packages())
			assert.NotContains(t, h.read(engine.StateDir+"/owned"), "package\t")
			assert.Empty(t, l.driverUp().changes)
		})
	}
}

func TestAptMayNotTouchWhatIsntTheDrivers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, says string }{
		"remove":  {"Remv nvidia-legacy-390xx-driver [390.157-1]\n", "apt would remove nvidia-legacy-390xx-driver, which paictl hasn't installed"},
		"upgrade": {"Inst libc6 [2.36-9] (2.36-9+deb12u10 Debian:12.15/oldstable [amd64])\n", "need newer versions of packages that aren't the driver's: libc6"},
	} {
		t.Run(name, func(t *testing.T) {
			l, h := gpuLab(t)
			h.write("/.fake/removes", c.line)
			o := l.driverUp()
			require.Error(t, o.err)
			assert.Contains(t, l.story(o), c.says)
			assert.Contains(t, l.story(o), "no package was changed")
			assert.Empty(t, h.packages())
			assert.NotContains(t, h.read(engine.StateDir+"/owned"), "package\t")
		})
	}
}

func TestAGPUThatTheDriverDoesntSeeIsTold(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/fail/gpu-0000:0a:00.0", "")
	l.driverFails("the driver sees 1 of 2 GPUs")
}

func TestWithTheRepositoryAwayNoPackageChanges(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	h.write("/.fake/fail/repository", "") // the machine still has the repository's lists
	l.driverFails("can't be fetched: E: Failed to fetch")
	assert.Empty(t, h.packages())
	h.remove("/.fake/fail/repository")
	require.NoError(t, l.driverUp().err)
	assert.Equal(t, wholeDriver, h.packages())
}

// bundled puts the worker's driver packages into the lab's bundle, and disconnects the machine from the network.
func (l *lab) bundled(h *fakeHost, releases ...string) {
	l.t.Helper()
	dir := l.t.TempDir()
	for _, r := range releases {
		for _, name := range []string{"nvidia-kernel-dkms", "nvidia-smi", "libnvidia-cfg1", "libnvidia-ml1", "libcuda1"} {
			var more []string
			if name == "nvidia-smi" {
				more = []string{"Depends: libnvidia-cfg1 (= " + r + "-1)"}
			}
			bundletest.Deb(l.t, dir, name, r+"-1", "amd64", more...)
		}
	}
	bundletest.Deb(l.t, dir, "nvidia-persistenced", "535.171.04-1~deb12u1", "amd64")
	bundletest.Deb(l.t, dir, "linux-headers-6.1.0-fake", "6.1.140-1", "amd64")
	_, err := driver.Add(l.t.Context(), driver.Addition{Bundle: l.bundle.Dir(), Paths: []string{dir}, System: "debian12"})
	require.NoError(l.t, err)
	_, err = driver.Add(l.t.Context(), driver.Addition{Bundle: l.bundle.Dir(), Paths: []string{dir}, System: "debian13"})
	require.NoError(l.t, err)
	l.bundle, err = bundle.Open(l.bundle.Dir())
	require.NoError(l.t, err)
	// apt's state is from a time when the machine had a network. It lists a cached package that isn't in the bundle, and a driver that is no longer
	// available.
	h.write("/.fake/repository", "nvidia-modprobe 535.161.07-1~deb12u1\nnvidia-smi 535.274.02-1\nlibnvidia-ml1 535.274.02-1\nlibcuda1 535.274.02-1\nnvidia-kernel-dkms 535.274.02-1\n")
	h.write("/var/cache/apt/archives/nvidia-modprobe_535.161.07-1~deb12u1_amd64.deb", "its files\n")
	h.write("/.fake/fail/repository", "")
	h.write("/var/lib/apt/lists/deb.example.org_Packages", "")
	h.write("/etc/apt/sources.list.d/debian.sources", "")
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Source: config.GPUSourceBundle})
}

func (h *fakeHost) folder() string { return h.root + phases.DriverRepository }

func TestADriverIsInstalledFromTheBundleWithoutANetwork(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.bundled(h, "535.261.03", "535.247.01")
	l.forgetCalls()
	o := l.driverUp()
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, wholeDriver, h.packages())
	assert.Contains(t, h.loaded(), "535.261.03")
	assert.Contains(t, h.calls(), "apt-get update of paictl-driver.list")
	assert.NoDirExists(t, h.folder())
	assert.FileExists(t, h.root+"/var/lib/apt/lists/deb.example.org_Packages", "a link to it went, not the list")
	assert.FileExists(t, h.root+"/etc/apt/sources.list.d/debian.sources")
	for _, e := range o.events {
		if e.Kind == engine.EventProgress && e.Phase == phases.PhaseDriver {
			assert.Less(t, e.Total, int64(20_000), "one release, of one distribution")
		}
	}
	o = l.driverUp()
	require.NoError(t, o.err)
	assert.Empty(t, o.changes)

	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Source: config.GPUSourceBundle, Version: "535.247.01"})
	o = l.driverUp()
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Contains(t, actions(o.changes), "downgrade "+phases.DriverTarget)
	assert.Contains(t, h.loaded(), "535.247.01")
	assert.NoDirExists(t, h.folder())
	assert.NotContains(t, h.calls(), "apt-get update", "of the machine's sources none is asked, even if apt remembers no such release")
	require.NoError(t, l.down(t.Context(), false).err)
	assert.Empty(t, h.packages())
}

func TestABundleWithoutTheDriverSaysWhatToAdd(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.bundled(h, "535.261.03")
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Source: config.GPUSourceBundle, Version: "535.274.02"})
	o := l.driverUp()
	assert.ErrorAs(t, o.err, new(*engine.PreflightError))
	assert.Contains(t, l.story(o), "neither the bundle nor apt on the machine has packages of the driver 535.274.02")
	assert.Contains(t, l.story(o), "paictl bundle add-driver DIR --system debian12")

	// If neither the bundle nor the machine contains a required package, apt reports this before anything is changed.
	_, err := driver.Remove(driver.Removal{Bundle: l.bundle.Dir(), Names: []string{"libnvidia-cfg1"}})
	require.NoError(t, err)
	l.bundle, err = bundle.Open(l.bundle.Dir())
	require.NoError(t, err)
	l.driver(config.GPUDriver{Policy: config.GPUDriverInstall, Source: config.GPUSourceBundle})
	l.driverFails("apt can't install the driver from the bundle and the machine's repositories: E: Version '535.261.03-1' for 'libnvidia-cfg1' was not found", "add what is missing with paictl bundle add-driver")
	assert.Empty(t, h.packages())
	assert.DirExists(t, h.folder(), "a second try sends nothing again")

	l.driver(config.GPUDriver{})
	o = l.driverUp()
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"delete " + phases.BroughtTarget}, actions(o.changes))
	assert.NoDirExists(t, h.folder())
}

func TestWhatIsBroughtNeedsRoomAndHasWhatMayHaveToBePutBack(t *testing.T) {
	t.Parallel()
	l, h := gpuLab(t)
	l.bundled(h, "535.261.03", "535.247.01")
	f := layout.Facts{OSID: "debian", OSVersion: "12", Kernel: "6.1.0-fake", Arch: "amd64", PCIGPUs: []layout.PCIDevice{{Vendor: "10de", Device: "2330"}}}
	const nothing = "gpus\t1\napt\tyes\ncandidate\tnvidia-modprobe\t535.161.07-1~deb12u1\n"
	const others = nothing + "package\tlibcuda1\t535.247.01-1\tii \n"
	for _, c := range []struct {
		answer string
		extra  []string
	}{{nothing, nil}, {others, []string{"libcuda1 535.247.01-1"}}, {others + "ours\tlibcuda1\tcreated\n", nil}} {
		a, err := answer.Parse([]byte(c.answer))
		require.NoError(t, err)
		spec := l.spec()
		p := phases.NewDriver(spec.Fresh())
		brought, err := p.Packages(p.Decide(f, a))
		require.NoError(t, err)
		var names []string
		var size int64
		for _, x := range brought.Artifacts() {
			names, size = append(names, x.Name+" "+x.Version), size+x.Size
		}
		want := append([]string{
			"libcuda1 535.261.03-1", "libnvidia-cfg1 535.261.03-1", "libnvidia-ml1 535.261.03-1", "linux-headers-6.1.0-fake 6.1.140-1",
			"nvidia-kernel-dkms 535.261.03-1", "nvidia-persistenced 535.171.04-1~deb12u1", "nvidia-smi 535.261.03-1",
		}, c.extra...)
		assert.ElementsMatch(t, want, names)

		node, err := spec.Node("w1")
		require.NoError(t, err)
		room := func(f layout.Facts, sections map[string]answer.Answer) int64 {
			h := &preflight.Host{Facts: f}
			phases.AddPhaseFacts(spec.Fresh(), h, node, sections)
			for _, d := range h.Needs {
				if d.Path == engine.StateDir {
					return d.Bytes
				}
			}
			return 0
		}
		with := room(f, map[string]answer.Answer{phases.PhaseDriver: a})
		without := f
		without.PCIGPUs = nil
		assert.Equal(t, size, with-room(without, nil))
	}
}

// bringsPackages returns a story that copies a driver's packages to a machine that doesn't have them.
func bringsPackages(t *testing.T) (story, *fakeHost) {
	t.Helper()
	l, h := gpuLab(t)
	l.bundled(h, "535.261.03")
	return story{
		lab: l, run: l.driverUp, between: l.rest,
		check: func(*crash, *outcome) {
			o := l.driverUp()
			require.NoError(t, o.err)
			assert.Empty(t, o.changes)
			assert.Equal(t, wholeDriver, h.packages())
			assert.NoDirExists(t, h.folder())
			assert.NoFileExists(t, h.root+engine.StateDir+"/driver-change")
		},
	}, h
}

// TestBringingPackagesMayBeCutOffAnywhere also interrupts the steps inside apt and dpkg.
func TestBringingPackagesMayBeCutOffAnywhere(t *testing.T) {
	t.Parallel()
	cutOff(t, 4, 8, func(t *testing.T) story {
		s, _ := bringsPackages(t)
		return s
	})
}

func TestPackagesThatWereBroughtBeforeACrashAreNotSentAgain(t *testing.T) {
	t.Parallel()
	clean, _ := bringsPackages(t)
	all := &crash{breaks: countOnly}
	require.NoError(t, clean.cut(all).err)
	kinds := all.commandKinds()
	slices.Reverse(kinds)
	last := len(kinds) - slices.Index(kinds, kindUpload)

	s, h := bringsPackages(t)
	s.cut(&crash{at: last + 1, when: beforeCommand})
	s.between()
	require.Empty(t, h.packages())
	require.NotEmpty(t, h.read(phases.DriverRepository+"/nvidia-smi_535.261.03-1_amd64.deb"))
	o := s.run()
	require.NoError(t, o.err)
	for _, e := range o.events {
		assert.NotEqual(t, engine.EventProgress, e.Kind)
	}
	s.check(nil, o)
}
