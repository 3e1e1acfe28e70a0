package status

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/services"
)

// documented returns the two blocks with roles in docs/status.md.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "status.md"))
	require.NoError(t, err)
	var out []string
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		roles, _, _ := strings.Cut(block, "```")
		out = append(out, roles)
	}
	require.Len(t, out, 2)
	return out
}

func grant(t *testing.T, c *kube.Cluster, user, roles string) {
	t.Helper()
	rbac, ctx := c.Client.RbacV1(), context.WithoutCancel(t.Context())
	subjects := []rbacv1.Subject{{Kind: "User", Name: user, APIGroup: rbacv1.GroupName}}
	for doc := range strings.SplitSeq(roles, "\n---\n") {
		var is metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(doc), &is))
		if is.Kind == "Role" {
			r := &rbacv1.Role{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(doc), r))
			r.Name += "-" + user
			b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: r.Name, APIGroup: rbacv1.GroupName}}
			_, err := rbac.Roles(r.Namespace).Create(t.Context(), r, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = rbac.RoleBindings(r.Namespace).Create(t.Context(), b, metav1.CreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() {
				_ = rbac.RoleBindings(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{})
				_ = rbac.Roles(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{})
			})
			continue
		}
		r := &rbacv1.ClusterRole{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), r))
		r.Name += "-" + user
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: r.Name, APIGroup: rbacv1.GroupName}}
		_, err := rbac.ClusterRoles().Create(t.Context(), r, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), b, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = rbac.ClusterRoleBindings().Delete(ctx, r.Name, metav1.DeleteOptions{})
			_ = rbac.ClusterRoles().Delete(ctx, r.Name, metav1.DeleteOptions{})
		})
	}
}

// refusing is an API server that records rejected requests.
type refusing struct {
	c     *kube.Cluster
	inner http.Handler
	mu    sync.Mutex
	what  map[string]bool
	// forwarded counts permitted port forwardings.
	forwarded int
}

type noted struct {
	http.ResponseWriter
	code int
}

func (n *noted) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap lets watches flush, and lets forwarded ports hijack the connection.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (r *refusing) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := &noted{ResponseWriter: w}
	if strings.HasSuffix(req.URL.Path, "/portforward") {
		r.portForward(n, req)
	} else {
		r.inner.ServeHTTP(n, req)
	}
	if n.code == http.StatusForbidden {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.what[req.Method+" "+req.URL.Path+" "+req.URL.Query().Get("watch")] = true
	}
}

// portForward responds like an API server that can't connect to the kubelet, because the test's proxy can't forward such
// connections. Over WebSocket, which begins with a GET, port forwarding needs both permissions.
func (r *refusing) portForward(w http.ResponseWriter, req *http.Request) {
	verbs := []string{"create"}
	if req.Method == http.MethodGet {
		verbs = []string{"get", "create"}
	}
	for _, verb := range verbs {
		review, err := r.c.Client.AuthorizationV1().SubjectAccessReviews().Create(req.Context(), &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{
			User: req.Header.Get("Impersonate-User"), ResourceAttributes: &authv1.ResourceAttributes{Namespace: kube.SystemNamespace, Verb: verb, Resource: "pods", Subresource: "portforward"}}}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			w.WriteHeader(http.StatusForbidden)
			return
		}
	}
	r.mu.Lock()
	r.forwarded++
	r.mu.Unlock()
	w.WriteHeader(http.StatusBadGateway)
}

// take returns the requests that were rejected since its last call.
func (r *refusing) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Sorted(maps.Keys(r.what))
	r.what = map[string]bool{}
	return out
}

// served returns a cluster of simulated nodes with a configuration and some services. The second configured machine isn't a
// node, and the third node isn't in the configuration.
func served(t *testing.T) *kube.Cluster {
	t.Helper()
	c := kubetest.StartNodes(t)
	nodes, err := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(nodes.Items), 3)
	files := map[string]string{
		config.LayoutFile: "apiVersion: paictl.openpai.org/v1\nkind: Layout\nmachine-sku:\n  cpu: {mem: 16Gi, cpu: {vcore: 8}, os: ubuntu22.04, discovered: true}\nmachine-list:\n",
		config.RolesFile: "apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n",
		config.ServicesFile: "apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n" +
			"  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}\n",
		config.KubernetesFile: "apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.99.0.1}\n",
	}
	for i, m := range []struct{ name, role string }{{nodes.Items[0].Name, "master"}, {"outside", "worker"}, {nodes.Items[1].Name, "worker"}} {
		files[config.LayoutFile] += fmt.Sprintf("  - {hostname: %s, hostip: 10.99.0.%d, machine-type: cpu, roles: [%s]}\n", m.name, i+1, m.role)
	}
	texts := map[string][]byte{}
	for name, text := range files {
		texts[name] = []byte(text)
	}
	s := store.New(c.Client)
	d, err := s.Draft(t.Context(), store.Candidate{Files: texts})
	require.NoError(t, err)
	_, err = s.Push(t.Context(), d, store.Entry{By: "test"})
	require.NoError(t, err)
	p, err := services.Open(c, "", nil)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), services.Options{Names: []string{"cluster-configuration", "node-exporter", "alert-manager"}, Sink: quiet{}, Command: "paictl service", WithDependents: true, Wait: 3 * time.Minute}))
	jobtest.Prepare(t, c)
	return c
}

type quiet struct{}

func (quiet) Emit(services.Event) {}

func TestTheRightsOfTheDocumentsAreThoseThatAreNeeded(t *testing.T) {
	c := served(t)
	inner, err := jobtest.Handler(c.Config, nil)
	require.NoError(t, err)
	r := &refusing{c: c, inner: inner, what: map[string]bool{}}
	d := newDoor(t, r)
	roles := documented(t)
	look := func(t *testing.T, user string) *Cluster {
		t.Helper()
		// Return a model after all sources have responded, and after the requests that follow changes.
		f := followed(t, through(t, d.address, user))
		until(t, f, "all sources have answered", func(c *Cluster) bool { return !c.Loading() })
		time.Sleep(2 * servicesSoon)
		return f.Current()
	}

	grant(t, c, "viewer", roles[0])
	grant(t, c, "whole", roles[0])
	grant(t, c, "whole", roles[1])
	roleKnown(t, c, "whole")
	r.take()
	m := look(t, "whole")
	assert.Empty(t, r.take(), "a right is missing in the documents")
	for _, s := range m.Sources {
		assert.False(t, s.Refused, "%s: %s", s.Name, s.Message)
	}
	r.mu.Lock()
	assert.Positive(t, r.forwarded, "Alertmanager was asked")
	r.mu.Unlock()
	assert.Equal(t, StateCurrent, m.sourceNamed(SourceServices).State)
	assert.NotEmpty(t, m.Services)
	require.NotNil(t, m.machineNamed("outside"))
	assert.Equal(t, MachineOutside, m.machineNamed("outside").State)
	assert.True(t, slices.ContainsFunc(m.Machines, func(m Machine) bool { return m.State == MachineUnlisted }))

	m = look(t, "viewer")
	for _, s := range m.Sources {
		assert.Equal(t, s.Name == SourceServices, s.Refused, "%s: %s", s.Name, s.Message)
	}
	assert.Nil(t, m.machineNamed("outside"), "who may not read the configuration doesn't know it")
	assert.Empty(t, m.Services)
	for _, what := range r.take() {
		assert.Regexp(t, `/secrets|/configmaps|/apis/apps/|/apis/batch/|/persistentvolumeclaims`, what, "beside services all may be seen")
	}
}

// roleKnown waits until the API server applies the permissions of a user.
func roleKnown(t *testing.T, c *kube.Cluster, user string) {
	t.Helper()
	h, err := jobtest.Handler(c.Config, nil)
	require.NoError(t, err)
	d := newDoor(t, h)
	client := through(t, d.address, user).Client
	require.Eventually(t, func() bool {
		_, err := client.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
		_, other := client.CoreV1().Secrets(kube.SystemNamespace).Get(t.Context(), "metrics-access", metav1.GetOptions{})
		return err == nil && other == nil
	}, time.Minute, 20*time.Millisecond)
}
