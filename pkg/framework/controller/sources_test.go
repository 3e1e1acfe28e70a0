package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

func TestHowAPodWasLastIsKnownWhenItIsGone(t *testing.T) {
	r := &reconciler{entries: entries{m: map[string]*entry{"f": {}}}}
	r.logs = newLogSaver(r)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	pod := func(uid types.UID, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "f-worker-0", UID: uid, Labels: map[string]string{v1.LabelFramework: "f"}}, Status: corev1.PodStatus{Phase: phase}}
	}
	h := r.handler(framework)
	e := r.entries.get("f")
	running, ended := pod("a", corev1.PodRunning), pod("a", corev1.PodSucceeded)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: running, ObjectNew: running}, q)
	assert.Empty(t, e.gone(nil), "it can be asked how it is")

	// The cache may lose it before the handler of its removal is called.
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: running, ObjectNew: ended}, q)
	assert.Empty(t, e.gone(map[string]*corev1.Pod{"f-worker-0": ended}), "it is still there")
	assert.Equal(t, map[types.UID]*corev1.Pod{"a": ended}, e.gone(map[string]*corev1.Pod{"f-worker-0": pod("b", corev1.PodPending)}), "another has its name")
	assert.Empty(t, e.gone(nil), "it is told once")

	h.Delete(t.Context(), event.DeleteEvent{Object: running}, q)
	assert.Equal(t, map[types.UID]*corev1.Pod{"a": running}, e.gone(nil))
	h.Delete(t.Context(), event.DeleteEvent{Object: pod("c", corev1.PodRunning)}, q)
	r.entries.drop("f")
	h.Delete(t.Context(), event.DeleteEvent{Object: running}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: &corev1.Pod{}}, q)
}
