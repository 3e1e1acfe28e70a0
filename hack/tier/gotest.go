// Command gotest runs "go test -json" with the given arguments and prints what a person and a
// CI need of it: a line per package as go test writes it, the whole output of tests that
// failed, a line with the reason for each test that was skipped, and at the end the slowest
// tests. Its exit code is go test's.
//
// Up to three tests that failed run once more, alone. One that passes then is named in a line
// "flaky", and what it printed when it failed stays above: it has to be repaired, but it doesn't
// fail the run. A race, a panic, a time-out and what doesn't compile are never tried again.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is a line of "go test -json", as "go doc test2json" describes it.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// maxAgain is the number of failed tests up to which they run once more: where more fail, it isn't chance.
const maxAgain = 3

func main() {
	args := os.Args[1:]
	code, run := test(args)
	again := run.again()
	if code == 0 || len(again) == 0 {
		os.Exit(code)
	}
	for _, pkg := range slices.Sorted(maps.Keys(again)) {
		fmt.Printf("again\t%s\t%s\n", pkg, strings.Join(again[pkg], " "))
		if code, _ := test(rerun(args, run.packages, pkg, again[pkg])); code != 0 {
			os.Exit(code)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(again)) {
		for _, name := range again[pkg] {
			fmt.Printf("flaky\t%s\t%s: failed, as above, and passed alone; it has to be repaired\n", pkg, name)
		}
	}
}

// test runs go test with args and returns its exit code and what ran.
func test(args []string) (int, *outcome) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...) //nolint:noctx // ends with this process
	cmd.Stderr = os.Stderr
	run := &outcome{packages: map[string]bool{}, failed: map[string][]string{}}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1, run
	}
	err = render(out, os.Stdout, run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest: read the output of go test:", err)
	}
	if waited := cmd.Wait(); waited != nil {
		if ended, ok := errors.AsType[*exec.ExitError](waited); ok && ended.ExitCode() > 0 {
			return ended.ExitCode(), run
		}
		return 1, run
	}
	if err != nil {
		return 1, run
	}
	return 0, run
}

// outcome is what a run has shown of which packages there are and what failed.
type outcome struct {
	packages map[string]bool
	failed   map[string][]string // package: names of its failed tests, without subtests
	hopeless bool                // something failed that no second run excuses
}

func (o *outcome) see(e event) {
	if e.Package != "" {
		o.packages[e.Package] = true
	}
	switch {
	case e.Action == "build-fail", strings.Contains(e.Output, "DATA RACE"), strings.Contains(e.Output, "race detected"),
		strings.HasPrefix(e.Output, "panic: "):
		o.hopeless = true
	case e.Action == "fail" && e.Test == "":
		// A package that fails without a test that failed died, or didn't compile.
		if len(o.failed[e.Package]) == 0 {
			o.hopeless = true
		}
	case e.Action == "fail" && !strings.Contains(e.Test, "/"):
		o.failed[e.Package] = append(o.failed[e.Package], e.Test)
	}
}

// again returns the failed tests that should run once more, by package.
func (o *outcome) again() map[string][]string {
	n := 0
	for _, names := range o.failed {
		n += len(names)
	}
	if o.hopeless || n > maxAgain {
		return nil
	}
	return o.failed
}

// rerun returns args for the tests names of one package instead of the packages that args name.
func rerun(args []string, packages map[string]bool, pkg string, names []string) []string {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return packages[arg] })
	return append(args, "-count=1", "-run", "^("+strings.Join(names, "|")+")$", pkg)
}

// render prints events until r ends, and keeps in run what failed.
func render(r io.Reader, w io.Writer, run *outcome) error {
	tests := map[string][]string{} // package and test: its lines so far
	var ended []event
	lines := bufio.NewReader(r)
	for {
		b, err := lines.ReadBytes('\n')
		var e event
		if len(b) > 0 && json.Unmarshal(b, &e) == nil {
			one(w, e, tests)
			run.see(e)
			if e.Test != "" && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
				ended = append(ended, e)
			}
		} else {
			_, _ = w.Write(b) // not JSON: go itself says something
		}
		if errors.Is(err, io.EOF) {
			slowest(w, ended)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// slowest prints the ten tests that took longest, of those that took noticeably long.
func slowest(w io.Writer, ended []event) {
	slices.SortStableFunc(ended, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range ended[:min(len(ended), 10)] {
		if e.Elapsed >= 10 {
			fmt.Fprintf(w, "slow\t%s\t%s: %.0fs\n", e.Package, e.Test, e.Elapsed)
		}
	}
}

func one(w io.Writer, e event, tests map[string][]string) {
	key := e.Package + " " + e.Test
	switch {
	case e.Action == "build-output":
		fmt.Fprint(w, e.Output)
	case e.Action == "output" && e.Test == "":
		// "PASS" stands before each "ok" line and says nothing of its own.
		if e.Output != "PASS\n" {
			fmt.Fprint(w, e.Output)
		}
	case e.Action == "output":
		tests[key] = append(tests[key], e.Output)
	case e.Action == "fail" && e.Test != "":
		fmt.Fprint(w, strings.Join(tests[key], ""))
		delete(tests, key)
	case e.Action == "skip" && e.Test != "":
		fmt.Fprintf(w, "skip\t%s\t%s: %s\n", e.Package, e.Test, reason(tests[key]))
		delete(tests, key)
	case e.Action == "pass" && e.Test != "":
		delete(tests, key)
	case e.Action == "fail":
		unfinished(w, e.Package, tests)
	}
}

// unfinished prints what the tests said that were running when their package ended: a panic
// or a time-out stands there, and no test fails for it.
func unfinished(w io.Writer, pkg string, tests map[string][]string) {
	for _, key := range slices.Sorted(maps.Keys(tests)) {
		if strings.HasPrefix(key, pkg+" ") {
			fmt.Fprint(w, strings.Join(tests[key], ""))
			delete(tests, key)
		}
	}
}

// reason is what the test said when it skipped itself, without the place.
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
	return strings.Join(said, " ")
}
