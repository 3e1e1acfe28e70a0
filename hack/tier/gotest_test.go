package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRenderKeepsWhatMatters(t *testing.T) {
	in := strings.Join([]string{
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"noise of a passing test\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestRoot","Output":"=== RUN   TestRoot\n"}`,
		`{"Action":"output","Package":"p","Test":"TestRoot","Output":"    a_test.go:7: needs root\n"}`,
		`{"Action":"output","Package":"p","Test":"TestRoot","Output":"--- SKIP: TestRoot (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestRoot"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: got 1\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"--- FAIL: TestB (0.00s)\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"output","Package":"q","Output":"PASS\n"}`,
		`{"Action":"output","Package":"q","Output":"ok  \tq\t0.2s\n"}`,
		`{"ImportPath":"r","Action":"build-output","Output":"r/x.go:1: syntax error\n"}`,
		`go: some message`,
	}, "\n")
	var out bytes.Buffer
	require.NoError(t, render(strings.NewReader(in), &out, newOutcome()))
	assert.Equal(t, strings.Join([]string{
		"skip\tp\tTestRoot: needs root",
		"    b_test.go:9: got 1",
		"--- FAIL: TestB (0.00s)",
		"FAIL\tp\t0.1s",
		"ok  \tq\t0.2s",
		"r/x.go:1: syntax error",
		"go: some message",
	}, "\n"), out.String())
}

func TestAFewFailedTestsRunOnceMore(t *testing.T) {
	failed := []string{
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"fail","Package":"p","Test":"TestB/part"}`,
		`{"Action":"fail","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"Action":"pass","Package":"q"}`,
	}
	after := func(lines ...string) *outcome {
		run := newOutcome()
		require.NoError(t, render(strings.NewReader(strings.Join(lines, "\n")), io.Discard, run))
		return run
	}
	again := func(o *outcome) map[string][]string { return o.again(o.gating(nil), 0) }
	run := after(failed...)
	assert.Equal(t, map[string][]string{"p": {"TestB"}}, run.again(run.gating(nil), 0))
	assert.Empty(t, run.again(run.gating(nil), 3), "the fourth of a run")

	assert.Empty(t, again(after(append(failed, `{"Action":"output","Package":"q","Test":"TestC","Output":"WARNING: DATA RACE\n"}`)...)), "a race")
	assert.Empty(t, again(after(append(failed, `{"Action":"fail","Package":"r"}`)...)), "a package that died")
	assert.Empty(t, again(after(append(failed, `{"Action":"output","Package":"r","Test":"TestC","Output":"panic: test timed out after 5m\n"}`)...)), "a time-out")
	assert.Empty(t, again(after(append(failed, `{"Action":"fail","Package":"q","Test":"TestC"}`, `{"Action":"fail","Package":"q","Test":"TestD"}`,
		`{"Action":"fail","Package":"q","Test":"TestE"}`)...)), "more than chance")
}

func TestASkipWithoutAReasonSaysSo(t *testing.T) {
	assert.Equal(t, "no reason given", reason([]string{"=== RUN   TestX\n", "--- SKIP: TestX (0.00s)\n"}))
}

func TestAPackageThatDiesShowsWhatItsTestsSaid(t *testing.T) {
	in := strings.Join([]string{
		`{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: test timed out\n"}`,
		`{"Action":"output","Package":"pp","Test":"TestOther","Output":"of another package\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t600s\n"}`,
		`{"Action":"fail","Package":"p"}`,
	}, "\n")
	var out bytes.Buffer
	require.NoError(t, render(strings.NewReader(in), &out, newOutcome()))
	assert.Equal(t, "FAIL\tp\t600s\npanic: test timed out\n", out.String())
}

func TestACrashIsNotExcusedByAnEarlierFailure(t *testing.T) {
	began := []string{
		`{"Action":"run","Package":"p","Test":"TestA"}`, `{"Action":"fail","Package":"p","Test":"TestA"}`, `{"Action":"run","Package":"p","Test":"TestB"}`,
	}
	see := func(lines ...string) *outcome {
		run := newOutcome()
		require.NoError(t, render(strings.NewReader(strings.Join(append(began, lines...), "\n")), io.Discard, run))
		return run
	}
	assert.True(t, see(`{"Action":"fail","Package":"p"}`).hopeless, "the program ended in the middle of TestB")
	assert.False(t, see(`{"Action":"pass","Package":"p","Test":"TestB"}`, `{"Action":"fail","Package":"p"}`).hopeless)
	assert.True(t, see(`{"Action":"output","Package":"p","Output":"fatal error: sync: unlock of unlocked mutex\n"}`, `{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"fail","Package":"p"}`).hopeless)
}

func TestAPackageThatSkippedForTheMachineHasNotPassedWhole(t *testing.T) {
	run := newOutcome()
	run.skipped = []skip{{"p", "TestA", "no gcc"}, {"q", "TestA", "make test-more runs it: an API server"}}
	assert.True(t, run.skips("p"))
	assert.False(t, run.skips("q"))
}

func TestProgramsThatCleanUpAreWaitedFor(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &runner{out: io.Discard, env: os.Environ()}
	// The shell ends immediately, like "go test". Its child process takes time for its cleanup.
	cmd := r.command(ctx, nil, "sh", "-c", `(trap 'sleep 0.3; echo x >"$1"; exit' TERM; echo ready; while :; do sleep 0.01; done) & wait`, "sh", done)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r.groups = append(r.groups, cmd.Process.Pid)
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	cancel()
	_ = cmd.Wait()
	r.end(time.Minute)
	assert.FileExists(t, done)

	cmd = r.command(t.Context(), nil, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	cmd.Stdout = nil
	out, err = cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	r.groups = []int{cmd.Process.Pid}
	r.end(0)
	assert.ErrorContains(t, cmd.Wait(), "killed")
}
