package gpudriver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// Machine describes a machine with NVIDIA GPUs.
type Machine struct {
	System, Kernel, Arch string   // debian12, 6.1.0-37-amd64, amd64
	Devices              []string // the PCI device id of each GPU
	NVSwitches           int
	// NVLink5 means that Mellanox network cards manage the NVSwitches. Such switches require NVIDIA's subnet manager and additional kernel modules.
	NVLink5 bool
	Fabric  Fabric
	// Module is the release of the loaded kernel module. Userland is the release of the driver's libraries. Each is "" if it is missing. ModuleKind is
	// ModuleOpen or ModuleClosed.
	Module, ModuleKind, Userland string
	Runfile                      bool // NVIDIA's installer installed the driver, not packages
	Apt                          bool
	Headers                      bool // the running kernel's headers are installed
	// SecureBoot means that Secure Boot is on. KeyEnrolled means that the firmware trusts DKMS's signing key.
	SecureBoot, KeyEnrolled bool
	// Nouveau means that nouveau is loaded. Displays lists the programs that use nouveau. Users lists the programs that use NVIDIA's driver.
	Nouveau         bool
	Displays, Users []string
	// Installed holds the versions of the installed packages. Candidates holds the versions that apt could install, the newest first.
	Installed  map[string]string
	Candidates map[string][]string
	// Repository is the error of apt's last attempt to fetch its package lists.
	Repository string
}

// Fabric describes the programs and kernel modules that initialize the NVSwitches of a machine.
type Fabric struct {
	Release       string // the release of the fabric manager, "" if none is installed
	Active        bool   // systemd runs it
	SubnetManager bool   // nvlsm is installed
	Modules       bool   // the kernel modules of NVLink 5 are loaded
}

// Want holds the operator's choices for the driver.
type Want struct {
	Version string // a branch, a release, or ""
	Module  string // ModuleOpen, ModuleClosed, or any other text to choose the module that suits the machine
	Source  string
}

// Plan describes the driver for a machine.
type Plan struct {
	Branch  int
	Release string
	Module  string
	// Signed means that the module is prebuilt and signed. The machine doesn't build it.
	Signed bool
	// Packages lists all required packages, including packages that are already installed.
	Packages []Package
	// FabricManager means that the machine has NVSwitches, which need the fabric manager.
	FabricManager bool
	CUDA          string
	// KeepsDriver means that the existing driver stays. Only Release and Branch are then set.
	KeepsDriver bool
}

// Finding is a remark about a driver, or the reason why a machine can't have a driver.
type Finding struct {
	ID              string // doesn't change between releases
	Message, Remedy string
	Warning         bool // only a remark
	Works           bool // the driver works in spite of the finding
}

// Works reports whether the loaded module and the driver's libraries have the same release.
func (m Machine) Works() bool { return m.Module != "" && m.Module == m.Userland }

// CheckKept returns findings about a driver that paictl doesn't change.
func CheckKept(m Machine, w Want) []Finding {
	const install = "set gpu-driver: {policy: install} in kubernetes-configuration.yaml, or install NVIDIA's driver yourself; with policy: none, paictl expects no driver"
	oldest := cmp.Or(w.Version, strconv.Itoa(Oldest))
	warn := func(id, message, remedy string) []Finding {
		return []Finding{{ID: id, Message: message, Remedy: remedy, Warning: true}}
	}
	switch {
	case m.Module == "" && m.Nouveau:
		return warn("nouveau", "the kernel's own driver nouveau uses the GPUs, and NVIDIA's isn't loaded", "set gpu-driver: {policy: install} in kubernetes-configuration.yaml, run paictl cluster up, and reboot the machine")
	case m.Module == "" && m.Userland == "":
		return warn("missing", plural.Of(len(m.Devices), "NVIDIA GPU")+" but no driver: jobs can't use them", install)
	case m.Module == "":
		return warn("not-loaded", "the driver's kernel module is not loaded, although its libraries are of "+m.Userland,
			"reboot the machine; if that does not help, run modprobe nvidia and check dmesg")
	case m.Userland == "":
		return warn("half", "the driver's kernel module is "+m.Module+", and its libraries are missing", "install the libraries of the same release: the package libnvidia-ml1 or libnvidia-compute")
	case m.Module != m.Userland:
		return warn("mismatch", fmt.Sprintf("the driver's loaded kernel module is %s and its libraries are %s: GPUs can't be used", m.Module, m.Userland), "reboot the machine")
	case Older(m.Module, oldest):
		f := warn("old", fmt.Sprintf("the driver %s is older than %s", m.Module, oldest), install)
		f[0].Works = true
		return f
	}
	return m.fabric()
}

// fabric returns a finding if the fabric manager can't initialize the NVSwitches. On a machine with a working driver, CUDA fails until the switches
// are initialized.
func (m Machine) fabric() []Finding {
	if m.NVSwitches == 0 {
		return nil
	}
	warn := func(id, message, remedy string) []Finding {
		return []Finding{{ID: id, Message: message + ": until the NVSwitches are initialised, CUDA fails with error 802", Remedy: remedy, Warning: true}}
	}
	switch {
	case m.Fabric.Release == "":
		return warn("fabric-missing", "no fabric manager is installed", "install NVIDIA's fabric manager of the release "+m.Module+m.nvlink5(" and nvlsm")+", and start nvidia-fabricmanager.service")
	case m.Fabric.Release != m.Module:
		return warn("fabric-release", "the fabric manager is "+m.Fabric.Release+", and the driver "+m.Module, "install the fabric manager of the driver's release, and restart nvidia-fabricmanager.service")
	case m.NVLink5 && !m.Fabric.SubnetManager:
		return warn("fabric-subnet-manager", "the switches are of NVLink 5, and the subnet manager nvlsm isn't installed", "install nvlsm from NVIDIA's repository, and restart nvidia-fabricmanager.service")
	case m.NVLink5 && !m.Fabric.Modules:
		return warn("fabric-modules", "the switches are of NVLink 5, and the kernel modules mlx5_ib and ib_umad aren't loaded",
			"load them (modprobe -a mlx5_ib ib_umad; some systems have them in linux-modules-extra), name them in /etc/modules-load.d, and restart nvidia-fabricmanager.service")
	case !m.Fabric.Active:
		return warn("fabric-stopped", "nvidia-fabricmanager.service doesn't run", "start it (systemctl enable --now nvidia-fabricmanager.service); if it ends again, see journalctl -u nvidia-fabricmanager")
	}
	return nil
}

func (m Machine) nvlink5(words string) string {
	if m.NVLink5 {
		return words
	}
	return ""
}

// Decide returns the plan for a machine's driver under the policy install, and findings. Any finding other than a warning means that the plan is
// invalid.
func Decide(m Machine, w Want) (Plan, []Finding) {
	if m.fits(w) {
		return Plan{Release: m.Module, Branch: BranchOf(m.Module), KeepsDriver: true}, nil
	}
	if f := m.unfit(); f != nil {
		return Plan{}, []Finding{*f}
	}
	generations, f := m.generations()
	if f == nil {
		f = servable(generations, w)
	}
	if f != nil {
		return Plan{}, []Finding{*f}
	}
	plan, kernels, f := m.choose(generations, w)
	if f != nil {
		return Plan{}, []Finding{*f}
	}
	return plan, m.obstacles(&plan, kernels, w.Source)
}

// fits reports whether the working driver satisfies the operator's choices. If no version is configured, an older driver is sufficient, so that a
// second run makes no changes.
func (m Machine) fits(w Want) bool {
	kind := w.Module != ModuleOpen && w.Module != ModuleClosed || m.ModuleKind == "" || m.ModuleKind == w.Module
	return m.Works() && kind && within(m.Module, w.Version)
}

// unfit returns the reason why the machine can't have any driver, or nil.
func (m Machine) unfit() *Finding {
	switch {
	case !m.Apt:
		return &Finding{ID: "package-manager", Message: "paictl installs the driver with apt, but this machine has no apt",
			Remedy: "install NVIDIA's driver as the distribution says, and set gpu-driver: {policy: keep} in kubernetes-configuration.yaml"}
	case m.Arch != "amd64":
		return &Finding{ID: "system", Message: "paictl knows no packages of the driver for " + m.Arch,
			Remedy: "install NVIDIA's driver yourself, and set gpu-driver: {policy: keep} in kubernetes-configuration.yaml"}
	case !slices.Contains(Systems(), m.System):
		return &Finding{ID: "system", Message: "paictl knows no packages of the driver for " + m.System + ", only for " + strings.Join(Systems(), ", "),
			Remedy: "install NVIDIA's driver yourself, and set gpu-driver: {policy: keep} in kubernetes-configuration.yaml"}
	case m.Runfile:
		return &Finding{ID: "runfile", Message: "a driver was installed by NVIDIA's runfile; packages over it would break it",
			Remedy: "remove it with nvidia-uninstall on the machine, or set gpu-driver: {policy: keep} in kubernetes-configuration.yaml"}
	}
	return nil
}

func (m Machine) generations() ([]Generation, *Finding) {
	var out []Generation
	for _, d := range m.Devices {
		g, ok := GenerationOf(d)
		if !ok {
			return nil, &Finding{ID: "unknown-gpu", Message: "paictl doesn't know the GPU 10de:" + d + ", or which driver supports it",
				Remedy: "install NVIDIA's driver yourself, and set gpu-driver: {policy: keep} in kubernetes-configuration.yaml"}
		}
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out, nil
}

// kinds returns the kinds of kernel modules of a branch that support the GPUs, the preferred kind first.
func (b Branch) kinds(generations []Generation, want string) []string {
	order := []string{ModuleClosed, ModuleOpen}
	if b.Number >= openByDefault {
		slices.Reverse(order)
	}
	if want == ModuleOpen || want == ModuleClosed {
		order = []string{want}
	}
	return slices.DeleteFunc(order, func(kind string) bool {
		serves := b.Closed
		if kind == ModuleOpen {
			serves = b.Open
		}
		return !serves.has(generations)
	})
}

// servable returns nil if an acceptable branch supports the GPUs, otherwise a finding with the reason.
func servable(generations []Generation, w Want) *Finding {
	want, serving, known := BranchOf(w.Version), []string{}, []string{}
	for _, b := range Branches() {
		known = append(known, strconv.Itoa(b.Number))
		if len(b.kinds(generations, w.Module)) == 0 {
			continue
		}
		if want == 0 || b.Number == want {
			return nil
		}
		serving = append(serving, strconv.Itoa(b.Number))
	}
	names := make([]string, len(generations))
	for i, g := range generations {
		names[i] = g.String()
	}
	cards := strings.Join(names, " and ")
	module := ""
	if w.Module == ModuleOpen || w.Module == ModuleClosed {
		module = ", with the " + w.Module + " module"
	}
	switch {
	case want != 0 && !slices.Contains(known, strconv.Itoa(want)):
		return &Finding{ID: "branch", Message: fmt.Sprintf("paictl doesn't know the driver's branch %d", want),
			Remedy: "write one of " + strings.Join(known, ", ") + " under gpu-driver.version"}
	case len(serving) > 0:
		return &Finding{ID: "branch", Message: fmt.Sprintf("the branch %d%s doesn't support the machine's GPUs (%s)", want, module, cards),
			Remedy: "write one of " + strings.Join(serving, ", ") + " under gpu-driver.version, or nothing"}
	case module != "":
		return &Finding{ID: "module", Message: fmt.Sprintf("no branch%s supports the machine's GPUs (%s)", module, cards), Remedy: "write module: auto under gpu-driver"}
	}
	return &Finding{ID: "mixed", Message: fmt.Sprintf("no branch of the driver supports all of the machine's GPUs (%s)", cards),
		Remedy: "remove the GPUs of one kind, or set gpu-driver: {policy: none} and use the machine without GPUs"}
}

// choose returns a plan for the newest branch that supports the GPUs and whose packages are available. Within a branch, it prefers the installed
// release.
func (m Machine) choose(generations []Generation, w Want) (Plan, string, *Finding) {
	missing := ""
	for _, b := range Branches() {
		if n := BranchOf(w.Version); n != 0 && n != b.Number {
			continue
		}
		for _, kind := range b.kinds(generations, w.Module) {
			for _, s := range sets() {
				if !s.offers(m, b, w) {
					continue
				}
				p, lacks := m.fill(s, b, kind, w)
				if lacks == "" {
					return p, s.kernels[kind], nil
				}
				missing = cmp.Or(missing, lacks)
			}
		}
	}
	if m.Repository != "" {
		return Plan{}, "", &Finding{ID: "repository", Message: "the packages' repository can't be read: " + m.Repository,
			Remedy: "run apt-get update on the machine and check its messages; behind a proxy, set proxy in kubernetes-configuration.yaml"}
	}
	what := "the driver"
	if w.Version != "" {
		what = "the driver " + w.Version
	}
	if missing == "" {
		return Plan{}, "", &Finding{ID: "not-in-repository", Message: fmt.Sprintf("paictl knows no packages of %s for this machine on %s from source: %s%s", what, m.System, w.Source, m.switches()),
			Remedy: "write another gpu-driver.source, nvidia or bundle, or another version"}
	}
	who := "apt on the machine has no packages of"
	if w.Source == SourceBundle {
		who = "neither the bundle nor apt on the machine has packages of"
	}
	return Plan{}, "", &Finding{ID: "not-in-repository", Message: fmt.Sprintf("%s %s: %s", who, what, missing), Remedy: where(w.Source, m.System)}
}

func (m Machine) switches() string {
	if m.NVSwitches > 0 {
		return " with a fabric manager" + m.nvlink5(" and nvlsm") + " for its NVSwitches"
	}
	return ""
}

func where(source, system string) string {
	switch {
	case source == SourceBundle:
		return "add the packages with: paictl bundle add-driver DIR --system " + system
	case source == SourceNVIDIA:
		return "make NVIDIA's repository known to apt on the machine (its package cuda-keyring does), or write another version under gpu-driver"
	case strings.HasPrefix(system, "debian"):
		return "add contrib non-free non-free-firmware to the components in apt's sources on the machine, or write another version under gpu-driver"
	}
	return "add the components restricted and multiverse to apt's sources on the machine, or write another version under gpu-driver"
}

// offers reports whether the set contains packages for the machine's system and switches, the source that w selects, and the branch.
func (s set) offers(m Machine, b Branch, w Want) bool {
	return (s.source == w.Source || w.Source == SourceBundle) && slices.Contains(s.systems, m.System) &&
		slices.Contains(s.branches, b.Number) && (m.NVSwitches == 0 || s.fabricManager != "") && (!m.NVLink5 || len(s.nvlink5) > 0)
}

// fill returns a plan with the versions of the set's packages, or the name of a missing package.
func (m Machine) fill(s set, b Branch, kind string, w Want) (p Plan, lacks string) {
	named := func(name string) string {
		return strings.NewReplacer("%b", strconv.Itoa(b.Number), "%k", m.Kernel).Replace(name)
	}
	exact := make([]string, 0, len(s.userland)+2)
	for _, name := range s.userland {
		exact = append(exact, named(name))
	}
	if m.NVSwitches > 0 {
		exact = append(exact, named(s.fabricManager))
	}
	signed := named(s.signed[kind])
	p = Plan{Branch: b.Number, Module: kind, CUDA: b.CUDA, FabricManager: m.NVSwitches > 0}
	switch {
	case signed != "" && m.has(signed) && m.signedFits(signed, exact[0], s.dkms[kind], w.Version):
		p.Signed = true
	case s.dkms[kind] != "":
		exact = append(exact, named(s.dkms[kind]))
	default:
		return Plan{}, "no " + kind + " module"
	}
	want := cmp.Or(w.Version, strconv.Itoa(b.Number))
	for _, version := range m.versions(exact[0]) {
		release := Release(version)
		if !within(release, want) {
			continue
		}
		p.Packages, lacks = m.exactly(exact, release)
		if lacks != "" {
			continue
		}
		p.Release = release
		if p.Signed {
			p.Packages = append(p.Packages, Package{Name: signed})
		}
		loose := s.loose
		if m.NVLink5 {
			loose = slices.Concat(loose, s.nvlink5)
		}
		for _, name := range loose {
			if !m.has(name) {
				return Plan{}, name
			}
			p.Packages = append(p.Packages, Package{Name: name})
		}
		return p, ""
	}
	return Plan{}, cmp.Or(lacks, exact[0]+" of "+want)
}

// signedFits reports whether the signed module has the desired release. The signed package's version is the kernel's version, which doesn't contain
// the driver's release. The module is built for the newest release of the branch in the repository, and requires that release. For an older
// release, the machine must build the module.
func (m Machine) signedFits(signed, userland, dkms, want string) bool {
	have := m.Candidates[userland]
	if m.Installed[signed] != "" || dkms == "" || len(have) == 0 {
		return true
	}
	return within(Release(have[0]), want)
}

// versions returns the available versions of a package, the installed version first.
func (m Machine) versions(name string) []string {
	if have := m.Installed[name]; have != "" {
		return append([]string{have}, m.Candidates[name]...)
	}
	return m.Candidates[name]
}

func (m Machine) has(name string) bool { return len(m.versions(name)) > 0 }

// exactly returns the packages with their versions for one release of the driver, or the name of a missing package.
func (m Machine) exactly(names []string, release string) (out []Package, lacks string) {
	for _, name := range names {
		vs := m.versions(name)
		i := slices.IndexFunc(vs, func(v string) bool { return Release(v) == release })
		if i < 0 {
			return nil, name + " of " + release
		}
		out = append(out, Package{Name: name, Version: vs[i]})
	}
	return out, ""
}

// obstacles returns problems that would make an installation fail. It adds the kernel's headers to the plan if they must be installed.
func (m Machine) obstacles(p *Plan, kernels, source string) []Finding {
	var out []Finding
	if !p.Signed {
		out = append(out, m.building(p, kernels, source)...)
	}
	if m.Nouveau && len(m.Displays) > 0 {
		out = append(out, Finding{ID: "nouveau", Message: "the kernel's own driver nouveau is in use by " + strings.Join(m.Displays, ", "),
			Remedy: "stop the display on the machine (systemctl isolate multi-user.target), then run again"})
	}
	if m.Module != "" && m.Module != p.Release && len(m.Users) > 0 {
		out = append(out, Finding{ID: "in-use", Message: fmt.Sprintf("GPUs are in use, so the driver can't change from %s to %s: %s", m.Module, p.Release, strings.Join(m.Users, ", ")),
			Remedy: "paictl node driver upgrade takes one machine after the other out of service for it; or stop these programs (paictl job stop), then run again"})
	}
	return out
}

// building returns problems that would prevent DKMS from building the module. It adds the kernel's headers to the plan if they must be installed.
func (m Machine) building(p *Plan, kernels, source string) []Finding {
	var out []Finding
	name := strings.ReplaceAll(headers, "%k", m.Kernel)
	switch {
	case m.Headers:
	case m.has(name):
		p.Packages = append(p.Packages, Package{Name: name})
	case source == SourceBundle:
		out = append(out, Finding{ID: "headers", Message: "the kernel module is built on the machine, and the headers of its running kernel are not available: " + name,
			Remedy: "add the package, and those that it depends on, with: paictl bundle add-driver DIR --system " + m.System})
	default:
		out = append(out, Finding{ID: "headers", Message: "the kernel module is built on the machine, and the headers of its running kernel are not available: " + name,
			Remedy: "boot the distribution's current kernel, whose headers its repository has, or install the headers"})
	}
	if m.SecureBoot && !m.KeyEnrolled {
		out = append(out, Finding{ID: "secure-boot", Message: "Secure Boot is on, and the kernel would refuse a module that is built on the machine",
			Remedy: "switch Secure Boot off in the machine's firmware; or install dkms and mokutil there, have dkms make its key (dkms generate_mok; older ones make it when they build their first module), enrol it (mokutil --import /var/lib/dkms/mok.pub), and reboot"})
	}
	if kernels != "" && newerKernel(m.Kernel, kernels) {
		out = append(out, Finding{ID: "kernel", Warning: true, Works: true, Message: fmt.Sprintf("the packages of the driver %s are known to build for kernels up to %s; this one is %s", p.Release, kernels, m.Kernel),
			Remedy: "if the module doesn't build, paictl removes the packages again: write a newer branch under gpu-driver.version, or boot an older kernel"})
	}
	return out
}

// newerKernel reports whether a kernel is newer than limit. It compares only the first two numbers of each release.
func newerKernel(kernel, limit string) bool {
	parts := strings.SplitN(kernel, ".", 3)
	if len(parts) < 2 {
		return false
	}
	minor, _, _ := strings.Cut(parts[1], "-")
	return Older(limit, parts[0]+"."+minor)
}
