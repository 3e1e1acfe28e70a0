package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// names lists the programs of a release. paictl starts the others, which must be in the same folder.
var names = []string{"paictl", "paictl-history"}

// programs builds all programs for all platforms, and a list of the modules in each program.
func (b *build) programs(ctx context.Context) error {
	for _, p := range b.list() {
		for _, name := range names {
			file := b.program(name, p)
			b.made[filepath.Base(file)] = "program"
			if err := b.compile(ctx, name, p, file); err != nil {
				return err
			}
			bom, err := sbom(file, b.version, b.when)
			if err != nil {
				return err
			}
			if err := os.WriteFile(b.file(filepath.Base(file)+".cdx.json", "sbom"), bom, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile builds a program with the flags of the Makefile and without a build ID. The build ID is the only part of a program that would depend on
// paths.
func (b *build) compile(ctx context.Context, name string, p platform, file string) error {
	flags := []string{"-s", "-w", "-buildid=", "-X", module + "/pkg/version.Version=" + b.version}
	if b.public != nil {
		flags = append(flags, "-X", module+"/pkg/release.PublicKey="+b.public.String())
	}
	if b.address != "" {
		flags = append(flags, "-X", module+"/pkg/release.Address="+b.address)
	}
	err := b.run(ctx, []string{"TARGET_GOOS=" + p.os, "TARGET_GOARCH=" + p.arch}, "go", "run", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-mod=readonly", "./hack/build",
		"-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=true", "-mod=readonly", "-ldflags", strings.Join(flags, " "), "-o", file, "./cmd/"+name)
	if err != nil {
		return fmt.Errorf("build %s for %s/%s: %w", name, p.os, p.arch, err)
	}
	return nil
}

// pages returns the man pages and completions. A paictl that is built for this machine writes them once.
func (b *build) pages(ctx context.Context) ([]entry, error) {
	if b.written == nil {
		var err error
		if b.written, err = b.writePages(ctx); err != nil {
			return nil, err
		}
	}
	return slices.Clone(b.written), nil
}

func (b *build) writePages(ctx context.Context) ([]entry, error) {
	program := b.program("paictl", platform{runtime.GOOS, runtime.GOARCH})
	if _, err := os.Stat(program); err != nil {
		program = filepath.Join(b.work, "paictl")
		if err := b.compile(ctx, "paictl", platform{runtime.GOOS, runtime.GOARCH}, program); err != nil {
			return nil, err
		}
	}
	dir := filepath.Join(b.work, "man")
	if _, err := b.output(ctx, program, "docs", "man", "--dir", dir); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, f := range pages {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: "share/man/man1/" + f.Name(), mode: 0o644, data: data})
	}
	for shell, name := range map[string]string{
		"bash": "share/bash-completion/completions/paictl", "zsh": "share/zsh/site-functions/_paictl", "fish": "share/fish/vendor_completions.d/paictl.fish",
	} {
		text, err := b.output(ctx, program, "completion", shell)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: name, mode: 0o644, data: []byte(text + "\n")})
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(filepath.Join(b.root, name))
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: "share/doc/paictl/" + name, mode: 0o644, data: data})
	}
	return out, nil
}

// installation returns all files of an installation for a platform, including all programs. Their names are relative to a prefix such as /usr.
func (b *build) installation(ctx context.Context, p platform) ([]entry, error) {
	pages, err := b.pages(ctx)
	if err != nil {
		return nil, err
	}
	programs, err := b.binaries(p)
	return append(pages, programs...), err
}

// binaries returns all programs for a platform as entries in the folder bin.
func (b *build) binaries(p platform) ([]entry, error) {
	var out []entry
	for _, name := range names {
		data, err := os.ReadFile(b.program(name, p))
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: "bin/" + name, mode: 0o755, data: data})
	}
	return out, nil
}
