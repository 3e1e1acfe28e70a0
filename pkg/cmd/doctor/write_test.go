package doctor

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/doctor"
)

func sample() *doctor.Report {
	return &doctor.Report{Verdict: doctor.Problem, Counts: doctor.Counts{OK: 2, Skipped: 4, Warning: 1, Problem: 1}, Results: []doctor.Result{
		{ID: "disk-space", Verdict: doctor.Warning, Docs: "docs/doctor.md#disk-space", Findings: []doctor.Finding{{Where: "gpu-2", Verdict: doctor.Warning, Message: "/ is 92 % full", Remedy: "free room"}}},
		{ID: "kubelet-active", Verdict: doctor.Problem, Docs: "docs/doctor.md#kubelet-active", Findings: []doctor.Finding{{
			Where: "gpu-3", Verdict: doctor.Problem, Message: "the kubelet doesn't run\x1b[31m", Evidence: "inactive", Remedy: "start it", Fixable: true, Fix: &doctor.Fix{What: "start the kubelet on gpu-3"}}}},
		{ID: "etcd-backup", Verdict: doctor.OK, Title: "Copies", Findings: []doctor.Finding{{Verdict: doctor.OK, Message: "no copy"}}, Seconds: 1.23},
		{ID: "dns", Verdict: doctor.OK, Title: "Names"},
		{ID: "a", Verdict: doctor.Skipped, Findings: []doctor.Finding{{Verdict: doctor.Skipped, Message: "give -p DIR"}}},
		{ID: "b", Verdict: doctor.Skipped, Findings: []doctor.Finding{{Verdict: doctor.Skipped, Message: "give -p DIR"}}},
		{ID: "c", Verdict: doctor.Skipped, Findings: []doctor.Finding{{Verdict: doctor.Skipped, Message: "no scheduler"}}},
		{ID: "d", Verdict: doctor.Skipped, Findings: []doctor.Finding{{Verdict: doctor.Skipped, Message: "give -p DIR"}}},
	}}
}

func output(t *testing.T, format string) *cmdutil.Output {
	t.Helper()
	o := &cmdutil.Output{}
	cmdutil.AddOutputFlag(&cobra.Command{}, o, "table", "wide", "json", "yaml")
	require.NoError(t, o.Set(format))
	return o
}

func TestProblemsComeFirstAndThenWarningsAndOneLineForTheRest(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeReport(&b, output(t, "table"), sample(), false))
	assert.Equal(t, `PROBLEM  gpu-3: the kubelet doesn't run[31m [kubelet-active]
         seen: inactive
         -> start it (--fix does it)
         docs/doctor.md#kubelet-active
WARNING  gpu-2: / is 92 % full [disk-space]
         -> free room
         docs/doctor.md#disk-space

2 checks passed, 1 with problems, 1 with warnings
skipped a, b, d: give -p DIR
skipped c: no scheduler
`, b.String())
}

func TestAllChecksAreShownWhereThatIsAskedFor(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeReport(&b, output(t, "table"), sample(), true))
	assert.Contains(t, b.String(), "etcd-backup      ok        1.2s   no copy\n")
	assert.Contains(t, b.String(), "dns              ok        0.0s   Names\n")
	assert.NotContains(t, b.String(), "skipped a")
}

func TestTheReportIsDataToo(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeReport(&b, output(t, "json"), sample(), false))
	var got struct {
		Verdict string
		Counts  map[string]int
		Checks  []struct {
			ID, Verdict string
			Findings    []struct {
				Remedy string
				Fix    *struct{ What string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	assert.Equal(t, "problem", got.Verdict)
	assert.Equal(t, 4, got.Counts["skipped"])
	assert.Len(t, got.Checks, 8)
	assert.Equal(t, "start the kubelet on gpu-3", got.Checks[1].Findings[0].Fix.What)
}

func TestTheExitCodeSaysHowBadItIs(t *testing.T) {
	for v, code := range map[doctor.Verdict]int{doctor.OK: 0, doctor.Warning: 1, doctor.Problem: 2} {
		assert.Equal(t, code, cmdutil.ExitCode(verdict(&doctor.Report{Verdict: v})), v)
	}
}

func TestWhatWasSeenIsShortForPeople(t *testing.T) {
	var b strings.Builder
	writeFinding(&b, &doctor.Result{ID: "dns"}, doctor.Finding{Verdict: doctor.Problem, Message: "no", Evidence: strings.Repeat("é", 10000)})
	assert.Equal(t, mostSeen, strings.Count(b.String(), "é"))
	assert.Contains(t, b.String(), "… (-o json has all of it)")
}
