package templates

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

const (
	schedulerAccount  = "system:serviceaccount:pai-system:scheduler"
	controllerAccount = "system:serviceaccount:pai-system:job-controller"
	trustedAccount    = "system:serviceaccount:default:frameworkcontroller"
)

// placed returns an API server with the rules of the scheduler's chart. as returns a client that acts as the given account, which has all rights on
// pods.
func placed(t *testing.T) (c *kube.Cluster, as func(account string) corev1client.PodInterface) {
	t.Helper()
	c = kubetest.Start(t)
	ensureNamespaces(t, c)
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	manifest, err := renderOn(t, load(t, "scheduler"), map[string]any{"admission": map[string]any{"trustedAccounts": []any{trustedAccount}}}, capabilities)
	require.NoError(t, err)
	a := newApplier(t, c)
	rules := 0
	for _, o := range objects(t, manifest) {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			rules++
			require.NoError(t, a.apply(t, o, false), "%s %s", o.GetKind(), o.GetName())
			t.Cleanup(func() { a.remove(t, o) })
		}
	}
	require.Equal(t, 8, rules)
	admin := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "placement-test"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "placement-testers"}},
	}
	if _, err := c.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), admin, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	as = func(account string) corev1client.PodInterface {
		return clientAs(t, c, account).CoreV1().Pods("default")
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	if _, err := c.Client.CoreV1().ServiceAccounts("default").Create(t.Context(), sa, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	// The API server enforces the rules only some time after their creation.
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		p := asking("probe")
		p.Spec.NodeName = "n1"
		_, err := as("ann").Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "passes the scheduler"), nil
	}), "the rules take no effect")
	return c, as
}

// clientAs returns a client that acts as the given account. The account is in the given groups, and in a group that may do everything.
func clientAs(t *testing.T, c *kube.Cluster, account string, groups ...string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: append(groups, "placement-testers")}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// asking returns a pod that requests one cell from pai-scheduler.
func asking(name string) *corev1.Pod {
	no := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation.SpecKey: "virtualCluster: a\nleafCellNumber: 1\n"}},
		Spec: corev1.PodSpec{SchedulerName: "pai-scheduler", AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "app", Image: "i",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{annotation.EnableKey: resource.MustParse("1")}}}}},
	}
}

func TestPodsThatAreMadeDontSayWhereTheyLieOrWhoPays(t *testing.T) {
	_, as := placed(t)
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for name, test := range map[string]struct {
		account string
		change  func(*corev1.Pod)
		says    string // "" where it is allowed
	}{
		"nothing":                        {"ann", func(*corev1.Pod) {}, ""},
		"a place":                        {"ann", func(p *corev1.Pod) { p.Annotations[annotation.BindInfoKey] = "x" }, "are the scheduler's own"},
		"a place, by the job controller": {controllerAccount, func(p *corev1.Pod) { p.Annotations[annotation.BindInfoKey] = "x" }, "are the scheduler's own"},
		"an isolation":                   {"ann", func(p *corev1.Pod) { p.Annotations[annotation.IsolationKey] = "0" }, "are the scheduler's own"},
		"an isolation of early releases": {"ann", func(p *corev1.Pod) { p.Annotations[annotation.LegacyIsolationKey] = "0" }, "are the scheduler's own"},
		"our placement":                  {"ann", func(p *corev1.Pod) { p.Annotations[annotation.PlacementKey] = "{}" }, "are the scheduler's own"},
		"a machine":                      {"ann", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, "passes the scheduler"},
		"a machine, and a place without a request": {"ann", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.Containers[0].Resources = "n1", corev1.ResourceRequirements{}
			p.Annotations = map[string]string{annotation.BindInfoKey: "x"}
		}, "are the scheduler's own"},
		"a machine, and an init container that asks": {"ann", func(p *corev1.Pod) {
			p.Spec.NodeName, p.Annotations = "n1", nil
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i", Resources: p.Spec.Containers[0].Resources}}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}, "passes the scheduler"},
		"a day to end":                  {"ann", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(86400)) }, ""},
		"more than a day to end":        {controllerAccount, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(86401)) }, "is 86400 (a day) at most"},
		"another scheduler":             {"ann", func(p *corev1.Pod) { p.Spec.SchedulerName = "" }, "needs schedulerName: pai-scheduler"},
		"HiveD's name of a scheduler":   {"ann", func(p *corev1.Pod) { p.Spec.SchedulerName = "hivedscheduler-ds-a" }, ""},
		"a user":                        {"ann", func(p *corev1.Pod) { p.Labels = map[string]string{api.UserLabel: "bob"} }, "set the user and group that are charged"},
		"a group":                       {"ann", func(p *corev1.Pod) { p.Labels = map[string]string{api.UserGroupLabel: "g"} }, "set the user and group that are charged"},
		"a user, by the job controller": {controllerAccount, func(p *corev1.Pod) { p.Labels = map[string]string{api.UserLabel: "bob", api.UserGroupLabel: "g"} }, ""},
		"a user, by a trusted account":  {trustedAccount, func(p *corev1.Pod) { p.Labels = map[string]string{api.UserLabel: "bob"} }, ""},
		"a user, of a pod that asks for no cells": {"ann", func(p *corev1.Pod) {
			p.Labels, p.Annotations, p.Spec.Containers[0].Resources = map[string]string{api.UserLabel: "bob"}, nil, corev1.ResourceRequirements{}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := asking("made")
			test.change(p)
			_, err := as(test.account).Create(t.Context(), p, dry)
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.True(t, apierrors.IsInvalid(err), "%v", err)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

// The containers of a pod that is deleted by force keep running and keep its GPUs.
func TestPodsWithGPUsAreNotDeletedByForce(t *testing.T) {
	c, _ := placed(t)
	for account, role := range map[string]string{"eve": "system:aggregate-to-edit", "system:node:n1": "system:node", "ann": "cluster-admin", controllerAccount: "system:aggregate-to-edit"} {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "force-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: account}}}
		_, err := c.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), b, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	as := func(account string) corev1client.PodInterface {
		config := rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: account}
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		return client.CoreV1().Pods("default")
	}
	none, second := int64(0), int64(1)
	for name, test := range map[string]struct {
		account string
		change  func(*corev1.Pod)
		grace   *int64
		refused bool
	}{
		"by who may edit pods": {"eve", func(*corev1.Pod) {}, &none, true},
		"without force":        {"eve", func(*corev1.Pod) {}, &second, false},
		"as it wants":          {"eve", func(*corev1.Pod) {}, nil, false},
		"a pod without cells": {"eve", func(p *corev1.Pod) {
			p.Annotations, p.Spec.Containers[0].Resources = nil, corev1.ResourceRequirements{}
		}, &none, false},
		"by the kubelet":             {"system:node:n1", func(*corev1.Pod) {}, &none, false},
		"by the job controller":      {controllerAccount, func(*corev1.Pod) {}, &none, false},
		"by a cluster administrator": {"ann", func(*corev1.Pod) {}, &none, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := asking("forced")
			test.change(p)
			p, err := c.Client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() {
				_ = c.Client.CoreV1().Pods("default").Delete(context.WithoutCancel(t.Context()), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none})
			})
			require.NoError(t, c.Client.CoreV1().Pods("default").Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{}))
			deletion := metav1.DeleteOptions{GracePeriodSeconds: test.grace, DryRun: []string{metav1.DryRunAll}}
			if !test.refused {
				require.NoError(t, as(test.account).Delete(t.Context(), p.Name, deletion))
				return
			}
			// The API server enforces the rules only some time after their creation.
			require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				err = as(test.account).Delete(ctx, p.Name, deletion)
				return err != nil, nil
			}))
			assert.ErrorContains(t, err, "can't be deleted by force")
		})
	}
}

func TestWhatAPodSaysOfItsPlaceStaysAsTheSchedulerWroteIt(t *testing.T) {
	c, as := placed(t)
	p := asking("placed")
	p.Labels = map[string]string{api.UserLabel: "bob"}
	_, err := as(controllerAccount).Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		none := int64(0)
		assert.NoError(t, c.Client.CoreV1().Pods("default").Delete(context.WithoutCancel(t.Context()), "placed", metav1.DeleteOptions{GracePeriodSeconds: &none}))
	})
	patch := func(account, body string, subresources ...string) error {
		_, err := as(account).Patch(t.Context(), "placed", types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
		return err
	}
	note := func(key, value string) string {
		data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
		require.NoError(t, err)
		return string(data)
	}
	require.NoError(t, patch(schedulerAccount, note(annotation.BindInfoKey, "here")))
	require.NoError(t, patch(schedulerAccount, note(annotation.PlacementKey, "{}")))
	for _, subresources := range [][]string{nil, {"status"}} {
		for _, account := range []string{"ann", controllerAccount, trustedAccount, "system:node:n1"} {
			for body, says := range map[string]string{
				note(annotation.BindInfoKey, "elsewhere"):                               "are the scheduler's own",
				note(annotation.IsolationKey, "0"):                                      "are the scheduler's own",
				`{"metadata":{"annotations":{"` + annotation.PlacementKey + `":null}}}`: "are the scheduler's own",
				`{"metadata":{"annotations":null}}`:                                     "are the scheduler's own",
				note(annotation.SpecKey, "virtualCluster: a\nleafCellNumber: 8\n"):      "the request of a pod can't be changed",
				`{"metadata":{"labels":{"userName":"ann"}}}`:                            "charged for a pod can't be changed",
				`{"metadata":{"labels":null}}`:                                          "charged for a pod can't be changed",
				`{"metadata":{"labels":{"paictl.openpai.org/user-group":"a"}}}`:         "charged for a pod can't be changed",
			} {
				assert.ErrorContains(t, patch(account, body, subresources...), says, "%s %s %s", account, body, subresources)
			}
		}
		assert.NoError(t, patch("ann", note("mine", "a"), subresources...), "what is no one else's")
		assert.NoError(t, patch("system:node:n1", `{"status":{"phase":"Pending"}}`, subresources...))
	}
	require.ErrorContains(t, patch(schedulerAccount, note(annotation.SpecKey, "virtualCluster: b\n")), "the request of a pod can't be changed")
	now, err := c.Client.CoreV1().Pods("default").Get(t.Context(), "placed", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "here", now.Annotations[annotation.BindInfoKey])
	assert.Equal(t, "bob", now.Labels[api.UserLabel])
}
