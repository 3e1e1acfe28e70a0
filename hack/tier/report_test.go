package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// started returns a runner whose working directory is an empty folder.
func started(t *testing.T, out *strings.Builder) *runner {
	t.Helper()
	t.Chdir(t.TempDir())
	return &runner{tier: "more", out: out, report: &report{Tier: "more", Commit: "c", Tree: "t", Started: time.Now(), Packages: map[string]float64{}, PassedTests: map[string]float64{}, Passed: map[string][]string{},
		file: reportsDir + "/more-c-1.json"}}
}

func TestAContinuedRunLeavesOutThePassedSteps(t *testing.T) {
	var out strings.Builder
	r := started(t, &out)
	var ran []string
	stepOf := func(name string, err error) step {
		return step{name: name, run: func(context.Context, *runner) error { ran = append(ran, name); return err }}
	}
	setup := stepOf("setup", nil)
	setup.setup = true
	steps := []step{setup, stepOf("good", nil), stepOf("bad", errors.New("no")), stepOf("absent", skippedError{"no gcc"})}
	assert.Equal(t, 1, r.all(t.Context(), steps, ""))
	assert.Equal(t, []string{"setup", "good", "bad", "absent"}, ran)
	assert.Contains(t, out.String(), "FAILED  no")
	assert.Contains(t, out.String(), "skipped  no gcc")

	old, err := readReport("last", r.report)
	require.NoError(t, err)
	ran = nil
	again := &runner{tier: "more", out: &out, since: old, report: &report{Tier: "more", Tree: "t", Packages: map[string]float64{}, PassedTests: map[string]float64{}, Passed: map[string][]string{}, Started: time.Now(), file: reportsDir + "/more-c-2.json"}}
	steps[2] = stepOf("bad", nil)
	assert.Equal(t, 0, again.all(t.Context(), steps, ""))
	assert.Equal(t, []string{"setup", "bad", "absent"}, ran)
	third, err := readReport("last", again.report)
	require.NoError(t, err)
	assert.True(t, third.passed("good"), "a run that is continued twice still knows the first")
}

func TestAReportOfAnotherTreeOrTierIsRefused(t *testing.T) {
	var out strings.Builder
	r := started(t, &out)
	_, err := readReport("last", r.report)
	require.ErrorContains(t, err, "there is no report of an earlier run of more")
	_, err = r.report.write()
	require.NoError(t, err)
	_, err = readReport("last", &report{Tier: "more", Tree: "other"})
	require.ErrorContains(t, err, "another tree")
	_, err = readReport(r.report.file, &report{Tier: "hosts", Tree: "t"})
	require.ErrorContains(t, err, "not of hosts")
}

func TestAContinuedRunLeavesOutThePassedPackagesAndTests(t *testing.T) {
	var out strings.Builder
	r := started(t, &out)
	assert.Equal(t, []string{"a", "b"}, r.rest([]string{"a", "b"}))
	assert.Empty(t, r.remaining())
	r.report.step = "tests"
	r.since = &report{Passed: map[string][]string{"tests": {"a"}, "other": {"b"}}, PassedTests: map[string]float64{"TestB": 1, "TestA": 2}}
	assert.Equal(t, []string{"b"}, r.rest([]string{"a", "b"}))
	assert.Equal(t, []string{"-skip", "^(TestA|TestB)$"}, r.remaining())

	r.report.PassedTests = map[string]float64{"TestD": 1, "TestC": 2}
	assert.Equal(t, []string{"TestE", "TestC", "TestD"}, r.skipped("m/test/e2e", []string{"TestE"}), "a test on hosts passes once")
	assert.Equal(t, []string{"TestE"}, r.skipped("m/pkg", []string{"TestE"}))
	r.report.resume(r.since)
	assert.Equal(t, r.since.Passed, r.report.Passed, "the next continued run leaves them out, too")
}

func TestASkipThatDependsOnTheMachineFailsTheGate(t *testing.T) {
	var out strings.Builder
	r := started(t, &out)
	r.report.Skipped = []skip{{"p", "TestA", "make test-more runs it: an API server"}, {"p", "TestB", "make test-hosts runs it: hosts"}}
	require.NoError(t, same(t.Context(), r))
	r.report.Skipped = append(r.report.Skipped, skip{"p", "TestC", "this machine has no ssh"})
	require.ErrorContains(t, same(t.Context(), r), "p TestC was skipped: this machine has no ssh")
}

func TestTheGateTakesNoSettingOfPaictl(t *testing.T) {
	from := []string{"PATH=/bin", "PAICTL_BUNDLE=/b", "GOFLAGS=-mod=mod -run=NONE", "CGO_ENABLED=1", "GOOS=plan9", "GIT_DIR=/x"}
	assert.Equal(t, []string{"PATH=/bin", "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -trimpath -gcflags=all=-dwarf=false"}, ours(environment(from, "gate")))
	assert.Contains(t, environment(from, "more"), "PAICTL_BUNDLE=/b")
}

func ours(env []string) (out []string) {
	for _, kv := range env {
		if !strings.HasPrefix(kv, "GOGC=") && !strings.HasPrefix(kv, "GIT_CONFIG_") {
			out = append(out, kv)
		}
	}
	return out
}

func TestABundleIsNamedByItsThirdPartyPart(t *testing.T) {
	one := "kubernetes: v1\n    - name: kubelet\n      source: k8s.io/kubernetes@v1\n    - name: pai-agent\n      source: " + module + "@v1\n    - name: logs\n      kind: chart\n"
	assert.Equal(t, nameOf(one), nameOf(strings.Replace(one, module+"@v1", module+"@v2", 1)))
	assert.NotEqual(t, nameOf(one), nameOf(strings.Replace(one, "kubernetes@v1", "kubernetes@v2", 1)))
}

func TestDirectDependenciesAreCounted(t *testing.T) {
	n, err := requirements("../../go.mod")
	require.NoError(t, err)
	assert.Greater(t, n, int64(30))
	assert.Less(t, n, int64(120))
}
