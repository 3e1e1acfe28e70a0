package driver

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Addition holds the arguments of Add.
type Addition struct {
	Bundle string   // folder
	Paths  []string // .deb files, and folders that are searched for them
	System string   // "": derived from the packages' versions
	DryRun bool
}

// Removal holds the arguments of Remove.
type Removal struct {
	Bundle string
	// Names lists the packages to remove, as NAME or NAME=VERSION, and releases of the driver, such as 570.133.20; empty means all packages.
	Names  []string
	System string // "" for all
	DryRun bool
}

// Changed is the addition or the removal of one package.
type Changed struct {
	Action  string `json:"action"` // add, keep, remove
	System  string `json:"system"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Path    string `json:"path"` // in the bundle
	Size    int64  `json:"size"`
}

// Report lists the changes, and the drivers in the bundle after the changes.
type Report struct {
	Bundle  string            `json:"bundle"`
	DryRun  bool              `json:"dryRun,omitempty"`
	Changes []Changed         `json:"changes"`
	Drivers []gpudriver.Offer `json:"drivers"`
	// Needs lists the dependencies of each distribution that the bundle doesn't contain. The machines must provide these dependencies.
	Needs map[string][]string `json:"needs,omitempty"`
}

// The actions for a package.
const (
	ActionAdd    = "add"
	ActionKeep   = "keep"
	ActionRemove = "remove"
)

// Pending returns the number of packages that are added or removed.
func (r *Report) Pending() int {
	n := 0
	for _, c := range r.Changes {
		if c.Action != ActionKeep {
			n++
		}
	}
	return n
}

type found struct {
	Package
	file, sum string
	size      int64
}

// Add adds packages to a bundle. If it can't add a package, it changes nothing.
func Add(ctx context.Context, o Addition) (*Report, error) {
	files, err := debs(o.Paths)
	if err != nil {
		return nil, err
	}
	w, b, err := bundle.Edit(o.Bundle)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	list, err := look(ctx, files, b.Manifest().Arch)
	if err != nil {
		return nil, err
	}
	system, err := systemOf(o.System, list)
	if err != nil {
		return nil, err
	}
	r := &Report{Bundle: b.Dir(), DryRun: o.DryRun, Changes: []Changed{}}
	there := map[string]bundle.Artifact{}
	for _, a := range b.List(bundle.KindDriver) {
		there[a.Path] = a
	}
	var add []found
	stocks := map[string][]item{}
	for _, f := range list {
		a := f.artifact(system)
		c := Changed{Action: ActionAdd, System: system, Name: a.Name, Version: a.Version, Path: a.Path, Size: a.Size}
		old, ok := there[a.Path]
		switch {
		case ok && old.SHA256 != a.SHA256:
			return nil, hint.Errorf("two builds of a package must differ in their version; to use this one, first run: paictl bundle remove-driver "+a.Name+"="+a.Version+" --system "+system+" --bundle "+b.Dir(),
				"%s: the bundle has another file of %s %s for %s", f.file, a.Name, a.Version, system)
		case ok && intact(ctx, b, old):
			c.Action = ActionKeep
		default:
			add = append(add, f)
		}
		there[a.Path] = a
		stocks[system] = append(stocks[system], item{f.Package, a})
		r.Changes = append(r.Changes, c)
	}
	r.tell(b, slices.SortedFunc(maps.Values(there), byPath), stocks)
	if o.DryRun || len(add) == 0 {
		return r, nil
	}
	for _, f := range add {
		if err := bring(ctx, w, f, system); err != nil {
			return nil, err
		}
	}
	_, err = w.Commit()
	return r, err
}

func (f found) artifact(system string) bundle.Artifact {
	return bundle.Artifact{
		Name: f.Name, Version: f.Version, Kind: bundle.KindDriver, System: system, Path: bundle.DriverPath(system, f.Name, f.Version, f.Arch),
		Source: filepath.Base(f.file), SHA256: f.sum, Size: f.size,
	}
}

func intact(ctx context.Context, b *bundle.Bundle, a bundle.Artifact) bool {
	sum, err := bundle.HashFile(ctx, b.File(a))
	return err == nil && sum == a.SHA256
}

// bring copies a package into the bundle. It returns an error if the file has changed since it was first read.
func bring(ctx context.Context, w *bundle.Writer, f found, system string) error {
	temp := w.Work("driver.deb")
	if err := copyFile(f.file, temp); err != nil {
		return fmt.Errorf("add %s: %w", f.file, err)
	}
	sum, err := bundle.HashFile(ctx, temp)
	if err != nil {
		return fmt.Errorf("add %s: %w", f.file, err)
	}
	if sum != f.sum {
		return hint.Errorf("run the command again when the file is complete", "%s has changed while it was read", f.file)
	}
	return w.AddDriverPackage(f.artifact(system), temp)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

func debs(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("add packages: %w", err)
		}
		if !info.IsDir() {
			out = append(out, p)
			continue
		}
		before := len(out)
		folder, err := filepath.EvalSymlinks(p)
		if err != nil {
			return nil, fmt.Errorf("add packages: %w", err)
		}
		err = filepath.WalkDir(folder, func(file string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(file, ".deb") {
				out = append(out, file)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("add packages: %w", err)
		}
		if len(out) == before {
			return nil, hint.Errorf("name the folder into which the packages were downloaded", "%s contains no .deb file", p)
		}
	}
	return out, nil
}

// look reads all packages. It rejects packages for another architecture and two different files with the same package. It ignores duplicates.
func look(ctx context.Context, files []string, arch string) ([]found, error) {
	var out []found
	seen := map[string]found{}
	for _, file := range files {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		p, err := Read(file)
		if err != nil {
			return nil, err
		}
		if p.Arch != arch && p.Arch != "all" {
			return nil, hint.Errorf("remove it, or add it to a bundle for "+p.Arch, "%s is for %s, but the bundle is for %s", file, p.Arch, arch)
		}
		sum, err := bundle.HashFile(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("add packages: %w", err)
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("add packages: %w", err)
		}
		f := found{Package: p, file: file, sum: sum, size: info.Size()}
		id := p.Name + "=" + p.Version + ":" + p.Arch
		if first, ok := seen[id]; ok {
			if first.sum != sum {
				return nil, hint.Errorf("remove one of them", "%s and %s are both %s %s, with different content", first.file, file, p.Name, p.Version)
			}
			continue
		}
		seen[id] = f
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b found) int { return byName(item{Package: a.Package}, item{Package: b.Package}) })
	return out, nil
}

// marks matches the release marks in the versions of packages from Debian and Ubuntu.
var marks = regexp.MustCompile(`deb([0-9]+)u[0-9]|ubuntu[0-9.~]*?([0-9]{2}\.[0-9]{2})(?:\.|$)`)

// systemOf returns the given distribution, or else the distribution in the packages' versions.
func systemOf(given string, list []found) (string, error) {
	known := gpudriver.Systems()
	remedy := "give --system, one of " + strings.Join(known, ", ")
	if given != "" {
		if !slices.Contains(known, given) {
			return "", hint.Errorf(remedy, "paictl installs no driver on %q", given)
		}
		return given, nil
	}
	var told []string
	for _, f := range list {
		for _, m := range marks.FindAllStringSubmatch(f.Version, -1) {
			name := "ubuntu" + m[2]
			if m[1] != "" {
				name = "debian" + m[1]
			}
			if slices.Contains(known, name) && !slices.Contains(told, name) {
				told = append(told, name)
			}
		}
	}
	slices.Sort(told)
	switch len(told) {
	case 1:
		return told[0], nil
	case 0:
		return "", hint.Errorf(remedy, "the packages' versions don't show which distribution they are for")
	}
	return "", hint.Errorf(remedy+"; run the command once for each distribution", "the packages' versions name more than one distribution: %s", strings.Join(told, ", "))
}

// Remove removes packages from a bundle. It returns an error if a name matches no package.
func Remove(o Removal) (*Report, error) {
	if o.System != "" && !slices.Contains(gpudriver.Systems(), o.System) {
		return nil, hint.Errorf("give one of "+strings.Join(gpudriver.Systems(), ", "), "there are no driver packages for %q", o.System)
	}
	w, b, err := bundle.Edit(o.Bundle)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r := &Report{Bundle: b.Dir(), DryRun: o.DryRun, Changes: []Changed{}}
	used := map[string]bool{}
	var stay []bundle.Artifact
	for _, a := range b.List(bundle.KindDriver) {
		if !o.means(a, used) {
			stay = append(stay, a)
			continue
		}
		w.Drop(a)
		r.Changes = append(r.Changes, Changed{Action: ActionRemove, System: a.System, Name: a.Name, Version: a.Version, Path: a.Path, Size: a.Size})
	}
	for _, name := range o.Names {
		if !used[name] {
			return nil, hint.Errorf("see what there is: paictl bundle list "+hint.Quote(b.Dir())+" --kind "+bundle.KindDriver, "the bundle has no driver package %s%s", name, strings.TrimSuffix(" for "+o.System, " for "))
		}
	}
	r.tell(b, stay, nil)
	if o.DryRun || len(r.Changes) == 0 {
		return r, nil
	}
	_, err = w.Commit()
	return r, err
}

// means reports whether a package must be removed. It adds the names that match the package to the map used.
func (o Removal) means(a bundle.Artifact, used map[string]bool) bool {
	if o.System != "" && a.System != o.System {
		return false
	}
	hit := len(o.Names) == 0
	for _, name := range o.Names {
		if name == a.Name || name == a.Name+"="+a.Version || name == gpudriver.Release(a.Version) {
			used[name], hit = true, true
		}
	}
	return hit
}

// tell adds the drivers in the packages to the report. The map fresh holds packages that aren't in the bundle yet. tell skips damaged files,
// because the caller may be about to remove them.
func (r *Report) tell(b *bundle.Bundle, list []bundle.Artifact, fresh map[string][]item) {
	known, items := map[string]bool{}, map[string][]item{}
	for system, its := range fresh {
		for _, it := range its {
			known[it.artifact.Path] = true
		}
		items[system] = its
	}
	for _, a := range list {
		if known[a.Path] {
			continue
		}
		if p, err := Read(b.File(a)); err == nil {
			items[a.System] = append(items[a.System], item{p, a})
		}
	}
	r.Drivers, r.Needs = []gpudriver.Offer{}, map[string][]string{}
	for _, system := range gpudriver.Systems() {
		if len(items[system]) == 0 {
			continue
		}
		stock := newStock(items[system])
		needs := map[string]bool{}
		for _, offer := range gpudriver.Offers(system, stock.versions()) {
			for _, unmet := range stock.Choose(offer.Release, offer.Packages, nil).Unmet {
				if ofDriver(unmet) {
					offer.Missing = append(offer.Missing, unmet)
				} else {
					needs[unmet] = true
				}
			}
			slices.Sort(offer.Missing)
			offer.Missing = slices.Compact(offer.Missing)
			r.Drivers = append(r.Drivers, offer)
		}
		for name := range needs {
			r.Needs[system] = append(r.Needs[system], name)
		}
		slices.Sort(r.Needs[system])
	}
}

// Lines returns messages about the drivers. The first result lists the drivers that can be installed. The second result lists the missing packages
// of other drivers.
func (r *Report) Lines() (good, bad []string) {
	for _, d := range r.Drivers {
		if len(d.Missing) > 0 {
			bad = append(bad, fmt.Sprintf("%s: for the driver %s (%s) the bundle doesn't have %s", d.System, d.Release, d.Of, strings.Join(d.Missing, ", ")))
			continue
		}
		line := fmt.Sprintf("%s: the driver %s (%s) can be installed, with the %s module", d.System, d.Release, d.Of, strings.Join(d.Modules, " or the "))
		if d.FabricManager {
			line += ", also on machines with NVSwitches"
			if !d.NVLink5 {
				line += " (but not those of NVLink 5, such as HGX B200)"
			}
		}
		good = append(good, line)
		if len(d.Signed) == 0 && len(d.Headers) == 0 {
			bad = append(bad, fmt.Sprintf("%s: the module of %s is built on the machine, and the bundle has no linux-headers for it: it can be installed only if the headers of the running kernel are on the machine, or apt can install them", d.System, d.Release))
		}
	}
	for _, system := range gpudriver.Systems() {
		if n := len(r.Needs[system]); n > 0 {
			good = append(good, fmt.Sprintf("%s: the machines, or their apt sources, must have %s that the bundle doesn't have: %s", system, plural.Of(n, "package"), strings.Join(shortened(r.Needs[system]), ", ")))
		}
	}
	return good, bad
}

func shortened(list []string) []string {
	const most = 12
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), "…")
}

func byPath(a, b bundle.Artifact) int { return strings.Compare(a.Path, b.Path) }
