package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// reportsDir is the folder of reports, which git ignores.
const reportsDir = "reports"

// report is the record of a run. Its file is reports/TIER-COMMIT-TIME.json.
type report struct {
	Tier     string       `json:"tier"`
	Commit   string       `json:"commit"`
	Tree     string       `json:"tree"` // git's hash of all files, committed or not
	Machine  string       `json:"machine"`
	Platform platform     `json:"platform"`
	Started  time.Time    `json:"started"`
	Seconds  float64      `json:"seconds"`
	Finished bool         `json:"finished"` // false if the run was interrupted or killed
	Only     string       `json:"only,omitempty"`
	Steps    []stepResult `json:"steps"`
	Tests    int          `json:"tests"`
	Listed   int          `json:"listed,omitempty"` // conformance tests, whether they ran or not
	Failed   []string     `json:"failed"`
	Flaky    []string     `json:"flaky"`
	Skipped  []skip       `json:"skipped"`
	// Packages maps the packages that have passed to their duration in seconds, which is 0 if the result was cached. PassedTests contains the tests
	// on hosts that have passed.
	Packages    map[string]float64 `json:"packages"`
	PassedTests map[string]float64 `json:"passedTests,omitempty"`
	// Passed lists, for each step, the packages whose tests have all passed and of which no test was skipped because of the machine.
	Passed  map[string][]string `json:"passed,omitempty"`
	Slowest []event             `json:"slowest"`
	Figures string              `json:"figures,omitempty"`

	file string
	step string // the current step
}

type stepResult struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
	Skipped string  `json:"skipped,omitempty"`
	Earlier bool    `json:"earlier,omitempty"` // it passed in the run that this one continues
	Skips   bool    `json:"skips,omitempty"`   // tests were skipped that no later tier runs
}

// newReport returns a new report for this checkout.
func newReport(ctx context.Context, tier string, now time.Time) (*report, error) {
	commit, err := git(ctx, nil, "rev-parse", "--short=10", "HEAD")
	if err != nil {
		return nil, err
	}
	tree, err := treeOf(ctx)
	if err != nil {
		return nil, err
	}
	return &report{Tier: tier, Commit: commit, Tree: tree, Machine: machine(), Platform: thisPlatform("/"), Started: now, Packages: map[string]float64{}, PassedTests: map[string]float64{}, Passed: map[string][]string{},
		file: filepath.Join(reportsDir, fmt.Sprintf("%s-%s-%s.json", tier, commit, now.UTC().Format("20060102T150405")))}, nil
}

// machine describes this machine in a few words.
func machine() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	memory := ""
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(b), "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf("%d GiB, ", kib>>20)
		}
	}
	return fmt.Sprintf("%d processors, %s%s/%s, Linux %s, %s", runtime.NumCPU(), memory, runtime.GOOS, runtime.GOARCH, strings.TrimSpace(string(kernel)), runtime.Version())
}

// readReport reads the report of an earlier run. It returns an error if the report belongs to another tier or tree.
func readReport(name string, now *report) (*report, error) {
	if name == "last" {
		files, _ := filepath.Glob(filepath.Join(reportsDir, now.Tier+"-*.json"))
		files = slices.DeleteFunc(files, partial)
		slices.SortFunc(files, func(a, b string) int { return cmp.Compare(stamp(a), stamp(b)) })
		if len(files) == 0 {
			return nil, fmt.Errorf("there is no report of an earlier run of %s: run it without --since", now.Tier)
		}
		name = files[len(files)-1]
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	old := &report{}
	if err := json.Unmarshal(b, old); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if old.Tier != now.Tier {
		return nil, fmt.Errorf("%s is a report of the tier %s, not of %s", name, old.Tier, now.Tier)
	}
	if old.Tree != now.Tree {
		return nil, fmt.Errorf("%s is a report of another tree: run the tier without --since", name)
	}
	if old.Platform.System != now.Platform.System {
		return nil, fmt.Errorf("%s is a report of a run on %s, not on %s", name, old.Platform.System, now.Platform.System)
	}
	return old, nil
}

// partial reports whether a report belongs to a run of only some of the steps.
func partial(file string) bool {
	var p report
	b, err := os.ReadFile(file)
	return err != nil || json.Unmarshal(b, &p) != nil || p.Only != ""
}

// resume copies the results of the earlier run that this run continues.
func (p *report) resume(old *report) {
	maps.Copy(p.Packages, old.Packages)
	maps.Copy(p.PassedTests, old.PassedTests)
	maps.Copy(p.Passed, old.Passed)
}

// stamp returns the time in the file name of a report.
func stamp(file string) string {
	_, s, _ := strings.Cut(filepath.Base(file), "-")
	_, s, _ = strings.Cut(s, "-")
	return s
}

// passed reports whether a step has passed in the run. A nil report contains no steps.
func (p *report) passed(step string) bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(p.Steps, func(s stepResult) bool { return s.Name == step && s.Error == "" && s.Skipped == "" && !s.Skips })
}

// pass adds a package or a test on hosts that has passed. It also writes the report, so that a run can be continued after it was killed.
func (p *report) pass(e event, cached, partial bool) {
	if e.Test == "" && !partial && !slices.Contains(p.Passed[p.step], e.Package) {
		p.Passed[p.step] = append(p.Passed[p.step], e.Package)
	}
	switch {
	case e.Test == "" && cached:
		p.Packages[e.Package] = max(p.Packages[e.Package], 0)
	case e.Test == "":
		p.Packages[e.Package] = max(p.Packages[e.Package], e.Elapsed)
	case onHosts(e.Package) && !strings.Contains(e.Test, "/"):
		p.PassedTests[e.Test] = e.Elapsed
	default:
		return
	}
	_, _ = p.write() // the end of the step writes it again, and reports an error
}

// add adds the results of one call of "go test".
func (p *report) add(run *outcome) {
	p.Tests += len(run.tests)
	for _, pkg := range slices.Sorted(maps.Keys(run.failed)) {
		if len(run.failed[pkg]) == 0 {
			p.Failed = append(p.Failed, pkg)
		}
		for _, name := range run.failed[pkg] {
			p.Failed = append(p.Failed, pkg+" "+name)
		}
	}
	p.Skipped = append(p.Skipped, run.skipped...)
	p.Slowest = append(p.Slowest, run.tests...)
	slices.SortStableFunc(p.Slowest, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	p.Slowest = p.Slowest[:min(len(p.Slowest), 15)]
}

// flaky moves a test from the list of failed tests to the list of unreliable tests.
func (p *report) flaky(pkg, test string) {
	name := pkg + " " + test
	p.Failed = slices.DeleteFunc(p.Failed, func(s string) bool { return s == name })
	p.Flaky = append(p.Flaky, name)
}

func (p *report) failed() bool {
	return slices.ContainsFunc(p.Steps, func(s stepResult) bool { return s.Error != "" })
}

// write writes the report, and returns the name of its file.
func (p *report) write() (string, error) {
	p.Seconds = time.Since(p.Started).Seconds()
	if err := os.MkdirAll(reportsDir, 0o755); err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(p.file+".new", append(b, '\n'), 0o644); err != nil {
		return "", err
	}
	return p.file, os.Rename(p.file+".new", p.file)
}

// summary prints the text at the end of each tier.
func (p *report) summary(w io.Writer, q quarantine) {
	fmt.Fprintf(w, "\n== %s of %s, %s\n", p.Tier, p.Commit, p.Machine)
	for _, e := range p.Slowest {
		if e.Elapsed >= 10 {
			fmt.Fprintf(w, "slow\t%s\t%s: %.0fs\n", e.Package, e.Test, e.Elapsed)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(p.Packages)) {
		if p.Tier == "gate" && p.Packages[pkg] > 60 {
			fmt.Fprintf(w, "slow\t%s: %.0fs; a package of the gate should take less than 60 s\n", pkg, p.Packages[pkg])
		}
	}
	for _, s := range p.Steps {
		state := "ok"
		switch {
		case s.Error != "":
			state = "FAILED  " + s.Error
		case s.Skipped != "":
			state = "skipped  " + s.Skipped
		case s.Earlier:
			state = "ok, earlier"
		}
		fmt.Fprintf(w, "%8.1fs  %-28s %s\n", s.Seconds, s.Name, state)
	}
	for _, name := range p.Failed {
		fmt.Fprintln(w, "failed\t"+name)
	}
	for _, name := range p.Flaky {
		fmt.Fprintln(w, "flaky\t"+name)
	}
	for _, e := range q {
		fmt.Fprintf(w, "quarantined since %s\t%s %s: %s\n", e.since.Format(time.DateOnly), e.pkg, e.test, e.cause)
	}
	later := 0
	for _, s := range p.Skipped {
		if s.later() {
			later++
		}
	}
	fmt.Fprintf(w, "%8.1fs  %d tests ran, %d failed, %d flaky, %d left to a later tier, %d skipped\n",
		p.Seconds, p.Tests, len(p.Failed), len(p.Flaky), later, len(p.Skipped)-later)
	if p.Figures != "" {
		fmt.Fprintln(w, p.Figures)
	}
}
