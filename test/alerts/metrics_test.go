package alerts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/test/tier"
)

// prometheus returns the path of Prometheus, or skips the test.
func prometheus(t *testing.T) string {
	t.Helper()
	tier.More(t, "Prometheus")
	if path := os.Getenv("PAICTL_PROMETHEUS"); path != "" {
		require.FileExists(t, path, "PAICTL_PROMETHEUS")
		return path
	}
	return filepath.Join(unpacked(t, "prometheus", "usr/bin/prometheus"), "usr/bin/prometheus")
}

// figure is a series in the form that results from an exporter and from relabeling by Prometheus. value returns the value after a number of seconds;
// ok is false if the series has no value at that time.
type figure struct {
	series string
	value  func(second int) (v float64, ok bool)
}

func always(v float64) func(int) (float64, bool) {
	return func(int) (float64, bool) { return v, true }
}

// grows returns the value of a counter that grows at a constant rate.
func grows(perSecond float64) func(int) (float64, bool) {
	return func(s int) (float64, bool) { return float64(s) * perSecond, true }
}

// openMetrics returns an hour of figures in the OpenMetrics format, for promtool. Each figure has a value every 30 seconds.
func openMetrics(begin time.Time, all []figure) string {
	var out strings.Builder
	for _, f := range all {
		name, _, _ := strings.Cut(f.series, "{")
		kind := "gauge"
		if base, ok := strings.CutSuffix(name, "_total"); ok {
			name, kind = base, "counter"
		}
		if head := "# TYPE " + name + " " + kind + "\n"; !strings.Contains(out.String(), head) {
			out.WriteString(head)
		}
		for s := 0; s <= 3600; s += 30 {
			if v, ok := f.value(s); ok {
				fmt.Fprintf(&out, "%s %g %d\n", f.series, v, begin.Unix()+int64(s))
			}
		}
	}
	out.WriteString("# EOF\n")
	return out.String()
}

// figures returns the figures of a job with two tasks and three GPUs, of another job, of a machine, and of a virtual cluster.
func figures() []figure {
	card := func(name, node, number, pod string, v func(int) (float64, bool)) figure {
		return figure{fmt.Sprintf(`%s{UUID="GPU-%s-%s",device="nvidia%s",gpu="%s",instance="10.244.1.7:9104",job="gpus",modelName="NVIDIA H100",namespace="pai-jobs",node="%s",pci_bus_id="0000:1b:00.0",pod="%s",service="agent"}`,
			name, node, number, number, number, node, pod), v}
	}
	container := func(name, node, pod, more string, v func(int) (float64, bool)) figure {
		return figure{fmt.Sprintf(`%s{%sid="/kubepods/%s",instance="10.0.0.11:10250",job="cadvisor",namespace="pai-jobs",node="%s",pod="%s"}`, name, more, pod, node, pod), v}
	}
	const app = `container="app",image="i",name="n",`
	out := []figure{}
	for i, pod := range []string{"f00d-worker-0", "f00d-worker-0", "f00d-worker-1", "f00dface-worker-0"} {
		node, number := "gpu-1", fmt.Sprint(i)
		use := always(float64(90 + i))
		if i == 1 {
			use = always(0)
		}
		out = append(out, card(gpu.Utilization, node, number, pod, use), card(gpu.MemoryUsed, node, number, pod, always(60000)), card(gpu.MemoryFree, node, number, pod, always(20000)),
			card(gpu.Power, node, number, pod, always(650)), card(gpu.Temperature, node, number, pod, always(70)), card(gpu.ClockReasons, node, number, pod, func(s int) (float64, bool) {
				if i == 2 && s >= 1800 {
					return 64 + 4, true
				}
				return 4, true // below the power limit, which is usual
			}))
	}
	for _, pod := range []string{"f00d-worker-0", "f00d-worker-1", "f00dface-worker-0"} {
		out = append(out, container("container_cpu_usage_seconds_total", "gpu-1", pod, app, grows(4)), container("container_spec_cpu_quota", "gpu-1", pod, app, always(800000)),
			container("container_spec_cpu_period", "gpu-1", pod, app, always(100000)), container("container_memory_working_set_bytes", "gpu-1", pod, app, always(60<<30)),
			container("container_spec_memory_limit_bytes", "gpu-1", pod, app, always(64<<30)), container("container_network_receive_bytes_total", "gpu-1", pod, `interface="eth0",`, grows(1e6)),
			container("container_network_transmit_bytes_total", "gpu-1", pod, `interface="eth0",`, grows(2e6)), container("container_fs_reads_bytes_total", "gpu-1", pod, app+`device="/dev/sda",`, grows(3e6)),
			container("container_fs_writes_bytes_total", "gpu-1", pod, app+`device="/dev/sda",`, grows(4e6)))
	}
	host := func(name, more string, v func(int) (float64, bool)) {
		out = append(out, figure{fmt.Sprintf(`%s{%sinstance="10.0.0.11:9100",job="node-exporter",namespace="pai-system",node="gpu-1",pod="node-exporter-x",service="node-exporter"}`, name, more), v})
	}
	host("node_cpu_seconds_total", `cpu="0",mode="idle",`, grows(0))
	host("node_cpu_seconds_total", `cpu="1",mode="idle",`, grows(0.5))
	host("node_cpu_seconds_total", `cpu="1",mode="user",`, grows(0.5))
	host("node_memory_MemTotal_bytes", "", always(512<<30))
	host("node_memory_MemAvailable_bytes", "", always(5<<30))
	for _, device := range []string{"nvme0n1", "dm-0"} {
		host("node_disk_io_time_seconds_total", `device="`+device+`",`, grows(0.25))
		host("node_disk_read_bytes_total", `device="`+device+`",`, grows(1e6))
		host("node_disk_written_bytes_total", `device="`+device+`",`, grows(2e6))
	}
	for _, device := range []string{"eno1", "lo", "bond0", "eno1.100"} {
		host("node_network_receive_bytes_total", `device="`+device+`",`, grows(3e6))
		host("node_network_transmit_bytes_total", `device="`+device+`",`, grows(4e6))
	}
	host("node_filesystem_avail_bytes", `device="/dev/sda1",fstype="ext4",mountpoint="/",`, always(25e9))
	host("node_filesystem_size_bytes", `device="/dev/sda1",fstype="ext4",mountpoint="/",`, always(100e9))
	leader := func(name, more string, v float64) {
		out = append(out, figure{fmt.Sprintf(`%s{%sinstance="10.244.0.8:9096",job="scheduler",namespace="pai-system",pod="scheduler-x",service="scheduler",vc="vision"}`, name, more), always(v)})
	}
	leader("pai_scheduler_vc_guaranteed_gpus", "", 16)
	leader("pai_scheduler_vc_used_gpus", "", 3)
	leader("pai_scheduler_vc_opportunistic_gpus", "", 1)
	leader("pai_scheduler_vc_bad_gpus", "", 0)
	leader("pai_scheduler_vc_cpu_cells", `kind="used",`, 0)
	leader("pai_scheduler_waiting_gangs", "", 2)
	leader("pai_scheduler_waiting_pods", "", 9)
	leader("pai_scheduler_oldest_waiting_seconds", "", 600)
	for _, pod := range []string{"f00d-worker-0", "f00d-worker-1"} {
		out = append(out, figure{`pai_task_gpus{instance="10.244.0.9:9097",job="job-controller",job_name="train",namespace="pai-system",opportunistic="false",pod="job-controller-x",service="job-controller",task_pod="` + pod + `",type="H100",user="ann",vc="vision"}`, always(1)})
	}
	return out
}

// ofKind groups figures by their metric, because the format requires that.
func ofKind(all []figure) (out []figure) {
	var names []string
	byName := map[string][]figure{}
	for _, f := range all {
		name, _, _ := strings.Cut(f.series, "{")
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], f)
	}
	for _, name := range names {
		out = append(out, byName[name]...)
	}
	return out
}

// withFigures runs Prometheus with figures, and returns a Reader that reads from it.
func withFigures(t *testing.T, begin time.Time, all []figure) *metrics.Reader {
	t.Helper()
	program, dir, port := prometheus(t), t.TempDir(), freePort(t)
	file := filepath.Join(dir, "figures.txt")
	require.NoError(t, os.WriteFile(file, []byte(openMetrics(begin, ofKind(all))), 0o600))
	run(t, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "data"))
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("scrape_configs: []\n"), 0o600))
	serve(t, "", program, []string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y", "--web.listen-address=127.0.0.1:" + port})
	until(t, "Prometheus answers", func() error {
		code, text, err := ask(t, http.MethodGet, "http://127.0.0.1:"+port+"/-/ready", "", "")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, text)
		}
		return err
	})
	return &metrics.Reader{Ask: func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+path+"?"+query.Encode(), http.NoBody)
		if err != nil {
			return nil, err
		}
		return web.Answer(http.DefaultClient, r, service)
	}}
}

// shown returns a report as text. The text contains each series with a value from within the hour.
func shown(r *metrics.Report) (out []string) {
	for i := range r.Charts {
		c := &r.Charts[i]
		for k := range c.Series {
			s := &c.Series[k]
			text := "not measured"
			if v := s.Values[len(s.Values)*2/3]; v != nil {
				text = fmt.Sprintf("%.4g", *v)
			}
			if s.Limit != nil {
				text += fmt.Sprintf(" of %.4g", *s.Limit)
			}
			out = append(out, strings.TrimSpace(c.Name+" "+s.Name)+": "+text)
		}
	}
	return out
}

// This test sends the named queries to a real Prometheus, which contains series in the form of the exporters.
func TestNamedQueriesReadWhatTheExportersMeasure(t *testing.T) {
	begin := time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC)
	r := withFigures(t, begin, figures())
	end := begin.Add(time.Hour)
	day := metrics.Range{Since: begin.Add(-23 * time.Hour), Until: end.Add(time.Hour), Points: 60} // an interval of each chart is longer than that of Prometheus
	for name, c := range map[string]struct {
		of       *metrics.Subject
		want     []string
		findings []string
	}{
		"a job": {metrics.OfJob("f00d", []metrics.Role{{Name: "worker", Object: "worker"}}, -1), []string{
			"gpu-use worker[0] GPU 0: 90", "gpu-use worker[0] GPU 1: 0", "gpu-use worker[1] GPU 2: 92",
			"gpu-memory worker[0] GPU 0: 75", "gpu-memory worker[0] GPU 1: 75", "gpu-memory worker[1] GPU 2: 75",
			"gpu-power worker[0] GPU 0: 650", "gpu-power worker[0] GPU 1: 650", "gpu-power worker[1] GPU 2: 650",
			"gpu-slowed worker[0] GPU 0: 0", "gpu-slowed worker[0] GPU 1: 0", "gpu-slowed worker[1] GPU 2: 1",
			"cpu worker[0]: 4 of 8", "cpu worker[1]: 4 of 8",
			"memory worker[0]: 6.442e+10 of 6.872e+10", "memory worker[1]: 6.442e+10 of 6.872e+10",
			"network-in worker[0]: 1e+06", "network-in worker[1]: 1e+06", "network-out worker[0]: 2e+06", "network-out worker[1]: 2e+06",
			"disk-read worker[0]: 3e+06", "disk-read worker[1]: 3e+06", "disk-write worker[0]: 4e+06", "disk-write worker[1]: 4e+06",
		}, []string{metrics.MemoryLimit, metrics.GPUIdle, metrics.GPUSlowed}},
		"a task": {metrics.OfJob("f00d", []metrics.Role{{Name: "worker", Object: "worker"}}, 1), []string{
			"gpu-use worker[1] GPU 2: 92", "gpu-memory worker[1] GPU 2: 75", "gpu-power worker[1] GPU 2: 650", "gpu-slowed worker[1] GPU 2: 1", "cpu worker[1]: 4 of 8", "memory worker[1]: 6.442e+10 of 6.872e+10",
			"network-in worker[1]: 1e+06", "network-out worker[1]: 2e+06", "disk-read worker[1]: 3e+06", "disk-write worker[1]: 4e+06",
		}, []string{metrics.MemoryLimit, metrics.GPUSlowed}},
		"a machine": {metrics.OfMachine("gpu-1", true), []string{
			"gpu-use GPU 0: 90", "gpu-use GPU 1: 0", "gpu-use GPU 2: 92", "gpu-use GPU 3: 93", "gpu-memory GPU 0: 75", "gpu-memory GPU 1: 75", "gpu-memory GPU 2: 75", "gpu-memory GPU 3: 75",
			"gpu-power GPU 0: 650", "gpu-power GPU 1: 650", "gpu-power GPU 2: 650", "gpu-power GPU 3: 650", "gpu-slowed GPU 0: 0", "gpu-slowed GPU 1: 0", "gpu-slowed GPU 2: 1", "gpu-slowed GPU 3: 0",
			"gpu-temperature GPU 0: 70", "gpu-temperature GPU 1: 70", "gpu-temperature GPU 2: 70", "gpu-temperature GPU 3: 70",
			"cpu all: 75", "cpu the busiest: 100", "memory: 5.444e+11 of 5.498e+11", "disk-busy: 25", "disk-read: 1e+06", "disk-write: 2e+06", "network-in: 3e+06", "network-out: 4e+06", "filesystems /: 75",
		}, []string{metrics.MemoryLimit, metrics.GPUSlowed}},
		"a virtual cluster": {metrics.OfVC("vision"), []string{
			"gpus guaranteed: 16", "gpus used: 3", "gpus opportunistic: 1", "gpus bad: 0", "held-use: 60.67", "waiting jobs: 2", "waiting tasks: 9", "oldest: 600",
		}, []string{metrics.WaitingFree}},
		"another machine": {of: metrics.OfMachine("gpu-2", true)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Read(t.Context(), c.of, metrics.Range{Since: begin, Until: end})
			require.NoError(t, err)
			assert.Equal(t, c.want, shown(got))
			var kinds []string
			for _, f := range got.Findings {
				kinds = append(kinds, f.Kind)
			}
			assert.Equal(t, c.findings, kinds, "%v", got.Findings)
			assert.Equal(t, len(c.want) == 0, got.Note != "", got.Note)

			long, err := r.Read(t.Context(), c.of, day)
			require.NoError(t, err)
			series := 0
			for i := range long.Charts {
				for _, s := range long.Charts[i].Series {
					series++
					measured := 0
					for _, v := range s.Values {
						if v != nil {
							measured++
						}
					}
					assert.Positive(t, measured, "%s %s", long.Charts[i].Name, s.Name)
				}
			}
			if name != "a virtual cluster" && len(c.want) > 0 { // of a day, nothing was slowed down for long enough to be seen each time
				assert.GreaterOrEqual(t, series, len(c.want)-4)
			}
		})
	}
}

// The queries must contain only metrics that the agent exports, and metrics of the kubelets that the chart's Prometheus stores.
func TestNamedQueriesAskForWhatIsStored(t *testing.T) {
	var mu sync.Mutex
	var asked strings.Builder
	r := &metrics.Reader{Ask: func(_ context.Context, _, _ string, query url.Values) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		asked.WriteString(query.Get("query") + "\n")
		return io.NopCloser(strings.NewReader(`{"data":{"result":[{"metric":{},"values":[]}]}}`)), nil // with a series, its limit is asked for, too
	}}
	end := time.Now()
	for _, s := range []*metrics.Subject{metrics.OfJob("f00d", []metrics.Role{{Name: "worker", Object: "worker"}}, -1), metrics.OfMachine("gpu-1", true), metrics.OfVC("vision")} {
		_, err := r.Read(t.Context(), s, metrics.Range{Since: end.Add(-time.Hour), Until: end})
		require.NoError(t, err)
	}
	exported := []string{gpu.Utilization, gpu.MemoryUsed, gpu.MemoryFree, gpu.Power, gpu.Temperature, gpu.ClockReasons}
	for _, name := range regexp.MustCompile(`DCGM_\w+`).FindAllString(asked.String(), -1) {
		assert.Contains(t, exported, name)
	}
	type scrape struct {
		Name string `yaml:"job_name"`
		Keep []struct {
			Action, Regex string
		} `yaml:"metric_relabel_configs"`
	}
	var config struct {
		Jobs []scrape `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(configMaps(t, "prometheus", "")["prometheus"].Data["prometheus.yml"]), &config))
	at := slices.IndexFunc(config.Jobs, func(j scrape) bool { return j.Name == "cadvisor" })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, "keep", config.Jobs[at].Keep[0].Action)
	stored := regexp.MustCompile("^(?:" + config.Jobs[at].Keep[0].Regex + ")$")
	names := regexp.MustCompile(`\bcontainer_\w+`).FindAllString(asked.String(), -1)
	require.Len(t, names, 9)
	for _, name := range names {
		assert.Regexp(t, stored, name)
	}
}

// Prometheus aggregates the series of a large job.
func TestALargeJobIsFolded(t *testing.T) {
	begin := time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC)
	var all []figure
	for i := range 100 {
		all = append(all, figure{fmt.Sprintf(`container_memory_working_set_bytes{container="app",namespace="pai-jobs",node="m",pod="f00d-worker-%d"}`, i), always(float64(i + 1))})
	}
	r := withFigures(t, begin, all)
	got, err := r.Read(t.Context(), metrics.OfJob("f00d", []metrics.Role{{Name: "worker", Object: "worker"}}, -1), metrics.Range{Since: begin, Until: begin.Add(time.Hour)})
	require.NoError(t, err)
	assert.Equal(t, []string{"memory lowest: 1", "memory mean: 50.5", "memory highest: 100"}, shown(got))
	require.Len(t, got.Charts, 1)
	assert.Equal(t, -1, got.Charts[0].Folded)
}
