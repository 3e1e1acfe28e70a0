package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"aead.dev/minisign"
)

// module is the path of paictl's module.
const module = "github.com/openpai/paictl"

// allPlatforms lists the platforms for which paictl is released.
var allPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// part is a group of files of the release that can be built separately.
type part struct {
	name string
	make func(ctx context.Context, b *build) error
}

// parts lists the parts in build order. Each part needs only earlier parts.
var parts = []part{
	{"paictl", func(ctx context.Context, b *build) error { return b.programs(ctx) }},
	{"archives", func(ctx context.Context, b *build) error { return b.archives(ctx) }},
	{"packages", func(ctx context.Context, b *build) error { return b.packages(ctx) }},
	{"image", func(ctx context.Context, b *build) error { return b.image(ctx) }},
	{"charts", func(ctx context.Context, b *build) error { return b.charts(ctx) }},
	{"bundle", func(ctx context.Context, b *build) error { return b.bundleArchives(ctx) }},
	{"install", func(_ context.Context, b *build) error { return b.installer() }},
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// platform is one of allPlatforms.
type platform struct{ os, arch string }

func (o options) list() []platform {
	var out []platform
	for _, p := range o.platforms {
		goos, arch, _ := strings.Cut(p, "/")
		out = append(out, platform{goos, arch})
	}
	return out
}

// build holds the state of one run of the program.
type build struct {
	options
	root string // the root of the repository
	dir  string // the folder of the release's files
	work string // folder for unfinished files
	// commit is the commit of the source. when is the time of the commit, which all files of the release get.
	commit string
	when   time.Time
	public *minisign.PublicKey
	secret *minisign.PrivateKey
	out    io.Writer
	made   map[string]string // kind by file name
	// written holds the man pages and completions after they have been created.
	written []entry
}

// newBuild returns a build. It checks the repository and the keys first, because the build takes long.
func newBuild(ctx context.Context, o options, progress io.Writer) (*build, error) {
	b := &build{options: o, out: progress, made: map[string]string{}}
	var err error
	if b.root, err = root(); err != nil {
		return nil, err
	}
	if err := b.source(ctx); err != nil {
		return nil, err
	}
	if err := b.keys(); err != nil {
		return nil, err
	}
	if b.dir, err = filepath.Abs(filepath.Join(b.root, o.out, b.version)); err != nil {
		return nil, err
	}
	if filepath.IsAbs(o.out) {
		b.dir = filepath.Join(o.out, b.version)
	}
	// Otherwise, files of an earlier run would become part of the list of checksums.
	if err := os.RemoveAll(b.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, err
	}
	b.work, err = os.MkdirTemp(filepath.Dir(b.dir), ".work-")
	return b, err
}

// root returns the root of the repository, which is two folders above the working directory.
func root() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root := filepath.Join(here, "..", "..")
	if _, err := os.Stat(filepath.Join(root, "cmd", "paictl", "main.go")); err != nil {
		return "", fmt.Errorf("run it in hack/release: %w", err)
	}
	return root, nil
}

// source reads the commit, its time and the version from git.
func (b *build) source(ctx context.Context) error {
	commit, err := b.output(ctx, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	seconds, err := b.output(ctx, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	b.commit, b.when = commit, time.Unix(n, 0).UTC()
	tag, tagErr := b.output(ctx, "git", "describe", "--tags", "--exact-match")
	changes, err := b.output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if !b.snapshot {
		if changes != "" {
			return errors.New("the tree has changes that aren't committed: commit them, or give --snapshot")
		}
		if tagErr != nil || b.version != "" && b.version != tag {
			return errors.New("the commit doesn't have the tag of the version: tag it, or give --snapshot")
		}
	}
	if b.version == "" {
		b.version = tag
	}
	if b.version == "" {
		b.version = "v0.1.0-dev+" + commit[:8]
		if changes != "" {
			b.version += "-dirty"
		}
	}
	if !strings.HasPrefix(b.version, "v") || strings.ContainsAny(b.version, "/ _\t") {
		return fmt.Errorf("version %q is not of the form v1.2.3", b.version)
	}
	return nil
}

// output runs a command in the repository, and returns its output.
func (b *build) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = b.root
	cmd.Env = append(environment(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(b.when.Unix(), 10))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// run runs a long command in the repository. The output of the command is part of the output of this program.
func (b *build) run(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.root, b.out, b.out
	cmd.Env = append(environment(), env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// environment returns the environment of this process, without variables that would change the result of a build.
func environment() []string {
	drop := []string{"GOFLAGS", "GOWORK", "GOEXPERIMENT", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CC", "CXX", "CFLAGS", "LDFLAGS", "LANG", "SOURCE_DATE_EPOCH"}
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(drop, name) && !strings.HasPrefix(name, "CGO_") && !strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	return append(env, "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "LC_ALL=C")
}

// file returns the path of a file of the release. It also records the kind of the file.
func (b *build) file(name, kind string) string {
	b.made[name] = kind
	return filepath.Join(b.dir, name)
}

// program returns the path of a released program for a platform.
func (b *build) program(name string, p platform) string {
	return filepath.Join(b.dir, name+"_"+b.version+"_"+p.os+"_"+p.arch)
}

// needs returns an error if a part that another part needs isn't built.
func (b *build) needs(name string) error {
	if slices.Contains(b.only, name) {
		return nil
	}
	return fmt.Errorf("it is made of the part %s: add that to --only", name)
}
