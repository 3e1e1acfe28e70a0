package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePageHasTheKnownResults(t *testing.T) {
	all, err := readResults("results.json")
	require.NoError(t, err)
	text, err := os.ReadFile("../../" + pageFile)
	require.NoError(t, err)
	want, err := filled(string(text), all)
	require.NoError(t, err)
	assert.Equal(t, want, string(text), "run make support")
}

// repository creates a repository with a commit, an empty list of results and a page with empty tables.
func repository(t *testing.T) (root, commit, tree string) {
	t.Helper()
	root = t.TempDir()
	page := ""
	for _, table := range tables {
		page += "<!-- table: " + table.name + " -->\n<!-- end -->\n"
	}
	for name, text := range map[string]string{resultsFile: "[]\n", pageFile: page} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = root
		out, err := cmd.Output()
		require.NoError(t, err, args)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "a")
	return root, git("rev-parse", "--short=10", "HEAD"), git("rev-parse", "HEAD^{tree}")
}

// written writes the report of a complete run, in which some fields are changed. It returns the path of the report.
func written(t *testing.T, commit, tree string, fields map[string]any) string {
	t.Helper()
	r := map[string]any{
		"tier": "hosts", "commit": commit, "tree": tree, "started": "2026-11-30T11:41:48Z", "finished": true, "tests": 130,
		"steps": []map[string]string{{"name": "tests on hosts"}}, "failed": nil,
		"platform": map[string]string{"system": "debian 13", "cgroup": "v2", "arch": "amd64", "kubernetes": "v1.36.3"},
	}
	for key, value := range fields {
		r[key] = value
	}
	data, err := json.Marshal(r)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

func page(t *testing.T, root string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, pageFile))
	require.NoError(t, err)
	return string(text)
}

func TestAReportFillsTheRowsOfItsPlatform(t *testing.T) {
	root, commit, tree := repository(t)
	var said strings.Builder
	require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, nil)}, &said))
	assert.Contains(t, said.String(), "debian 13, cgroup v2, amd64, kubernetes 1.36\n")
	passed := fmt.Sprintf("passed, 130 tests (`%s`, 2026-11-30)", commit)
	for _, line := range []string{"| Debian 13", "| control groups v2", "| amd64", "| Kubernetes 1.36"} {
		assert.Contains(t, page(t, root), "\n"+line+" | not run | not run | "+passed+" | not run |\n")
	}
	assert.Contains(t, page(t, root), "| Ubuntu 24.04 | not run | not run | not run | not run |\n")
	assert.Contains(t, page(t, root), "| NVIDIA GPUs | not run |\n")

	said.Reset()
	require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, nil)}, &said))
	assert.Contains(t, said.String(), "nothing newer")
}

func TestAFailedRunIsShownAsFailed(t *testing.T) {
	root, commit, tree := repository(t)
	file := written(t, commit, tree, map[string]any{"failed": []string{"a TestA", "b TestB"}})
	require.NoError(t, run(t.Context(), root, []string{file}, io.Discard))
	assert.Contains(t, page(t, root), "| **2 of 130 tests failed** (")
	file = written(t, commit, tree, map[string]any{"started": "2026-12-01T00:00:00Z", "steps": []map[string]string{{"error": "no hosts"}}})
	require.NoError(t, run(t.Context(), root, []string{file}, io.Discard))
	assert.Contains(t, page(t, root), "| **1 step failed**, 130 tests (")
	assert.NotContains(t, page(t, root), "of 130 tests failed", "only the newest run counts")
	file = written(t, commit, tree, map[string]any{"started": "2026-12-02T00:00:00Z", "flaky": []string{"a TestA"}})
	require.NoError(t, run(t.Context(), root, []string{file}, io.Discard))
	assert.Contains(t, page(t, root), "| passed, 130 tests, 1 of them when repeated (")
}

func TestReportsThatSayNothingAboutACommitAreLeftOut(t *testing.T) {
	root, commit, tree := repository(t)
	for why, fields := range map[string]map[string]any{
		"not whole":               {"finished": false},
		"the run was not whole":   {"only": "tests"},
		"not committed":           {"tree": "0123456789012345678901234567890123456789"},
		"doesn't have its commit": {"commit": "0123456789"},
		"doesn't name its platf":  {"platform": nil},
		"isn't a tier":            {"tier": "soak"},
	} {
		var said strings.Builder
		require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, fields)}, &said))
		assert.Contains(t, said.String(), "left out: ")
		assert.Contains(t, said.String(), why)
	}
	assert.NotContains(t, page(t, root), "passed")
}

func TestAnOlderRunDoesntReplaceANewerOne(t *testing.T) {
	root, commit, tree := repository(t)
	require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, nil)}, io.Discard))
	require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, map[string]any{"started": "2026-11-01T00:00:00Z", "tests": 7})}, io.Discard))
	assert.NotContains(t, page(t, root), "7 tests")
}

func TestAResultNeedsCommitAndDay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"row": "amd", "run": "other", "text": "works"}]`), 0o600))
	_, err := readResults(file)
	require.ErrorContains(t, err, "entry 1 (amd, other): give a row of the table")
}

func TestAPageWithoutItsMarksIsAnError(t *testing.T) {
	_, err := filled("# A page\n", nil)
	require.ErrorContains(t, err, `has no table between "<!-- table: systems -->"`)
}

func TestAReportOfConformanceTestsFillsTheirRow(t *testing.T) {
	root, commit, tree := repository(t)
	fields := map[string]any{"tier": "conformance", "listed": 4, "passedTests": map[string]float64{"[sig-a] a": 1, "[sig-b] b": 2}, "failed": []string{"[sig-c] c"}}
	require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, fields)}, io.Discard))
	assert.Contains(t, page(t, root), "| Kubernetes' conformance tests | Kubernetes v1.36.3: 2 of 4 tests passed; **1 failed**: [sig-c] c; 1 were not run (`"+commit+"`")
	assert.Contains(t, page(t, root), "| Debian 13 | not run | not run | not run | not run |", "the row of its system counts other tests")
	fields = map[string]any{"tier": "conformance", "listed": 1, "passedTests": map[string]float64{"[sig-a] a": 1}, "flaky": []string{"[sig-a] a"}, "started": "2026-12-01T00:00:00Z"}
	require.NoError(t, run(t.Context(), root, []string{written(t, commit, tree, fields)}, io.Discard))
	assert.Contains(t, page(t, root), "1 of 1 tests passed, 1 of them when repeated (`")
}
