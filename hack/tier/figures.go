package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// figure is one measure of the size of the repository, now and before.
type figure struct {
	name, unit string
	now, then  int64
}

// figures prints the size of the repository, in comparison with an earlier commit of main. It never makes a tier fail.
func figures(ctx context.Context, r *runner) error {
	if err := r.compare(ctx); err != nil {
		r.report.Figures = "figures: " + err.Error()
		fmt.Fprintln(r.out, r.report.Figures)
	}
	return nil
}

func (r *runner) compare(ctx context.Context) error {
	base, name, err := before(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "paictl-figures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := git(ctx, nil, "ls-files", "-co", "--exclude-standard", "--deduplicate", "--", "*.go")
	if err != nil {
		return err
	}
	now, err := r.measure(ctx, ".", files, filepath.Join(dir, "now"))
	if err != nil {
		return err
	}
	old := filepath.Join(dir, "tree")
	if files, err = git(ctx, nil, "ls-tree", "-r", "--name-only", base); err != nil {
		return err
	}
	if err := r.exec(ctx, "sh", "-c", `mkdir "$1" && git archive "$2" | tar -x -C "$1"`, "sh", old, base); err != nil {
		return err
	}
	then, err := r.measure(ctx, old, files, filepath.Join(dir, "then"))
	if err != nil {
		return err
	}
	lines := []string{"figures, and the change since " + name + ":"}
	for i, f := range now {
		f.then = then[i].now
		lines = append(lines, f.String())
	}
	r.report.Figures = strings.Join(lines, "\n")
	return nil
}

func (f figure) String() string {
	return fmt.Sprintf("%9d  %-36s %+d", f.now, f.name+f.unit, f.now-f.then)
}

// before returns the last commit of main before the tested commit, and the name of the commit for the report.
func before(ctx context.Context) (commit, name string, err error) {
	head, err := git(ctx, nil, "rev-parse", "HEAD")
	if err != nil {
		return "", "", err
	}
	for _, ref := range []string{"origin/main", "main"} {
		if c, err := git(ctx, nil, "merge-base", ref, "HEAD"); err == nil && c != head {
			return c, ref, nil
		}
	}
	if status, err := git(ctx, nil, "status", "--porcelain"); err == nil && status != "" {
		return head, "the last commit", nil
	}
	if commit, err = git(ctx, nil, "rev-parse", "HEAD~1"); err != nil {
		return "", "", errors.New("this clone has no commit before this one to compare with")
	}
	return commit, "the commit before", nil
}

// measure returns the figures of a checkout. files lists the names of its files, one in each line. program is the path to which measure builds
// paictl.
func (r *runner) measure(ctx context.Context, dir, files, program string) ([]figure, error) {
	var lines, tests int64
	packages := map[string]bool{}
	for file := range strings.FieldsSeq(files) {
		if !strings.HasSuffix(file, ".go") || strings.Contains(file, "testdata/") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		n := int64(strings.Count(string(b), "\n"))
		if strings.HasSuffix(file, "_test.go") {
			tests += n
			continue
		}
		lines += n
		packages[path.Dir(file)] = true
	}
	direct, err := requirements(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	with := []string{"build"}
	if _, err := os.Stat(filepath.Join(dir, "hack", "build")); err == nil { // older trees don't have it
		with = []string{"run", "-buildvcs=false", "./hack/build"}
	}
	build := r.command(ctx, nil, "go", append(with, "-buildvcs=false", "-ldflags=-s -w", "-o", program, "./cmd/paictl")...)
	build.Dir = dir
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build paictl: %w", err)
	}
	info, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	return []figure{
		{name: "lines of Go", now: lines}, {name: "lines of tests", now: tests}, {name: "packages", now: int64(len(packages))},
		{name: "direct dependencies", now: direct}, {name: "paictl", unit: ", KiB", now: info.Size() >> 10},
	}, nil
}

// requirements returns the number of direct dependencies in a go.mod.
func requirements(file string) (n int64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	inside := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inside = true
		case line == ")":
			inside = false
		case (inside && line != "" || strings.HasPrefix(line, "require ")) && !strings.HasSuffix(line, "// indirect") && !strings.HasPrefix(line, "//"):
			n++
		}
	}
	return n, nil
}
