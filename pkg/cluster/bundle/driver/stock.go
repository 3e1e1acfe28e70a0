package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pault.ag/go/debian/dependency"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/hint"
)

// Stock holds a bundle's packages for the machines of one distribution.
type Stock struct {
	items  []item
	byName map[string][]item // the newest first
	// providers maps a name in the Provides fields to the packages that provide it.
	providers map[string][]item
}

type item struct {
	Package
	artifact bundle.Artifact
}

// Versions returns the versions of each package for a distribution in a bundle, the newest first. It only reads the manifest.
func Versions(b *bundle.Bundle, system string) map[string][]string {
	out := map[string][]string{}
	for _, a := range b.List(bundle.KindDriver) {
		if a.System == system {
			out[a.Name] = append(out[a.Name], a.Version)
		}
	}
	for _, vs := range out {
		slices.SortFunc(vs, func(x, y string) int { return compare(y, x) })
	}
	return out
}

// Open reads a bundle's packages for a distribution. It returns an error if a package differs from the manifest.
func Open(b *bundle.Bundle, system string) (*Stock, error) {
	var items []item
	for _, a := range b.List(bundle.KindDriver) {
		if a.System != system {
			continue
		}
		p, err := Read(b.File(a))
		if err != nil {
			return nil, err
		}
		if p.Name != a.Name || p.Version != a.Version {
			return nil, hint.Errorf("run: paictl bundle verify "+hint.Quote(b.Dir()), "%s is %s %s, which differs from the manifest", a.Path, p.Name, p.Version)
		}
		items = append(items, item{p, a})
	}
	return newStock(items), nil
}

func newStock(items []item) *Stock {
	s := &Stock{items: items, byName: map[string][]item{}, providers: map[string][]item{}}
	for _, it := range items {
		s.byName[it.Name] = append(s.byName[it.Name], it)
		for _, name := range it.provides {
			s.providers[name] = append(s.providers[name], it)
		}
	}
	for _, its := range s.byName {
		slices.SortStableFunc(its, func(x, y item) int { return compare(y.Version, x.Version) })
	}
	return s
}

func (s *Stock) versions() map[string][]string {
	out := map[string][]string{}
	for name, its := range s.byName {
		for _, it := range its {
			out[name] = append(out[name], it.Version)
		}
	}
	return out
}

// Choice holds the packages in a stock that a machine's driver needs.
type Choice struct {
	items []item
	// Unmet lists the dependencies that the stock doesn't contain. The installation fails unless the machine already has them.
	Unmet []string
}

// Choose returns the requested packages and all their dependencies in the stock. It selects the given release for packages of the driver, and the
// newest version of other packages. The argument old holds the installed versions of packages that may be replaced.
func (s *Stock) Choose(release string, want []gpudriver.Package, old map[string]string) Choice {
	c := chooser{stock: s, release: release, taken: map[string]bool{}, unmet: map[string]bool{}}
	for _, w := range want {
		if w.Version == "" {
			c.take(c.best(s.byName[w.Name]))
			continue
		}
		c.take(versioned(s.byName[w.Name], w.Version))
	}
	for i := 0; i < len(c.items); i++ { // it grows
		for _, r := range c.items[i].depends {
			c.satisfy(r)
		}
	}
	for name, version := range old {
		if c.taken[name] {
			c.take(versioned(s.byName[name], version))
		}
	}
	out := Choice{items: c.items}
	for name := range c.unmet {
		out.Unmet = append(out.Unmet, name)
	}
	slices.Sort(out.Unmet)
	slices.SortFunc(out.items, func(a, b item) int { return strings.Compare(a.artifact.Path, b.artifact.Path) })
	return out
}

type chooser struct {
	stock        *Stock
	release      string
	items        []item
	taken, unmet map[string]bool // taken: names, and paths
}

func (c *chooser) take(its []item) {
	for _, it := range its {
		if !c.taken[it.artifact.Path] {
			c.taken[it.artifact.Path], c.taken[it.Name] = true, true
			c.items = append(c.items, it)
		}
	}
}

// best returns the item of the driver's release, or else the newest item. its must be sorted by version, the newest first.
func (c *chooser) best(its []item) []item {
	if len(its) == 0 {
		return nil
	}
	if i := slices.IndexFunc(its, func(it item) bool { return c.release != "" && gpudriver.Release(it.Version) == c.release }); i >= 0 {
		return its[i : i+1]
	}
	return its[:1]
}

// satisfy adds a package for each alternative of a dependency, because apt chooses an alternative by the packages on the machine.
func (c *chooser) satisfy(r dependency.Relation) {
	found, names := false, []string{}
	for _, p := range r.Possibilities {
		names = append(names, p.Name)
		its := slices.DeleteFunc(slices.Clone(c.stock.byName[p.Name]), func(it item) bool {
			return p.Version != nil && !p.Version.SatisfiedBy(it.version)
		})
		its = c.best(its)
		for _, it := range c.stock.providers[p.Name] {
			// Several releases of the driver may provide the name. Take only the best release.
			if own := c.best(c.stock.byName[it.Name]); len(own) > 0 && own[0].Version == it.Version {
				its = append(its, it)
			}
		}
		found = found || len(its) > 0
		c.take(its)
	}
	if !found && len(names) > 0 {
		c.unmet[strings.Join(names, " or ")] = true
	}
}

func versioned(its []item, version string) []item {
	i := slices.IndexFunc(its, func(it item) bool { return it.Version == version })
	if i < 0 {
		return nil
	}
	return its[i : i+1]
}

// Artifacts returns the files of the chosen packages, sorted by path.
func (c Choice) Artifacts() []bundle.Artifact {
	var out []bundle.Artifact
	for _, it := range c.items {
		out = append(out, it.artifact)
	}
	return out
}

// Index returns the content of apt's index file, Packages, for a folder with the chosen files.
func (c Choice) Index() []byte {
	var b strings.Builder
	for _, it := range c.items {
		file := it.artifact.Path[strings.LastIndex(it.artifact.Path, "/")+1:]
		fmt.Fprintf(&b, "%sFilename: ./%s\nSize: %d\nSHA256: %s\n\n", it.Control, file, it.artifact.Size, it.artifact.SHA256)
	}
	return []byte(b.String())
}

// ofDriver reports whether a package belongs to NVIDIA's driver, or builds its module.
func ofDriver(name string) bool {
	return strings.Contains(name, "nvidia") || strings.HasPrefix(name, "libcuda") || name == "dkms"
}

func byName(a, b item) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), compare(a.Version, b.Version))
}
