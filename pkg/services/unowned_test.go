package services

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &yes}}
}

// podWith creates a pod of a service with the given owners.
func (l *lab) podWith(name, service string, owners []metav1.OwnerReference) {
	l.t.Helper()
	pod := podOf(service)
	pod.Name, pod.UID, pod.OwnerReferences = name, types.UID(name), owners
	pod.Labels["app.kubernetes.io/name"], pod.Labels[labelPartOf] = service, "paictl"
	_, err := l.client.CoreV1().Pods("pai-system").Create(l.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

func (l *lab) replicaSet(name string, owners []metav1.OwnerReference) {
	l.t.Helper()
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "pai-system", UID: types.UID(name), OwnerReferences: owners}}
	_, err := l.client.AppsV1().ReplicaSets("pai-system").Create(l.t.Context(), rs, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

func (l *lab) podNames() []string {
	l.t.Helper()
	list, err := l.client.CoreV1().Pods("pai-system").List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	return podNames(list.Items)
}

func TestPodsThatNothingOwnsAreToldAndRemoved(t *testing.T) {
	l := started(t)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "grafana", Namespace: "pai-system", UID: "grafana-2"}}
	_, err := l.client.AppsV1().Deployments("pai-system").Create(t.Context(), d, metav1.CreateOptions{})
	require.NoError(t, err)
	l.replicaSet("current", ownedBy("Deployment", "grafana", "grafana-2"))
	l.replicaSet("former", ownedBy("Deployment", "grafana", "grafana-1")) // of a Deployment of the same name
	l.podWith("works", "grafana", ownedBy("ReplicaSet", "current", "current"))
	l.podWith("of-a-former-deployment", "grafana", ownedBy("ReplicaSet", "former", "former"))
	l.podWith("of-nothing", "grafana", ownedBy("ReplicaSet", "gone", "gone"))
	l.podWith("bare", "grafana", nil)
	l.podWith("other", "node-exporter", ownedBy("Machine", "of-a-kind-that-is-not-known", "1"))

	var told []string
	for _, p := range l.states()["grafana"].Problems {
		told = append(told, p.Object+": "+p.Message)
	}
	assert.ElementsMatch(t, []string{
		"pod/bare: left behind: it has no owner, and nothing will remove it",
		"pod/of-a-former-deployment: left behind: its ReplicaSet former is gone, and nothing will remove it",
		"pod/of-nothing: left behind: its ReplicaSet gone is gone, and nothing will remove it",
	}, told)
	assert.Empty(t, l.states()["node-exporter"].Problems)

	delete(l.releases.have, "grafana") // an earlier stop has removed the release
	require.NoError(t, l.stop("grafana"))
	assert.Equal(t, []string{"other", "works"}, l.podNames())
	sets, err := l.client.AppsV1().ReplicaSets("pai-system").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, sets.Items, 1, "else the former one would make its pod again")
	assert.Equal(t, "current", sets.Items[0].Name)
}

func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		owned := func(version, kind string) []metav1.OwnerReference {
			refs := ownedBy(kind, "other", "other")
			refs[0].APIVersion = version
			return refs
		}
		l.podWith("volcano", "grafana", owned("batch.volcano.sh/v1alpha1", "Job"))
		l.podWith("kruise", "grafana", owned("apps.kruise.io/v1beta1", "StatefulSet"))
		l.podWith("part-of-something", "grafana", []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Cluster", Name: "c", UID: "3"}})
		assert.Empty(t, l.states()["grafana"].Problems)
		debug := podOf("grafana") // the selector fits, and no more
		debug.Name = "debug"
		_, err := l.client.CoreV1().Pods("pai-system").Create(t.Context(), debug, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Error(t, l.stop("grafana"), "they are named, and not removed")
		assert.Equal(t, []string{"debug", "kruise", "part-of-something", "volcano"}, l.podNames())
	})
}

func TestAStopRemovesPodsThatTheGarbageCollectorDoesNotComeTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "grafana", Namespace: "pai-system", UID: "d"}}
		_, err := l.client.AppsV1().Deployments("pai-system").Create(t.Context(), d, metav1.CreateOptions{})
		require.NoError(t, err)
		l.replicaSet("set", ownedBy("Deployment", "grafana", "d"))
		l.podWith("left", "grafana", ownedBy("ReplicaSet", "set", "set"))
		time.AfterFunc(time.Second, func() {
			assert.NoError(t, l.client.AppsV1().Deployments("pai-system").Delete(t.Context(), "grafana", metav1.DeleteOptions{}))
		})
		require.NoError(t, l.stop("grafana"))
		assert.Empty(t, l.podNames())
		var messages []string
		for _, e := range l.story.of(EventProgress) {
			messages = append(messages, e.Message)
		}
		assert.Equal(t, []string{"waits for 1 pod to end", "removes pod left, which no longer has an owner"}, messages)
	})
}
