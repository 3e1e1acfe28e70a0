package alerts

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// configMap holds the fields of a ConfigMap that tests read.
type configMap struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
}

// manifests renders a chart as Helm does, and returns all documents. It also validates the values with the schema of the chart.
func manifests(t *testing.T, service, values string) []string {
	t.Helper()
	c, err := loader.Load(filepath.Join("../../templates/charts", service))
	require.NoError(t, err)
	vals, err := chartutil.ReadValues([]byte(values))
	require.NoError(t, err)
	options := chartutil.ReleaseOptions{Name: service, Namespace: "pai-system"}
	all, err := chartutil.ToRenderValues(c, vals, options, chartutil.DefaultCapabilities)
	require.NoError(t, err)
	files, err := engine.Render(c, all)
	require.NoError(t, err)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			out = append(out, strings.Split(files[name], "\n---\n")...)
		}
	}
	return out
}

// configMaps returns the ConfigMaps in a chart, by name.
func configMaps(t *testing.T, service, values string) map[string]configMap {
	t.Helper()
	out := map[string]configMap{}
	for _, doc := range manifests(t, service, values) {
		var m configMap
		require.NoError(t, yaml.Unmarshal([]byte(doc), &m), doc)
		if m.Kind == "ConfigMap" {
			out[m.Metadata.Name] = m
		}
	}
	return out
}

const everyGroupOff = `
alerts:
  groups: {nodes: false, disks: false, gpus: false, jobs: false, services: false, scheduler: false, job-controller: false, certificates: false, kubernetes: false}
`

const ownRulesAndJobs = `
global: {clusterId: demo}
kubelet: {insecureSkipVerify: false}
alerts: {groups: {jobs: false}, disabled: [NodeRebooted]}
customRules:
  team-a:
    groups:
      - name: team-a
        rules:
          - {record: "node:gpus:count", expr: count by (node) (DCGM_FI_DEV_GPU_TEMP)}
          - {alert: TeamQuiet, expr: "absent(node:gpus:count)", for: 1h, labels: {severity: info}}
scrape:
  namespaces: [team-a]
  extra: [{job_name: etcd, static_configs: [{targets: ["10.0.0.1:2381"]}]}]
`

var prometheusCases = []struct{ name, values string }{
	{"defaults", ""},
	{"own rules and jobs", ownRulesAndJobs},
	{"every group off", everyGroupOff},
	{"as little as possible", "scrape: {apiserver: false, kubelet: false, cadvisor: false, coredns: false}" + everyGroupOff},
}

func TestValuesSwitchAlertsOffAndAddTheirOwn(t *testing.T) {
	files := func(values string) map[string]string {
		return configMaps(t, "prometheus", values)["prometheus-rules"].Data
	}

	require.Contains(t, files("")["nodes.yaml"], "alert: NodeRebooted")
	require.Contains(t, files(""), "jobs.yaml")

	got := files(ownRulesAndJobs)
	require.NotContains(t, got["nodes.yaml"], "alert: NodeRebooted")
	require.Contains(t, got["nodes.yaml"], "alert: NodeDown")
	require.NotContains(t, got, "jobs.yaml")
	require.Contains(t, got["custom-team-a.yaml"], "alert: TeamQuiet")

	require.Empty(t, files(everyGroupOff))
}

// A job counts as idle by the limits of the values. The limits of other alerts stay the same.
func TestValuesSetWhenAJobIsIdle(t *testing.T) {
	rules := func(values string) map[string]map[string]any {
		var file struct {
			Groups []struct{ Rules []map[string]any }
		}
		require.NoError(t, yaml.Unmarshal([]byte(configMaps(t, "prometheus", values)["prometheus-rules"].Data["gpus.yaml"]), &file))
		byName := map[string]map[string]any{}
		for _, r := range file.Groups[0].Rules {
			byName[r["alert"].(string)] = r
		}
		return byName
	}
	const idle = "JobGpusIdle"
	before, after := rules(""), rules("alerts: {idleJobs: {percent: 12, within: 45m}}")
	expr := after[idle]["expr"].(string)
	require.Contains(t, expr, "[45m])) < 12\n")
	require.Contains(t, expr, "offset 45m")
	require.NotContains(t, expr, "2h")
	require.Contains(t, before[idle]["expr"], "[2h])) < 5\n")
	require.Equal(t, "Over the last 45m, they were busy less than 12 % of the time, and no one else can have them.", after[idle]["annotations"].(map[string]any)["description"])
	delete(before, idle)
	delete(after, idle)
	require.Equal(t, before, after)
}

// relabel is a relabeling step that keeps or drops series.
type relabel struct {
	Action       string
	SourceLabels []string `yaml:"source_labels"`
	Regex        string
}

// scrapeJobs returns the relabeling steps of each scrape job. They determine which series of the job are stored.
func scrapeJobs(t *testing.T) map[string][]relabel {
	t.Helper()
	var config struct {
		ScrapeConfigs []struct {
			JobName              string    `yaml:"job_name"`
			MetricRelabelConfigs []relabel `yaml:"metric_relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(configMaps(t, "prometheus", "")["prometheus"].Data["prometheus.yml"]), &config))
	out := map[string][]relabel{}
	for _, c := range config.ScrapeConfigs {
		out[c.JobName] = c.MetricRelabelConfigs
	}
	return out
}

var (
	seriesName  = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	seriesLabel = regexp.MustCompile(`([a-zA-Z_]+)="([^"]*)"`)
)

// stored reports whether the steps of a scrape job keep a series.
func stored(steps []relabel, labels map[string]string) bool {
	for _, step := range steps {
		var values []string
		for _, l := range step.SourceLabels {
			values = append(values, labels[l])
		}
		matches := regexp.MustCompile("^(?s:" + step.Regex + ")$").MatchString(strings.Join(values, ";"))
		if (step.Action == "keep") != matches {
			return false
		}
	}
	return true
}

// A rule about a series that Prometheus drops would never fire, and the test of the rule wouldn't detect that. Prometheus creates the series up
// itself, so up passes no step.
func TestPrometheusStoresWhatTheAlertsRead(t *testing.T) {
	jobs := scrapeJobs(t)
	require.False(t, stored(jobs["apiserver"], map[string]string{"__name__": "apiserver_request_duration_seconds_bucket", "le": "1"}))
	checked := 0
	for _, s := range suites(t) {
		for _, c := range s.Tests {
			for _, in := range c.InputSeries {
				labels := map[string]string{"__name__": seriesName.FindString(in.Series)}
				for _, m := range seriesLabel.FindAllStringSubmatch(in.Series, -1) {
					labels[m[1]] = m[2]
				}
				steps, ok := jobs[labels["job"]]
				if !ok || labels["__name__"] == "up" {
					continue
				}
				checked++
				require.True(t, stored(steps, labels), "%s: job %s doesn't store %s", c.Name, labels["job"], in.Series)
			}
		}
	}
	require.Greater(t, checked, 20)
}
