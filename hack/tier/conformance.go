package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// conformance returns the steps that run Kubernetes' conformance tests on a cluster that paictl makes on sandbox hosts.
func conformance() []step {
	return []step{
		{name: "packages", run: packagesOf("test"), setup: true},
		{name: "bundle", run: testsAndBundle, setup: true},
		{name: "cluster", run: clusterOfHosts, setup: true},
		{name: "conformance tests", run: conformanceTests},
	}
}

// ownCluster names the kubeconfig of a cluster on which the tests run instead of sandbox hosts. The tests then use upstream's images, unless
// KUBE_TEST_REPO_LIST names a file with other registries.
const ownCluster = "PAICTL_CONFORMANCE_KUBECONFIG"

func conformanceDir(name ...string) string {
	return filepath.Join(append([]string{cache(), "conformance"}, name...)...)
}

// testsAndBundle builds the tests, and a bundle that also contains their images.
func testsAndBundle(ctx context.Context, r *runner) error {
	if err := r.makeBundle(ctx); err != nil {
		return err
	}
	dir := conformanceDir("bundle")
	if _, err := os.Stat(filepath.Join(dir, "manifest.yaml")); err != nil {
		// Most parts of the two bundles are equal.
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(conformanceDir(), 0o755), r.exec(ctx, "cp", "-a", r.bundle()+"/.", dir)); err != nil {
			return err
		}
	}
	return r.exec(ctx, "make", "--no-print-directory", "conformance-bundle", "BUNDLE="+dir, "CONFORMANCE="+conformanceDir())
}

// clusterOfHosts makes the hosts and the cluster. It continues with hosts that an interrupted run has left.
func clusterOfHosts(ctx context.Context, r *runner) error {
	if os.Getenv(ownCluster) != "" {
		return nil
	}
	if why, err := r.output(ctx, nil, "sh", "hack/sandboxable.sh"); err != nil {
		return skippedError{strings.TrimSpace(why)}
	}
	return r.exec(ctx, "sh", "hack/conformance.sh", "up", conformanceDir())
}

// chunk is the number of tests of one run of ginkgo. The report contains the results of finished runs, so an interrupted tier loses at most one.
const chunk = 40

func conformanceTests(ctx context.Context, r *runner) (err error) {
	kubeconfig, registries := os.Getenv(ownCluster), os.Getenv("KUBE_TEST_REPO_LIST")
	if kubeconfig == "" {
		if kubeconfig, registries = conformanceDir("kubeconfig"), conformanceDir("registries.yaml"); !exists(kubeconfig) {
			return skippedError{"there is no cluster: " + kubeconfig + " is missing"}
		}
		// The hosts of a failed run stay for a look at them. Its end names the command that removes them.
		defer func() {
			if err == nil {
				err = r.exec(ctx, "sh", "hack/conformance.sh", "down", conformanceDir())
			} else {
				fmt.Fprintf(r.out, "the hosts are still there; sh hack/conformance.sh down %s removes them\n", conformanceDir())
			}
		}()
	}
	list, err := r.output(ctx, nil, conformanceDir("e2e.test"), "--list-conformance-tests")
	if err != nil {
		return err
	}
	tests := namesOf(list)
	if only := os.Getenv("PAICTL_CONFORMANCE_ONLY"); only != "" {
		re, err := regexp.Compile(only)
		if err != nil {
			return fmt.Errorf("PAICTL_CONFORMANCE_ONLY: %w", err)
		}
		tests = slices.DeleteFunc(tests, func(name string) bool { return !re.MatchString(name) })
		r.report.Only = only
	}
	if len(tests) == 0 {
		return errors.New("e2e.test lists no conformance test that is wanted")
	}
	r.report.Listed = len(tests)
	g := ginkgo{kubeconfig: kubeconfig, registries: registries}
	for _, part := range parts(tests, r.report.PassedTests) {
		if err := g.run(ctx, r, part, r.add); err != nil {
			return err
		}
	}
	// A test that failed is run again alone.
	for _, name := range slices.Clone(r.report.Failed) {
		if err := g.run(ctx, r, []string{name}, r.addAgain); err != nil {
			return err
		}
	}
	if len(r.report.Failed) > 0 {
		return fmt.Errorf("%d of %d tests failed", len(r.report.Failed), len(tests))
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// namesOf returns the names of the tests in the list that e2e.test prints. The list is YAML, in which each name is in single quotes, since it begins
// with "[".
func namesOf(list string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^  codename: '(.+(?:\n    .+)*)'$`).FindAllStringSubmatch(list, -1) {
		out = append(out, strings.ReplaceAll(strings.Join(strings.Fields(m[1]), " "), "''", "'"))
	}
	return out
}

// serial reports whether no other test may run beside this one.
func serial(name string) bool {
	return strings.Contains(name, "[Serial]") || strings.Contains(name, "[Disruptive]")
}

// parts divides the tests that haven't passed into runs of ginkgo. The tests that must run alone come last.
func parts(tests []string, passed map[string]float64) [][]string {
	var beside, alone []string
	for _, name := range tests {
		if _, ok := passed[name]; ok {
			continue
		}
		if serial(name) {
			alone = append(alone, name)
		} else {
			beside = append(beside, name)
		}
	}
	return append(slices.Collect(slices.Chunk(beside, chunk)), slices.Collect(slices.Chunk(alone, chunk))...)
}

// add adds the result of a test to the report.
func (r *runner) add(name string, passed bool, seconds float64) {
	r.report.Tests++
	if passed {
		r.report.PassedTests[name] = seconds
	} else {
		r.report.Failed = append(r.report.Failed, name)
	}
}

// addAgain adds the result of a test that had failed before.
func (r *runner) addAgain(name string, passed bool, seconds float64) {
	if !passed {
		return
	}
	r.report.Failed = slices.DeleteFunc(r.report.Failed, func(n string) bool { return n == name })
	r.report.Flaky = append(r.report.Flaky, name)
	r.report.PassedTests[name] = seconds
}

// ginkgo runs conformance tests on a cluster.
type ginkgo struct{ kubeconfig, registries string }

// run runs tests, beside each other if they allow that. It passes the results of the tests that ran to add. A failed test isn't an error.
func (g ginkgo) run(ctx context.Context, r *runner, tests []string, add func(name string, passed bool, seconds float64)) error {
	procs := 1
	if len(tests) > 1 && !serial(tests[0]) {
		procs = 2 * runtime.GOMAXPROCS(0)
	}
	quoted := make([]string, len(tests))
	for i, name := range tests {
		quoted[i] = regexp.QuoteMeta(name) + "$" // ginkgo matches the name of the suite before it, too
	}
	// ginkgo writes the report also if a test failed; an old one mustn't be taken for it.
	result := conformanceDir("results.json")
	if err := os.Remove(result); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(conformanceDir("tests.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	bundle := conformanceDir("bundle")
	cmd := r.command(ctx, []string{"KUBE_TEST_REPO_LIST=" + g.registries}, filepath.Join(bundle, "tools", "ginkgo"),
		"--procs="+strconv.Itoa(procs), "--no-color", "--timeout=6h", "--poll-progress-after=10m", "--json-report="+filepath.Base(result), "--output-dir="+conformanceDir(),
		"--focus="+strings.Join(quoted, "|"), conformanceDir("e2e.test"), "--",
		"--kubeconfig="+g.kubeconfig, "--kubectl-path="+filepath.Join(bundle, "bin", "kubectl"), "--provider=skeleton", "--disable-log-dump")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = conformanceDir()
	cmd.WaitDelay = patience // after a signal, ginkgo removes the objects of the running tests, and writes its report
	runErr := cmd.Run()
	file, err := os.Open(result)
	if err != nil {
		return fmt.Errorf("ginkgo wrote no report (%w); its output is in %s", runErr, log.Name())
	}
	defer file.Close()
	specs, err := readSpecs(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", result, err)
	}
	ran := 0
	for _, s := range specs {
		if !slices.Contains(tests, s.name) {
			continue
		}
		ran++
		add(s.name, s.state == "passed", s.seconds)
		fmt.Fprintf(r.out, "%-8s %6.1fs  %s\n", s.state, s.seconds, s.name)
	}
	if _, err := r.report.write(); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if ran < len(tests) {
		return fmt.Errorf("ginkgo ran %d of %d tests; its output is in %s", ran, len(tests), log.Name())
	}
	return nil
}

// spec is the result of a test that ran.
type spec struct {
	name, state string
	seconds     float64
}

// readSpecs reads the results of the tests that ran from a report of ginkgo.
func readSpecs(from io.Reader) ([]spec, error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			State                   string
			RunTime                 int64 // nanoseconds
		}
	}
	if err := json.NewDecoder(from).Decode(&suites); err != nil {
		return nil, err
	}
	var out []spec
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeType == "It" && s.State != "skipped" && s.State != "pending" && s.State != "interrupted" {
				out = append(out, spec{strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " "), s.State, float64(s.RunTime) / 1e9})
			}
		}
	}
	return out, nil
}
