package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestHowAPodWasLastIsKnownWhenItIsGone(t *testing.T) {
	r := &reconciler{entries: entries{m: map[string]*entry{"f": {}}}}
	r.logs = newLogSaver(r)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	pod := func(uid types.UID, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "f-worker-0", UID: uid, Labels: map[string]string{v1.LabelFramework: "f"}}, Status: corev1.PodStatus{Phase: phase}}
	}
	h := r.podHandler(q)
	e := r.entries.get("f")
	running, ended := pod("a", corev1.PodRunning), pod("a", corev1.PodSucceeded)
	h.OnUpdate(packed(t, running), packed(t, running))
	assert.Empty(t, e.gone(nil), "it can be asked how it is")

	// The pod may disappear from the cache before the handler for its removal is called.
	h.OnUpdate(packed(t, running), packed(t, ended))
	assert.Empty(t, e.gone(map[string]*corev1.Pod{"f-worker-0": ended}), "it is still there")
	assert.Equal(t, map[types.UID]*corev1.Pod{"a": podFrom(packed(t, ended))}, e.gone(map[string]*corev1.Pod{"f-worker-0": pod("b", corev1.PodPending)}), "another has its name")
	assert.Empty(t, e.gone(nil), "it is told once")

	h.OnDelete(packed(t, running))
	assert.Equal(t, map[types.UID]*corev1.Pod{"a": podFrom(packed(t, running))}, e.gone(nil))
	h.OnDelete(packed(t, pod("c", corev1.PodRunning)))
	r.entries.drop("f")
	h.OnDelete(packed(t, running))
	h.OnDelete(packed(t, &corev1.Pod{}))
}
