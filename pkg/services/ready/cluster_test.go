package ready

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const sleeper = `apiVersion: apps/v1
kind: Deployment
metadata: {name: sleeper}
spec:
  replicas: 2
  selector: {matchLabels: {app: sleeper}}
  template:
    metadata: {labels: {app: sleeper}}
    spec: {containers: [{name: main, image: example.org/sleeper:1}]}
`

// TestOnARealCluster uses a real scheduler and real controllers to test their real error messages.
func TestOnARealCluster(t *testing.T) {
	c := kubetest.StartNodes(t)
	ctx := t.Context()
	const place = "ready-test"
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var d appsv1.Deployment
	require.NoError(t, yaml.Unmarshal([]byte(sleeper), &d))
	deployments := c.Client.AppsV1().Deployments(place)
	checker := New(c.Client)
	o := WaitOptions{Timeout: 5 * time.Minute, Grace: time.Second}
	// A corrected problem is no longer final after the controllers have observed the correction. The long grace period makes the test independent of
	// their speed.
	mended := WaitOptions{Timeout: o.Timeout, Grace: o.Timeout}

	_, err = deployments.Create(ctx, &d, metav1.CreateOptions{})
	require.NoError(t, err)
	state, err := checker.Wait(ctx, place, sleeper, mended)
	require.NoError(t, err)
	assert.Equal(t, 2, state.ReadyPods)
	state, err = checker.Check(ctx, place, sleeper)
	require.NoError(t, err)
	assert.True(t, state.Ready)

	change := func(what func(*appsv1.Deployment)) {
		t.Helper()
		now, err := deployments.Get(ctx, d.Name, metav1.GetOptions{})
		require.NoError(t, err)
		what(now)
		_, err = deployments.Update(ctx, now, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	fails := func(reason, text string) {
		t.Helper()
		state, err := checker.Wait(ctx, place, sleeper, o)
		require.Error(t, err)
		require.NotEmpty(t, state.Problems, err)
		assert.Equal(t, reason, state.Problems[0].Reason)
		assert.Contains(t, state.Problems[0].Message, text)
		assert.NotEmpty(t, hint.Of(err))
	}

	change(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{"role": "nowhere"}
	})
	fails("Unschedulable", "of 3: 3 without the label role=nowhere")

	change(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = nil
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900Ti")}
	})
	fails("Unschedulable", "without enough free memory (it requests 900Ti)")

	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	quota.Spec.Hard = corev1.ResourceList{"requests.memory": resource.MustParse("1Gi")}
	_, err = c.Client.CoreV1().ResourceQuotas(place).Create(ctx, quota, metav1.CreateOptions{})
	require.NoError(t, err)
	change(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("2Gi")
	})
	fails("QuotaExceeded", "exceeded quota: small")

	require.NoError(t, c.Client.CoreV1().ResourceQuotas(place).Delete(ctx, "small", metav1.DeleteOptions{}))
	change(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Resources.Requests = nil })
	state, err = checker.Wait(ctx, place, sleeper, mended)
	require.NoError(t, err)
	assert.Equal(t, 2, state.ReadyPods)

	daemons := `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {nodeSelector: {role: nowhere}, containers: [{name: main, image: example.org/agent:1}]}
`
	var agent appsv1.DaemonSet
	require.NoError(t, yaml.Unmarshal([]byte(daemons), &agent))
	_, err = c.Client.AppsV1().DaemonSets(place).Create(ctx, &agent, metav1.CreateOptions{})
	require.NoError(t, err)
	state, err = checker.Wait(ctx, place, daemons, o)
	require.Error(t, err)
	assert.Equal(t, "NoNode", state.Problems[0].Reason)
	now, err := c.Client.AppsV1().DaemonSets(place).Get(ctx, "agent", metav1.GetOptions{})
	require.NoError(t, err)
	now.Spec.Template.Spec.NodeSelector = nil
	_, err = c.Client.AppsV1().DaemonSets(place).Update(ctx, now, metav1.UpdateOptions{})
	require.NoError(t, err)
	state, err = checker.Wait(ctx, place, daemons, mended)
	require.NoError(t, err)
	assert.Equal(t, kubetest.Nodes, state.ReadyPods)
}
