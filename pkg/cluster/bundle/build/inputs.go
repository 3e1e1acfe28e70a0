package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	goversion "go/version"
	"regexp"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/chart"
	"github.com/openpai/paictl/pkg/hint"
)

// The versions of this package's output. Increase a version when this package makes different files from the same recipe.
const (
	format      = 1 // of programs
	imageFormat = 2
)

// plan is a recipe with all data that affects the resulting files.
type plan struct {
	recipe   Recipe
	pins     map[string]pin     // by module
	modules  map[string]Module  // by program
	programs map[string]Program // by name
	inputs   map[string]string  // checksum by "program/NAME", "image/NAME" and "chart/NAME"
	charts   []packedChart
}

type packedChart struct {
	chart.Chart
	archive []byte
}

// makePlan reads the pins and the versions of the tools. It writes paictl's own modules to the work folder.
func makePlan(ctx context.Context, r Recipe, source string, c compiler) (*plan, error) {
	p := &plan{recipe: r, pins: map[string]pin{}, modules: map[string]Module{}, programs: map[string]Program{}, inputs: map[string]string{}}
	cc := ""
	for _, m := range r.Modules {
		pin, err := readPin(source, m)
		if m.Own != nil {
			pin, err = writeOwn(c.work, m)
		}
		if err != nil {
			return nil, err
		}
		p.pins[m.Name] = pin
		goVersion, err := c.output(ctx, pin.dir, "go", "env", "GOVERSION")
		if err != nil {
			return nil, fmt.Errorf("find the Go version for %s: %w", m.Name, err)
		}
		if err := checkGo(m.Name, string(pin.sums), goVersion); err != nil {
			return nil, err
		}
		for _, prog := range m.Programs {
			if (m.CGO || prog.C != "") && cc == "" {
				if cc, err = ccVersion(ctx, c); err != nil {
					return nil, err
				}
			}
			p.modules[prog.Name], p.programs[prog.Name] = m, prog
			p.inputs["program/"+prog.Name] = programInputs(m, prog, pin, c.arch, goVersion, cc)
		}
	}
	for _, img := range r.Images {
		sum, err := p.imageInputs(img, c.arch)
		if err != nil {
			return nil, err
		}
		p.inputs["image/"+img.Name] = sum
	}
	return p, p.planCharts()
}

// planCharts packs the charts. The inputs contain the checksums of the archives, because packing is fast.
func (p *plan) planCharts() error {
	if p.recipe.Charts == nil {
		return nil
	}
	list, err := chart.List(p.recipe.Charts)
	if err != nil {
		return err
	}
	for _, c := range list {
		archive, err := c.Archive()
		if err != nil {
			return err
		}
		p.charts = append(p.charts, packedChart{c, archive})
		p.inputs["chart/"+c.Name] = checksum(archive)
	}
	return nil
}

// checkGo returns an error if the version of Go is older than a module's go.mod requires. The go command may already have switched to a newer
// version, depending on GOTOOLCHAIN.
func checkGo(module, mod, have string) error {
	want := regexp.MustCompile(`(?m)^go (\S+)`).FindStringSubmatch(mod)
	have, _, _ = strings.Cut(have, " ")
	if want == nil || goversion.Compare(have, "go"+want[1]) >= 0 {
		return nil
	}
	return hint.Errorf("install Go "+want[1]+" or newer from https://go.dev/dl, or let this one fetch it: export GOTOOLCHAIN=auto",
		"%s needs Go %s, this machine has %s", module, want[1], strings.TrimPrefix(have, "go"))
}

// ccVersion returns text that identifies the C compiler and the static libraries of linked programs.
func ccVersion(ctx context.Context, c compiler) (string, error) {
	gcc, err := c.output(ctx, c.work, "gcc", "--version")
	if err != nil {
		return "", err
	}
	libc, err := c.output(ctx, c.work, "gcc", "-print-file-name=libc.a")
	if err != nil {
		return "", err
	}
	sum, err := bundle.HashFile(ctx, libc)
	if err != nil {
		return "", fmt.Errorf("find the C library: %w", err)
	}
	// Ignore the error, because the build of runc reports a missing libseccomp.
	seccomp, _ := c.output(ctx, c.work, "pkg-config", "--modversion", "libseccomp")
	return strings.Join([]string{gcc, sum, seccomp}, "|"), nil
}

func programInputs(m Module, prog Program, p pin, arch, goVersion, cc string) string {
	if prog.C != "" {
		return checksum(format, prog, p.version, arch, cc)
	}
	if !m.CGO {
		cc = ""
	}
	m.Programs = nil // the result doesn't depend on the module's other programs
	return checksum(format, m, prog, ldflags(m, p.version), string(p.sums), arch, goVersion, cc)
}

func (p *plan) imageInputs(img Image, arch string) (string, error) {
	parts := []any{imageFormat, img, arch}
	if len(img.Debian) > 0 {
		parts = append(parts, scriptPackages())
	}
	for _, f := range img.Files {
		sum, ok := p.inputs["program/"+f.Program]
		if !ok {
			return "", fmt.Errorf("image %s contains %s, which no module builds", img.Name, f.Program)
		}
		parts = append(parts, sum)
	}
	return checksum(parts...), nil
}

// version returns the program's own version or else the version of its module.
func (p *plan) version(program string) string {
	if v := p.programs[program].Version; v != "" {
		return v
	}
	return p.pins[p.modules[program].Name].version
}

func (p *plan) source(program string) string {
	m := p.modules[program]
	return m.Path + "@" + p.pins[m.Name].version
}

func checksum(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		panic("a recipe is plain data: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
