package gpudriver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPackagesMakeDrivers(t *testing.T) {
	have := func(version string, names ...string) map[string][]string {
		out := map[string][]string{}
		for _, n := range names {
			out[n] = []string{version}
		}
		return out
	}
	with := func(m map[string][]string, name, version string) map[string][]string {
		m[name] = append(m[name], version)
		return m
	}
	nvidia := func() map[string][]string {
		return have("580.65.06-1", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms", "nvidia-kernel-dkms")
	}
	server := func() map[string][]string {
		return have("570.133.20-0ubuntu0.22.04.1", "libnvidia-compute-570-server", "nvidia-utils-570-server", "nvidia-compute-utils-570-server")
	}
	for name, c := range map[string]struct {
		system string
		have   map[string][]string
		want   Offer
	}{
		"NVIDIA's, whole": {"debian12", nvidia(), Offer{Release: "580.65.06", Of: SourceNVIDIA, Modules: []string{ModuleOpen, ModuleClosed}}},
		"with a fabric manager and headers": {"debian12", with(with(with(nvidia(), "nvidia-fabricmanager", "580.65.06-1"), "linux-headers-6.1.0-37-amd64", "6.1.140-1"), "linux-headers-amd64", "6.1.140-1"),
			Offer{Release: "580.65.06", Of: SourceNVIDIA, Modules: []string{ModuleOpen, ModuleClosed}, FabricManager: true, Headers: []string{"6.1.0-37-amd64"}}},
		"a fabric manager of another release": {"debian12", with(nvidia(), "nvidia-fabricmanager", "580.82.07-1"), Offer{Release: "580.65.06", Of: SourceNVIDIA, Modules: []string{ModuleOpen, ModuleClosed}}},
		"userland only": {"debian12", have("570.133.20-1", "nvidia-driver-cuda"),
			Offer{Release: "570.133.20", Of: SourceNVIDIA, Missing: []string{"nvidia-persistenced", "nvidia-kernel-open-dkms or nvidia-kernel-dkms"}}},
		"Ubuntu's, without a module": {"ubuntu22.04", server(),
			Offer{Release: "570.133.20", Of: SourceDistribution, Missing: []string{"nvidia-dkms-570-server-open or nvidia-dkms-570-server"}}},
		"Ubuntu's, signed": {"ubuntu22.04", with(server(), "linux-modules-nvidia-570-server-open-5.15.0-140-generic", "5.15.0-140.150"),
			Offer{Release: "570.133.20", Of: SourceDistribution, Modules: []string{ModuleOpen}, Signed: []string{"5.15.0-140-generic"}}},
		"Debian's, without what its release names otherwise": {"debian12", have("535.261.03-1", "nvidia-smi", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms"),
			Offer{Release: "535.261.03", Of: SourceDistribution, Modules: []string{ModuleClosed}, Missing: []string{"nvidia-persistenced", "nvidia-modprobe"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Offers(c.system, c.have)
			require.Len(t, got, 1)
			c.want.System, c.want.Packages = c.system, got[0].Packages
			assert.Equal(t, c.want, got[0])
		})
	}
	assert.Empty(t, Offers("debian12", have("1", "dkms", "linux-headers-6.1.0-37-amd64")))
	assert.Empty(t, Offers("debian12", server()), "another distribution's")
	two := Offers("debian12", with(nvidia(), "nvidia-driver-cuda", "570.133.20-1"))
	require.Len(t, two, 2)
	assert.Equal(t, "580.65.06", two[0].Release, "the newest first")
}

func TestABundlesPackagesGoBeforeThoseThatAptRemembers(t *testing.T) {
	m := Machine{System: "debian12", Kernel: "6.1.0-37-amd64", Arch: "amd64", Devices: []string{"2330"}, Apt: true}
	m.Candidates = map[string][]string{
		"nvidia-driver-cuda": {"590.44.01-1", "570.133.20-1"}, "nvidia-persistenced": {"590.44.01-1", "570.133.20-1"}, "nvidia-kernel-open-dkms": {"590.44.01-1"},
		"nvidia-modprobe": {"590.44.01-1"}, "linux-headers-" + m.Kernel: {"6.1.140-1"},
	}
	m.AddCandidates(map[string][]string{"nvidia-driver-cuda": {"570.133.20-1"}, "nvidia-kernel-open-dkms": {"570.133.20-1"}, "dkms": {"3"}})
	assert.Equal(t, map[string][]string{
		"nvidia-driver-cuda": {"570.133.20-1"}, "nvidia-persistenced": {"570.133.20-1"}, "nvidia-kernel-open-dkms": {"570.133.20-1"},
		"nvidia-modprobe": {"590.44.01-1"}, "linux-headers-" + m.Kernel: {"6.1.140-1"}, "dkms": {"3"},
	}, m.Candidates)
	p, findings := Decide(m, Want{Source: SourceBundle})
	assert.Empty(t, findings)
	assert.Equal(t, "570.133.20", p.Release)

	m.Candidates = nil
	m.AddCandidates(nil)
	_, findings = Decide(m, Want{Source: SourceBundle})
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].Message, "neither the bundle nor apt on the machine has packages of the driver")
	assert.Contains(t, findings[0].Remedy, "paictl bundle add-driver DIR --system debian12")
}
