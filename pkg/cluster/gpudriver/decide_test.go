package gpudriver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/layout"
)

// TestNoCardLacksADriver checks that the table of chips covers all GPUs whose names discovery recognizes.
func TestNoCardLacksADriver(t *testing.T) {
	require.NotEmpty(t, layout.KnownNVIDIA())
	for _, device := range layout.KnownNVIDIA() {
		g, ok := GenerationOf(device)
		require.True(t, ok, "10de:%s has no generation", device)
		assert.True(t, slices.ContainsFunc(Branches(), func(b Branch) bool { return len(b.kinds([]Generation{g}, "")) > 0 }), "no branch serves %s (10de:%s)", g, device)
	}
}

func TestCardsHaveTheGenerationOfTheirChip(t *testing.T) {
	for device, want := range map[string]Generation{
		"102d": Kepler, "17fd": Maxwell, "15f8": Pascal, "1b38": Pascal, "1db6": Volta, "1eb8": Turing, "20b2": Ampere, "2204": Ampere, "2236": Ampere,
		"2330": Hopper, "2335": Hopper, "2342": Hopper, "26b9": Ada, "27b8": Ada, "2901": Blackwell, "2b85": Blackwell,
	} {
		g, ok := GenerationOf(device)
		assert.True(t, ok, device)
		assert.Equal(t, want, g, device)
	}
	for _, odd := range []string{"", "xyz", "10de:2330", "06fd", "ffff"} {
		_, ok := GenerationOf(odd)
		assert.False(t, ok, odd)
	}
}

func TestTheTableOfPackagesIsOfKnownBranches(t *testing.T) {
	for _, s := range sets() {
		for _, n := range s.branches {
			i := slices.IndexFunc(Branches(), func(b Branch) bool { return b.Number == n })
			require.GreaterOrEqual(t, i, 0, "%d", n)
			b := Branches()[i]
			for _, kind := range []string{ModuleOpen, ModuleClosed} {
				serves := map[string]Serves{ModuleOpen: b.Open, ModuleClosed: b.Closed}[kind]
				if s.dkms[kind] != "" {
					assert.NotZero(t, serves, "%d has no %s module", n, kind)
				}
			}
		}
		assert.NotEmpty(t, s.userland)
	}
	names := Names(SourceDistribution)
	assert.Contains(t, names, "linux-modules-nvidia-535-server-%k")
	assert.Contains(t, names, "linux-headers-%k")
	assert.NotContains(t, names, "nvidia-driver-cuda")
	assert.Contains(t, Names(SourceBundle), "nvidia-driver-cuda")
	assert.NotContains(t, strings.Join(names, " "), "%b")
}

// bookworm returns a Debian 12 machine with two H100 GPUs and no driver, whose apt can install Debian's packages.
func bookworm() Machine {
	m := Machine{System: "debian12", Kernel: "6.1.0-37-amd64", Arch: "amd64", Devices: []string{"2330", "2330"}, Apt: true, Candidates: map[string][]string{}}
	m.offer("535.261.03-1", "nvidia-smi", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms", "nvidia-open-kernel-dkms")
	m.offer("470.256.02-1~deb12u1", "nvidia-tesla-470-smi", "libnvidia-tesla-470-ml1", "libnvidia-tesla-470-cuda1", "libnvidia-tesla-470-cfg1", "nvidia-tesla-470-kernel-dkms")
	m.offer("535.171.04-1~deb12u1", "nvidia-persistenced")
	m.offer("535.161.07-1~deb12u1", "nvidia-modprobe")
	m.offer("6.1.140-1", "linux-headers-6.1.0-37-amd64")
	return m
}

func (m *Machine) offer(version string, names ...string) {
	for _, n := range names {
		m.Candidates[n] = append(m.Candidates[n], version)
	}
}

func jammy() Machine {
	m := Machine{System: "ubuntu22.04", Kernel: "6.8.0-60-generic", Arch: "amd64", Devices: []string{"20b2"}, NVSwitches: 6, Apt: true, Headers: true, Candidates: map[string][]string{}}
	for _, v := range []string{"550.144.03-0ubuntu0.22.04.1", "550.120-0ubuntu0.22.04.1"} {
		m.offer(v, "libnvidia-compute-550-server", "nvidia-utils-550-server", "nvidia-compute-utils-550-server", "nvidia-dkms-550-server")
	}
	m.offer("550.120-0ubuntu0.22.04.1", "nvidia-fabricmanager-550")
	return m
}

func packages(p Plan) string {
	var out []string
	for _, x := range p.Packages {
		out = append(out, strings.TrimSuffix(x.Name+"="+x.Version, "="))
	}
	return strings.Join(out, " ")
}

func TestADriverIsChosenForTheMachine(t *testing.T) {
	for _, c := range []struct {
		name string
		m    func() Machine
		want Want
		plan string // branch, module, packages
	}{
		{"Debian's own, with headers", bookworm, Want{}, "535 closed nvidia-smi=535.261.03-1 libnvidia-ml1=535.261.03-1 libcuda1=535.261.03-1 nvidia-kernel-dkms=535.261.03-1 nvidia-persistenced nvidia-modprobe linux-headers-6.1.0-37-amd64"},
		{"the open module", bookworm, Want{Module: ModuleOpen}, "535 open nvidia-smi=535.261.03-1 libnvidia-ml1=535.261.03-1 libcuda1=535.261.03-1 nvidia-open-kernel-dkms=535.261.03-1 nvidia-persistenced nvidia-modprobe linux-headers-6.1.0-37-amd64"},
		{"an old card has the old branch", func() Machine {
			m := bookworm()
			m.Devices, m.Headers = []string{"102d"}, true
			return m
		}, Want{}, "470 closed nvidia-tesla-470-smi=470.256.02-1~deb12u1 libnvidia-tesla-470-ml1=470.256.02-1~deb12u1 libnvidia-tesla-470-cuda1=470.256.02-1~deb12u1 libnvidia-tesla-470-cfg1=470.256.02-1~deb12u1 nvidia-tesla-470-kernel-dkms=470.256.02-1~deb12u1 nvidia-persistenced nvidia-modprobe"},
		{"mixed cards have a branch that serves both", func() Machine {
			m := bookworm()
			m.Devices, m.Headers = []string{"102d", "20b2"}, true
			return m
		}, Want{}, "470 closed nvidia-tesla-470-smi=470.256.02-1~deb12u1 libnvidia-tesla-470-ml1=470.256.02-1~deb12u1 libnvidia-tesla-470-cuda1=470.256.02-1~deb12u1 libnvidia-tesla-470-cfg1=470.256.02-1~deb12u1 nvidia-tesla-470-kernel-dkms=470.256.02-1~deb12u1 nvidia-persistenced nvidia-modprobe"},
		{"the fabric manager is of the driver's release", jammy, Want{}, "550 closed libnvidia-compute-550-server=550.120-0ubuntu0.22.04.1 nvidia-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-compute-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-fabricmanager-550=550.120-0ubuntu0.22.04.1 nvidia-dkms-550-server=550.120-0ubuntu0.22.04.1"},
		{"a signed module is preferred to a built one", func() Machine {
			m := jammy()
			m.NVSwitches, m.Headers, m.SecureBoot = 0, false, true
			m.offer("6.8.0-60.63~22.04.1", "linux-modules-nvidia-550-server-6.8.0-60-generic")
			return m
		}, Want{}, "550 closed libnvidia-compute-550-server=550.144.03-0ubuntu0.22.04.1 nvidia-utils-550-server=550.144.03-0ubuntu0.22.04.1 nvidia-compute-utils-550-server=550.144.03-0ubuntu0.22.04.1 linux-modules-nvidia-550-server-6.8.0-60-generic"},
		{"a signed module is of the newest release, and an older one that is asked for is built", func() Machine {
			m := jammy()
			m.NVSwitches = 0
			m.offer("6.8.0-60.63~22.04.1", "linux-modules-nvidia-550-server-6.8.0-60-generic")
			return m
		}, Want{Version: "550.120"}, "550 closed libnvidia-compute-550-server=550.120-0ubuntu0.22.04.1 nvidia-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-compute-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-dkms-550-server=550.120-0ubuntu0.22.04.1"},
		{"what is already installed is gone on with", func() Machine {
			m := jammy()
			m.NVSwitches, m.Userland = 0, "550.120"
			m.Installed = map[string]string{"libnvidia-compute-550-server": "550.120-0ubuntu0.22.04.1"}
			return m
		}, Want{}, "550 closed libnvidia-compute-550-server=550.120-0ubuntu0.22.04.1 nvidia-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-compute-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-dkms-550-server=550.120-0ubuntu0.22.04.1"},
		{"NVIDIA's own, open from 560 on", func() Machine {
			m := bookworm()
			m.Headers = true
			m.offer("580.65.06-1", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms", "nvidia-kernel-dkms")
			return m
		}, Want{Source: SourceNVIDIA}, "580 open nvidia-driver-cuda=580.65.06-1 nvidia-persistenced=580.65.06-1 nvidia-kernel-open-dkms=580.65.06-1"},
		{"Volta has no open module", func() Machine {
			m := bookworm()
			m.Headers, m.Devices = true, []string{"1db6"}
			m.Candidates["nvidia-kernel-dkms"] = nil
			m.offer("580.65.06-1", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms", "nvidia-kernel-dkms")
			return m
		}, Want{Source: SourceNVIDIA}, "580 closed nvidia-driver-cuda=580.65.06-1 nvidia-persistenced=580.65.06-1 nvidia-kernel-dkms=580.65.06-1"},
		{"a release that works stays, a newer one or not", func() Machine {
			m := jammy()
			m.Module, m.Userland = "535.54.03", "535.54.03"
			return m
		}, Want{}, "535 kept"},
		{"another branch is asked for", func() Machine {
			m := jammy()
			m.NVSwitches, m.Module, m.Userland = 0, "535.54.03", "535.54.03"
			return m
		}, Want{Version: "550"}, "550 closed libnvidia-compute-550-server=550.144.03-0ubuntu0.22.04.1 nvidia-utils-550-server=550.144.03-0ubuntu0.22.04.1 nvidia-compute-utils-550-server=550.144.03-0ubuntu0.22.04.1 nvidia-dkms-550-server=550.144.03-0ubuntu0.22.04.1"},
		{"one release of it", func() Machine {
			m := jammy()
			m.NVSwitches = 0
			return m
		}, Want{Version: "550.120"}, "550 closed libnvidia-compute-550-server=550.120-0ubuntu0.22.04.1 nvidia-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-compute-utils-550-server=550.120-0ubuntu0.22.04.1 nvidia-dkms-550-server=550.120-0ubuntu0.22.04.1"},
		{"the bundle may hold anyone's", func() Machine {
			m := bookworm()
			m.Headers, m.Candidates = true, map[string][]string{}
			m.offer("570.133.20-1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced")
			return m
		}, Want{Source: SourceBundle}, "570 open nvidia-driver-cuda=570.133.20-1 nvidia-persistenced=570.133.20-1 nvidia-kernel-open-dkms=570.133.20-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.want
			if w.Source == "" {
				w.Source = SourceDistribution
			}
			p, fs := Decide(c.m(), w)
			require.Empty(t, fs)
			got := fmt.Sprintf("%d %s %s", p.Branch, p.Module, packages(p))
			if p.KeepsDriver {
				got = fmt.Sprintf("%d kept", p.Branch)
			}
			assert.Equal(t, c.plan, got)
		})
	}
}

func TestFindingsComeBeforeAnythingIsTouched(t *testing.T) {
	edit := func(m Machine, f func(*Machine)) Machine { f(&m); return m }
	for _, c := range []struct {
		name             string
		m                Machine
		want             Want
		id, says, remedy string
		warning          bool
	}{
		{name: "no headers", m: edit(bookworm(), func(m *Machine) { delete(m.Candidates, "linux-headers-6.1.0-37-amd64") }), id: "headers", says: "linux-headers-6.1.0-37-amd64", remedy: "boot"},
		{name: "Secure Boot", m: edit(bookworm(), func(m *Machine) { m.SecureBoot = true }), id: "secure-boot", says: "refuse", remedy: "mokutil"},
		{name: "nouveau under a display", m: edit(bookworm(), func(m *Machine) { m.Nouveau, m.Displays = true, []string{"Xorg"} }), id: "nouveau", says: "Xorg", remedy: "isolate"},
		{name: "the repository is unavailable", m: edit(bookworm(), func(m *Machine) { m.Candidates, m.Repository = nil, "Could not connect" }), id: "repository", says: "Could not connect", remedy: "proxy"},
		{name: "Debian without non-free", m: edit(bookworm(), func(m *Machine) { m.Candidates = nil }), id: "not-in-repository", says: "nvidia-smi of 535", remedy: "non-free"},
		{name: "a release that isn't there", m: bookworm(), want: Want{Version: "535.104.05"}, id: "not-in-repository", says: "535.104.05", remedy: "version"},
		{name: "a package of the set that isn't there", m: edit(bookworm(), func(m *Machine) { delete(m.Candidates, "libcuda1") }), want: Want{Version: "535"}, id: "not-in-repository", says: "libcuda1 of 535.261.03", remedy: "non-free"},
		{name: "NVIDIA's repository isn't known", m: bookworm(), want: Want{Source: SourceNVIDIA}, id: "not-in-repository", says: "nvidia-driver-cuda", remedy: "cuda-keyring"},
		{name: "Debian has no fabric manager", m: edit(bookworm(), func(m *Machine) { m.NVSwitches = 4 }), id: "not-in-repository", says: "fabric manager", remedy: "nvidia"},
		{name: "a runfile", m: edit(bookworm(), func(m *Machine) { m.Runfile = true }), id: "runfile", says: "runfile", remedy: "nvidia-uninstall"},
		{name: "no apt", m: edit(bookworm(), func(m *Machine) { m.Apt = false }), id: "package-manager", says: "apt", remedy: "keep"},
		{name: "another distribution", m: edit(bookworm(), func(m *Machine) { m.System = "rocky9" }), id: "system", says: "rocky9", remedy: "keep"},
		{name: "another architecture", m: edit(bookworm(), func(m *Machine) { m.Arch = "arm64" }), id: "system", says: "arm64", remedy: "keep"},
		{name: "a card too old for the branch", m: edit(bookworm(), func(m *Machine) { m.Devices = []string{"102d"} }), want: Want{Version: "535"}, id: "branch", says: "Kepler", remedy: "470"},
		{name: "a branch too old for the card", m: bookworm(), want: Want{Version: "470"}, id: "branch", says: "Hopper", remedy: "535"},
		{name: "a branch that no one knows", m: bookworm(), want: Want{Version: "999"}, id: "branch", says: "999", remedy: "535"},
		{name: "cards that no branch serves together", m: edit(bookworm(), func(m *Machine) { m.Devices = []string{"102d", "2330"} }), id: "mixed", says: "Kepler and Hopper", remedy: "one kind"},
		{name: "an open module for an old card", m: edit(bookworm(), func(m *Machine) { m.Devices = []string{"1db6"} }), want: Want{Module: ModuleOpen}, id: "module", says: "Volta", remedy: "auto"},
		{name: "a card that no one knows", m: edit(bookworm(), func(m *Machine) { m.Devices = []string{"ffff"} }), id: "unknown-gpu", says: "10de:ffff", remedy: "keep"},
		{name: "GPUs in use", m: edit(bookworm(), func(m *Machine) {
			m.Module, m.Userland, m.Users = "525.60.13", "525.60.13", []string{"python3 (pid 7)"}
		}), want: Want{Version: "535"}, id: "in-use", says: "python3", remedy: "stop"},
		{name: "a kernel that is too new", m: edit(bookworm(), func(m *Machine) { m.Kernel, m.Headers = "6.17.3+deb12-amd64", true }), id: "kernel", says: "6.16", remedy: "newer branch", warning: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.want
			if w.Source == "" {
				w.Source = SourceDistribution
			}
			p, fs := Decide(c.m, w)
			require.Len(t, fs, 1, "%v", p)
			assert.Equal(t, c.id, fs[0].ID)
			assert.Contains(t, fs[0].Message, c.says)
			assert.Contains(t, fs[0].Remedy, c.remedy)
			assert.Equal(t, c.warning, fs[0].Warning)
		})
	}
}

func TestDriversThatAreKeptAreLookedAt(t *testing.T) {
	for _, c := range []struct {
		name, module, userland, version string
		id                              string
	}{
		{"works", "535.104.05", "535.104.05", "", ""},
		{"works, and is new enough", "535.104.05", "535.104.05", "535", ""},
		{"works, and is older than asked for", "535.104.05", "535.104.05", "535.261.03", "old"},
		{"of an old branch", "460.32.03", "460.32.03", "", "old"},
		{"no driver", "", "", "", "missing"},
		{"libraries only", "", "535.104.05", "", "not-loaded"},
		{"module only", "535.104.05", "", "", "half"},
		{"updated, and not rebooted", "535.104.05", "550.120", "", "mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := CheckKept(Machine{Devices: []string{"20b2", "20b2"}, Module: c.module, Userland: c.userland}, Want{Version: c.version})
			if c.id == "" {
				assert.Empty(t, fs)
				return
			}
			require.Len(t, fs, 1)
			assert.Equal(t, c.id, fs[0].ID)
			assert.True(t, fs[0].Warning)
			assert.NotEmpty(t, fs[0].Remedy)
		})
	}
}

func TestSwitchesOfNVLink5NeedASubnetManager(t *testing.T) {
	m := bookworm()
	m.Headers, m.NVSwitches, m.NVLink5 = true, 4, true
	m.offer("580.65.06-1", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms", "nvidia-fabricmanager")
	m.offer("44.0-2", "infiniband-diags")
	_, fs := Decide(m, Want{Source: SourceNVIDIA, Version: "580"})
	require.Len(t, fs, 1)
	assert.Contains(t, fs[0].Message, "nvlsm")
	m.offer("2025.06.5-1", "nvlsm")
	p, fs := Decide(m, Want{Source: SourceNVIDIA})
	require.Empty(t, fs)
	assert.Equal(t, "nvidia-driver-cuda=580.65.06-1 nvidia-persistenced=580.65.06-1 nvidia-fabricmanager=580.65.06-1 nvidia-kernel-open-dkms=580.65.06-1 nvlsm infiniband-diags", packages(p))
	m.NVLink5 = false
	p, _ = Decide(m, Want{Source: SourceNVIDIA})
	assert.NotContains(t, packages(p), "nvlsm")
}

func TestReleasesAreComparedByNumber(t *testing.T) {
	assert.True(t, Older("535.54.03", "535.104.05"))
	assert.False(t, Older("535.104.05", "535"))
	assert.True(t, Older("470.256.02", "535"))
	assert.False(t, Older("535.104.05", "535.104.05"))
	assert.Equal(t, "535.261.03", Release("1:535.261.03-1~deb12u1"))
	assert.Equal(t, "550.120", Release("550.120-0ubuntu0.22.04.1"))
	assert.False(t, within("535.1", "53"))
	assert.True(t, newerKernel("6.18.44-fc", "6.15"))
	assert.False(t, newerKernel("6.1.0-37-amd64", "6.15"))
	assert.False(t, newerKernel("odd", "6.15"))
}
