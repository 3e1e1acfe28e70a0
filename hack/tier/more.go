package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// more returns the steps of the second tier. It contains all checks that need real servers, the race detector or minutes.
func more() []step {
	return []step{
		{name: "packages", run: packagesOf("test"), setup: true},
		{name: "bundle", run: func(ctx context.Context, r *runner) error { return r.makeBundle(ctx) }, setup: true},
		{name: "servers", run: servers, setup: true},
		{name: "API servers", run: apiServers, setup: true},
		{name: "golangci-lint", run: script("hack/lint.sh", "golangci-lint can't be built here")},
		{name: "types of the portal", run: script("hack/portal-types.sh", "node, npm or the registry of npm are missing")},
		{name: "govulncheck", run: script("hack/vulns.sh", "govulncheck can't be built here, or its database can't be reached")},
		{name: "actionlint", run: script("hack/actions.sh", "actionlint can't be built here")},
		{name: "releases", run: wholeReleases},
		{name: "other platforms", run: otherPlatforms},
		{name: "race detector", run: racedTests},
		{name: "tests", run: plainTests},
	}
}

// hosts returns the steps of the third tier, which contains the tests on sandbox hosts.
func hosts() []step {
	return []step{
		{name: "packages", run: packagesOf("test"), setup: true},
		{name: "bundle", run: func(ctx context.Context, r *runner) error { return r.makeBundle(ctx) }, setup: true},
		{name: "files between hosts", run: func(ctx context.Context, r *runner) error {
			return r.onHosts(ctx, "pkg/cluster", []string{"-run", "^TestFilesGoBetweenRealHosts$", "-timeout", "15m"})
		}},
		{name: "former version", run: former, setup: true},
		{name: "tests on hosts", run: func(ctx context.Context, r *runner) error {
			return r.onHosts(ctx, "test/e2e", append([]string{"-p", "1", "-timeout", "3h"}, r.remaining()...))
		}},
	}
}

func packagesOf(tier string) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		if err := r.exec(ctx, "sh", "hack/packages.sh", tier); err != nil {
			return skippedError{"some packages are missing, so some tests will be skipped"}
		}
		return nil
	}
}

// script returns a step that runs a script. If the script exits with 75, this machine can't run it, and missing is the reason.
func script(file, missing string) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		err := r.exec(ctx, "sh", file)
		if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == 75 {
			return skippedError{missing}
		}
		return err
	}
}

// wholeReleases tests the files of a release: that two clones make the same files, and that install.sh and dpkg install them. Go's test cache doesn't
// track the rest of the repository, which the tests read, because it is outside the module of the tests.
func wholeReleases(ctx context.Context, r *runner) error {
	return r.exec(ctx, "go", "-C", "hack/release", "test", "-count=1", "-timeout", "45m", ".")
}

// otherPlatforms compiles programs for platforms on which no tier runs tests. The programs for arm64 also run, under qemu.
func otherPlatforms(ctx context.Context, r *runner) error {
	dir, err := os.MkdirTemp("", "paictl-platforms-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The pattern omits the two programs that need a C compiler or another go.mod file.
	arm := r.buildFor(ctx, "linux/arm64", dir+"/", "./cmd/...")
	mac := r.buildFor(ctx, "darwin/arm64", os.DevNull, "./cmd/paictl", "./cmd/paictl-history")
	if err := errors.Join(arm, mac); err != nil {
		return err
	}
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		return skippedError{"the programs for arm64 were compiled, and not run, because qemu-aarch64-static is missing"}
	}
	return r.emulate(ctx, emulator, dir)
}

// buildFor compiles packages for another platform.
func (r *runner) buildFor(ctx context.Context, platform, output string, packages ...string) error {
	goos, arch, _ := strings.Cut(platform, "/")
	cmd := r.command(ctx, []string{"GOOS=" + goos, "GOARCH=" + arch}, "go", append([]string{"build", "-buildvcs=false", "-o", output}, packages...)...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the programs for %s: %w", platform, err)
	}
	return nil
}

// emulate runs the programs in a folder under an emulator. paictl reads the example jobs. The other programs print their flags or refuse the command
// line, which shows that they start.
func (r *runner) emulate(ctx context.Context, emulator, dir string) error {
	jobs, err := filepath.Glob("examples/jobs/*.yaml")
	if err != nil {
		return err
	}
	paictl := filepath.Join(dir, "paictl")
	errs := []error{r.exec(ctx, emulator, paictl, "version"), r.exec(ctx, emulator, append([]string{paictl, "job", "validate"}, jobs...)...)}
	programs, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, p := range programs {
		cmd := r.command(ctx, nil, emulator, filepath.Join(dir, p.Name()), "--help")
		cmd.Stdout, cmd.Stderr = nil, nil
		out, err := cmd.CombinedOutput()
		ended, failed := errors.AsType[*exec.ExitError](err)
		if failed && ended.Exited() {
			continue // it refused the flag
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s for arm64: %w: %s", p.Name(), err, out))
		}
	}
	fmt.Fprintf(r.out, "%d programs for arm64 ran under %s\n", len(programs), filepath.Base(emulator))
	return errors.Join(errs...)
}

// bundle returns the folder of the bundle for tests.
func (r *runner) bundle() string {
	if dir := os.Getenv("PAICTL_BUNDLE"); dir != "" {
		if absolute, err := filepath.Abs(dir); err == nil {
			return absolute
		}
	}
	return filepath.Join(cache(), "bundle")
}

// bundleOf returns the folder of the bundle or control plane that the tier of this run uses.
func (r *runner) bundleOf() string {
	if r.tier == "gate" {
		return r.controlPlane()
	}
	return r.bundle()
}

// makeBundle builds the bundle, and adds it to the environment of the tests. Go's test cache doesn't track the bundle, but it tracks the environment
// variables that a test reads. So a changed bundle gets another name. The name doesn't depend on charts and programs of paictl, because they change
// with each commit, and only tests on hosts use them.
func (r *runner) makeBundle(ctx context.Context) error {
	dir := r.bundle()
	// Two tiers may run at the same time, in two worktrees. The second waits until the first has built the bundle.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := r.exec(ctx, "flock", "--no-fork", dir+".lock", "make", "--no-print-directory", "bundle", "BUNDLE="+dir); err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.yaml"))
	if err != nil {
		return err
	}
	named := filepath.Join(cache(), "bundles", nameOf(string(manifest)))
	if err := os.MkdirAll(filepath.Dir(named), 0o755); err != nil {
		return err
	}
	_ = os.Remove(named)
	if err := os.Symlink(dir, named); err != nil {
		return err
	}
	// PAICTL_BUNDLE is a setting of paictl, too. As a setting, it must not affect the tests of commands.
	r.env = slices.DeleteFunc(r.env, func(kv string) bool { return strings.HasPrefix(kv, "PAICTL_BUNDLE=") })
	r.env = append(r.env, "PAICTL_TEST_BUNDLE="+named)
	if _, err := r.output(ctx, nil, "sh", "hack/sandboxable.sh"); err == nil {
		r.env = append(r.env, "PAICTL_TEST_BASE=1") // the base image of sandbox hosts may be made
	}
	if tool := filepath.Join(named, "tools", "promtool"); os.Getenv("PAICTL_PROMTOOL") == "" {
		if _, err := os.Stat(tool); err == nil {
			r.env = append(r.env, "PAICTL_PROMTOOL="+tool)
		}
	}
	return nil
}

// nameOf returns a name for the third-party parts of a bundle, which is derived from the bundle's manifest.
func nameOf(manifest string) string {
	sum := fnv.New64a()
	for i, artifact := range strings.Split(manifest, "    - name: ") {
		if i == 0 || !strings.Contains(artifact, "source: "+module+"@") && !strings.Contains(artifact, "kind: chart") {
			_, _ = io.WriteString(sum, artifact)
		}
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}

// tools maps the environment variables for servers that tests use to scripts. A script builds the server if necessary, and prints its path.
var tools = map[string]string{
	"PAICTL_TEST_S3":          "hack/versitygw.sh",
	"PAICTL_TEST_OPENPAI_SDK": "hack/openpai-js-sdk.sh",
	"PAICTL_TEST_OIDC":        "hack/dex.sh",
	"PAICTL_TEST_ACME":        "hack/pebble.sh",
}

func servers(ctx context.Context, r *runner) error {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if os.Getenv(name) != "" {
			continue
		}
		file, err := r.output(ctx, nil, "sh", tools[name])
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		r.env = append(r.env, name+"="+strings.TrimSpace(file))
	}
	if len(missing) > 0 {
		return skippedError{"the tests of these servers are skipped: " + strings.Join(missing, "; ")}
	}
	return nil
}

// apiServers starts the API servers that packages borrow, one for each package that "go test" runs at the same time. The API servers stop when this
// process exits.
func apiServers(ctx context.Context, r *runner) error {
	program, err := filepath.Abs("bin/apiservers")
	if err != nil {
		return err
	}
	if err := r.exec(ctx, "go", "build", "-buildvcs=false", "-o", program, "./hack/apiservers"); err != nil {
		return err
	}
	dir := filepath.Join(cache(), "apiservers")
	cmd := r.command(ctx, nil, program, dir, r.bundle(), strconv.Itoa(runtime.GOMAXPROCS(0)))
	cmd.Stdout = nil
	// Nothing is written to the pipe. When this process exits, the pipe is closed, and the servers stop.
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start the API servers: %w", err)
	}
	if said, _ := bufio.NewReader(out).ReadString('\n'); said != "ready\n" {
		return fmt.Errorf("start the API servers: %w", cmp.Or(cmd.Wait(), errors.New("they ended")))
	}
	r.env = append(r.env, "PAICTL_TEST_SERVERS="+dir)
	return nil
}

// scripted matches tests that start the program many times, or that read tens of thousands of objects. The race detector would slow them down
// several times, although they use no relevant concurrency.
const scripted = "^(TestScripts(OnAServer|WithTasks)?|TestALargeClusterTakesLittleMemory)$"

// simulated is a package whose tests in later tiers run thousands of scripts on simulated machines, with both ends of SSH in one process. The race
// detector slows these tests down ten times. So it runs only on the package's tests for the gate, which use the same concurrency.
const simulated = module + "/pkg/cluster"

// longest lists the packages whose tests take longest. They start first.
var longest = []string{module + "/pkg/server/assembly"}

// onRace returns the packages that use concurrency, for the race detector. The packages whose tests take longest come first. It leaves out packages
// below test, because they start programs, which the race detector can't observe.
func (r *runner) onRace(ctx context.Context) ([]string, error) {
	env := []string{"CGO_ENABLED=1"}
	out, err := r.output(ctx, env, "go", "list", "-f", "{{.ImportPath}} {{.Dir}}", "./...")
	if err != nil {
		return nil, err
	}
	all, err := concurrent(strings.NewReader(out))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(pkg string) bool {
		return strings.HasPrefix(pkg, module+"/test/") || pkg == simulated || slices.Contains(longest, pkg)
	})
	return append(slices.Clone(longest), all...), nil
}

func racedTests(ctx context.Context, r *runner) error {
	packages, err := r.onRace(ctx)
	if err != nil {
		return err
	}
	s := suite{
		// SQLite is C code that was translated to Go, and the race detector would slow it down five times. Only our calls of SQLite are
		// instrumented.
		flags:    []string{"-race", "-gcflags=modernc.org/...=-dwarf=false -race=false", "-skip", scripted, "-vet=off", "-timeout", "80m"},
		env:      []string{"CGO_ENABLED=1", "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations"}, // NVML has many deprecated calls
		packages: r.rest(packages),
	}
	short := s
	short.flags, short.packages, short.partial = append(slices.Clone(s.flags), "-short"), []string{simulated}, true
	return errors.Join(r.goTest(ctx, s), r.goTest(ctx, short))
}

func plainTests(ctx context.Context, r *runner) error {
	all, err := r.packages(ctx, "test/e2e", "test/road")
	if err != nil {
		return err
	}
	raced, err := r.onRace(ctx)
	if err != nil {
		return err
	}
	var serial, scripts []string
	for _, pkg := range all {
		if !slices.Contains(raced, pkg) {
			serial = append(serial, pkg)
		} else if hasScripts(pkg) {
			scripts = append(scripts, pkg)
		}
	}
	return errors.Join(
		r.goTest(ctx, suite{flags: []string{"-vet=off", "-timeout", "45m"}, packages: r.rest(serial)}),
		r.goTest(ctx, suite{flags: []string{"-run", scripted, "-vet=off", "-timeout", "45m"}, packages: scripts, partial: true}))
}

// hasScripts reports whether a package contains a test that scripted matches.
func hasScripts(pkg string) bool {
	files, _ := filepath.Glob("." + strings.TrimPrefix(pkg, module) + "/*_test.go")
	return slices.ContainsFunc(files, func(file string) bool {
		b, _ := os.ReadFile(file)
		return strings.Contains(string(b), "\nfunc TestScripts") || strings.Contains(string(b), "\nfunc TestALargeClusterTakesLittleMemory")
	})
}

// rest returns the packages that haven't passed in this step of the run that is being continued.
func (r *runner) rest(packages []string) []string {
	if r.since == nil {
		return packages
	}
	return slices.DeleteFunc(slices.Clone(packages), func(pkg string) bool { return slices.Contains(r.since.Passed[r.report.step], pkg) })
}

// onHosts runs tests on sandbox hosts. They need root, namespaces and a bundle.
func (r *runner) onHosts(ctx context.Context, folder string, flags []string) error {
	if why, err := r.output(ctx, nil, "sh", "hack/sandboxable.sh"); err != nil {
		return skippedError{strings.TrimSpace(why)}
	}
	env := []string{"PAICTL_E2E=1", "PAICTL_TEST_BASE=1", "PAICTL_BUNDLE=" + r.bundle()}
	return r.goTest(ctx, suite{flags: append(flags, "-vet=off"), env: env, fresh: true, packages: []string{module + "/" + folder}})
}

// former builds an older version of paictl and its bundle, from which the tests on hosts upgrade a cluster. The first run copies the bundle and builds
// paictl's own programs, which takes a few minutes. Later runs on the same day find everything built.
func former(ctx context.Context, r *runner) error {
	if os.Getenv("PAICTL_UPGRADE_FROM") != "" {
		return nil // the tests upgrade from a version of the user's choice
	}
	if why, err := r.output(ctx, nil, "sh", "hack/sandboxable.sh"); err != nil {
		return skippedError{strings.TrimSpace(why)}
	}
	commit, err := formerCommit(ctx)
	if err != nil {
		return err
	}
	if commit == "" {
		return skippedError{"no upgrade of jobs is tested: the history of git has no tag before HEAD and no commit of an earlier day"}
	}
	dir := filepath.Join(cache(), "former")
	if err := os.MkdirAll(cache(), 0o755); err != nil {
		return err
	}
	build := r.command(ctx, []string{"PAICTL_BUNDLE=" + r.bundle()}, "flock", "--no-fork", dir+".lock", "sh", "hack/former.sh", commit, dir)
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the version of %s, from which the tests upgrade (set PAICTL_UPGRADE_FROM to use another one): %w", commit, err)
	}
	r.env = append(r.env, "PAICTL_UPGRADE_FROM="+dir)
	return nil
}

// formerCommit returns the commit of the version from which the tests on hosts upgrade. It is the commit of the newest tag before HEAD. Without a tag,
// it is the newest commit that was made before the day of HEAD, so the version changes at most once a day. formerCommit returns "" if the history of
// git doesn't contain such a commit.
func formerCommit(ctx context.Context) (string, error) {
	if tag, err := git(ctx, nil, "describe", "--tags", "--abbrev=0", "HEAD^"); err == nil {
		return git(ctx, nil, "rev-parse", tag+"^{commit}")
	}
	head, err := git(ctx, nil, "log", "-1", "--format=%ct", "HEAD")
	if err != nil {
		return "", err
	}
	seconds, err := strconv.ParseInt(head, 10, 64)
	if err != nil {
		return "", fmt.Errorf("read the time of HEAD: %w", err)
	}
	const day = 24 * 60 * 60
	return git(ctx, nil, "rev-list", "-1", "--first-parent", fmt.Sprintf("--before=%d", seconds/day*day-1), "HEAD")
}

// remaining returns flags that skip the tests on hosts that have passed in the run that is being continued.
func (r *runner) remaining() []string {
	if r.since == nil || len(r.since.PassedTests) == 0 {
		return nil
	}
	return []string{"-skip", "^(" + strings.Join(slices.Sorted(maps.Keys(r.since.PassedTests)), "|") + ")$"}
}
