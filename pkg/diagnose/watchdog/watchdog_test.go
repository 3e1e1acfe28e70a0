package watchdog

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/node/podapi"
)

func certificateUntil(t *testing.T, end time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: end.Add(-24 * time.Hour), NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func tlsServer(t *testing.T, config *tls.Config) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = quiet()
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// quiet returns a logger that discards a server's messages about handshakes that end early.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

type cluster struct {
	nodes   []Node
	servers []string
	down    atomic.Bool
	backups *batchv1.CronJob
	history string   // the note of the last one with the history of jobs
	noted   string   // when a backup was made, as its maker notes it
	seen    sync.Map // paths
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.seen.Store(r.URL.Path, r.Header.Get("Authorization"))
	if c.down.Load() {
		http.Error(w, "[-]etcd failed", http.StatusInternalServerError)
		return
	}
	switch r.URL.Path {
	case "/readyz":
		fmt.Fprint(w, "ok")
	case "/api/v1/nodes":
		c.serveNodes(w, r)
	case "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices":
		var endpoints []any
		port := 0
		for _, s := range c.servers {
			host, p, _ := net.SplitHostPort(s)
			port, _ = strconv.Atoi(p)
			endpoints = append(endpoints, map[string]any{"addresses": []string{host}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": []any{map[string]any{"endpoints": endpoints, "ports": []any{map[string]any{"port": port}}}}})
	case "/apis/batch/v1/namespaces/pai-system/cronjobs/cluster-backup":
		if c.backups == nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(c.backups)
	case "/api/v1/namespaces/kube-system/configmaps/paictl":
		if c.noted == "" && c.history == "" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(corev1.ConfigMap{Data: map[string]string{"backup": c.noted, "backup-history": c.history}})
	default:
		http.NotFound(w, r)
	}
}

func (c *cluster) serveNodes(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := min(from+limit, len(c.nodes))
	var items []any
	for _, n := range c.nodes[from:to] {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": n.Name},
			"status": map[string]any{"addresses": []any{
				map[string]any{"type": "Hostname", "address": n.Name}, map[string]any{"type": "InternalIP", "address": n.Address},
			}},
		})
	}
	meta := map[string]any{}
	if to < len(c.nodes) {
		meta["continue"] = strconv.Itoa(to)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": meta, "items": items})
}

// watch returns a watchdog of a cluster in which all kubelets serve at one address.
func watch(t *testing.T, c *cluster, kubelet string, change func(*Config)) *Watchdog {
	t.Helper()
	s := httptest.NewUnstartedServer(c)
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	account := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(account, "ca.crt"), authority, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(account, "token"), []byte("token"), 0o600))
	config := defaults()
	config.Timeout = Duration(time.Minute) // of a machine that is busy with other tests
	if kubelet != "" {
		_, port, err := net.SplitHostPort(kubelet)
		require.NoError(t, err)
		config.KubeletPort, err = strconv.Atoi(port)
		require.NoError(t, err)
	}
	if change != nil {
		change(&config)
	}
	require.NoError(t, config.check())
	return New(config, API{&podapi.API{URL: s.URL, Folder: account}}, func(string, ...any) {})
}

func scrape(t *testing.T, w *Watchdog) string {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, rec.Code)
	return rec.Body.String()
}

func TestMetricsAreForThoseWhoKnowThePassword(t *testing.T) {
	w := New(defaults(), API{}, func(string, ...any) {})
	w.access = filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(w.access, []byte("s3cret"), 0o600))
	for path, codes := range map[string][2]int{"/metrics": {401, 200}, "/healthz": {200, 200}} {
		for i, password := range []string{"", "s3cret"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if password != "" {
				r.SetBasicAuth("pai", password)
			}
			rec := httptest.NewRecorder()
			w.Handler().ServeHTTP(rec, r)
			require.Equal(t, codes[i], rec.Code, path)
		}
	}
}

func expiry(kind, name, address string, end time.Time) string {
	return fmt.Sprintf("pai_certificate_expiry_timestamp_seconds{address=%q,kind=%q,name=%q} %s\n",
		address, kind, name, strconv.FormatFloat(float64(end.Unix()), 'g', -1, 64))
}

func TestCertificatesOfAllServersAreTold(t *testing.T) {
	soon, later, past := time.Now().Add(48*time.Hour), time.Now().Add(8000*time.Hour), time.Now().Add(-time.Hour)
	apiServer := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, later)}})
	kubelet := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, soon)}})
	registry := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, past)}})
	c := &cluster{nodes: []Node{{"gpu-1", "127.0.0.1"}}, servers: []string{apiServer}}
	w := watch(t, c, kubelet, func(c *Config) { c.Targets = []Target{{Name: "registry", Address: registry}} })

	w.CheckCertificates(t.Context())
	got := scrape(t, w)
	require.Contains(t, got, expiry("apiserver", apiServer, apiServer, later))
	require.Contains(t, got, expiry("kubelet", "gpu-1", kubelet, soon))
	require.Contains(t, got, expiry("target", "registry", registry, past), "a certificate that ended is told too")
	for _, target := range []string{"apiserver/" + apiServer, "kubelet/gpu-1", "target/registry"} {
		require.Contains(t, got, fmt.Sprintf("pai_probe_success{target=%q} 1\n", target))
		require.Contains(t, got, fmt.Sprintf("pai_probe_duration_seconds{target=%q} ", target))
	}
}

func TestTheFirstOfAChainToEndCounts(t *testing.T) {
	leaf, above := time.Now().Add(500*time.Hour), time.Now().Add(5*time.Hour)
	chain := certificateUntil(t, leaf)
	chain.Certificate = append(chain.Certificate, certificateUntil(t, above).Certificate...)
	got, err := Expiry(t.Context(), tlsServer(t, &tls.Config{Certificates: []tls.Certificate{chain}}), "")
	require.NoError(t, err)
	require.Equal(t, above.Unix(), got.Unix())
}

func TestServersThatAskForACertificateShowTheirs(t *testing.T) {
	end := time.Now().Add(5 * time.Hour)
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			address := tlsServer(t, &tls.Config{
				Certificates: []tls.Certificate{certificateUntil(t, end)}, MinVersion: version, MaxVersion: version, ClientAuth: tls.RequireAnyClientCert,
			})
			got, err := Expiry(t.Context(), address, "etcd")
			require.NoError(t, err)
			require.Equal(t, end.Unix(), got.Unix())
		})
	}
}

func TestTheNameIsAskedFor(t *testing.T) {
	end := time.Now().Add(5 * time.Hour)
	right, wrong := certificateUntil(t, end), certificateUntil(t, end.Add(time.Hour))
	address := tlsServer(t, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if h.ServerName == "hub.example" {
			return &right, nil
		}
		return &wrong, nil
	}})
	got, err := Expiry(t.Context(), address, "hub.example")
	require.NoError(t, err)
	require.Equal(t, end.Unix(), got.Unix())
}

func TestAServerThatDoesNotAnswerIsNoSuccess(t *testing.T) {
	c := &cluster{nodes: []Node{{"gone", "127.0.0.1"}}}
	w := watch(t, c, "127.0.0.1:1", nil)

	w.CheckCertificates(t.Context())
	got := scrape(t, w)
	require.Contains(t, got, `pai_probe_success{target="kubelet/gone"} 0`)
	require.NotContains(t, got, "pai_certificate_expiry_timestamp_seconds{")
}

func TestAServerThatKeepsSilentEndsWithTheTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = Expiry(ctx, l.Addr().String(), "")
	require.ErrorContains(t, err, "shake hands")
}

func TestANodeThatIsGoneIsGoneFromTheMetrics(t *testing.T) {
	kubelet := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, time.Now().Add(time.Hour))}})
	c := &cluster{nodes: []Node{{"a", "127.0.0.1"}, {"b", "127.0.0.1"}}}
	w := watch(t, c, kubelet, nil)
	w.CheckCertificates(t.Context())
	require.Contains(t, scrape(t, w), "kubelet/b")

	c.nodes = c.nodes[:1]
	w.CheckCertificates(t.Context())
	require.Contains(t, scrape(t, w), "kubelet/a")
	require.NotContains(t, scrape(t, w), "kubelet/b")
}

func TestWithoutTheAPITheServersOfTheLastTimeAreLookedAt(t *testing.T) {
	kubelet := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, time.Now().Add(time.Hour))}})
	c := &cluster{nodes: []Node{{"a", "127.0.0.1"}}}
	w := watch(t, c, kubelet, func(c *Config) { c.Targets = []Target{{Name: "registry", Address: kubelet}} })

	c.down.Store(true)
	w.CheckCertificates(t.Context())
	require.Contains(t, scrape(t, w), `pai_probe_success{target="target/registry"} 1`, "targets need no API")
	require.NotContains(t, scrape(t, w), "kubelet/a")

	c.down.Store(false)
	w.CheckCertificates(t.Context())
	c.down.Store(true)
	w.CheckCertificates(t.Context())
	require.Contains(t, scrape(t, w), `pai_probe_success{target="kubelet/a"} 1`)
}

func TestLargeClustersAreReadInPagesAndLookedAtAFewAtATime(t *testing.T) {
	const limit = 7
	var open, most atomic.Int32
	cert := certificateUntil(t, time.Now().Add(time.Hour))
	kubelet := tlsServer(t, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		n := open.Add(1)
		defer open.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		return &cert, nil
	}})
	c := &cluster{}
	for i := range 2*pageSize + 10 {
		c.nodes = append(c.nodes, Node{fmt.Sprintf("node-%d", i), "127.0.0.1"})
	}
	w := watch(t, c, kubelet, func(c *Config) { c.Concurrency = limit })
	w.CheckCertificates(t.Context())
	got := scrape(t, w)
	require.Equal(t, len(c.nodes), strings.Count(got, `kind="kubelet"`))
	require.LessOrEqual(t, most.Load(), int32(limit))
}

func TestTheHealthOfTheAPIIsTold(t *testing.T) {
	c := &cluster{}
	w := watch(t, c, "", nil)
	var logged []any
	w.log = func(_ string, args ...any) { logged = append(logged, args...) }
	w.CheckHealth(t.Context())
	require.Contains(t, scrape(t, w), `pai_probe_success{target="apiserver"} 1`)

	c.down.Store(true)
	w.CheckHealth(t.Context())
	require.Contains(t, scrape(t, w), `pai_probe_success{target="apiserver"} 0`)
	require.Contains(t, fmt.Sprint(logged...), "[-]etcd failed")
}

func TestHowBackupsGoIsTold(t *testing.T) {
	c := &cluster{}
	w := watch(t, c, "", nil)
	w.CheckBackups(t.Context())
	require.NotContains(t, scrape(t, w), "pai_backup_", "there is no schedule")

	at := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(seconds, 0)} }
	c.backups = &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *at(1_000_000)}}
	w.CheckBackups(t.Context())
	got := scrape(t, w)
	require.Contains(t, got, "pai_backup_last_good_timestamp_seconds 1e+06\n", "it begins with the schedule")
	require.Contains(t, got, "pai_backup_running 0\n")
	require.Contains(t, got, "pai_backup_suspended 0\n")
	require.NotContains(t, got, "pai_backup_last_s", "none was made yet")

	c.backups.Status = batchv1.CronJobStatus{LastScheduleTime: at(3_000_000), LastSuccessfulTime: at(2_000_000), Active: []corev1.ObjectReference{{Name: "x"}}}
	w.CheckBackups(t.Context())
	for _, want := range []string{"pai_backup_last_schedule_timestamp_seconds 3e+06\n", "pai_backup_last_success_timestamp_seconds 2e+06\n", "pai_backup_last_good_timestamp_seconds 2e+06\n", "pai_backup_running 1\n"} {
		require.Contains(t, scrape(t, w), want)
	}
	c.noted, c.backups.Spec.Suspend = "1970-02-04T17:20:00Z", new(true)
	w.CheckBackups(t.Context())
	require.Contains(t, scrape(t, w), "pai_backup_last_good_timestamp_seconds 3e+06\n", "one that was made by hand is as good")
	require.Contains(t, scrape(t, w), "pai_backup_suspended 1\n")
	c.noted = time.Now().Add(time.Hour).Format(time.RFC3339)
	w.CheckBackups(t.Context())
	require.Contains(t, scrape(t, w), "pai_backup_last_good_timestamp_seconds 2e+06\n", "a clock was wrong where it was made")
	recent := time.Now().Add(time.Minute).Truncate(time.Second)
	c.noted = recent.Format(time.RFC3339)
	w.CheckBackups(t.Context())
	require.Contains(t, scrape(t, w), fmt.Sprintf("pai_backup_last_good_timestamp_seconds %v\n", float64(recent.Unix())), "clocks differ a little")
	require.NotContains(t, scrape(t, w), "history", "no one misses one")
	for note, want := range map[string]string{"1970-02-04T17:20:00Z": "3e+06", "never": "1e+06", time.Now().Add(time.Hour).Format(time.RFC3339): "1e+06"} {
		c.history = note
		w.CheckBackups(t.Context())
		require.Contains(t, scrape(t, w), "pai_backup_last_history_timestamp_seconds "+want+"\n", note)
		require.Contains(t, scrape(t, w), "pai_backup_history_overdue_timestamp_seconds ", note)
	}
	c.down.Store(true)
	w.CheckBackups(t.Context())
	require.Contains(t, scrape(t, w), "pai_backup_last_success_timestamp_seconds 2e+06\n", "it stays until the API answers")
	c.down.Store(false)
	c.backups = nil
	w.CheckBackups(t.Context())
	require.NotContains(t, scrape(t, w), "pai_backup_")
}

func TestABackupIsTooOldWhenTwoRunsHaveCome(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, good, overdue string }{
		"each night":             {"0 2 * * *", "", "2026-11-01T02:10:00Z", "2026-11-03T06:00:00Z"},
		"each night, in Berlin":  {"0 2 * * *", "Europe/Berlin", "2026-11-01T01:10:00Z", "2026-11-03T05:00:00Z"},
		"each hour":              {"0 * * * *", "", "2026-11-01T02:10:00Z", "2026-11-01T05:00:00Z"},
		"each week":              {"@weekly", "", "2026-11-03T12:00:00Z", "2026-11-15T04:00:00Z"},
		"made by hand":           {"0 2 * * *", "", "2026-11-01T18:00:00Z", "2026-11-03T06:00:00Z"},
		"a zone that isn't":      {"0 2 * * *", "Nowhere/Land", "2026-11-01T02:10:00Z", "2026-11-03T06:00:00Z"},
		"a day that never comes": {"0 2 31 2 *", "", "2026-11-01T02:10:00Z", "2026-11-03T02:10:00Z"},
		"what can't be read":     {"now and then", "", "2026-11-01T02:10:00Z", "2026-11-03T02:10:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			var j cronJob
			j.Spec.Schedule, j.Spec.TimeZone = c.schedule, c.zone
			j.Spec.JobTemplate.Spec.ActiveDeadlineSeconds = 4 * 3600
			good, err := time.Parse(time.RFC3339, c.good)
			require.NoError(t, err)
			require.Equal(t, c.overdue, j.overdue(good).UTC().Format(time.RFC3339))
		})
	}
}

// The alerts compare the time with these metrics.
func TestTheMetricsOfOverdueBackupsFollowTheSchedule(t *testing.T) {
	day := func(day, hour, minute int) time.Time { return time.Date(2025, 11, day, hour, minute, 0, 0, time.UTC) }
	schedule := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(day(1, 12, 0))}}
	schedule.Spec.Schedule = "0 2 * * *"
	schedule.Spec.JobTemplate.Spec.ActiveDeadlineSeconds = new(int64(4 * 3600))
	c := &cluster{backups: schedule, history: "never"}
	w := watch(t, c, "", nil)
	told := func(overdue, historyOverdue time.Time) {
		t.Helper()
		w.CheckBackups(t.Context())
		got := scrape(t, w)
		require.Contains(t, got, fmt.Sprintf("\npai_backup_overdue_timestamp_seconds %v\n", float64(overdue.Unix())))
		require.Contains(t, got, fmt.Sprintf("\npai_backup_history_overdue_timestamp_seconds %v\n", float64(historyOverdue.Unix())))
	}
	told(day(3, 6, 0), day(3, 6, 0)) // two nights after the creation, plus the deadline of a run
	c.noted = day(2, 1, 59).Format(time.RFC3339)
	told(day(3, 6, 0), day(3, 6, 0)) // made by hand before the first run
	c.noted = day(2, 2, 1).Format(time.RFC3339)
	told(day(4, 6, 0), day(3, 6, 0)) // after it
	c.history = day(2, 2, 1).Format(time.RFC3339)
	told(day(4, 6, 0), day(4, 6, 0))
	schedule.Status.LastSuccessfulTime = &metav1.Time{Time: day(3, 2, 10)}
	told(day(5, 6, 0), day(4, 6, 0)) // the second run is good, but has no history
}

func TestMetricsAreWellFormed(t *testing.T) {
	kubelet := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, time.Now().Add(time.Hour))}})
	w := watch(t, &cluster{nodes: []Node{{"a", "127.0.0.1"}}}, kubelet, nil)
	w.CheckHealth(t.Context())
	w.CheckCertificates(t.Context())
	problems, err := testutil.CollectAndLint(w.results)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestServeWatchesAndAnswersUntilItIsEnded(t *testing.T) {
	kubelet := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, time.Now().Add(time.Hour))}})
	c := &cluster{nodes: []Node{{"a", "127.0.0.1"}}}
	w := watch(t, c, kubelet, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, w) }()

	get := func(path string) string {
		res, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return string(body) + fmt.Sprint(err)
	}
	require.Equal(t, "ok\n<nil>", get("/healthz"))
	require.Eventually(t, func() bool {
		got := get("/metrics")
		return strings.Contains(got, `target="kubelet/a"`) && strings.Contains(got, `target="apiserver"`)
	}, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

func TestConfigurationsAreReadStrictly(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "config.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	got, err := ReadConfig(write(`{"targets":[{"name":"a","address":"a.example:443"}],"interval":"1m"}`))
	require.NoError(t, err)
	require.Equal(t, Duration(time.Minute), got.Interval)
	require.Equal(t, 10250, got.KubeletPort, "the rest keeps its default")
	none, err := ReadConfig("")
	require.NoError(t, err)
	require.Equal(t, defaults(), none)

	for want, text := range map[string]string{
		"unknown field":            `{"target":[]}`,
		"is not host:port":         `{"targets":[{"name":"a","address":"a.example"}]}`,
		"needs a different name":   `{"targets":[{"name":"a","address":"a:1"},{"name":"a","address":"b:1"}]}`,
		`target ""`:                `{"targets":[{"address":"a:1"}]}`,
		`a duration is written`:    `{"interval":30}`,
		"greater than zero":        `{"timeout":"0s"}`,
		"concurrency must be":      `{"concurrency":0}`,
		"more than one JSON value": `{} {}`,
	} {
		_, err := ReadConfig(write(text))
		require.ErrorContains(t, err, want)
	}
}

// The dashboards and the alert rules use these names.
func TestTheNamesOfMetricsAreAsRecordedForTheDashboards(t *testing.T) {
	recorded, err := os.ReadFile("../../../templates/testdata/metrics/watchdog.txt")
	require.NoError(t, err)
	kubelet := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{certificateUntil(t, time.Now().Add(time.Hour))}})
	now := metav1.Now()
	schedule := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: now}, Status: batchv1.CronJobStatus{LastScheduleTime: &now, LastSuccessfulTime: &now}}
	w := watch(t, &cluster{nodes: []Node{{"a", "127.0.0.1"}}, backups: schedule, history: "never"}, kubelet, nil)
	w.CheckHealth(t.Context())
	w.CheckBackups(t.Context())
	w.CheckCertificates(t.Context())
	var told []string
	for line := range strings.Lines(scrape(t, w)) {
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok {
			told = append(told, strings.TrimSpace(kind))
		}
	}
	var want []string
	for line := range strings.Lines(string(recorded)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	require.ElementsMatch(t, want, told)
}
