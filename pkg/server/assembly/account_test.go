package assembly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/services/facts"
	objects "github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/status"
)

// account is the user of pai-server at the API server.
const account = "system:serviceaccount:" + kube.SystemNamespace + ":rest-server"

// grantOnlyItsRights gives the account of pai-server exactly the rights that its chart grants.
func grantOnlyItsRights(t *testing.T, c *kube.Cluster) {
	t.Helper()
	text, err := os.ReadFile("../../../templates/testdata/golden/rest-server.plain.yaml")
	require.NoError(t, err)
	api, n := c.Client.RbacV1(), 0
	made := func(err error) {
		t.Helper()
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
		n++
	}
	into := func(doc []byte, out metav1.Object) metav1.Object {
		t.Helper()
		require.NoError(t, yaml.Unmarshal(doc, out))
		return out
	}
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal(doc, &kind))
		switch kind.Kind {
		case "Role":
			o := into(doc, &rbacv1.Role{}).(*rbacv1.Role)
			_, err = api.Roles(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
			made(err)
		case "RoleBinding":
			o := into(doc, &rbacv1.RoleBinding{}).(*rbacv1.RoleBinding)
			_, err = api.RoleBindings(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
			made(err)
		case "ClusterRole":
			_, err = api.ClusterRoles().Create(t.Context(), into(doc, &rbacv1.ClusterRole{}).(*rbacv1.ClusterRole), metav1.CreateOptions{})
			made(err)
		case "ClusterRoleBinding":
			_, err = api.ClusterRoleBindings().Create(t.Context(), into(doc, &rbacv1.ClusterRoleBinding{}).(*rbacv1.ClusterRoleBinding), metav1.CreateOptions{})
			made(err)
		}
	}
	require.Equal(t, 10, n)
	for _, a := range []authv1.ResourceAttributes{
		{Namespace: kube.SystemNamespace, Verb: "update", Resource: "configmaps", Name: store.ConfigMapName}, {Verb: "watch", Resource: "pods"},
		{Namespace: "pai-people", Verb: "get", Resource: "secrets"}, {Namespace: kube.JobNamespace, Verb: "get", Resource: "secrets"},
	} {
		require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			r, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{User: account, ResourceAttributes: &a}}, metav1.CreateOptions{})
			return err == nil && r.Status.Allowed, err
		}), "%+v", a)
	}
}

// configured stores a configuration with the machines gpu-1 and gpu-2 in the cluster.
func configured(t *testing.T, c *kube.Cluster) {
	t.Helper()
	core := c.Client.CoreV1()
	before, err := core.ConfigMaps(kube.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { // other tests use the same API server
		ctx := context.WithoutCancel(t.Context())
		now, err := core.ConfigMaps(kube.SystemNamespace).List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		for i := range now.Items {
			name := now.Items[i].Name
			there := slices.ContainsFunc(before.Items, func(cm corev1.ConfigMap) bool { return cm.Name == name })
			if !there || name == schedulerconfig.ConfigMap { // servertest.Prepare makes that again
				require.NoError(t, core.ConfigMaps(kube.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{}))
			}
		}
		secrets, err := core.Secrets(kube.SystemNamespace).List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		for i := range secrets.Items {
			if name := secrets.Items[i].Name; strings.HasPrefix(name, store.SecretName) {
				require.NoError(t, core.Secrets(kube.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{}))
			}
		}
	})
	s := store.New(c.Client)
	d, err := s.Draft(t.Context(), store.Candidate{Force: true, Files: map[string][]byte{
		config.LayoutFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: Layout\nssh: {username: ubuntu, password: hunter2-of-ssh}\nmachine-sku:\n  g: {mem: 64Gi, cpu: {vcore: 16}, gpu: {type: a100, count: 8}, os: debian12}\n" +
			"machine-list:\n  - {hostname: m1, hostip: 10.0.0.1, machine-type: g, roles: [master]}\n  - {hostname: gpu-1, hostip: 10.0.0.2, machine-type: g, roles: [worker]}\n  - {hostname: gpu-2, hostip: 10.0.0.3, machine-type: g, roles: [worker]}\n"),
		config.RolesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n"),
		config.ServicesFile:   []byte("apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}\n"),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.0.0.1}\n"),
	}})
	require.NoError(t, err)
	_, err = s.Push(t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(t, err)
}

// publishServices publishes the facts about a service with an object of each kind, as paictl does.
func publishServices(t *testing.T, c *kube.Cluster) {
	t.Helper()
	public, err := store.New(c.Client).Public(t.Context())
	require.NoError(t, err)
	digest, err := facts.Digest(public)
	require.NoError(t, err)
	r := &facts.Release{Status: facts.StatusDeployed, Revision: 1, Chart: "grafana 1", Configuration: state.ConfigurationCurrent, ConfigMaps: []string{"lost"}}
	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet", "Job", "Pod", "PersistentVolumeClaim"} {
		r.Targets = append(r.Targets, objects.Target{Kind: kind, Namespace: kube.SystemNamespace, Name: "grafana"})
	}
	r.Targets = append(r.Targets, objects.Target{Kind: "PersistentVolumeClaim", Namespace: kube.JobNamespace, Name: "data"}, objects.Target{Kind: "PersistentVolume", Name: "data"})
	publication, err := facts.Open(t.Context(), c.Client)
	require.NoError(t, err)
	require.NoError(t, publication.Write(t.Context(), &facts.Published{Revision: public.Revision.Number, Configuration: digest,
		Services: []facts.Service{{Name: "grafana", Namespace: kube.SystemNamespace, Wanted: true, Release: r}}}))
	leases, at := c.Client.CoordinationV1().Leases(kube.SystemNamespace), metav1.NewMicroTime(time.Now())
	_ = leases.Delete(t.Context(), facts.Lease, metav1.DeleteOptions{}) // of another test
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: facts.Lease, Namespace: kube.SystemNamespace}, Spec: coordinationv1.LeaseSpec{AcquireTime: &at}}
	facts.Publish(lease)
	_, err = leases.Create(t.Context(), lease, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestTheServersAccountHasTheRightsThatItsRoutesNeed(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	configured(t, c)
	grantOnlyItsRights(t, c)
	h := houseOn(t, c, servertest.Options{Settings: withDoor(), API: func(r *rest.Config) {
		r.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	}})
	require.Equal(t, 202, h.Do("POST", "/api/v2/jobs", h.tokens["ann"], loose("seen")).Status)

	a := h.as("root", "GET", "/api/v3/status", "")
	require.Equal(t, 200, a.Status, a.Body)
	var all status.Cluster
	a.Into(&all)
	assert.Equal(t, "lab", all.Name)
	assert.Len(t, all.Jobs, 1)
	for i := range all.Sources {
		s := &all.Sources[i]
		assert.False(t, s.Refused, "%+v", s)
		assert.NotContains(t, s.Message, "forbidden", s.Name)
	}
	assert.Equal(t, status.StateCurrent, all.Source(status.SourceAPI).State)
	assert.Equal(t, status.StateCurrent, all.Source(status.SourceJobs).State)
	assert.Equal(t, status.StateAbsent, all.Source(status.SourceServices).State)
	assert.Equal(t, "no run of paictl has published which services run", all.Source(status.SourceServices).Message)
	assert.NotContains(t, a.Body, "hunter2")

	assert.Equal(t, 404, h.as("root", "GET", "/api/v3/services", "").Status, "no run has published anything")
	publishServices(t, c)
	assert.Equal(t, 403, h.as("ann", "GET", "/api/v3/services", "").Status)
	a = h.as("root", "GET", "/api/v3/services", "")
	require.Equal(t, 200, a.Status, a.Body)
	var services state.Report
	a.Into(&services)
	assert.Empty(t, services.Notes)
	require.Len(t, services.Items, 1)
	assert.Equal(t, state.StateFailed, services.Items[0].State)
	var missing []string
	for i := range services.Items[0].Problems {
		missing = append(missing, services.Items[0].Problems[i].Object)
	}
	assert.Contains(t, missing, "configmap/lost")
	assert.Contains(t, missing, "deployment/grafana")
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		h.as("root", "GET", "/api/v3/status", "").Into(&all)
		return all.Source(status.SourceServices).State == status.StateCurrent, nil
	}), "a status is kept for seconds")
	require.Len(t, all.Services, 1)
	assert.Equal(t, "grafana", all.Services[0].Name)
	assert.Equal(t, state.StateFailed, all.Services[0].State)
	for _, right := range []authv1.ResourceAttributes{
		{Namespace: kube.SystemNamespace, Verb: "get", Resource: "secrets", Name: "sh.helm.release.v1.grafana.v1"}, {Namespace: kube.SystemNamespace, Verb: "list", Resource: "secrets"},
		{Namespace: kube.SystemNamespace, Verb: "update", Resource: "configmaps", Name: facts.ConfigMap}, {Namespace: kube.SystemNamespace, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: facts.Lease},
		{Namespace: kube.SystemNamespace, Verb: "get", Resource: "pods", Subresource: "log"},
	} {
		r, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{User: account, ResourceAttributes: &right}}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.False(t, r.Status.Allowed, "%+v", right)
	}

	change := func(who, body string, want int) *vc.Outcome {
		t.Helper()
		a := h.as(who, "PATCH", "/api/v3/virtual-clusters", body)
		require.Equal(t, want, a.Status, a.Body)
		assert.NotContains(t, a.Body, "hunter2")
		out := &vc.Outcome{}
		if want == 200 {
			require.NoError(t, json.Unmarshal([]byte(a.Body), out))
		}
		return out
	}
	const grow, dry = `{"changes":[{"name":"vision","cells":[{"cellType":"g-NODE","cellNumber":1}]}]}`, `{"dryRun":true,"changes":[{"name":"vision","cells":[{"cellType":"g-NODE","cellNumber":1}]}]}`
	change("ann", dry, 403)
	change("ann", grow, 403)
	assert.True(t, change("root", dry, 200).Changed)
	assert.Equal(t, 2, change("root", grow, 200).Revision)
	assert.Equal(t, 3, change("root", `{"changes":[{"name":"vision","delete":true,"takeFrom":"default"}]}`, 200).Revision)
	cm, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), schedulerconfig.ConfigMap, metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotContains(t, cm.Data[schedulerconfig.ConfigMapKey], "vision")
	kept, err := store.New(c.Client).At(t.Context(), 2)
	require.NoError(t, err)
	assert.Contains(t, string(kept.Files[config.ServicesFile]), "vision")
	assert.Contains(t, string(kept.Files[config.LayoutFile]), "hunter2-of-ssh")
}
