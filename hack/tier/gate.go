package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// gate returns the steps of the gate. They need only Go, git and gcc. They run the same tests on every machine, and their results don't depend on
// the time.
func gate() []step {
	return []step{
		{name: "packages", run: func(ctx context.Context, r *runner) error { return r.exec(ctx, "sh", "hack/packages.sh", "gate") }, setup: true},
		{name: "gofmt", run: formatted},
		{name: "sh -n", run: shells},
		{name: "prose", run: func(ctx context.Context, r *runner) error { return r.exec(ctx, "go", "run", "./hack/prose") }},
		{name: "go vet", run: func(ctx context.Context, r *runner) error { return r.exec(ctx, "go", "vet", "./...") }},
		{name: "revive", run: func(ctx context.Context, r *runner) error { return r.exec(ctx, "sh", "hack/revive.sh") }},
		{name: "portal bundle", run: portal},
		{name: "release builder", run: releases},
		{name: "unit tests", run: unit},
		{name: "race detector", run: race},
		{name: "go vet of pai-scheduler", run: vetPlugin},
		{name: "control plane", run: func(ctx context.Context, r *runner) error {
			return r.exec(ctx, "go", "run", "./hack/controlplane", r.controlPlane())
		}, setup: true},
		{name: "main road", run: func(ctx context.Context, r *runner) error {
			return r.goTest(ctx, suite{flags: []string{"-vet=off", "-timeout", "10m"}, env: []string{"PAICTL_TEST_BUNDLE=" + r.controlPlane()}, packages: []string{module + "/test/road"}})
		}},
		{name: "unexpected skips", run: same},
		{name: "figures", run: figures},
	}
}

// controlPlane returns the folder with etcd and the API server. They are built once.
func (r *runner) controlPlane() string { return filepath.Join(cache(), "control-plane") }

// vetPlugin checks pai-scheduler, which is built with the libraries of one release of Kubernetes (docs/adr/0024). The tests of pai-scheduler run it
// as a process.
func vetPlugin(ctx context.Context, r *runner) error {
	return r.exec(ctx, "go", "vet", "-modfile=cmd/pai-scheduler/kubernetes.mod", "-tags=pai_scheduler", "./cmd/pai-scheduler", "./pkg/scheduler/plugin")
}

// portal checks that the built pages match their sources. The bundler is a separate module. The check doesn't use Go's test cache, because the cache
// doesn't track files outside that module.
func portal(ctx context.Context, r *runner) error {
	return errors.Join(r.exec(ctx, "go", "-C", "hack/portal", "vet", "."), r.exec(ctx, "go", "-C", "hack/portal", "test", "-count=1", "."))
}

// releases tests the code that writes the files of a release. This code is a separate module because of its libraries.
func releases(ctx context.Context, r *runner) error {
	return errors.Join(r.exec(ctx, "go", "-C", "hack/release", "vet", "."), r.exec(ctx, "go", "-C", "hack/release", "test", "-short", "."))
}

func formatted(ctx context.Context, r *runner) error {
	files, err := r.output(ctx, nil, "git", "ls-files", "-z", "-co", "--exclude-standard", "--deduplicate", "--", "*.go")
	if err != nil {
		return err
	}
	existing, err := existing(strings.FieldsFunc(files, func(c rune) bool { return c == 0 }))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for some := range slices.Chunk(existing, 500) {
		cmd := r.command(ctx, nil, "gofmt", append([]string{"-l"}, some...)...)
		cmd.Stdout = &out
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	if out.Len() > 0 {
		return fmt.Errorf("run gofmt -w on: %s", strings.Join(strings.Fields(out.String()), " "))
	}
	return nil
}

func shells(ctx context.Context, r *runner) error {
	files, err := filepath.Glob("hack/*.sh")
	if err != nil {
		return err
	}
	files = append(files, "hack/release/install.sh")
	var errs []error
	for _, file := range files {
		errs = append(errs, r.exec(ctx, "sh", "-n", file))
	}
	return errors.Join(errs...)
}

// later lists the folders whose tests need servers, hosts or minutes. The unit tests of all other packages run in the gate.
var later = []string{"test/alerts", "test/away", "test/catalogue", "test/clients", "test/e2e", "test/parity", "test/road", "test/scale", "test/scheduler", "pkg/kube/kubetest"}

// unit runs the tests of all packages that need no servers. It runs them without the race detector, and with pinned seeds.
func unit(ctx context.Context, r *runner) error {
	all, err := r.packages(ctx, later...)
	if err != nil {
		return err
	}
	rapid, err := r.rapid(ctx, all)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(all, func(pkg string) bool { return slices.Contains(rapid, pkg) })
	flags := []string{"-short", "-vet=off", "-timeout", "20m"}
	return errors.Join(
		r.goTest(ctx, suite{flags: flags, packages: rest}),
		r.goTest(ctx, suite{flags: flags, args: []string{"-rapid.seed=1"}, packages: rapid}))
}

// packages returns the import paths of all packages with tests, except packages in or below the folders in without.
func (r *runner) packages(ctx context.Context, without ...string) ([]string, error) {
	out, err := r.output(ctx, nil, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(out), func(pkg string) bool {
		return slices.ContainsFunc(without, func(folder string) bool {
			return pkg == module+"/"+folder || strings.HasPrefix(pkg, module+"/"+folder+"/")
		})
	}), nil
}

// rapid returns those of the packages that generate random cases with pgregory.net/rapid. Their tests have a flag for the seed.
func (r *runner) rapid(ctx context.Context, packages []string) ([]string, error) {
	out, err := r.output(ctx, nil, "go", append([]string{"list", "-f", `{{$p := .ImportPath}}{{range .TestImports}}{{if eq . "pgregory.net/rapid"}}{{$p}}{{"\n"}}{{end}}{{end}}{{range .XTestImports}}{{if eq . "pgregory.net/rapid"}}{{$p}}{{"\n"}}{{end}}{{end}}`}, packages...)...)
	if err != nil {
		return nil, err
	}
	found := strings.Fields(out)
	slices.Sort(found)
	return slices.Compact(found), nil
}

// raced lists small packages that use concurrency and need few libraries. The number of libraries matters, because they are compiled again for the
// race detector. In the tier "more", the race detector runs on all packages that use concurrency.
var raced = []string{"pkg/cluster/apiproxy", "pkg/audit", "pkg/job/controller/rendezvous", "pkg/node/logstore", "pkg/cluster/peer", "pkg/people/password",
	"pkg/runtime/barrier", "pkg/runtime/sshd"}

func race(ctx context.Context, r *runner) error {
	var packages []string
	for _, folder := range raced {
		packages = append(packages, module+"/"+folder)
	}
	return r.goTest(ctx, suite{flags: []string{"-race", "-short", "-vet=off", "-timeout", "20m"}, env: []string{"CGO_ENABLED=1"}, packages: packages})
}

// later reports whether a later tier runs the skipped test. The reason of the skip comes from test/tier.
func (s skip) later() bool {
	return strings.HasPrefix(s.Reason, "make test-more runs it: ") || strings.HasPrefix(s.Reason, "make test-hosts runs it: ")
}

// same fails if a test in the gate was skipped for a reason that depends on the machine.
func same(_ context.Context, r *runner) error {
	var errs []error
	for _, s := range r.report.Skipped {
		if !s.later() {
			errs = append(errs, fmt.Errorf("%s %s was skipped: %s; give it what it needs, or leave it to a later tier by test/tier", s.Package, s.Test, s.Reason))
		}
	}
	return errors.Join(errs...)
}
