package layout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
)

// fakeMachine has a folder that replaces /, and a folder of stub commands.
type fakeMachine struct {
	t    *testing.T
	root string
	bin  string
}

func newFakeMachine(t *testing.T) *fakeMachine {
	t.Helper()
	dir := t.TempDir()
	m := &fakeMachine{t: t, root: filepath.Join(dir, "root"), bin: filepath.Join(dir, "bin")}
	require.NoError(t, os.MkdirAll(m.bin, 0o755))
	m.file("/proc/sys/kernel/hostname", "gpu-01\n")
	m.command("uname", "echo x86_64")
	m.command("date", "echo 1700000000123")
	m.command("id", "echo 1000")
	m.command("sudo", "echo 'sudo: a password is required' >&2; exit 1")
	m.command("df", "printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\\n/dev/sda1 1000 400 600 40%% /\\n/dev/sda1 1000 400 600 40%% /var/lib\\n'")
	m.command("ip", "printf '2: eth0    inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0\\n3: ib0 inet 10.9.0.5/16 scope global ib0\\n'")
	for _, absent := range []string{"nvidia-smi", "resolvectl", "timedatectl", "chronyc", "lscpu"} {
		m.command(absent, "exit 127")
	}
	return m
}

func (m *fakeMachine) file(path, content string) {
	p := filepath.Join(m.root, path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(m.t, os.WriteFile(p, []byte(content), 0o644))
}

func (m *fakeMachine) command(name, body string) {
	runnable.Write(m.t, filepath.Join(m.bin, name), "#!/bin/sh\n"+body+"\n")
}

func (m *fakeMachine) pci(address, vendor, device, class string) {
	for file, v := range map[string]string{"vendor": vendor, "device": device, "class": class} {
		m.file("/sys/bus/pci/devices/"+address+"/"+file, v+"\n")
	}
}

func (m *fakeMachine) answer() []byte {
	cmd := exec.CommandContext(m.t.Context(), "/bin/sh")
	cmd.Stdin = strings.NewReader(DiscoverScript())
	cmd.Env = []string{"PATH=" + m.bin + ":/usr/bin:/bin", "PAICTL_ROOT=" + m.root}
	out, err := cmd.Output()
	require.NoError(m.t, err)
	return out
}

func (m *fakeMachine) facts() Facts {
	f, err := ParseFacts(m.answer())
	require.NoError(m.t, err)
	return f
}

func TestTheScriptTellsEverythingAboutAGPUMachine(t *testing.T) {
	m := newFakeMachine(t)
	m.file("/proc/sys/kernel/osrelease", "5.15.0-91-generic\n")
	m.file("/etc/os-release", "PRETTY_NAME=\"Ubuntu 22.04.3 LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"22.04\"\nID=ubuntu")
	m.file("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
	m.file("/sys/class/dmi/id/product_uuid", "4C4C4544-0042\n")
	m.file("/sys/devices/system/cpu/online", "0-63,128-191\n")
	m.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC  7763 64-Core Processor\n\n")
	m.file("/proc/meminfo", "MemTotal:       528224736 kB\nMemFree: 1 kB\nSwapTotal:      2097148 kB\n")
	for name, f := range map[string][3]string{"nvme0n1": {"3750748848", "0", "0"}, "sda": {"1875385008", "1", "0"}, "sdb": {"100", "1", "1"}, "loop0": {"8", "0", "0"}} {
		m.file("/sys/block/"+name+"/size", f[0]+"\n")
		m.file("/sys/block/"+name+"/queue/rotational", f[1]+"\n")
		m.file("/sys/block/"+name+"/removable", f[2]+"\n")
	}
	m.file("/proc/net/route", "Iface\tDestination\tGateway\nib0\t0000090A\t0\neth0\t00000000\t0100000A\n")
	m.file("/run/systemd/resolve/resolv.conf", "# comment nameserver 9.9.9.9\nnameserver 10.0.0.53\nnameserver 127.0.0.53\nnameserver 10.0.0.54\n")
	m.file("/etc/resolv.conf", "nameserver 127.0.0.53\n")
	m.file("/run/systemd/timesync/synchronized", "")
	m.file("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
	m.file("/run/containerd/containerd.sock", "")
	m.command("dockerd", "true")
	m.pci("0000:07:00.0", "0x10de", "0x20b2", "0x030200")
	m.pci("0000:08:00.0", "0x10de", "0x20b2", "0x030200")
	m.pci("0000:09:00.0", "0x1a03", "0x2000", "0x030000")
	m.pci("0000:0a:00.0", "0x15b3", "0x101b", "0x020700")
	m.command("nvidia-smi", "printf '0, NVIDIA A100-SXM4-80GB, 81920, 535.104.05, GPU-1\\n1, NVIDIA A100-SXM4-80GB, 81920, 535.104.05, GPU-2\\n'")
	m.file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
	m.file("/sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n")
	m.file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")

	f := m.facts()
	assert.Equal(t, Facts{
		Hostname: "gpu-01", OSID: "ubuntu", OSVersion: "22.04", OSName: "Ubuntu 22.04.3 LTS", Kernel: "5.15.0-91-generic", Arch: "amd64",
		VCores: 128, CPUModel: "AMD EPYC 7763 64-Core Processor", MemKiB: 528224736, SwapKiB: 2097148,
		Disks:       []BlockDevice{{"nvme0n1", 3750748848 * 512, "nvme"}, {"sda", 1875385008 * 512, "hdd"}},
		Filesystems: []Filesystem{{"/", 1000, 600, "/dev/sda1"}, {"/var/lib", 1000, 600, "/dev/sda1"}},
		Addresses:   []Address{{"eth0", "10.0.0.5/24"}, {"ib0", "10.9.0.5/16"}}, DefaultLink: "eth0",
		DNS:  []string{"10.0.0.53", "10.0.0.54"},
		Time: time.UnixMilli(1700000000123).UTC(), TimeSource: "systemd-timesyncd", TimeSynced: "yes",
		Cgroup: "v2", Runtimes: []Runtime{{"containerd", "running"}, {"docker", "installed"}},
		PCIGPUs:    []PCIDevice{{"0000:07:00.0", "10de", "20b2"}, {"0000:08:00.0", "10de", "20b2"}},
		NVIDIA:     []NVIDIAGPU{{"NVIDIA A100-SXM4-80GB", 81920, "GPU-1"}, {"NVIDIA A100-SXM4-80GB", 81920, "GPU-2"}},
		Driver:     "535.104.05",
		Infiniband: []InfinibandPort{{"mlx5_0", "InfiniBand", "200 Gb/sec (4X HDR)", "ACTIVE"}},
		UID:        1000, Sudo: "password", MachineID: "0123456789abcdef0123456789abcdef", ProductUUID: "4c4c4544-0042",
	}, f)
	assert.Equal(t, &GPU{Type: "NVIDIA-A100-SXM4-80GB", Count: 2, Driver: "535.104.05"}, f.GPU())
}

func TestTheScriptTellsWhatADriverWouldMeet(t *testing.T) {
	const secureBoot = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	machine := func(prepare func(*fakeMachine)) Facts {
		m := newFakeMachine(t)
		m.file("/proc/sys/kernel/osrelease", "6.1.0-37-amd64\n")
		m.pci("0000:07:00.0", "0x10de", "0x2330", "0x030200")
		prepare(m)
		return m.facts()
	}
	bare := machine(func(*fakeMachine) {})
	assert.Empty(t, bare.NVSwitches)
	assert.Empty(t, bare.DriverOrigin+bare.SecureBoot)
	assert.False(t, bare.Nouveau || bare.KernelHeaders)
	assert.Len(t, bare.NVIDIADevices(), 1)

	full := machine(func(m *fakeMachine) {
		m.pci("0000:05:00.0", "0x10de", "0x22a3", "0x068000")
		m.pci("0000:04:00.0", "0x1022", "0x1480", "0x068000") // another maker's bridge
		m.file("/var/lib/dpkg/info/libnvidia-ml1:amd64.list", "")
		m.file(secureBoot, "\x06\x00\x00\x00\x01")
		m.file("/sys/module/nouveau/refcnt", "2\n")
		m.file("/lib/modules/6.1.0-37-amd64/build/Makefile", "")
	})
	assert.Equal(t, []PCIDevice{{"0000:05:00.0", "10de", "22a3"}}, full.NVSwitches)
	assert.Len(t, full.PCIGPUs, 1, "a switch is no GPU")
	assert.Equal(t, "package", full.DriverOrigin)
	assert.Equal(t, "on", full.SecureBoot)
	assert.True(t, full.Nouveau)
	assert.True(t, full.KernelHeaders)

	switches := func(m *fakeMachine) {
		m.pci("0000:05:00.0", "0x15b3", "0x1021", "0x020700")
		m.file("/sys/bus/pci/devices/0000:05:00.0/vpd", "\x82\x14\x00ConnectX-7 SW_MNG V2\x00")
		m.pci("0000:06:00.0", "0x15b3", "0x1021", "0x020700")
		m.file("/sys/bus/pci/devices/0000:06:00.0/vpd", "\x82\x14\x00ConnectX-7 HHHL\x00")
		for name, address := range map[string]string{"mlx5_0": "0000:05:00.0", "mlx5_1": "0000:06:00.0"} {
			m.file("/sys/class/infiniband/"+name+"/ports/1/link_layer", "InfiniBand\n")
			require.NoError(t, os.Symlink("../../../bus/pci/devices/"+address, m.root+"/sys/class/infiniband/"+name+"/device"))
		}
	}
	blackwell := machine(switches)
	assert.Equal(t, []PCIDevice{{"0000:05:00.0", "15b3", "1021"}}, blackwell.NVSwitches, "switches of NVLink 5 are behind cards that say so")
	assert.True(t, blackwell.NVLink5())
	assert.False(t, full.NVLink5())
	require.Len(t, blackwell.Infiniband, 1, "such a card is none for jobs")
	assert.Equal(t, "mlx5_1", blackwell.Infiniband[0].Name)

	for file, want := range map[string]string{
		"/var/lib/dpkg/info/libnvidia-tesla-470-ml1:amd64.list":                 "package",
		"/var/lib/dpkg/info/libnvidia-compute-535-server:amd64.list":            "package",
		"/var/lib/dpkg/info/nvidia-dkms-570-open.list":                          "package",
		"/var/lib/dpkg/info/linux-modules-nvidia-535-server-6.8.0-generic.list": "package",
		"/var/lib/dpkg/info/libnvidia-container1:amd64.list":                    "",
		"/usr/bin/nvidia-uninstall":                                             "runfile",
	} {
		assert.Equal(t, want, machine(func(m *fakeMachine) { m.file(file, "") }).DriverOrigin, file)
	}
	off := machine(func(m *fakeMachine) { m.file(secureBoot, "\x06\x00\x00\x00\x00") })
	assert.Equal(t, "off", off.SecureBoot)

	m := newFakeMachine(t)
	m.file(secureBoot, "\x06\x00\x00\x00\x01")
	m.file("/sys/module/nouveau/refcnt", "2\n")
	m.file("/usr/bin/nvidia-uninstall", "")
	none := m.facts()
	assert.Empty(t, none.SecureBoot+none.DriverOrigin, "without a GPU of NVIDIA nothing more is asked")
	assert.False(t, none.Nouveau)
}

func TestTheScriptGoesOnWhereEverythingIsMissing(t *testing.T) {
	m := newFakeMachine(t)
	for _, broken := range []string{"df", "ip", "sudo", "id"} {
		m.command(broken, "exit 3")
	}
	m.command("date", "[ \"$1\" = +%s ] && echo 1700000000 || echo 1700000000%3N") // busybox doesn't support %N
	f := m.facts()
	assert.Equal(t, "gpu-01", f.Hostname)
	assert.Equal(t, int64(1700000000), f.Time.Unix())
	assert.Nil(t, f.GPU())
	assert.Equal(t, "unknown", f.OS())
}

func TestDNSIsNeverALocalStub(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		ctl   string
		want  []string
	}{
		"plain resolv.conf":        {files: map[string]string{"/etc/resolv.conf": "search x\nnameserver 10.1.1.1\n"}, want: []string{"10.1.1.1"}},
		"no newline at the end":    {files: map[string]string{"/etc/resolv.conf": "nameserver 10.1.1.1"}, want: []string{"10.1.1.1"}},
		"a comment with a server":  {files: map[string]string{"/etc/resolv.conf": "# nameserver 9.9.9.9\nnameserver 10.1.1.1\n"}, want: []string{"10.1.1.1"}},
		"no nameserver":            {files: map[string]string{"/etc/resolv.conf": "search x\n"}},
		"no file":                  {},
		"stub, asks resolvectl":    {files: map[string]string{"/etc/resolv.conf": "nameserver 127.0.0.53\n"}, ctl: "printf 'Global:\\nLink 2 (eth0): 10.0.0.53 10.0.0.54\\n'", want: []string{"10.0.0.53", "10.0.0.54"}},
		"loopback of IPv6":         {files: map[string]string{"/etc/resolv.conf": "nameserver ::1\nnameserver fd00::53\n"}, want: []string{"fd00::53"}},
		"an invalid one":           {files: map[string]string{"/etc/resolv.conf": "nameserver banana\nnameserver 10.1.1.1\n"}, want: []string{"10.1.1.1"}},
		"dnsmasq on the loopback":  {files: map[string]string{"/etc/resolv.conf": "nameserver 127.0.1.1\n"}},
		"tabs instead of a space":  {files: map[string]string{"/etc/resolv.conf": "nameserver\t10.1.1.1\n"}, want: []string{"10.1.1.1"}},
		"the same server repeated": {files: map[string]string{"/etc/resolv.conf": "nameserver 10.1.1.1\nnameserver 10.1.1.1\n"}, want: []string{"10.1.1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFakeMachine(t)
			for p, text := range c.files {
				m.file(p, text)
			}
			if c.ctl != "" {
				m.command("resolvectl", c.ctl)
			}
			assert.Equal(t, c.want, m.facts().DNS)
		})
	}
}

func TestGPUsAreFoundWithoutADriver(t *testing.T) {
	m := newFakeMachine(t)
	m.pci("0000:01:00.0", "0x10de", "0x2330", "0x030200")
	m.pci("0000:02:00.0", "0x10de", "0xffff", "0x030200")
	m.pci("0000:03:00.0", "0x10de", "0x2330", "0x030200")
	m.command("nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9")
	f := m.facts()
	assert.Equal(t, &GPU{Type: "NVIDIA-H100-80GB-HBM3", Count: 3}, f.GPU())
	assert.Contains(t, f.DriverError, "could not communicate")
}

func TestTheDriversOwnFilesAreReadWithoutNvidiaSMI(t *testing.T) {
	m := newFakeMachine(t)
	m.file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n")
	m.file("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA A10\nIRQ: 1\n")
	assert.Equal(t, &GPU{Type: "NVIDIA-A10", Count: 1, Driver: "535.104.05"}, m.facts().GPU())
}

func TestAMDGPUsAreToldFromScreens(t *testing.T) {
	m := newFakeMachine(t)
	m.pci("0000:01:00.0", "0x1002", "0x74a1", "0x120000")
	m.pci("0000:02:00.0", "0x1002", "0x1234", "0x030000")
	assert.Equal(t, &GPU{Type: "AMD-Instinct-MI300X", Count: 1}, m.facts().GPU())

	workstation := newFakeMachine(t)
	workstation.pci("0000:03:00.0", "0x1002", "0x7448", "0x030000") // a card that can do both
	workstation.pci("0000:2a:00.0", "0x1002", "0x164e", "0x030000") // the display adapter in the CPU
	f := workstation.facts()
	assert.Equal(t, &GPU{Type: "AMD-Radeon-Pro-W7900", Count: 1}, f.GPU())
	assert.Equal(t, "1x-radeon-pro-w7900", skuName(f))
}

func TestAModelTellsTheVendor(t *testing.T) {
	for model, want := range map[string][2]bool{ // whether the model is NVIDIA's, and AMD's
		"A100": {true, false}, "NVIDIA-H100": {true, false}, "AMD-Instinct-MI300X": {false, true}, "Radeon-Pro-W7900": {false, true}, "instinct-mi250": {false, true},
		"pci-1002-75a9": {false, true}, "Gaudi2": {false, false}, "pci-1da3-1020": {false, false},
	} {
		g := &GPU{Type: model}
		assert.Equal(t, want, [2]bool{g.NVIDIA(), g.AMD()}, model)
	}
}

func TestSudoRightsAreToldApart(t *testing.T) {
	for name, c := range map[string]struct{ id, sudo, want string }{
		"root":         {"echo 0", "exit 1", "root"},
		"free":         {"echo 1000", "exit 0", "free"},
		"password":     {"echo 1000", "echo 'sudo: a password is required' >&2; exit 1", "password"},
		"sudo-rs":      {"echo 1000", "echo 'sudo: interactive authentication is required' >&2; exit 1", "password"},
		"no sudo rule": {"echo 1000", "echo 'Sorry, user x may not run sudo on y.' >&2; exit 1", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFakeMachine(t)
			m.command("id", c.id)
			m.command("sudo", c.sudo)
			assert.Equal(t, c.want, m.facts().Sudo)
		})
	}
}

func TestHostileValuesStayValues(t *testing.T) {
	m := newFakeMachine(t)
	m.file("/proc/sys/kernel/hostname", "evil\tsudo\troot\r\x1b[31m\nend\tok\n")
	m.file("/etc/os-release", "ID=$(reboot)\nVERSION_ID=`id`\nPRETTY_NAME=\"a\xff\x00b\"\n")
	f := m.facts()
	assert.Equal(t, "evil sudo root[31m", f.Hostname)
	assert.Equal(t, "$(reboot)", f.OSID)
	assert.Equal(t, "password", f.Sudo)
}

func TestAnswersThatAreNoneAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"nothing":           {"", "not that of the discovery script"},
		"a shell's message": {"This account is not available.\n", `not that of the discovery script (first line: "This account is not available.")`},
		"cut off":           {"paictl-facts\t1\nhostname\tx\n", "ended too early"},
		"no host name":      {"paictl-facts\t1\nend\tok\n", "did not report its host name"},
		"a later protocol":  {"paictl-facts\t2\nend\tok\n", `protocol "2"`},
		"endless":           {strings.Repeat("x", 2<<20), "which is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseFacts([]byte(c.answer))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestAnAnswerBehindALoginBannerIsRead(t *testing.T) {
	f, err := ParseFacts([]byte("Welcome!\nhostname\tfake\npaictl-facts\t1\nhostname\treal\nend\tok\n"))
	require.NoError(t, err)
	assert.Equal(t, "real", f.Hostname)
}

func TestTheScriptStartsFewPrograms(t *testing.T) {
	// On 50 hosts, discovery should take at most 1.5 times as long as a bare SSH command. Each program that starts on a host adds to the time.
	m := newFakeMachine(t)
	log := filepath.Join(t.TempDir(), "started")
	for _, name := range []string{"uname", "date", "id", "df", "ip", "sudo", "grep", "sed", "awk", "cat", "tr", "cut", "head"} {
		m.command(name, "echo "+name+" >>"+log+"; echo 1")
	}
	m.answer()
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(b), "\n"), 8, "%s", b)
}

func FuzzParseFacts(f *testing.F) {
	f.Add([]byte("paictl-facts\t1\nhostname\tx\ncpus\t0-3\ndisk\tsda 100 1\nnvidia-smi\t0, A, 1, 2, 3\nend\tok\n"))
	f.Add([]byte("paictl-facts\t1\ncpus\t0-99999999\nmemory-kib\t-1\nend\tok\nhostname\ta"))
	f.Add([]byte("infiniband\t|||"))
	f.Fuzz(func(t *testing.T, data []byte) {
		facts, err := ParseFacts(data)
		if err != nil {
			return
		}
		skus, assigned := SKUs(map[string]Facts{"a": facts, "b": facts})
		require.Len(t, skus, 1)
		require.Equal(t, assigned["a"], assigned["b"])
	})
}

func TestNoProgramReadsTheRestOfTheScript(t *testing.T) {
	m := newFakeMachine(t)
	m.command("date", "cat >/dev/null; echo 1700000000123")
	m.command("ip", "cat >/dev/null")
	assert.Equal(t, "gpu-01", m.facts().Hostname)
}
