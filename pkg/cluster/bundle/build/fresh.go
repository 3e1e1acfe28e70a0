package build

import (
	"slices"

	"github.com/openpai/paictl/pkg/cluster/bundle"
)

// keepFresh keeps the artifacts that are up to date and returns the number of outdated artifacts.
func (b *builder) keepFresh() int {
	todo := 0
	keep := func(kind, name, inputs string) {
		b.total++
		if !b.w.Has(kind, name, inputs) {
			todo++
			return
		}
		b.w.Keep(kind, name)
		b.n++
	}
	for _, m := range b.recipe.Modules {
		for _, p := range m.Programs {
			if p.Kind != "" {
				keep(p.Kind, p.Name, b.inputs["program/"+p.Name])
			}
		}
	}
	for _, img := range b.recipe.Images {
		keep(bundle.KindImage, img.Name, b.inputs["image/"+img.Name])
	}
	for _, c := range b.charts {
		keep(bundle.KindChart, c.Name, b.inputs["chart/"+c.Name])
	}
	return todo
}

// staleImages returns the outdated images whose first program is built from the module m.
func (b *builder) staleImages(m Module) []Image {
	var out []Image
	for _, img := range b.recipe.Images {
		if img.Package == "" && b.modules[img.Files[0].Program].Name == m.Name && b.stale(img) {
			out = append(out, img)
		}
	}
	return out
}

// stalePackageImages returns the outdated images whose main program is from a Debian package.
func (b *builder) stalePackageImages() []Image {
	var out []Image
	for _, img := range b.recipe.Images {
		if img.Package != "" && b.stale(img) {
			out = append(out, img)
		}
	}
	return out
}

func (b *builder) stale(img Image) bool {
	return !b.w.Has(bundle.KindImage, img.Name, b.inputs["image/"+img.Name])
}

// stalePrograms returns the outdated programs of a module. The result includes programs that only outdated images contain.
func (b *builder) stalePrograms(m Module) []Program {
	var out []Program
	for _, p := range m.Programs {
		if p.Kind != "" && !b.w.Has(p.Kind, p.Name, b.inputs["program/"+p.Name]) {
			out = append(out, p)
		}
		if p.Kind == "" && slices.ContainsFunc(b.recipe.Images, func(i Image) bool { return i.holds(p.Name) && b.stale(i) }) {
			out = append(out, p)
		}
	}
	return out
}

func (i Image) holds(program string) bool {
	return slices.ContainsFunc(i.Files, func(f File) bool { return f.Program == program })
}
