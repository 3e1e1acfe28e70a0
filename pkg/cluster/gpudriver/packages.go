package gpudriver

import (
	"slices"
	"strconv"
	"strings"
)

// The kinds of kernel modules, and the sources of packages.
const (
	ModuleOpen   = "open"
	ModuleClosed = "closed"

	SourceDistribution = "distribution"
	SourceNVIDIA       = "nvidia"
	SourceBundle       = "bundle"
)

// Package is a package that paictl installs by name.
type Package struct {
	Name string
	// Version is the package's version, such as 535.261.03-1, or "" for any version.
	Version string
}

// set holds the names of a source's packages for some branches of the driver. In a name, %b is the branch, and %k is the release of the running
// kernel.
type set struct {
	systems  []string // in the form of layout.Facts.OS
	source   string
	branches []int
	// userland lists packages with the driver's version. loose lists packages with independent versions.
	userland, loose []string
	// dkms maps the kind of a module to the package that builds the module on the machine. signed maps the kind to the package with a module that is
	// already built and signed for a kernel. The signed package's version is the kernel's version.
	dkms, signed  map[string]string
	fabricManager string
	// nvlink5 lists the additional packages for NVLink 5 switches. The versions of these packages differ from the driver's version.
	nvlink5 []string
	// kernels maps the kind of a module to the newest kernel for which the module is known to build, such as "6.15".
	kernels map[string]string
}

// sets returns all packages that paictl can install: the compute part of the driver, without X and desktop. The descriptions of Debian's packages
// name the kernels. The source for Ubuntu is packages.ubuntu.com, source packages nvidia-graphics-drivers-*-server and linux-restricted-modules.
// The source for NVIDIA's repository is its Driver Installation Guide, "Compute-only System". The source for NVLink 5 and for the fabric manager
// from 580 on is NVIDIA/gpu-driver-container.
func sets() []set {
	ubuntu := []string{"ubuntu22.04", "ubuntu24.04"}
	debian := []string{"debian12", "debian13"}
	tesla := func(branch string) []string {
		return []string{"nvidia-tesla-" + branch + "-smi", "libnvidia-tesla-" + branch + "-ml1", "libnvidia-tesla-" + branch + "-cuda1",
			"libnvidia-tesla-" + branch + "-cfg1"} // modules that the persistence daemon loads
	}
	own := []string{"nvidia-smi", "libnvidia-ml1", "libcuda1"}
	helpers := []string{"nvidia-persistenced", "nvidia-modprobe"}
	subnet := []string{"nvlsm", "infiniband-diags"} // the fabric manager's start script asks ibstat for the port of a switch
	return []set{
		{
			systems: debian[:1], source: SourceDistribution, branches: []int{535}, userland: own, loose: helpers,
			dkms:    map[string]string{ModuleClosed: "nvidia-kernel-dkms", ModuleOpen: "nvidia-open-kernel-dkms"},
			kernels: map[string]string{ModuleClosed: "6.16", ModuleOpen: "6.16"},
		},
		{
			systems: debian[:1], source: SourceDistribution, branches: []int{470}, userland: tesla("470"), loose: helpers,
			dkms:    map[string]string{ModuleClosed: "nvidia-tesla-470-kernel-dkms"},
			kernels: map[string]string{ModuleClosed: "6.8"},
		},
		{
			systems: debian[1:], source: SourceDistribution, branches: []int{550}, userland: own, loose: helpers,
			dkms:    map[string]string{ModuleClosed: "nvidia-kernel-dkms", ModuleOpen: "nvidia-open-kernel-dkms"},
			kernels: map[string]string{ModuleClosed: "6.14"},
		},
		{
			systems: debian[1:], source: SourceDistribution, branches: []int{535}, userland: tesla("535"), loose: helpers,
			dkms: map[string]string{ModuleClosed: "nvidia-tesla-535-kernel-dkms"},
		},
		{
			systems: ubuntu, source: SourceDistribution, branches: []int{580, 570, 550, 535},
			userland:      []string{"libnvidia-compute-%b-server", "nvidia-utils-%b-server", "nvidia-compute-utils-%b-server"},
			dkms:          map[string]string{ModuleClosed: "nvidia-dkms-%b-server", ModuleOpen: "nvidia-dkms-%b-server-open"},
			signed:        map[string]string{ModuleClosed: "linux-modules-nvidia-%b-server-%k", ModuleOpen: "linux-modules-nvidia-%b-server-open-%k"},
			fabricManager: "nvidia-fabricmanager-%b",
		},
		{
			systems: ubuntu, source: SourceDistribution, branches: []int{470},
			userland:      []string{"libnvidia-compute-%b-server", "nvidia-utils-%b-server", "nvidia-compute-utils-%b-server"},
			dkms:          map[string]string{ModuleClosed: "nvidia-dkms-%b-server"},
			signed:        map[string]string{ModuleClosed: "linux-modules-nvidia-%b-server-%k"},
			fabricManager: "nvidia-fabricmanager-%b",
		},
		{
			systems: ubuntu, source: SourceNVIDIA, branches: []int{580}, fabricManager: "nvidia-fabricmanager", nvlink5: subnet,
			userland: []string{"libnvidia-compute-%b", "nvidia-utils-%b", "nvidia-compute-utils-%b"},
			dkms:     map[string]string{ModuleClosed: "nvidia-dkms-%b", ModuleOpen: "nvidia-dkms-%b-open"},
		},
		{
			systems: ubuntu, source: SourceNVIDIA, branches: []int{570, 550, 535}, fabricManager: "nvidia-fabricmanager-%b", nvlink5: subnet,
			userland: []string{"libnvidia-compute-%b", "nvidia-utils-%b", "nvidia-compute-utils-%b"},
			dkms:     map[string]string{ModuleClosed: "nvidia-dkms-%b", ModuleOpen: "nvidia-dkms-%b-open"},
		},
		{
			systems: debian, source: SourceNVIDIA, branches: []int{590, 580}, fabricManager: "nvidia-fabricmanager", nvlink5: subnet,
			userland: []string{"nvidia-driver-cuda", "nvidia-persistenced"},
			dkms:     map[string]string{ModuleClosed: "nvidia-kernel-dkms", ModuleOpen: "nvidia-kernel-open-dkms"},
		},
		{
			systems: debian, source: SourceNVIDIA, branches: []int{570}, fabricManager: "nvidia-fabricmanager-%b", nvlink5: subnet,
			userland: []string{"nvidia-driver-cuda", "nvidia-persistenced"},
			dkms:     map[string]string{ModuleClosed: "nvidia-kernel-dkms", ModuleOpen: "nvidia-kernel-open-dkms"},
		},
	}
}

// Systems returns the distributions whose driver packages paictl can install.
func Systems() []string {
	var out []string
	for _, s := range sets() {
		for _, name := range s.systems {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Names returns the names of all packages that a machine may need. In a name, %k is the release of the machine's kernel. For SourceBundle, Names
// returns the packages of the distribution and of NVIDIA.
func Names(source string) []string {
	seen := map[string]bool{headers: true}
	for _, s := range sets() {
		if source != SourceBundle && s.source != source {
			continue
		}
		for _, b := range s.branches {
			for _, name := range s.all() {
				seen[strings.ReplaceAll(name, "%b", strconv.Itoa(b))] = true
			}
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// headers is the name of the package with the running kernel's headers. DKMS needs the headers.
const headers = "linux-headers-%k"

func (s set) all() []string {
	out := slices.Concat(s.userland, s.loose, s.nvlink5)
	for _, kind := range []string{ModuleClosed, ModuleOpen} {
		out = append(out, s.dkms[kind], s.signed[kind])
	}
	out = append(out, s.fabricManager)
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}
