package job

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// proxied returns a handler that asks the API server whether a user may reach a service, like the API server's own proxy.
func proxied(t *testing.T, cluster *kube.Cluster, name string, next http.Handler) http.Handler {
	verbs := map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update", http.MethodPost: "create", http.MethodDelete: "delete"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("Impersonate-User")
		review, err := cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authv1.ResourceAttributes{Namespace: kube.SystemNamespace, Verb: verbs[r.Method], Resource: "services", Subresource: "proxy", Name: name}}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403,
			Message: `services "` + name + `" is forbidden: User "` + user + `" cannot ` + verbs[r.Method] + ` resource "services/proxy" in API group "" in the namespace "pai-system"`})
	})
}

// guarded returns a handler that rejects requests without the token, like the controller.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(api.TokenHeader) != jobtest.Token {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(api.Error{Code: "Forbidden", Message: "the history is for others"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// as returns a client for a user who has only the rights that the test grants.
func as(t *testing.T, cluster *kube.Cluster, user string, services jobtest.Services) *Client {
	t.Helper()
	path := jobtest.Front(t, cluster, services)
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	for _, who := range config.AuthInfos {
		who.Impersonate = user
	}
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	c, err := Open(kube.Options{Kubeconfig: path})
	require.NoError(t, err)
	return c
}

// apply creates the objects in a text from the documentation, and removes them at the end of the test.
func apply(t *testing.T, cluster *kube.Cluster, text string) {
	t.Helper()
	objects, err := dynamic.NewForConfig(cluster.Config)
	require.NoError(t, err)
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &o.Object), doc)
		m, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		require.NoError(t, err)
		_, err = objects.Resource(m.Resource).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err, doc)
	}
}

// allowed waits until the API server knows that a user has a right. The API server watches roles, and sees new roles with a short delay.
func allowed(t *testing.T, cluster *kube.Cluster, user, verb, namespace, resource, name string) {
	t.Helper()
	resource, sub, _ := strings.Cut(resource, "/")
	group := ""
	if resource == "frameworks" {
		group = v1.Resource.Group
	}
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review, err := cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name}}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}), "%s may not %s %s/%s in %q", user, verb, resource, sub, namespace)
}

// roles returns the part of docs/jobs.md that administrators apply to their clusters.
func roles(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "jobs.md"))
	require.NoError(t, err)
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	at := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, "kind: ClusterRole\n") })
	require.GreaterOrEqual(t, at, 0, "docs/jobs.md has no roles")
	manifest, _, _ := strings.Cut(blocks[at], "```")
	return manifest
}

func TestWhoMayNotReadTheHistoryIsToldSoAndWhatToAskFor(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	h := &history{jobs: []api.JobDetail{{Job: api.Job{Framework: v1.ObjectName("ann", "old"), UID: "u", User: "ann", Name: "old", State: "failed"}}}}
	services := func(name string) jobtest.Services { // of a service that user may reach
		return jobtest.Services{api.Service: proxied(t, cluster, name, guarded(h))}
	}
	apply(t, cluster, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: some, namespace: pai-jobs}, rules: [{apiGroups: [frameworkcontroller.microsoft.com, ""], resources: [frameworks, pods, events, secrets], verbs: [get, list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: some, namespace: pai-jobs}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: some}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: reaches}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: proxy, namespace: pai-system}, rules: [{apiGroups: [""], resources: [services/proxy], resourceNames: ["job-controller:http"], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: proxy, namespace: pai-system}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: proxy}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reaches}]}`)
	for _, user := range []string{"ann", "reaches"} {
		allowed(t, cluster, user, "list", kube.JobNamespace, "frameworks", "")
	}
	allowed(t, cluster, "reaches", "get", kube.SystemNamespace, "services/proxy", "job-controller:http")
	for user, why := range map[string]string{
		"ann":     `you may not read the history of jobs: your account may not connect to the job controller (cannot get resource "services/proxy" in API group "" in the namespace "pai-system")`,
		"reaches": "you may not read the history of jobs: your account may not read the Secret job-controller-token in the namespace pai-system",
	} {
		t.Run(user, func(t *testing.T) {
			c := as(t, cluster, user, services("job-controller:http"))
			page, err := c.List(t.Context(), Filter{User: "ann"})
			require.NoError(t, err, "live jobs are listed all the same")
			assert.Equal(t, "jobs that finished long ago are not shown: "+why+"; "+remedyRight, page.Note)
			_, err = c.Resolve(t.Context(), "ann", "old")
			require.EqualError(t, err, `user ann has no job "old" now; finished jobs are not known: `+why)
			assert.Equal(t, remedyRight, hint.Of(err))
			_, err = c.History.Delete(t.Context(), v1.ObjectName("ann", "old"))
			require.ErrorIs(t, err, ErrClosed)
		})
	}
	c := as(t, cluster, "nobody", nil)
	_, err := c.List(t.Context(), Filter{})
	require.ErrorContains(t, err, "is forbidden")
	assert.Equal(t, remedyRight, hint.Of(err))
}

func TestTheRoleOfTheDocumentationIsEnough(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	text := roles(t)
	apply(t, cluster, text)
	for _, namespace := range []string{"pai-jobs", "pai-system"} {
		apply(t, cluster, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: carol, namespace: `+namespace+`}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: job-user}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]}`)
	}
	apply(t, cluster, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: carol}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: job-user}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]}`)
	allowed(t, cluster, "carol", "create", kube.JobNamespace, "frameworks", "")
	for _, verb := range []string{"get", "create"} {
		allowed(t, cluster, "carol", verb, kube.SystemNamespace, "services/proxy", "scheduler:http")
	}
	allowed(t, cluster, "carol", "list", "", "nodes", "")
	h := &history{jobs: []api.JobDetail{{Job: api.Job{Framework: v1.ObjectName("carol", "old"), UID: "u", User: "carol", Name: "old", State: "failed"}}}}
	scheduler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"items":[]}`)) })
	c := as(t, cluster, "carol", jobtest.Services{api.Service: proxied(t, cluster, "job-controller:http", guarded(h)), "scheduler": proxied(t, cluster, "scheduler:http", scheduler)})
	ctx := t.Context()

	_, err := c.Facts(ctx)
	require.NoError(t, err)
	o := objects(t, "carol", "train", "echo")
	for _, dry := range []bool{true, false} {
		_, err = c.Submit(ctx, o, SubmitOptions{DryRun: dry})
		require.NoError(t, err)
	}
	_, err = c.Submit(ctx, o, SubmitOptions{})
	require.NoError(t, err, "again")
	page, err := c.List(ctx, Filter{User: "carol"})
	require.NoError(t, err)
	assert.Len(t, page.Items, 2, "with the history")
	assert.Empty(t, page.Note)
	j, err := c.Resolve(ctx, "carol", "train")
	require.NoError(t, err)
	_, err = c.Why(ctx, j)
	require.NoError(t, err)
	_, err = c.Detail(ctx, j)
	require.NoError(t, err)
	_, _, err = c.Events(ctx, j)
	require.NoError(t, err)
	_, err = c.Waiting(ctx, "", 0, nil)
	require.NoError(t, err)
	_, err = c.Scale(ctx, j, "", 3, ScaleOptions{})
	require.NoError(t, err)
	_, err = c.Stop(ctx, j)
	require.NoError(t, err)
	jobtest.SetStatus(t, cluster, j.Object, completedStatus())
	j, err = c.Resolve(ctx, "carol", "train")
	require.NoError(t, err)
	collect(t, &Client{Cluster: cluster, Frameworks: mustFrameworks(t, cluster), Namespace: c.Namespace}, j.Object)
	_, err = c.Retry(ctx, j, RetryOptions{})
	require.NoError(t, err)
	j, err = c.Resolve(ctx, "carol", "train")
	require.NoError(t, err)
	require.NoError(t, c.Remove(ctx, j))
	for verb, resource := range map[string]string{"create": "pods/exec", "get": "pods/log", "list": "pods"} {
		name, sub, _ := strings.Cut(resource, "/")
		review, err := cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{User: "carol",
			ResourceAttributes: &authv1.ResourceAttributes{Namespace: c.Namespace, Verb: verb, Resource: name, Subresource: sub}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.True(t, review.Status.Allowed, "%s %s", verb, resource)
	}
	_, err = c.Client.CoreV1().Secrets(kube.SystemNamespace).List(ctx, metav1.ListOptions{})
	require.Error(t, err, "one Secret of the platform, and no other")
}

func mustFrameworks(t *testing.T, c *kube.Cluster) *Frameworks {
	t.Helper()
	f, err := NewFrameworks(c.Config, kube.JobNamespace)
	require.NoError(t, err)
	return f
}
