package vc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/audit"
	cmdvc "github.com/openpai/paictl/pkg/cmd/vc"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// cluster simulates an API server with ConfigMaps, a scheduler that reads its ConfigMap, and a job controller that stores audit records. The API
// server has no other objects.
type cluster struct {
	mu      sync.Mutex
	objects map[string]*corev1.ConfigMap
	secrets []string // requests for Secrets
	records []audit.Record
	problem string // the scheduler rejects the configuration
}

// newCluster starts a cluster, sets KUBECONFIG to use it, and pushes a configuration with three machines of eight GPUs each.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{objects: map[string]*corev1.ConfigMap{schedulerconfig.ConfigMap: {Data: map[string]string{schedulerconfig.ConfigMapKey: "{}"}}}}
	c.objects[schedulerconfig.ConfigMap].Name = schedulerconfig.ConfigMap
	server := httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: test, contexts: [{name: test, context: {cluster: test, user: test}}], users: [{name: test, user: {}}], clusters: [{name: test, cluster: {server: "`+server.URL+`"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	files := map[string][]byte{
		config.LayoutFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: Layout\nmachine-sku:\n  g: {mem: 64Gi, cpu: {vcore: 16}, gpu: {type: a100, count: 8}, os: debian12}\n" +
			"machine-list:\n  - {hostname: m1, hostip: 10.0.0.1, machine-type: g, roles: [master, worker]}\n  - {hostname: g2, hostip: 10.0.0.2, machine-type: g, roles: [worker]}\n  - {hostname: g3, hostip: 10.0.0.3, machine-type: g, roles: [worker]}\n"),
		config.RolesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n"),
		config.ServicesFile:   []byte("apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}\n"),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, load-balance-ip: 10.0.0.1}\n"),
	}
	k, err := kube.Open(kube.Options{})
	require.NoError(t, err)
	s := store.New(k.Client)
	d, err := s.Draft(t.Context(), store.Candidate{Files: files})
	require.NoError(t, err)
	_, err = s.Push(t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(t, err)
	c.secrets = nil
	return c
}

const noObject = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"it was not found","reason":"NotFound","code":404}`

func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	say := func(status int, value any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
	path, named := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/pai-system/configmaps")
	name := strings.TrimPrefix(path, "/")
	switch {
	case named && (r.Method == http.MethodPost || r.Method == http.MethodPut):
		in := &corev1.ConfigMap{}
		_ = json.NewDecoder(r.Body).Decode(in)
		c.objects[in.Name] = in
		say(http.StatusOK, in)
	case named && c.objects[name] != nil:
		say(http.StatusOK, c.objects[name])
	case strings.HasSuffix(r.URL.Path, "/services/scheduler:http/proxy"+api.PathValidate):
		body, _ := io.ReadAll(r.Body)
		say(http.StatusOK, c.validation(string(body)))
	case strings.HasSuffix(r.URL.Path, "/services/scheduler:http/proxy"+api.PathVirtualClusters):
		say(http.StatusOK, api.VirtualClusters{Generation: 7, Items: owners(c.objects[schedulerconfig.ConfigMap].Data[schedulerconfig.ConfigMapKey]), Problem: c.problem})
	case strings.HasSuffix(r.URL.Path, "/proxy/v1/audit"):
		var in []audit.Record
		_ = json.NewDecoder(r.Body).Decode(&in)
		c.records = append(c.records, in...)
		say(http.StatusOK, struct{}{})
	case strings.HasSuffix(r.URL.Path, "/secrets/job-audit-token"):
		_, _ = io.WriteString(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"t"},"data":{"token":"dG9rZW4="}}`)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces") && strings.Count(r.URL.Path, "/") <= 4:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"pai-system"}}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"dev"}}}`)
	default:
		if strings.Contains(r.URL.Path, "/secrets") {
			c.secrets = append(c.secrets, r.URL.Path)
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, noObject)
	}
}

// owners returns the virtual clusters in a configuration of the scheduler.
func owners(text string) []api.VirtualCluster {
	parsed, _ := schedulerconfig.Parse("", []byte(text))
	return vc.Configured(parsed)
}

// validation returns the virtual clusters that differ between a configuration and the configuration of the running scheduler.
func (c *cluster) validation(text string) api.Validation {
	before := map[string]*api.VirtualCluster{}
	for _, v := range owners(c.objects[schedulerconfig.ConfigMap].Data[schedulerconfig.ConfigMapKey]) {
		before[v.Name] = &v
	}
	out := api.Validation{Valid: true}
	for _, v := range owners(text) {
		if b := before[v.Name]; b == nil || !b.SameOwner(&v) {
			out.VirtualClusters = append(out.VirtualClusters, api.ChangedVirtualCluster{Name: v.Name, Before: b, After: &v})
		}
	}
	return out
}

// set runs "paictl vc set" with the given arguments.
func set(t *testing.T, args ...string) (out, errOut string, err error) {
	f := cmdutil.New("v1")
	var stdout, stderr bytes.Buffer
	f.IO.Out, f.IO.Err = &stdout, &stderr
	cmd := cmdvc.NewCmdSet(f)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestAChangeIsInUseAndInTheAudit(t *testing.T) {
	c := newCluster(t)
	out, _, err := set(t, "vision", "--cells", "g-NODE=1", "--dry-run")
	require.NoError(t, err)
	assert.Contains(t, out, "+    vision:\n")
	assert.Contains(t, out, "vision: is new and owns 1 x g-NODE (8 GPUs)\n")
	assert.Empty(t, c.records, "a dry run is not recorded")

	_, errOut, err := set(t, "vision", "--cells", "g-NODE=1", "--yes", "-m", "first team")
	require.NoError(t, err)
	assert.Contains(t, errOut, "pushed revision 2; the scheduler uses it (generation 7)\n")
	assert.Contains(t, errOut, "\nvision is new: ")
	require.Len(t, c.records, 1)
	r := c.records[0]
	assert.Equal(t, [...]string{"kubeconfig:dev", "done", "virtual-cluster", "vision", "2"}, [...]string{r.Actor, r.Outcome, r.Kind, r.Object, r.Detail["revision"]})
	for _, path := range c.secrets {
		assert.NotContains(t, path, store.SecretName)
	}
	pushed := c.objects[store.ConfigMapName]
	assert.Equal(t, "first team", pushed.Annotations["paictl.openpai.org/message"])
	assert.Contains(t, pushed.Annotations["paictl.openpai.org/pushed-by"], "@")

	_, errOut, err = set(t, "vision", "--cells", "g-NODE=1", "--yes")
	require.NoError(t, err)
	assert.Contains(t, errOut, "nothing to change: revision 2 already has these values\n")
	assert.Len(t, c.records, 1)

	c.objects[schedulerconfig.ConfigMap].Data[schedulerconfig.ConfigMapKey] = "{}" // as if the change had been interrupted
	_, errOut, err = set(t, "vision", "--cells", "g-NODE=1", "--yes")
	require.NoError(t, err)
	assert.Contains(t, errOut, "revision 2 already has these values, and the scheduler did not; the scheduler uses it (generation 7)\n")
	assert.Len(t, c.records, 2)

	out, _, err = set(t, "vision", "--quota-per-user", "4", "--yes", "-o", "json")
	require.NoError(t, err)
	var o vc.Outcome
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	assert.Equal(t, [...]any{true, true, 2, 3}, [...]any{o.Changed, o.Applied, o.Base, o.Revision})
}

func TestAFileMayHaveQuotasOfThousandsOfUsers(t *testing.T) {
	c := newCluster(t)
	text := "virtualCells: [{cellType: g-NODE, cellNumber: 3}]\nquota:\n  users:\n"
	for i := range 6000 {
		text += fmt.Sprintf("    user-number-%04d: 4\n", i)
	}
	file := filepath.Join(t.TempDir(), "default.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	_, _, err := set(t, "default", "--from", file, "--yes")
	require.NoError(t, err)
	assert.Equal(t, "2", c.objects[store.ConfigMapName].Annotations["paictl.openpai.org/revision"])
}

func TestARefusedChangeHasItsPlacesAndIsNotPushed(t *testing.T) {
	c := newCluster(t)
	_, _, err := set(t, "default", "--cells", "g-NODE=9", "--yes")
	require.ErrorContains(t, err, "services-configuration.yaml:")
	require.ErrorContains(t, err, "scheduler.virtualClusters.default")
	assert.Equal(t, "1", c.objects[store.ConfigMapName].Annotations["paictl.openpai.org/revision"])
	c.problem = fmt.Sprintf("virtualClusters.%s: no", "a")
	_, _, err = set(t, "vision", "--cells", "g-NODE=1", "--yes", "--wait", "10ms")
	require.ErrorContains(t, err, "doesn't use the new configuration yet", "it had this problem before")
}
