package alerts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

const (
	ruleFolder = "../../templates/charts/prometheus/files/rules"
	manual     = "../../docs/alerts.md"
	runbook    = "https://github.com/openpai/paictl/blob/main/docs/alerts.md#"
	heartbeat  = "Heartbeat" // always fires, so no test expects it to be silent
)

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
	group       string
}

// rules returns the rules of all rule files.
func rules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(ruleFolder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []rule
	for _, file := range files {
		var f struct {
			Groups []struct {
				Name  string
				Rules []rule
			}
		}
		read(t, file, &f)
		require.Len(t, f.Groups, 1, "%s: the chart reads one group per file", file)
		group := strings.TrimSuffix(filepath.Base(file), ".yaml")
		require.Equal(t, group, f.Groups[0].Name, "a group is named as its file")
		for _, r := range f.Groups[0].Rules {
			r.group = group
			out = append(out, r)
		}
	}
	return out
}

// read decodes a YAML file into into.
func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, into), file)
}

func TestEveryAlertSaysHowBadItIsAndWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t) {
		require.NotEmpty(t, r.Alert, "%s: only alerts live there: %s", r.group, r.Expr)
		require.False(t, seen[r.Alert], "two alerts are called %s", r.Alert)
		seen[r.Alert] = true
		require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
		require.Equal(t, runbook+strings.ToLower(r.Alert), r.Annotations["runbook_url"], r.Alert)
	}
}

// entry matches an entry of the manual: "### Name", an empty line, "**severity** · after 5m · needs ...".
var entry = regexp.MustCompile(`(?m)^### (\S+)\n\n\*\*(\w+)\*\*(?: · after (\w+))? · needs \S.*\n\n\S`)

func TestTheManualExplainsEveryAlertAndNoOther(t *testing.T) {
	data, err := os.ReadFile(manual)
	require.NoError(t, err)
	explained := map[string][]string{}
	for _, m := range entry.FindAllStringSubmatch(string(data), -1) {
		explained[m[1]] = m[2:]
	}
	require.Len(t, explained, strings.Count(string(data), "\n### "), "an entry of the manual has another form than the rest")
	for _, r := range rules(t) {
		got, ok := explained[r.Alert]
		require.True(t, ok, "docs/alerts.md doesn't explain %s", r.Alert)
		require.Equal(t, []string{r.Labels["severity"], r.For}, got, "%s: severity and time in docs/alerts.md", r.Alert)
		delete(explained, r.Alert)
	}
	require.Empty(t, explained, "docs/alerts.md explains alerts that there aren't")
}

// overTime matches a selector of samples from more than 20 minutes. ofAll matches a sum over the replicas of a service of the platform. Such sums
// count rare events, and their alerts continue if the replica that has counted the event is replaced.
var (
	overTime = regexp.MustCompile(`(\w+)(\{[^}]*\})?\[(\d+[hd]|[2-9]\d+m)\]`)
	ofAll    = regexp.MustCompile(`sum( by \(\w+\))? ?\(increase\(pai_`)
)

// A range selector also returns series that have ended within the range. Without a check of the present, alerts about such series fire for hours.
func TestARuleOverTimeCountsOnlySeriesThatLive(t *testing.T) {
	checked := 0
	for _, r := range rules(t) {
		long := overTime.FindAllStringSubmatch(r.Expr, -1)
		if len(long) == 0 || ofAll.MatchString(r.Expr) {
			continue
		}
		checked++
		now := overTime.ReplaceAllString(r.Expr, "") // selectors of a past time don't count either
		now = regexp.MustCompile(`\w+(\{[^}]*\})?( offset |\[)`).ReplaceAllString(now, "")
		require.True(t, slices.ContainsFunc(long, func(m []string) bool { return regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(now) }),
			"%s asks only for past values: it fires for series that ended", r.Alert)
	}
	require.Greater(t, checked, 10)
}

// lasting matches conditions that a state has lasted for more than 20 minutes, and predictions that a trend continues.
var lasting = regexp.MustCompile(`(?s)min_over_time\([^\[]*\[(?:\d+[hd]|[2-9]\d+m)[^\]]*\]\) >|avg_over_time\([^\[]*\[(?:\d+[hd]|[2-9]\d+m)\]|predict_linear\(`)

// If a series has just begun, a range selector returns only its few samples. For a new machine or task, a rule would then conclude that the problem
// has lasted for the whole range.
func TestARuleThatSomethingLastedKnowsThatItExisted(t *testing.T) {
	checked := 0
	for _, r := range rules(t) {
		if !lasting.MatchString(r.Expr) {
			continue
		}
		checked++
		require.Contains(t, r.Expr, " offset ", "%s fires for series that have just begun", r.Alert)
	}
	require.Equal(t, 4, checked, "stuck processes, idle GPUs, and two of full disks")
}

// suite is a file with tests for promtool.
type suite struct {
	RuleFiles []string `yaml:"rule_files"`
	Tests     []struct {
		Name        string
		InputSeries []struct {
			Series string
		} `yaml:"input_series"`
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []map[string]any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// suites returns the test files, by the name of the rule group.
func suites(t *testing.T) map[string]suite {
	t.Helper()
	files, err := filepath.Glob("*_test.yaml")
	require.NoError(t, err)
	out := map[string]suite{}
	for _, file := range files {
		group := strings.TrimSuffix(file, "_test.yaml")
		var s suite
		read(t, file, &s)
		require.Equal(t, []string{filepath.Join(ruleFolder, group+".yaml")}, s.RuleFiles, file)
		out[group] = s
	}
	return out
}

func TestEveryAlertHasATestInWhichItFiresAndOneInWhichItDoesNot(t *testing.T) {
	type seen struct{ fires, quiet bool }
	tested := map[string]seen{}
	for group, s := range suites(t) {
		for _, c := range s.Tests {
			for _, a := range c.AlertRuleTest {
				require.True(t, strings.HasPrefix(c.Name, a.Alertname+" "), "%s: %q tests %s", group, c.Name, a.Alertname)
				got := tested[group+"/"+a.Alertname]
				got.fires = got.fires || len(a.ExpAlerts) > 0
				got.quiet = got.quiet || len(a.ExpAlerts) == 0
				tested[group+"/"+a.Alertname] = got
			}
		}
	}
	for _, r := range rules(t) {
		got := tested[r.group+"/"+r.Alert]
		require.True(t, got.fires, "%s: no test in which it fires", r.Alert)
		require.True(t, got.quiet || r.Alert == heartbeat, "%s: no test in which it doesn't fire", r.Alert)
		delete(tested, r.group+"/"+r.Alert)
	}
	require.Empty(t, tested, "tests of alerts that there aren't")
}
