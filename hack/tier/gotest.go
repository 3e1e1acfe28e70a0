package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// event is a line in the output of "go test -json"; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// maxAgain is the maximum number of failed tests that are run again. If more tests fail, they haven't failed by chance.
const maxAgain = 3

// goTest runs "go test" with the arguments, prints its output, and adds the results to the report. If a test fails that isn't quarantined, goTest
// runs the test again alone. It returns an error if the test fails again.
func (r *runner) goTest(ctx context.Context, s suite) error {
	if len(s.packages) == 0 {
		return nil // go test would test the package of the current folder
	}
	run, err := r.test(ctx, s)
	if err == nil && len(run.tests) == 0 && r.since == nil {
		return errors.New("no test ran")
	}
	if err == nil || ctx.Err() != nil || run.hopeless {
		return err
	}
	gating := run.gating(r.quarantine)
	again := run.again(gating, len(r.report.Flaky))
	if again == nil {
		return err
	}
	for _, pkg := range slices.Sorted(maps.Keys(again)) {
		fmt.Fprintf(r.out, "again\t%s\t%s\n", pkg, strings.Join(again[pkg], " "))
		if _, err := r.test(ctx, s.part(pkg, "-run", again[pkg])); err != nil {
			return err
		}
	}
	// The other tests of each package must pass without the excused tests, because a failed test may have hidden a later crash.
	for _, pkg := range slices.Sorted(maps.Keys(run.failed)) {
		if _, err := r.test(ctx, s.part(pkg, "-skip", r.skipped(pkg, run.failed[pkg]))); err != nil {
			return fmt.Errorf("%s fails also without the tests that failed by chance or are quarantined: %w", pkg, err)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(again)) {
		for _, name := range again[pkg] {
			fmt.Fprintf(r.out, "flaky\t%s\t%s: it failed, as printed above, and passed alone; repair it, or add it to %s\n", pkg, name, quarantineFile)
			r.report.flaky(pkg, name)
		}
	}
	return nil
}

// skipped returns the tests to skip when the other tests of a package are repeated. These are the failed tests. They also include the passed tests
// on hosts, because each of those takes minutes.
func (r *runner) skipped(pkg string, failed []string) []string {
	if !onHosts(pkg) {
		return failed
	}
	return slices.Concat(failed, slices.Sorted(maps.Keys(r.report.PassedTests)))
}

// onHosts reports whether a package contains the tests on sandbox hosts.
func onHosts(pkg string) bool { return strings.HasSuffix(pkg, "/test/e2e") }

// suite is one call of "go test".
type suite struct {
	flags    []string
	env      []string
	packages []string
	args     []string // the args of the test programs
	fresh    bool     // don't take results from Go's cache
	partial  bool     // only some tests of the packages
	repeated bool     // the results are already in the report
}

// part returns a suite for some tests of one package. With the flag -run, it runs the named tests. With the flag -skip, it runs all other tests.
func (s suite) part(pkg, flag string, tests []string) suite {
	s.flags = append(slices.Clone(s.flags), flag, "^("+strings.Join(tests, "|")+")$")
	s.packages, s.fresh, s.partial, s.repeated = []string{pkg}, true, true, true
	return s
}

// test runs "go test" once, and returns the outcome.
func (r *runner) test(ctx context.Context, s suite) (*outcome, error) {
	args := append([]string{"test", "-json"}, s.flags...)
	if s.fresh || r.fresh {
		args = append(args, "-count=1")
	}
	args = append(args, s.packages...)
	if s.args != nil {
		args = append(append(args, "-args"), s.args...)
	}
	run := newOutcome()
	if !s.repeated {
		run.passed = func(e event, cached bool) { r.report.pass(e, cached, s.partial || run.skips(e.Package)) }
	}
	cmd := r.command(ctx, s.env, "go", args...)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return run, fmt.Errorf("start go test: %w", err)
	}
	r.groups = append(r.groups, cmd.Process.Pid)
	read := render(out, r.out, run)
	err = cmd.Wait()
	if !s.repeated {
		r.report.add(run)
	}
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return run, fmt.Errorf("go test ended with status %d", ended.ExitCode())
	}
	if err == nil && read != nil {
		err = fmt.Errorf("read the output of go test: %w", read)
	}
	return run, err
}

// outcome holds the results of one call of "go test".
type outcome struct {
	cached   map[string]bool     // packages that passed earlier with the same inputs
	failed   map[string][]string // package: names of its failed tests, without subtests
	skipped  []skip
	tests    []event         // the top-level tests that ended
	running  map[string]bool // tests that began and have not ended, by package and name
	hopeless bool            // a failure that a second run doesn't excuse
	passed   func(e event, cached bool)
}

// skip is a test that was skipped, with the reason.
type skip struct {
	Package string `json:"package"`
	Test    string `json:"test"`
	Reason  string `json:"reason"`
}

func newOutcome() *outcome {
	return &outcome{cached: map[string]bool{}, failed: map[string][]string{}, running: map[string]bool{}}
}

func (o *outcome) see(e event) {
	if e.Test != "" && !strings.Contains(e.Test, "/") {
		switch e.Action {
		case "run":
			o.running[e.Package+" "+e.Test] = true
		case "pass", "fail", "skip":
			delete(o.running, e.Package+" "+e.Test)
		}
	}
	switch {
	case e.Action == "build-fail", strings.Contains(e.Output, "DATA RACE"), strings.Contains(e.Output, "race detected"),
		strings.HasPrefix(e.Output, "panic: "), strings.HasPrefix(e.Output, "fatal error: "), strings.HasPrefix(e.Output, "signal: "):
		o.hopeless = true
	case e.Action == "output" && e.Test == "" && strings.HasSuffix(strings.TrimSpace(e.Output), "(cached)"):
		o.cached[e.Package] = true
	case e.Action == "fail" && e.Test == "":
		// If a package fails without a failed test, or in the middle of a test, it has crashed or couldn't be compiled.
		if len(o.failed[e.Package]) == 0 || o.unended(e.Package) {
			o.failed[e.Package] = slices.Clip(o.failed[e.Package])
			o.hopeless = true
		}
	case e.Action == "fail" && !strings.Contains(e.Test, "/"):
		o.failed[e.Package] = append(o.failed[e.Package], e.Test)
	}
	if e.Action == "pass" && o.passed != nil {
		o.passed(e, o.cached[e.Package])
	}
	if e.Test != "" && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
		e.Output = ""
		o.tests = append(o.tests, e)
	}
}

// unended reports whether a test of a package has begun and not ended.
func (o *outcome) unended(pkg string) bool {
	for key := range o.running {
		if strings.HasPrefix(key, pkg+" ") {
			return true
		}
	}
	return false
}

// skips reports whether a test of a package was skipped that no later tier runs.
func (o *outcome) skips(pkg string) bool {
	return slices.ContainsFunc(o.skipped, func(s skip) bool { return s.Package == pkg && !s.later() })
}

// gating returns the failed tests that aren't quarantined, by package.
func (o *outcome) gating(q quarantine) map[string][]string {
	out := map[string][]string{}
	for pkg, names := range o.failed {
		for _, name := range names {
			if !q.holds(pkg, name) {
				out[pkg] = append(out[pkg], name)
			}
		}
	}
	return out
}

// again returns the failed tests that are to be run a second time, by package. n is the number of tests that have already been run again. If there
// are too many failed tests, it returns nil.
func (o *outcome) again(failed map[string][]string, n int) map[string][]string {
	for _, names := range failed {
		n += len(names)
	}
	if o.hopeless || n > maxAgain {
		return nil
	}
	return failed
}

// render prints events until r ends, and stores the results in run. It prints one line for each package, the whole output of each failed test, and
// the reason of each skipped test. It leaves out the reason if another tier runs the test.
func render(r io.Reader, w io.Writer, run *outcome) error {
	p := printer{w: w, run: run, tests: map[string][]string{}}
	lines := bufio.NewReader(r)
	for {
		b, err := lines.ReadBytes('\n')
		var e event
		if len(b) > 0 && json.Unmarshal(b, &e) == nil {
			p.print(e)
			run.see(e)
		} else {
			_, _ = w.Write(b) // not JSON: a message of go itself
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// printer collects the lines of each running test.
type printer struct {
	w     io.Writer
	run   *outcome
	tests map[string][]string // by package and test
}

func (p *printer) print(e event) {
	key := e.Package + " " + e.Test
	switch {
	case e.Action == "build-output":
		fmt.Fprint(p.w, e.Output)
	case e.Action == "output" && e.Test == "":
		if worth(e.Output) {
			fmt.Fprint(p.w, e.Output)
		}
	case e.Action == "output":
		p.tests[key] = append(p.tests[key], e.Output)
	case e.Action == "fail" && e.Test != "":
		fmt.Fprint(p.w, strings.Join(p.tests[key], ""))
		delete(p.tests, key)
	case e.Action == "skip" && e.Test != "":
		s := skip{e.Package, e.Test, reason(p.tests[key])}
		p.run.skipped = append(p.run.skipped, s)
		if !s.later() {
			fmt.Fprintf(p.w, "skip\t%s\t%s: %s\n", s.Package, s.Test, s.Reason)
		}
		delete(p.tests, key)
	case e.Action == "pass" && e.Test != "":
		delete(p.tests, key)
	case e.Action == "fail":
		p.unfinished(e.Package)
	}
}

// worth reports whether a line about a package is worth printing. It excludes the line PASS before each "ok", and packages without tests.
func worth(line string) bool {
	return line != "PASS\n" && !strings.Contains(line, "[no test files]")
}

// unfinished prints the output of the tests that were running when their package crashed. The output contains the panic or the timeout, which isn't
// the failure of any test.
func (p *printer) unfinished(pkg string) {
	for _, key := range slices.Sorted(maps.Keys(p.tests)) {
		if strings.HasPrefix(key, pkg+" ") {
			fmt.Fprint(p.w, strings.Join(p.tests[key], ""))
			delete(p.tests, key)
		}
	}
}

// reason returns the message with which a test was skipped, without its place in the source.
func reason(lines []string) string {
	var said []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "=== ") || strings.HasPrefix(l, "--- ") {
			continue
		}
		if place, rest, ok := strings.Cut(l, ": "); ok && strings.Contains(place, ".go:") {
			l = rest
		}
		said = append(said, l)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	if last := said[len(said)-1]; (skip{Reason: last}).later() {
		return last // after other lines of the test
	}
	return strings.Join(said, " ")
}
