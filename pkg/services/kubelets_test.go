package services

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/services/catalogue"
)

// apiServer returns a master and the mirror pod of its API server, like Kubernetes 1.36.
func apiServer(node string, flags ...string) []runtime.Object {
	return []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}},
		staticPod(node, flags...),
	}
}

func staticPod(node string, flags ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "kube-apiserver-" + node, Labels: map[string]string{"component": "kube-apiserver", "tier": "control-plane"},
			Annotations: map[string]string{"kubernetes.io/config.mirror": "0e2b4f", "kubernetes.io/config.source": "file"},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "kube-apiserver", Command: append([]string{"kube-apiserver", "--allow-privileged=true", "--kubelet-client-certificate=/etc/kubernetes/pki/apiserver-kubelet-client.crt"}, flags...),
		}}},
	}
}

const verifies = "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt"

// withKubelets adds the setting for kubelets to the lab's chart of Prometheus.
func withKubelets(l *lab) *lab {
	l.Load = func(ctx context.Context) (*Desired, error) {
		d := desired(l.t, "", "")
		fs := testCharts()
		fs["charts/prometheus/values.yaml"].Data = append(fs["charts/prometheus/values.yaml"].Data, "kubelet: {insecureSkipVerify: true}\n"...)
		var err error
		d.Catalogue, _, err = catalogue.Load(ctx, d.Config, catalogue.Options{Charts: fs})
		return d, err
	}
	return l
}

func (l *lab) skipsVerification() any {
	l.t.Helper()
	d, err := l.LoadPlaced(l.t.Context())
	require.NoError(l.t, err)
	return d.Catalogue.Get("prometheus").Values["kubelet"].(map[string]any)["insecureSkipVerify"]
}

func TestPrometheusVerifiesKubeletsOnceTheAPIServersDo(t *testing.T) {
	approver := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "pai-csr-approver"}}
	both := func(lists ...[]runtime.Object) (out []runtime.Object) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	byHand := staticPod("m1", verifies)
	byHand.Name, byHand.Annotations = "kube-apiserver", nil
	for name, c := range map[string]struct {
		objects []runtime.Object
		skip    bool
	}{
		"cluster up hasn't moved them yet":                      {apiServer("m1"), true},
		"the approver is there, the kubelets are being moved":   {append(apiServer("m1"), approver), true},
		"the first API server verifies, all kubelets are moved": {both(apiServer("m1", verifies), apiServer("m2")), false},
		"all of them verify":                                    {both(apiServer("m1", verifies), apiServer("m2", verifies)), false},
		"a worker says that it has an API server":               {append(apiServer("m1"), worker, staticPod("w1", verifies)), true},
		"an ordinary pod looks like one":                        {append(apiServer("m1"), byHand), true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.skip, withKubelets(newLab(t, c.objects...)).skipsVerification())
		})
	}
}

func TestPrometheusGoesBackWithTheAPIServers(t *testing.T) {
	l := withKubelets(newLab(t, apiServer("m1", verifies)...))
	require.NoError(t, l.start("prometheus"))
	assert.Equal(t, false, l.releases.have["prometheus"].Values["kubelet"].(map[string]any)["insecureSkipVerify"])

	_, err := l.client.CoreV1().Pods("kube-system").Update(t.Context(), staticPod("m1"), metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, ConfigurationChanged, l.states()["prometheus"].Configuration, "status says that a start is due")
	require.NoError(t, l.start("prometheus"))
	assert.Equal(t, true, l.releases.have["prometheus"].Values["kubelet"].(map[string]any)["insecureSkipVerify"])
}

// Mirror pods are missing briefly while the kubelet is upgraded, or after a user has deleted them.
func TestPrometheusStaysAsItIsWhereNoAPIServerIsSeen(t *testing.T) {
	for _, flags := range [][]string{{verifies}, nil} {
		l := withKubelets(newLab(t, apiServer("m1", flags...)...))
		require.NoError(t, l.start("prometheus"))
		l.releases.forget()
		require.NoError(t, l.client.CoreV1().Pods("kube-system").Delete(t.Context(), "kube-apiserver-m1", metav1.DeleteOptions{}))
		require.NoError(t, l.start("prometheus"))
		assert.Empty(t, l.releases.changes(), "verified: %v", flags != nil)
		assert.Equal(t, flags == nil, l.skipsVerification())
		want := "Prometheus's verification of kubelets stays switched on"
		if flags == nil {
			want = "Prometheus's verification of kubelets stays switched off"
		}
		told := l.story.of(EventWarning)
		require.NotEmpty(t, told)
		assert.Contains(t, told[0].Message, want)
		assert.Contains(t, told[0].Hint, "kubectl -n kube-system get pods -l component=kube-apiserver")
	}
	assert.Equal(t, false, withKubelets(newLab(t)).skipsVerification(), "a first start doesn't begin with less than the configuration says")
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	assert.Equal(t, false, withKubelets(newLab(t, worker, staticPod("w1"))).skipsVerification(), "a worker's word counts in neither way")
}

func TestAnAPIThatDoesNotSayChangesNothingOfPrometheus(t *testing.T) {
	l := withKubelets(newLab(t, apiServer("m1", verifies)...))
	require.NoError(t, l.start("prometheus"))
	l.releases.forget()
	l.client.PrependReactor("list", "pods", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
	require.ErrorContains(t, l.start("prometheus"), "check whether the API servers verify kubelets: no answer")
	assert.Empty(t, l.releases.changes())
}
