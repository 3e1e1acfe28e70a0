package templates

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// query is one PromQL query of a dashboard.
type query struct{ dashboard, panel, expr string }

// queries returns the queries of all panels and variables of all dashboards.
func queries(t *testing.T) []query {
	t.Helper()
	files, err := fs.Glob(Charts(), "charts/grafana/files/dashboards/*.json")
	require.NoError(t, err)
	require.Len(t, files, 8)
	var out []query
	uids := map[string]bool{}
	for _, file := range files {
		data, err := fs.ReadFile(Charts(), file)
		require.NoError(t, err)
		var d struct {
			UID, Title string
			Templating struct {
				List []struct{ Name, Definition string }
			}
			Panels []struct {
				ID         int
				Title      string
				Datasource struct{ UID string }
				Type       string
				Targets    []struct{ Expr string }
			}
		}
		require.NoError(t, json.Unmarshal(data, &d), file)
		require.False(t, uids[d.UID], "two dashboards are called %s", d.UID)
		uids[d.UID] = true
		for _, v := range d.Templating.List {
			selector, ok := strings.CutPrefix(v.Definition, "label_values(")
			require.True(t, ok, "variable %s", v.Name)
			out = append(out, query{d.Title, "variable " + v.Name, selector[:strings.LastIndex(selector, ",")]})
		}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			require.False(t, ids[p.ID], "%s: two panels have the id %d", file, p.ID)
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			require.Equal(t, "prometheus", p.Datasource.UID, "%s: %s", file, p.Title)
			require.NotEmpty(t, p.Targets, "%s: %s", file, p.Title)
			for _, target := range p.Targets {
				out = append(out, query{d.Title, p.Title, target.Expr})
			}
		}
	}
	return out
}

var (
	quoted   = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	matchers = regexp.MustCompile(`\{[^}]*\}`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]|\boffset \d+[smhdw]`)
	grouping = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
)

// metricsOf returns the names of metrics in an expression: the words that are neither labels
// nor functions nor operators.
func metricsOf(expr string) []string {
	for _, drop := range []*regexp.Regexp{quoted, matchers, ranges, grouping} {
		expr = drop.ReplaceAllString(expr, " ")
	}
	var out []string
	for _, w := range word.FindAllString(expr, -1) {
		name := strings.TrimSpace(w)
		if strings.HasSuffix(name, "(") || slices.Contains([]string{"and", "or", "unless", "by", "on", "bool", "offset"}, name) {
			continue
		}
		out = append(out, name)
	}
	return out
}

func TestMetricsAreFoundInExpressions(t *testing.T) {
	for expr, want := range map[string][]string{
		`1 - avg(rate(node_cpu_seconds_total{mode="idle"}[5m]))`:                        {"node_cpu_seconds_total"},
		`sum by (node, le) (a_b) / on (node) group_left () count by (node) (c:d)`:       {"a_b", "c:d"},
		`topk(3, x{a=~"b{2}|c"} > 0) or vector(0)`:                                      {"x"},
		`kube_pod_info{namespace="pai-jobs",pod=~"$pod"} == 1 or y{z!="w"}`:             {"kube_pod_info", "y"},
		`histogram_quantile(0.99, sum(rate(h_bucket[$__rate_interval])) without (pod))`: {"h_bucket"},
	} {
		require.Equal(t, want, metricsOf(expr), expr)
	}
}

// known returns the metrics of all exporters, from testdata/metrics/EXPORTER.txt. A histogram counts as three metrics.
func known(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/metrics/*.txt")
	require.NoError(t, err)
	out := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range strings.Split(string(data), "\n") {
			name, kind, _ := strings.Cut(line, " ")
			switch {
			case line == "" || name == "#":
			case kind == "histogram" || kind == "summary":
				out[name+"_sum"], out[name+"_count"] = true, true
				out[name+"_bucket"] = kind == "histogram"
			default:
				out[name] = true
			}
		}
	}
	return out
}

func TestDashboardsAskForMetricsThatExist(t *testing.T) {
	exist := known(t)
	for _, q := range queries(t) {
		found := metricsOf(q.expr)
		require.NotEmpty(t, found, "%s: %s", q.dashboard, q.panel)
		for _, name := range found {
			if !exist[name] {
				t.Errorf("%s: %s asks for %s, which no exporter tells (testdata/metrics)", q.dashboard, q.panel, name)
			}
		}
	}
}

// The scheduler exports most of its metrics only while it is the leader, so the test reads the source code.
func TestTheSchedulersMetricsAreAsRecorded(t *testing.T) {
	source, err := os.ReadFile("../pkg/scheduler/gangs/metrics.go")
	require.NoError(t, err)
	var told []string
	for _, m := range regexp.MustCompile(`(?:desc|counter)\("([a-z_]+)"|"pai_scheduler_([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		told = append(told, "pai_scheduler_"+m[1]+m[2])
	}
	recorded, err := os.ReadFile("testdata/metrics/scheduler.txt")
	require.NoError(t, err)
	var names []string
	for line := range strings.Lines(string(recorded)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			names = append(names, name)
		}
	}
	require.ElementsMatch(t, names, told)
}

// The job controller exports metrics with labels only after their first event, so the test reads the source code.
func TestTheJobControllersMetricsAreAsRecorded(t *testing.T) {
	var told []string
	for file, prefix := range map[string]string{"controller/metrics.go": "pai_controller_", "archive/observe.go": "", "../../cmd/pai-controller/metrics.go": ""} {
		source, err := os.ReadFile(filepath.Join("../pkg/job", file))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?:opts\(|Name: |NewDesc\()"([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
			told = append(told, prefix+m[1])
		}
	}
	recorded, err := os.ReadFile("testdata/metrics/job-controller.txt")
	require.NoError(t, err)
	var names []string
	for line := range strings.Lines(string(recorded)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			names = append(names, name)
		}
	}
	require.ElementsMatch(t, names, told)
}

// The metrics of a GPU depend on its model, so the test reads the agent's source code.
func TestTheAgentsMetricsAreAsRecorded(t *testing.T) {
	var told []string
	for file, pattern := range map[string]string{"metrics.go": `NewDesc\("(pai_[a-z_]+)"`, "gpu/*.go": `= +"(DCGM_FI_[A-Z0-9_]+)"`} {
		sources, err := filepath.Glob(filepath.Join("../pkg/node/agent", file))
		require.NoError(t, err)
		for _, name := range sources {
			source, err := os.ReadFile(name)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
				if !strings.HasSuffix(name, "_test.go") && !slices.Contains(told, m[1]) {
					told = append(told, m[1])
				}
			}
		}
	}
	recorded, err := os.ReadFile("testdata/metrics/agent.txt")
	require.NoError(t, err)
	var names []string
	for line := range strings.Lines(string(recorded)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			names = append(names, name)
		}
	}
	require.ElementsMatch(t, names, told)
}

// filled replaces the variables that Grafana fills with example values.
var filled = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$node", "gpu-1", "$pod", "job-.*", "$job", "job", "$gpu", "3", "$vc", "vision")

func TestPrometheusUnderstandsTheDashboards(t *testing.T) {
	_, promtool := bundletest.Need(t, bundle.KindTool, "promtool")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboards\n  rules:\n")
	for i, q := range queries(t) {
		expr, err := json.Marshal(filled.Replace(q.expr))
		require.NoError(t, err)
		fmt.Fprintf(&rules, "  - {record: 'panel:%d', expr: %s}\n", i, expr)
		require.NotContains(t, string(expr), "$")
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput()
	require.NoError(t, err, string(out))
}
