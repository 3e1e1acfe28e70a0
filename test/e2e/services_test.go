package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// testAlert is a rule that fires immediately. The test pushes it after the services have started.
const testAlert = `{e2e: {groups: [{name: e2e, rules: [{alert: MadeToFire, expr: vector(1), labels: {severity: info}}]}]}}`

// mailPassword is a secret in a section of the configuration. Exactly one Secret may contain it.
const mailPassword = "e2e-Mail-Password-7391"

// TestServicesStartStopAndKeepTheirData follows the main use of services: push, start, metrics of every node, an alert that arrives, a change that
// affects one release, stop and start with the same data, and delete.
func TestServicesStartStopAndKeepTheirData(t *testing.T) {
	s := sharedServices(t)
	s.set("alert-manager", map[string]any{"receivers": map[string]any{"email": map[string]any{
		"smtpHost": "mail.invalid", "from": "pai@mail.invalid", "to": []any{"admin@mail.invalid"},
		"authUsername": "pai", "authPassword": mailPassword,
	}}})
	s.push()
	first := s.start(0)
	assert.Len(t, first.Changed, first.Services, "each service was installed")
	s.allReady()

	t.Run("a second start changes nothing", func(t *testing.T) {
		before := s.revisions()
		again := s.start(0)
		assert.Zero(t, again.Changes)
		assert.Equal(t, before, s.revisions())
	})
	t.Run("Prometheus has targets up on every node", func(t *testing.T) {
		for _, job := range []string{"kubelet", "node-exporter"} {
			eventually(t, 2*time.Minute, job+" is up on all nodes", func() bool {
				return len(s.query(`up{job=~".*`+job+`.*"} == 1`, time.Time{})) == len(s.names)
			})
		}
		eventually(t, 2*time.Minute, "all targets are up", func() bool { return len(s.query("up == 0", time.Time{})) == 0 })
	})
	t.Run("a changed value restarts one release, and its alert reaches Alertmanager", func(t *testing.T) {
		before := s.revisions()
		s.set("prometheus", map[string]any{"customRules": node(t, testAlert)})
		s.push()
		changed := s.run(0, "restart")
		assert.Equal(t, []string{"prometheus"}, changed.Changed)
		after := s.revisions()
		assert.Greater(t, after["prometheus"], before["prometheus"])
		after["prometheus"] = before["prometheus"]
		assert.Equal(t, before, after)
		eventually(t, 2*time.Minute, "the alert is at Alertmanager", func() bool {
			return slices.Contains(s.alerts(), "MadeToFire")
		})
	})
	t.Run("a GPU that breaks is an alert at Alertmanager", func(t *testing.T) {
		ok(t, "sandbox", "fault", "gpu", "--dir", s.dir, s.names[1], "3", "xid=79")
		eventually(t, 3*time.Minute, "the alert is at Alertmanager", func() bool { return slices.Contains(s.alerts(), "GpuXidFatal") })
		// Prometheus sends the alert to Alertmanager before it stores the series of the alert.
		for _, series := range []string{`ALERTS{alertname="GpuXidFatal",alertstate="firing"}`, "pai_gpu_unhealthy == 1"} {
			eventually(t, time.Minute, series, func() bool {
				found := fmt.Sprint(s.query(series, time.Time{}))
				return strings.Contains(found, "gpu:3 ") && strings.Contains(found, "node:"+s.names[1]+" ")
			})
		}
		ok(t, "sandbox", "fault", "gpu", "--dir", s.dir, s.names[1], "3", "clear")
	})
	t.Run("secrets stand where they are needed and nowhere else", s.secretsStayHidden)
	t.Run("stop keeps the data", func(t *testing.T) {
		at := time.Now()
		assert.NotEmpty(t, s.query("up", at))
		s.run(0, "stop", "--all")
		assert.Empty(t, s.revisions())
		s.start(0)
		s.allReady()
		eventually(t, time.Minute, "Prometheus remembers", func() bool { return len(s.query("up", at)) > 0 })
	})
	t.Run("delete removes the data", func(t *testing.T) {
		dirs := func() string {
			return s.on(s.names[0], "find /datastorage -mindepth 2 -maxdepth 2 2>/dev/null || true")
		}
		assert.Contains(t, dirs(), "prometheus-data")
		s.run(0, "delete", "--yes")
		assert.Empty(t, dirs())
		assert.Empty(t, s.revisions())
		assert.NotContains(t, s.kubectl("get pv,pvc -A --no-headers"), "prometheus")
		ok(t, s.args("config", "pull", "-o", filepath.Join(t.TempDir(), "pulled"))...)
	})
	t.Run("a start that is killed is continued by the next", func(t *testing.T) {
		for range 3 {
			cmd, out, _ := command(t.Context(), t, s.args("service", "start")...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			require.NoError(t, cmd.Start())
			// The run is killed at a random moment. It may already have ended by then.
			after := time.Duration(300+rand.IntN(5000)) * time.Millisecond
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-time.After(after):
				require.NoError(t, cmd.Process.Kill())
				<-ended
			case <-ended:
			}
			t.Logf("killed after %s\n%s", after, out)
		}
		s.start(0)
		s.allReady()
		assert.Zero(t, s.start(0).Changes)
	})
}

// longWait is longer than it takes until any cause is detected, even on a busy machine.
const longWait = 8 * time.Minute

// TestServicesThatFailSayWhy breaks the services in different ways, one after the other. Each time, the reason must be reported long before the time
// limit.
func TestServicesThatFailSayWhy(t *testing.T) {
	s := sharedServices(t)
	s.push()
	s.start(0)

	t.Run("two pushes at once: one is refused", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other")
		ok(t, s.args("config", "pull", "-o", other)...)
		edit(t, filepath.Join(other, "services-configuration.yaml"), "cluster-id: pai", "cluster-id: pai # other")
		edit(t, filepath.Join(s.cluster, "services-configuration.yaml"), "cluster-id: pai", "cluster-id: pai # mine")
		codes := make(chan result, 2)
		for _, dir := range []string{other, s.cluster} {
			go func() { codes <- run(t, s.args("config", "push", "--yes", "-p", dir)...) }()
		}
		a, b := <-codes, <-codes
		assert.ElementsMatch(t, []int{0, 1}, []int{a.code, b.code}, "%s\n%s", a, b)
		ok(t, s.args("config", "push", "--yes", "--force", "-p", s.cluster)...)
	})
	t.Run("a push that fails validation leaves the cluster's copy", func(t *testing.T) {
		before := s.kubectl("-n pai-system get configmap pai-configuration -o jsonpath='{.metadata.resourceVersion}'")
		bad := s.copy()
		edit(t, filepath.Join(bad, "services-configuration.yaml"), "data-path: /datastorage", "data-path: nowhere")
		r := run(t, s.args("config", "push", "--yes", "-p", bad)...)
		assert.Equal(t, 1, r.code, r)
		assert.Contains(t, r.stderr, "services-configuration.yaml:")
		assert.Contains(t, r.stderr, "data-path")
		assert.Equal(t, before, s.kubectl("-n pai-system get configmap pai-configuration -o jsonpath='{.metadata.resourceVersion}'"))
	})

	for name, c := range map[string]struct {
		section string
		values  string
		code    int
		says    []string
	}{
		"an image that nobody has": {"node-exporter", `{image: {repository: paictl.openpai.org/no-such-image, pullPolicy: Never}}`, 1,
			[]string{"no-such-image"}},
		"a registry that does not answer": {"node-exporter", `{image: {repository: registry.invalid/node-exporter}}`, 1,
			[]string{"registry.invalid"}},
		"a label that no node has": {"watchdog", `{nodeSelector: {disk: golden}}`, 1, []string{"disk", "golden"}},
		"too little memory":        {"prometheus", `{resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 8Mi}}}`, 1, []string{"memory"}},
		"more memory than there is": {"prometheus", `{resources: {requests: {cpu: 10m, memory: 4Ti}, limits: {memory: 4Ti}}}`, 1,
			[]string{"memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := s.copy()
			setSection(t, bad, c.section, node(t, c.values))
			ok(t, s.args("config", "push", "--yes", "-p", bad)...)
			before := s.revisions()
			started := time.Now()
			r := run(t, s.args("service", "start", "--wait", longWait.String())...)
			took := time.Since(started)
			t.Logf("after %s: %s", took.Round(time.Second), r.stderr)
			assert.Equal(t, 3, r.code, "%s", r)
			for _, word := range c.says {
				assert.Contains(t, r.stderr, word)
			}
			assert.Less(t, took, longWait, "it waited for its time to be over")
			after := s.revisions()
			for name := range before {
				if name != c.section {
					assert.Equal(t, before[name], after[name], "%s was touched", name)
				}
			}
			ok(t, s.args("config", "push", "--yes", "--force", "-p", s.cluster)...)
			s.start(0)
			s.allReady()
		})
	}
	t.Run("a key that no chart knows", func(t *testing.T) {
		bad := s.copy()
		setSection(t, bad, "prometheus", node(t, `{retentoin: 3d}`))
		r := run(t, s.args("config", "push", "--yes", "-p", bad)...)
		assert.Equal(t, 1, r.code, "%s", r)
		assert.Contains(t, r.stderr, "retentoin")
		assert.Contains(t, r.stderr, "retention")
	})
}

// services is a lab with a running cluster and a separate kubeconfig.
type services struct {
	*lab
	kubeconfig string
}

// newServices creates a lab that only one test uses.
func newServices(t testing.TB, name string, hosts int) *services {
	t.Helper()
	s := &services{lab: newLab(t, name, hosts)}
	s.bringUp()
	return s
}

// bringUp creates a cluster on the hosts of the lab.
func (s *services) bringUp() {
	s.t.Helper()
	s.kubeconfig = filepath.Join(filepath.Dir(s.cluster), "kubeconfig")
	s.generate()
	s.up(0)
	s.isReady(len(s.names))
	require.NoError(s.t, os.WriteFile(s.kubeconfig, nil, 0o600))
	cmd, _, errOut := command(s.t.Context(), s.t, "cluster", "kubeconfig", "-p", s.cluster, "--use")
	cmd.Env = append(cmd.Env, "KUBECONFIG="+s.kubeconfig)
	require.NoError(s.t, cmd.Run(), errOut)
}

// args adds the flag that selects the cluster.
func (s *services) args(args ...string) []string {
	return append(args, "--kubeconfig", s.kubeconfig)
}

func (s *services) push() {
	s.t.Helper()
	ok(s.t, s.args("config", "push", "--yes", "-p", s.cluster)...)
}

type servicesSummary struct {
	Services, Changes int
	Changed           []string
}

// run runs "service VERB", which must exit with a given code. It returns the summary from the events.
func (s *services) run(code int, verb string, flags ...string) servicesSummary {
	s.t.Helper()
	r := run(s.t, s.args(append([]string{"service", verb, "-o", "json"}, flags...)...)...)
	require.Equal(s.t, code, r.code, "service %s: %s", verb, r)
	var last struct{ Summary *servicesSummary }
	for line := range strings.Lines(r.stdout) {
		require.NoError(s.t, json.Unmarshal([]byte(line), &last), line)
	}
	require.NotNil(s.t, last.Summary, "%s", r)
	return *last.Summary
}

func (s *services) start(code int, flags ...string) servicesSummary {
	s.t.Helper()
	return s.run(code, "start", flags...)
}

// allReady waits until all enabled services are ready. If the cores are busy, a service that has just become ready may miss a probe.
func (s *services) allReady() {
	s.t.Helper()
	var r result
	eventually(s.t, 30*time.Second, "all services are ready", func() bool {
		if r = run(s.t, s.args("service", "status", "-o", "json", "--exit-code")...); r.code != 0 {
			there, _ := s.try(s.names[0], "export KUBECONFIG=/etc/kubernetes/admin.conf; kubectl -n pai-system get events; kubectl -n pai-system get deployments,replicasets,pods -o yaml")
			s.t.Logf("service status: %s\n%s", r, there)
		}
		return r.code == 0
	})
	var all []struct{ Name, State string }
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &all), r)
	require.NotEmpty(s.t, all)
	for _, one := range all {
		assert.Contains(s.t, []string{"ready", "disabled"}, one.State, "%s\n%s", one.Name, r)
	}
}

// revisions returns the revisions of Helm's releases, by release.
func (s *services) revisions() map[string]int {
	s.t.Helper()
	out := s.kubectl(`-n pai-system get secrets -l owner=helm,status=deployed -o jsonpath='{range .items[*]}{.metadata.labels.name}={.metadata.labels.version} {end}'`)
	revisions := map[string]int{}
	for pair := range strings.FieldsSeq(out) {
		name, version, _ := strings.Cut(pair, "=")
		n, err := strconv.Atoi(version)
		require.NoError(s.t, err, out)
		revisions[name] = n
	}
	return revisions
}

// asking is a script that requests a page of a service. It sends the password for metrics, which the API server's proxy would remove, and the token
// of the job controller. It uses bash, because all hosts have bash.
const asking = `export KUBECONFIG=/etc/kubernetes/admin.conf
bash <<'END'
set -eu
ip=$(kubectl -n pai-system get %[1]s)
password=$(kubectl -n pai-system get secret metrics-access -o 'jsonpath={.data.password}' | base64 -d)
token=$(kubectl -n pai-system get secret job-controller-token -o 'jsonpath={.data.token}' | base64 -d)
exec 3<>"/dev/tcp/$ip/%[2]s"
printf 'GET %%s HTTP/1.0\r\nAuthorization: Basic %%s\r\nX-Pai-Token: %%s\r\n\r\n' '%[3]s' "$(printf 'pai:%%s' "$password" | base64 -w0)" "$token" >&3
read -r _ status _ <&3
answer=$(sed '1,/^\r$/d' <&3)
echo "$answer"
test "$status" = 200
END`

// ask requests a page of a service, with the password for metrics.
func (s *services) ask(service, path string) []byte {
	name, port, _ := strings.Cut(service, ":")
	return s.askAt("service "+name+" -o 'jsonpath={.spec.clusterIP}'", port, path)
}

// askPod requests a page of a pod, with the password for metrics.
func (s *services) askPod(pod, port, path string) []byte {
	return s.askAt("pod "+pod+" -o 'jsonpath={.status.podIP}'", port, path)
}

func (s *services) askAt(address, port, path string) []byte {
	out, err := s.try(s.names[0], fmt.Sprintf(asking, address, port, path))
	if err != nil {
		s.t.Logf("%s %s: %s", address, path, out)
		return nil
	}
	return []byte(out)
}

// query sends a query to Prometheus. If at is zero, the query is for the current time.
func (s *services) query(promql string, at time.Time) []any {
	path := "/api/v1/query?query=" + url.QueryEscape(promql)
	if !at.IsZero() {
		path += "&time=" + strconv.FormatInt(at.Unix(), 10)
	}
	var answer struct{ Data struct{ Result []any } }
	_ = json.Unmarshal(s.ask("prometheus:9090", path), &answer) // an empty response counts, too
	return answer.Data.Result
}

// alerts returns the names of the alerts in Alertmanager.
func (s *services) alerts() []string {
	var all []struct{ Labels map[string]string }
	_ = json.Unmarshal(s.ask("alert-manager:9093", "/api/v2/alerts"), &all)
	var names []string
	for _, a := range all {
		names = append(names, a.Labels["alertname"])
	}
	return names
}

// secretsStayHidden asserts that the password isn't in any data that other users can read.
func (s *services) secretsStayHidden(t *testing.T) {
	holders := s.kubectl(`get secrets -A -o json`)
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Type     string
			Data     map[string][]byte
		}
	}
	require.NoError(t, json.Unmarshal([]byte(holders), &list))
	for _, secret := range list.Items {
		for key, value := range secret.Data {
			if key == "release" {
				value = unpackRelease(t, value)
			}
			if bytes.Contains(value, []byte(mailPassword)) {
				known := secret.Metadata.Name == "alert-manager-credentials" || strings.HasPrefix(secret.Metadata.Name, "pai-credentials")
				assert.True(t, known, "the password stands in secret %s, key %s", secret.Metadata.Name, key)
			}
		}
	}
	assert.NotContains(t, s.kubectl("get configmaps,pods,statefulsets,deployments,events -A -o yaml"), mailPassword)
	for _, args := range [][]string{
		{"service", "values", "-n", "alert-manager"}, {"service", "template", "-n", "alert-manager"},
		{"service", "status", "-o", "json"}, {"config", "history", "-o", "json"},
		{"service", "start", "--dry-run"}, {"config", "diff", "-p", s.cluster},
	} {
		r := ok(t, s.args(args...)...)
		assert.NotContains(t, r.stdout+r.stderr, mailPassword, strings.Join(args, " "))
	}
}

// copy returns a copy of the configuration folder, so that a test can change the copy.
func (s *services) copy() string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "copy"+strconv.Itoa(rand.IntN(1_000_000)))
	require.NoError(s.t, os.CopyFS(dir, os.DirFS(s.cluster)))
	return dir
}

// set sets values in a section of services-configuration.yaml.
func (s *services) set(service string, values map[string]any) {
	s.t.Helper()
	setSection(s.t, s.cluster, service, values)
}

func setSection(t testing.TB, dir, service string, values map[string]any) {
	t.Helper()
	path := filepath.Join(dir, "services-configuration.yaml")
	var file map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, path)), &file))
	section, _ := file[service].(map[string]any)
	if section == nil {
		section = map[string]any{}
	}
	merge(section, values)
	file[service] = section
	b, err := yaml.Marshal(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

func merge(into, from map[string]any) {
	for k, v := range from {
		below, ok1 := into[k].(map[string]any)
		more, ok2 := v.(map[string]any)
		if ok1 && ok2 {
			merge(below, more)
			continue
		}
		into[k] = v
	}
}

func node(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	return v
}
