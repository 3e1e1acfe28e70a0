package gpudriver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Offer is a driver release with at least one available package.
type Offer struct {
	System  string `json:"system"`
	Release string `json:"release"`
	Of      string `json:"of"` // the origin of the packages: SourceDistribution or SourceNVIDIA
	// Modules lists the available kinds of kernel modules.
	Modules []string `json:"modules,omitempty"`
	// Signed lists the kernels with a prebuilt and signed module. Headers lists the kernels for which a module can be built.
	Signed  []string `json:"signed,omitempty"`
	Headers []string `json:"headers,omitempty"`
	// FabricManager means that the driver can also be installed on machines with NVSwitches.
	FabricManager bool `json:"fabricManager"`
	// NVLink5 means that the driver can also be installed on machines with NVLink 5 switches.
	NVLink5  bool      `json:"nvlink5"`
	Missing  []string  `json:"missing,omitempty"` // the missing packages, without which the driver can't be installed
	Packages []Package `json:"-"`                 // the available packages
}

// Offers returns the drivers in the available packages, the newest first. It includes each release with at least one available package, and lists the
// missing packages of that release. It doesn't check the libraries on which the packages depend.
func Offers(system string, have map[string][]string) []Offer {
	var out []Offer
	for _, s := range sets() {
		if !slices.Contains(s.systems, system) {
			continue
		}
		for _, number := range s.branches {
			for _, release := range s.releases(number, have) {
				out = append(out, s.offer(system, number, release, have))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Offer) int {
		switch {
		case a.Release == b.Release:
			return cmp.Compare(a.Of, b.Of)
		case Older(a.Release, b.Release):
			return 1
		}
		return -1
	})
	return out
}

// versioned returns the packages of a set whose version is the driver's version. It excludes the fabric manager, because other sets contain it as
// well.
func (s set) versioned(branch int) []string {
	var out []string
	for _, name := range append(slices.Clone(s.userland), s.dkms[ModuleClosed], s.dkms[ModuleOpen]) {
		if name != "" {
			out = append(out, ofBranch(name, branch))
		}
	}
	return out
}

func ofBranch(name string, branch int) string {
	return strings.ReplaceAll(name, "%b", strconv.Itoa(branch))
}

// releases returns the releases of a branch with at least one available package.
func (s set) releases(branch int, have map[string][]string) []string {
	var out []string
	for _, name := range s.versioned(branch) {
		for _, v := range have[name] {
			if r := Release(v); within(r, strconv.Itoa(branch)) && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

func (s set) offer(system string, branch int, release string, have map[string][]string) Offer {
	o := Offer{System: system, Release: release, Of: s.source}
	add := func(name string, of string) bool {
		i := slices.IndexFunc(have[name], func(v string) bool { return of == "" || Release(v) == of })
		if i < 0 {
			return false
		}
		o.Packages = append(o.Packages, Package{Name: name, Version: have[name][i]})
		return true
	}
	for _, name := range s.userland {
		if name = ofBranch(name, branch); !add(name, release) {
			o.Missing = append(o.Missing, name)
		}
	}
	var lacking []string
	for _, kind := range []string{ModuleOpen, ModuleClosed} {
		dkms, signed := ofBranch(s.dkms[kind], branch), kernelsOf(ofBranch(s.signed[kind], branch), have)
		built := dkms != "" && add(dkms, release)
		for _, kernel := range signed {
			add(strings.ReplaceAll(ofBranch(s.signed[kind], branch), "%k", kernel), "")
		}
		if built || len(signed) > 0 {
			o.Modules = append(o.Modules, kind)
			o.Signed = append(o.Signed, signed...)
		} else if dkms != "" {
			lacking = append(lacking, dkms)
		}
	}
	if len(o.Modules) == 0 {
		o.Missing = append(o.Missing, strings.Join(lacking, " or "))
	}
	for _, name := range s.loose {
		if !add(name, "") {
			o.Missing = append(o.Missing, name)
		}
	}
	o.FabricManager = s.fabricManager != "" && add(ofBranch(s.fabricManager, branch), release)
	o.NVLink5 = o.FabricManager && len(s.nvlink5) > 0
	for _, name := range s.nvlink5 {
		o.NVLink5 = add(name, "") && o.NVLink5
	}
	o.Headers = kernelsOf(headers, have)
	for _, kernel := range o.Headers {
		add(strings.ReplaceAll(headers, "%k", kernel), "")
	}
	return o
}

// kernelsOf returns the kernels for which a package is available. The name of the package ends with %k in place of the kernel's release.
func kernelsOf(name string, have map[string][]string) []string {
	prefix, ok := strings.CutSuffix(name, "%k")
	if !ok {
		return nil
	}
	var out []string
	for n := range have {
		// A kernel's release begins with a digit. The metapackage linux-headers-amd64 doesn't end with a release.
		if kernel, ok := strings.CutPrefix(n, prefix); ok && kernel != "" && kernel[0] >= '0' && kernel[0] <= '9' && !strings.HasSuffix(kernel, "-common") {
			out = append(out, kernel)
		}
	}
	slices.Sort(out)
	return out
}

// AddCandidates adds a bundle's packages to the candidates of the machine's apt, before apt's own versions. apt's lists may be old and contain packages that
// are no longer available. AddCandidates therefore also removes apt's versions of the driver's packages, except versions of a release in the bundle.
func (m *Machine) AddCandidates(have map[string][]string) {
	own, releases := map[string]bool{}, map[string]bool{}
	for _, s := range sets() {
		for _, b := range s.branches {
			for _, name := range append(s.versioned(b), ofBranch(s.fabricManager, b)) {
				own[name] = true
				for _, v := range have[name] {
					releases[Release(v)] = true
				}
			}
		}
	}
	out := map[string][]string{}
	for name, versions := range have {
		out[name] = slices.Clone(versions)
	}
	for name, versions := range m.Candidates {
		for _, v := range versions {
			if (!own[name] || releases[Release(v)]) && !slices.Contains(out[name], v) {
				out[name] = append(out[name], v)
			}
		}
	}
	m.Candidates = out
}
