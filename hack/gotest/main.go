// Command gotest runs "go test -json" with the given arguments and prints what a person and a
// CI need of it: a line per package as go test writes it, the whole output of tests that
// failed, a line with the reason for each test that was skipped, and at the end the slowest
// tests. Its exit code is go test's.
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

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...) //nolint:noctx // ends with this process
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	err = render(out, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest: read the output of go test:", err)
	}
	if waited := cmd.Wait(); waited != nil {
		if ended, ok := errors.AsType[*exec.ExitError](waited); ok && ended.ExitCode() > 0 {
			os.Exit(ended.ExitCode())
		}
		os.Exit(1)
	}
	if err != nil {
		os.Exit(1)
	}
}

// render prints events until r ends.
func render(r io.Reader, w io.Writer) error {
	tests := map[string][]string{} // package and test: its lines so far
	var ended []event
	lines := bufio.NewReader(r)
	for {
		b, err := lines.ReadBytes('\n')
		var e event
		if len(b) > 0 && json.Unmarshal(b, &e) == nil {
			one(w, e, tests)
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
