package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/cluster/bundle"
)

const metricsPassword = "s3cret-of-metrics"

// withAccess holds the values that paictl adds to those of each chart.
const withAccess = "global: {clusterId: demo, accessSecret: metrics-access, tokenSecret: job-controller-token}\n"

// unpacked unpacks an image of the bundle, or some of its files, and returns the folder. If there is no bundle, it skips the test.
func unpacked(t *testing.T, image string, only ...string) string {
	t.Helper()
	dir := os.Getenv("PAICTL_TEST_BUNDLE")
	if dir == "" {
		t.Skip("no bundle: name one in PAICTL_TEST_BUNDLE")
	}
	b, err := bundle.Open(dir)
	require.NoError(t, err)
	a, ok := b.Lookup(bundle.KindImage, image)
	if !ok {
		t.Skipf("the bundle has no image %s", image)
	}
	img, err := tarball.ImageFromPath(b.File(a), nil)
	require.NoError(t, err)
	root := t.TempDir()
	layers := mutate.Extract(img)
	defer layers.Close()
	unpack := exec.CommandContext(t.Context(), "tar", append([]string{"x", "-C", root}, only...)...)
	unpack.Stdin = layers
	out, err := unpack.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return root
}

// workload holds the fields of a Deployment, StatefulSet or DaemonSet that tests read.
type workload struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name         string
					Args         []string
					VolumeMounts []volumeMount `yaml:"volumeMounts"`
				}
			}
		}
	}
}

type volumeMount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

// arguments returns the arguments of a chart's only container. The container's folders are replaced with folders of this machine.
func arguments(t *testing.T, service, values string, here map[string]string) []string {
	t.Helper()
	for _, doc := range manifests(t, service, values) {
		var w workload
		require.NoError(t, yaml.Unmarshal([]byte(doc), &w), doc)
		if len(w.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		c := w.Spec.Template.Spec.Containers[0]
		require.Contains(t, c.VolumeMounts, volumeMount{"access", "/etc/pai-access", true})
		var out []string
		for _, a := range c.Args {
			for _, from := range slices.Sorted(maps.Keys(here)) {
				a = strings.ReplaceAll(a, from, here[from])
			}
			out = append(out, a)
		}
		return out
	}
	t.Fatalf("%s has no container", service)
	return nil
}

// serve runs a program until the test ends. If the test fails, it shows the program's output. If root isn't empty, it is the root folder of the
// program.
func serve(t *testing.T, root, path string, args []string) {
	t.Helper()
	log := &strings.Builder{}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	if root != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("%s %q:\n%s", filepath.Base(path), args, log)
		}
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// ask sends a request, and returns the status and the body of the response.
func ask(t *testing.T, method, url, password string, body string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if password != "" {
		r.SetBasicAuth("pai", password)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func until(t *testing.T, what string, done func() error) {
	t.Helper()
	last := errors.New("not asked yet")
	require.Eventually(t, func() bool { last = done(); return last == nil }, 5*time.Minute, 100*time.Millisecond, "%s", what)
	require.NoError(t, last)
}

// onLoopback replaces the discovery of targets in a rendered prometheus.yml with targets on this machine. It doesn't change the other settings.
func onLoopback(t *testing.T, text, rules, access string, alertmanager string, services []string) []byte {
	t.Helper()
	var config map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "/etc/pai-access", access)), &config))
	static := func(job map[string]any, targets ...string) map[string]any {
		job = maps.Clone(job)
		delete(job, "kubernetes_sd_configs")
		delete(job, "relabel_configs")
		job["static_configs"] = []any{map[string]any{"targets": targets}}
		return job
	}
	managers := config["alerting"].(map[string]any)["alertmanagers"].([]any)
	require.Len(t, managers, 1)
	managers[0] = static(managers[0].(map[string]any), alertmanager)
	var jobs []any
	for _, job := range config["scrape_configs"].([]any) {
		if j := job.(map[string]any); j["job_name"] == "services" {
			jobs = append(jobs, static(j, services...))
		}
	}
	config["scrape_configs"], config["rule_files"] = jobs, []any{rules}
	global := config["global"].(map[string]any)
	global["scrape_interval"], global["scrape_timeout"], global["evaluation_interval"] = "1s", "1s", "1s"
	out, err := yaml.Marshal(config)
	require.NoError(t, err)
	return out
}

// monitoring consists of the real programs, with the arguments and files that the charts render.
type monitoring struct {
	at     map[string]string // addresses, by service
	access string            // folder of the Secret with the password
}

// startMonitoring runs the monitoring services until the test ends. more holds values for each chart, in addition to the values that paictl adds.
func startMonitoring(t *testing.T, more map[string]string) monitoring {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("Alertmanager has its templates at a fixed place, and only root may give it another root folder")
	}
	prometheus := filepath.Join(unpacked(t, "prometheus", "usr/bin/prometheus"), "usr/bin/prometheus")
	exporter := filepath.Join(unpacked(t, "node-exporter", "usr/bin/node_exporter"), "usr/bin/node_exporter")
	managers, dir := unpacked(t, "alertmanager"), t.TempDir()
	write := func(path string, data []byte) string {
		t.Helper()
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	values := func(service string) string { return withAccess + more[service] }
	hash, err := bcrypt.GenerateFromPassword([]byte(metricsPassword), bcrypt.MinCost)
	require.NoError(t, err)
	write("access/password", []byte(metricsPassword))
	web := fmt.Appendf(nil, "basic_auth_users:\n  pai: %s\n", hash)
	write("access/web.yml", web)
	access := filepath.Join(dir, "access")
	at := map[string]string{"prometheus": "127.0.0.1:" + freePort(t), "alert-manager": "127.0.0.1:" + freePort(t), "node-exporter": "127.0.0.1:" + freePort(t)}
	rules := write("rules/always.yaml", []byte("groups: [{name: g, rules: [{alert: Always, expr: vector(1)}, {alert: Heartbeat, expr: vector(1)}]}]\n"))
	write("prometheus/prometheus.yml", onLoopback(t, configMaps(t, "prometheus", withAccess)["prometheus"].Data["prometheus.yml"],
		rules, access, at["alert-manager"], slices.Sorted(maps.Values(at))))
	write(managers+"/etc/pai-access/web.yml", web)
	write(managers+"/etc/alertmanager/alertmanager.yml", []byte(configMaps(t, "alert-manager", values("alert-manager"))["alert-manager"].Data["alertmanager.yml"]))
	for _, doc := range manifests(t, "alert-manager", values("alert-manager")) {
		var secret struct {
			StringData map[string]string `yaml:"stringData"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(doc), &secret))
		for key, value := range secret.StringData {
			write(managers+"/etc/alertmanager/credentials/"+key, []byte(value))
		}
	}

	serve(t, managers, "/usr/bin/alertmanager", arguments(t, "alert-manager", values("alert-manager"), map[string]string{"=:9093": "=" + at["alert-manager"]}))
	serve(t, "", exporter, arguments(t, "node-exporter", values("node-exporter"), map[string]string{"/etc/pai-access": access, "[$(HOST_IP)]:9100": at["node-exporter"],
		"/host/root": "/", "/host/": "/"}))
	serve(t, "", prometheus, arguments(t, "prometheus", values("prometheus"), map[string]string{"/etc/prometheus": filepath.Join(dir, "prometheus"), "/etc/pai-access": access,
		"--storage.tsdb.path=/prometheus": "--storage.tsdb.path=" + t.TempDir(), "=:9090": "=" + at["prometheus"]}))
	for service, address := range at {
		until(t, service+" answers", func() error {
			code, _, err := ask(t, http.MethodGet, "http://"+address+"/metrics", metricsPassword, "")
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%s answers %d", service, code)
			}
			return err
		})
	}
	return monitoring{at, access}
}

// alerting waits until Prometheus has sent an alert to Alertmanager.
func (m *monitoring) alerting(t *testing.T) {
	t.Helper()
	until(t, "Prometheus' alerts reach Alertmanager", func() error {
		_, text, err := ask(t, http.MethodGet, "http://"+m.at["alert-manager"]+"/api/v2/alerts", metricsPassword, "")
		if err == nil && !strings.Contains(text, `"alertname":"Always"`) {
			err = errors.New(text)
		}
		return err
	})
}

// All services reject requests without the password. Prometheus has the password, so it can scrape targets and send alerts.
func TestMonitoringAnswersOnlyWhoKnowsThePassword(t *testing.T) {
	m := startMonitoring(t, nil)
	at := m.at
	for service, paths := range map[string][]string{
		"prometheus":    {"GET /-/ready", "GET /metrics", "GET /api/v1/query?query=up", "GET /api/v1/status/config", "GET /api/v1/targets", "GET /debug/pprof/cmdline", "POST /-/reload"},
		"alert-manager": {"GET /-/ready", "GET /metrics", "GET /api/v2/status", "POST /api/v2/silences", "POST /api/v2/alerts", "POST /-/reload", "GET /debug/pprof/"},
		"node-exporter": {"GET /", "GET /metrics", "GET /debug/pprof/", "GET /debug/pprof/profile?seconds=1"},
	} {
		for _, p := range paths {
			method, path, _ := strings.Cut(p, " ")
			for _, password := range []string{"", "wrong"} {
				code, _, err := ask(t, method, "http://"+at[service]+path, password, "[]")
				require.NoError(t, err, "%s %s", service, p)
				require.Equal(t, http.StatusUnauthorized, code, "%s %s", service, p)
			}
		}
	}
	until(t, "Prometheus scrapes all three", func() error {
		_, text, err := ask(t, http.MethodGet, "http://"+at["prometheus"]+"/api/v1/query?query=count(up==1)", metricsPassword, "")
		if err == nil && !strings.Contains(text, `"3"]`) {
			err = errors.New(text)
		}
		return err
	})
	m.alerting(t)
	var silence struct {
		ID string `json:"silenceID"`
	}
	code, text, err := ask(t, http.MethodPost, "http://"+at["alert-manager"]+"/api/v2/silences", metricsPassword,
		`{"matchers":[{"name":"alertname","value":"Always","isRegex":false}],"startsAt":"2026-01-01T00:00:00Z","endsAt":"2099-01-01T00:00:00Z","createdBy":"a","comment":"c"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, text)
	require.NoError(t, json.Unmarshal([]byte(text), &silence))
	require.NotEmpty(t, silence.ID)
}

// The address is a secret. Only the Secret contains it, and Alertmanager reads it from the Secret.
func TestTheHeartbeatReachesAnAddressThatIsASecret(t *testing.T) {
	beats := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case beats <- r.URL.Path + " " + string(body):
		default:
		}
	}))
	t.Cleanup(server.Close)
	startMonitoring(t, map[string]string{"alert-manager": "receivers: {heartbeat: {url: \"" + server.URL + "/s3cret-beat\", interval: 1s}}\n"})
	for range 2 { // it comes again and again
		select {
		case b := <-beats:
			require.Contains(t, b, "/s3cret-beat ")
			require.Contains(t, b, `"alertname":"Heartbeat"`)
		case <-time.After(5 * time.Minute):
			t.Fatal("no heartbeat came")
		}
	}
}

// The password is only for pods in the platform's namespace. Prometheus doesn't send it to pods in other namespaces.
func TestThePasswordIsSentOnlyToThePlatform(t *testing.T) {
	var config struct {
		ScrapeConfigs []struct {
			JobName   string `yaml:"job_name"`
			BasicAuth *struct {
				PasswordFile string `yaml:"password_file"`
			} `yaml:"basic_auth"`
			KubernetesSDConfigs []struct{ Namespaces struct{ Names []string } } `yaml:"kubernetes_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	text := configMaps(t, "prometheus", withAccess+"scrape: {namespaces: [team-a, pai-system]}")["prometheus"].Data["prometheus.yml"]
	require.NoError(t, yaml.Unmarshal([]byte(text), &config))
	sent := map[string][]string{}
	for _, c := range config.ScrapeConfigs {
		if c.BasicAuth != nil {
			require.Equal(t, "/etc/pai-access/password", c.BasicAuth.PasswordFile)
			sent[c.JobName] = c.KubernetesSDConfigs[0].Namespaces.Names
		}
	}
	require.Equal(t, map[string][]string{"services": {"pai-system"}, "kube-state-metrics": {"pai-system"}, "gpus": {"pai-system"}}, sent)
	require.Contains(t, text, "other-services")
	require.NotContains(t, configMaps(t, "prometheus", withAccess)["prometheus"].Data["prometheus.yml"], "other-services")
	require.NotContains(t, configMaps(t, "prometheus", "")["prometheus"].Data["prometheus.yml"], "basic_auth")
}
