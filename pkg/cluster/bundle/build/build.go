package build

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/version"
)

// Options holds the arguments of Run.
type Options struct {
	// Dir is the bundle's folder. Run creates it if it doesn't exist.
	Dir string
	// Source is a folder with the pinned modules; "" selects the modules embedded in paictl.
	Source string
	// Progress receives one line per artifact. It may be nil.
	Progress io.Writer
	// Recipe is the recipe to build; nil means Default.
	Recipe *Recipe
	// Now is the clock; nil means time.Now. Beat returns a channel whose values trigger a report about a long compilation; nil means every half minute.
	Now  func() time.Time
	Beat func() <-chan time.Time
}

type builder struct {
	*plan
	c     compiler
	w     *bundle.Writer
	out   io.Writer
	now   func() time.Time
	beat  func() <-chan time.Time
	n     int // artifacts that are ready
	total int
	// debian caches the layers of Debian packages by the names of the packages. Images with the same packages share a layer.
	debian map[string]*debianLayer
}

// Run builds the artifacts in opts.Dir that are missing or outdated, and returns the whole bundle. Finished artifacts stay if a later artifact
// fails or ctx ends.
func Run(ctx context.Context, opts Options) (*bundle.Bundle, error) {
	recipe := Default()
	if opts.Recipe != nil {
		recipe = *opts.Recipe
	}
	b := &builder{out: opts.Progress, now: opts.Now, beat: opts.Beat, debian: map[string]*debianLayer{}}
	if b.out == nil {
		b.out = io.Discard
	}
	if b.now == nil {
		b.now = time.Now
	}
	if b.beat == nil {
		b.beat = func() <-chan time.Time { return time.After(30 * time.Second) }
	}
	if err := checkMachine(ctx, needs{goTool: true}); err != nil {
		return nil, err
	}
	header := bundle.Manifest{Arch: runtime.GOARCH, Origin: bundle.OriginBuild}
	w, err := bundle.Create(opts.Dir, &header)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	b.w, b.c = w, compiler{arch: runtime.GOARCH, work: w.Work()}
	// A killed compiler doesn't remove its temporary files.
	defer os.RemoveAll(b.c.tmp())
	source, err := sourceDir(opts.Source, w.Work())
	if err != nil {
		return nil, err
	}
	return b.run(ctx, recipe, source, &header)
}

func (b *builder) run(ctx context.Context, recipe Recipe, source string, header *bundle.Manifest) (*bundle.Bundle, error) {
	if err := checkMachine(ctx, recipeNeeds(recipe)); err != nil {
		return nil, err
	}
	var err error
	if b.plan, err = makePlan(ctx, recipe, source, b.c); err != nil {
		return nil, err
	}
	// A bundle without Kubernetes is for the Kubernetes release of this paictl.
	header.Kubernetes = cmp.Or(b.version("kubelet"), version.Kubernetes)
	todo := b.keepFresh()
	if todo == 0 {
		fmt.Fprintf(b.out, "bundle %s is up to date: %s\n", b.w.Dir(), plural.Of(b.total, "artifact"))
		return b.w.Commit()
	}
	if b.n > 0 {
		fmt.Fprintf(b.out, "%d of %d artifacts are up to date\n", b.n, b.total)
	}
	start := b.now()
	for i := range recipe.Modules {
		if err := b.module(ctx, i); err != nil {
			return nil, err
		}
	}
	for _, img := range b.stalePackageImages() {
		if err := b.image(ctx, img); err != nil {
			return nil, err
		}
	}
	for _, c := range b.charts {
		if err := b.chart(ctx, c); err != nil {
			return nil, err
		}
	}
	done, err := b.w.Commit()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"programs", "go-out", "apt"} {
		if err := os.RemoveAll(b.w.Work(dir)); err != nil {
			return nil, fmt.Errorf("clean up: %w", err)
		}
	}
	fmt.Fprintf(b.out, "bundle %s is ready: %s, %s, in %s\n", b.w.Dir(), plural.Of(b.total, "artifact"), megabytes(size(done)), b.since(start))
	return done, nil
}

func recipeNeeds(r Recipe) needs {
	n := needs{goTool: true}
	for _, m := range r.Modules {
		n.gcc = n.gcc || m.CGO || slices.ContainsFunc(m.Programs, func(p Program) bool { return p.C != "" })
		n.seccomp = n.seccomp || m.Name == "runc"
	}
	n.apt = slices.ContainsFunc(r.Images, func(i Image) bool { return len(i.Debian) > 0 })
	return n
}

// module builds the outdated programs of one module, and then the outdated images whose first program is from this module.
func (b *builder) module(ctx context.Context, i int) error {
	m := b.recipe.Modules[i]
	images := b.staleImages(m)
	programs := b.stalePrograms(m)
	if len(programs) > 0 {
		start := b.now()
		fmt.Fprintf(b.out, "compiling %s %s: %s\n", m.Name, b.pins[m.Name].version, names(programs))
		stop := b.heartbeat(m.Name, start)
		err := b.c.compile(ctx, m, b.pins[m.Name], programs)
		stop()
		if err != nil {
			return err
		}
		for _, p := range programs {
			if err := b.addProgram(ctx, p, b.since(start)); err != nil {
				return err
			}
		}
	}
	for _, img := range images {
		if err := b.image(ctx, img); err != nil {
			return err
		}
	}
	return nil
}

// heartbeat reports regularly that a long compilation is still running. It writes no lines after stop has returned.
func (b *builder) heartbeat(module string, start time.Time) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-b.beat():
				fmt.Fprintf(b.out, "  still compiling %s, %s\n", module, b.since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (b *builder) addProgram(ctx context.Context, p Program, took time.Duration) error {
	if p.Kind == "" {
		return nil
	}
	a := bundle.Artifact{
		Name: p.Name, Version: b.version(p.Name), Kind: p.Kind, Path: bundle.PathOf(p.Kind, p.Name),
		Source: b.source(p.Name), Roles: p.Roles,
	}
	a, err := b.w.Add(ctx, a, b.inputs["program/"+p.Name], b.c.out(p.Name))
	if err != nil {
		return err
	}
	b.report(a, took)
	return nil
}

func (b *builder) chart(ctx context.Context, c packedChart) error {
	start := b.now()
	inputs := b.inputs["chart/"+c.Name]
	if b.w.Has(bundle.KindChart, c.Name, inputs) {
		return nil
	}
	file := b.w.Work(c.File())
	if err := os.WriteFile(file, c.archive, 0o644); err != nil {
		return fmt.Errorf("pack chart %s: %w", c.Name, err)
	}
	a, err := b.w.Add(ctx, c.Artifact(), inputs, file)
	if err != nil {
		return err
	}
	b.report(a, b.since(start))
	return nil
}

// programFile returns the path of a built program. A program that only images contain is in the work folder, and other programs are in the bundle.
func (b *builder) programFile(name string) string {
	p := b.programs[name]
	if p.Kind == "" {
		return b.c.out(name)
	}
	return filepath.Join(b.w.Dir(), filepath.FromSlash(bundle.PathOf(p.Kind, name)))
}

func (b *builder) report(a bundle.Artifact, took time.Duration) {
	b.n++
	fmt.Fprintf(b.out, "[%2d/%d] %-10s %-24s %-9s %9s  %s\n", b.n, b.total, a.Kind, a.Name, a.Version, megabytes(a.Size), took)
}

func (b *builder) since(start time.Time) time.Duration {
	return b.now().Sub(start).Round(100 * time.Millisecond)
}

func names(programs []Program) string {
	out := make([]string, len(programs))
	for i, p := range programs {
		out[i] = p.Name
	}
	return strings.Join(out, ", ")
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func size(b *bundle.Bundle) int64 {
	var n int64
	for _, a := range b.List("") {
		n += a.Size
	}
	return n
}
