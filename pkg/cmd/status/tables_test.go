package status

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
)

var update = flag.Bool("update", false, "write the golden files")

func written(t *testing.T, c *status.Cluster, format string, all bool) string {
	t.Helper()
	var out cmdutil.Output
	cmdutil.AddOutputFlag(&cobra.Command{}, &out)
	require.NoError(t, out.Set(format))
	var b bytes.Buffer
	require.NoError(t, Write(&b, &out, c, all))
	return b.String()
}

func TestTablesAreAsRecorded(t *testing.T) {
	small := statustest.Small()
	fresh := statustest.Options{Seed: 2, Machines: 2, GPUs: 1, Absent: []string{status.SourceJobs, status.SourceScheduler, status.SourceServices, status.SourcePrometheus, status.SourceAlerts}}
	away := statustest.Small()
	away.Stale = status.SourceNames()
	large := statustest.Large()
	for name, c := range map[string]struct {
		o   statustest.Options
		all bool
	}{"small": {small, false}, "small-all": {small, true}, "fresh": {fresh, false}, "away": {away, false}, "large": {large, false}} {
		t.Run(name, func(t *testing.T) {
			got := written(t, statustest.Cluster(c.o), "table", c.all)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func TestWhatOthersWroteIsCleanedInTablesAndEscapedInData(t *testing.T) {
	with := func(text string) *status.Cluster {
		c := statustest.Cluster(statustest.Small())
		c.Machines[0].GPUs[0].Health, c.Machines[0].GPUs[0].Reason = status.GPUSick, text
		c.Jobs[0].Name, c.Jobs[0].Why, c.Jobs[0].State = text, text, "queued"
		c.Alerts[0].Summary, c.Services[0].Name = text, text
		status.Complete(c)
		return c
	}
	c := with("\x1b]0;owned\x07\x1b[31mred\u202e\nnext")
	for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
		text := written(t, c, format, true)
		assert.False(t, strings.ContainsAny(text, "\x1b\x07"), format)
		if format != "yaml" { // YAML has such a character as it is
			assert.NotContains(t, text, "\u202e", format)
		}
	}
	assert.Contains(t, written(t, c, "json", false), `owned`)
	assert.Equal(t, strings.Count(written(t, with("plain"), "table", true), "\n"), strings.Count(written(t, c, "table", true), "\n"), "a text makes no lines of its own")
}

func TestTheExitCodeIsTheVerdict(t *testing.T) {
	c := statustest.Cluster(statustest.Options{Machines: 1})
	require.NoError(t, verdict(c))
	for _, level := range []string{status.LevelWarning, status.LevelCritical, status.LevelUnknown} {
		c.Verdict.Level = level
		assert.Equal(t, cmdutil.ExitPartial, cmdutil.ExitCode(verdict(c)), level)
	}
}

func TestNamesAreThoseOfProblems(t *testing.T) {
	assert.Contains(t, written(t, statustest.Cluster(statustest.Small()), "name", false), "machine/gpu-02\n")
}

func TestACordonByAnActionIsTrouble(t *testing.T) {
	m := &status.Machine{State: status.MachineReady, Cordoned: true}
	assert.Empty(t, trouble(m))
	m.CordonedBy, m.CordonReason, m.Pressure = "root", "a fan is loud", []string{"DiskPressure"}
	assert.Regexp(t, `^cordoned by root: a fan is loud; .+`, trouble(m))
}
