package controller_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// An earlier paictl has submitted this job.
func TestAJobWhosePeersAreInAConfigMapRunsToItsEnd(t *testing.T) {
	w := begin(t)
	w.annotations = map[string]string{v1.AnnotationRuntime: v1.RuntimeV1}
	w.submit("hello", workers(2))
	f := w.until("hello", "has told its tasks of each other", func(f *v1.Framework) bool { return f.Status.AttemptStatus.PeersTime != nil })

	p := w.pod("hello-worker-1")
	assert.Equal(t, []string{"worker-1"}, p.Spec.Containers[0].Args, "placeholders are filled in")
	assert.Equal(t, "worker-1", p.Spec.Hostname)
	assert.Equal(t, "hello", p.Spec.Subdomain)
	assert.Equal(t, corev1.RestartPolicyNever, p.Spec.RestartPolicy)
	assert.Equal(t, "Worker", p.Annotations[v1.AnnotationTaskRole])
	assert.Contains(t, p.Spec.Containers[0].Env, corev1.EnvVar{Name: "FC_TASK_INDEX", Value: "1"})

	cm := &corev1.ConfigMap{}
	require.True(t, w.get(cm, v1.ConfigMapName("hello")))
	told, err := peers.Decode(cm.BinaryData[v1.PeersKey])
	require.NoError(t, err)
	assert.Equal(t, []string{w.pod("hello-worker-0").Status.PodIP, p.Status.PodIP}, told.Role("worker").PodIPs)
	assert.Equal(t, string(cm.UID), *f.Status.AttemptStatus.ConfigMapUID)

	service, role := &corev1.Service{}, &rbacv1.Role{}
	require.True(t, w.get(service, "hello"))
	assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP)
	require.True(t, w.get(role, "hello"))
	assert.Equal(t, []string{"hello-attempt"}, role.Rules[0].ResourceNames, "a job may read its own addresses and nothing else")
	assert.Equal(t, []string{"configmaps"}, role.Rules[0].Resources)
	assert.True(t, w.get(&corev1.ServiceAccount{}, "hello"))
	assert.True(t, w.get(&rbacv1.RoleBinding{}, "hello"))

	w.exits("hello-worker-0", 0)
	w.exits("hello-worker-1", 0)
	f = w.reaches("hello", v1.Completed)
	assert.Equal(t, int32(0), f.Status.AttemptStatus.CompletionStatus.Code)
	assert.NotNil(t, f.Status.ArchivedTime)
	require.NotNil(t, w.store.job("hello"))
	assert.Equal(t, v1.Completed, w.store.job("hello").Status.State)
	assert.Equal(t, "name: hello", w.store.job("hello").Annotations[v1.AnnotationConfig])
	assert.True(t, w.get(&corev1.Pod{}, "hello-worker-0"), "pods that ended stay for their logs")
}

func TestTasksAskTheControllerForTheirPeers(t *testing.T) {
	w := simulate(t)
	key := []byte("key")
	w.o.Peers, w.o.PeersKey = rendezvous.New(), func() []byte { return key }
	// Kubernetes hasn't removed the objects of an earlier job with the same name yet.
	require.NoError(t, w.c.Create(t.Context(), &corev1.Service{ObjectMeta: owned(w.namespace, "hello", "a former one"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}))
	w.start()
	f := w.submit("hello", workers(2))
	of := rendezvous.Attempt{Framework: "hello", UID: f.UID}
	for _, board := range []*rendezvous.Board{w.o.Peers, rendezvous.New()} {
		w.stop()
		w.o.Peers = board // a controller that takes over has nothing in its memory
		w.start()
		m, err := w.o.Peers.Wait(t.Context(), of, 0)
		require.NoError(t, err)
		told, err := peers.Decode(m.Data)
		require.NoError(t, err)
		assert.Equal(t, []string{w.pod("hello-worker-0").Status.PodIP, w.pod("hello-worker-1").Status.PodIP}, told.Role("worker").PodIPs)
	}
	p := w.pod("hello-worker-1")
	assert.True(t, metav1.IsControlledBy(p, f))
	env := map[string]string{}
	for _, e := range p.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	delete(env, "NVIDIA_VISIBLE_DEVICES") // the guard, of a pod without GPUs
	assert.Equal(t, map[string]string{spec.TaskVariable: "worker/1/0/0", spec.PeersTokenVariable: env[spec.PeersTokenVariable]}, env, "and nothing else")
	uid, ok := peers.CheckToken(key, "hello", env[spec.PeersTokenVariable])
	assert.True(t, ok)
	assert.Equal(t, string(f.UID), uid)
	for _, o := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		assert.False(t, w.get(o, "hello"), "%T", o)
	}
	assert.False(t, w.get(&corev1.ConfigMap{}, v1.ConfigMapName("hello")))
	service := &corev1.Service{}
	require.True(t, w.get(service, "hello"))
	assert.True(t, metav1.IsControlledBy(service, f))

	require.NoError(t, w.c.Delete(t.Context(), f))
	w.eventually("hello is gone, and all that it had", func() bool {
		return !w.get(&v1.Framework{}, "hello") && !w.get(&corev1.Service{}, "hello") && !w.get(&corev1.Pod{}, "hello-worker-0") && !w.get(&corev1.Pod{}, "hello-worker-1")
	})
	assert.False(t, w.o.Peers.Has(of))
	require.NotNil(t, w.store.job("hello"))
}

// owned returns the metadata of an object that belongs to a Framework with the same name.
func owned(namespace, name string, uid types.UID) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{Name: name, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind, Name: name, UID: uid, Controller: &yes},
	}}
}

func TestAJobOfOneTaskGetsNoRights(t *testing.T) {
	w := begin(t)
	w.submit("one", workers(1))
	w.exits("one-worker-0", 0)
	w.reaches("one", v1.Completed)
	assert.False(t, w.get(&corev1.ServiceAccount{}, "one"))
	assert.False(t, w.get(&rbacv1.Role{}, "one"))
	assert.False(t, w.get(&corev1.Service{}, "one"))
}

func TestATransientFailureIsRetriedAndArchivedBefore(t *testing.T) {
	w := begin(t)
	w.submit("again", workers(1))
	w.exits("again-worker-0", 200)
	f := w.until("again", "begins another attempt", func(f *v1.Framework) bool { return f.Status.AttemptStatus.ID == 1 })
	assert.Equal(t, int32(0), f.Status.RetryPolicyStatus.AccountableRetriedCount)
	require.NotNil(t, w.store.attempt("again", 0))
	assert.Equal(t, int32(200), w.store.attempt("again", 0).Status.AttemptStatus.CompletionStatus.Code)
	w.eventually("the new pod is of the second attempt", func() bool {
		p := &corev1.Pod{}
		return w.get(p, "again-worker-0") && p.Annotations[v1.AnnotationFrameworkAttempt] == "1"
	})
	w.exits("again-worker-0", 0)
	w.reaches("again", v1.Completed)
	w.eventually("events tell of the retry", func() bool {
		events := &corev1.EventList{}
		require.NoError(t, w.c.List(t.Context(), events, client.InNamespace(w.namespace)))
		for _, e := range events.Items {
			if e.Reason == "Retrying" && e.InvolvedObject.Name == "again" {
				return true
			}
		}
		return false
	})
	w.eventually("events reach the archive", func() bool {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		for _, e := range w.store.events["again"] {
			if e.Reason == "Retrying" && !e.Time.IsZero() {
				return true
			}
		}
		return false
	})
}

func TestStopEndsRunningPods(t *testing.T) {
	w := begin(t)
	f := w.submit("stop", workers(3))
	w.reaches("stop", v1.AttemptRunning)
	f.Spec.ExecutionType = v1.ExecutionStop
	require.NoError(t, w.c.Patch(t.Context(), f, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"executionType":"Stop"}}`))))
	f = w.reaches("stop", v1.Completed)
	assert.Equal(t, int32(-210), f.Status.AttemptStatus.CompletionStatus.Code)
	pods := &corev1.PodList{}
	require.NoError(t, w.c.List(t.Context(), pods, client.InNamespace(w.namespace)))
	assert.Empty(t, pods.Items)
}

func TestTasksAreAddedAndRemovedWhileOthersRun(t *testing.T) {
	w := begin(t)
	f := w.submit("scale", workers(1))
	w.reaches("scale", v1.AttemptRunning)
	before := w.pod("scale-worker-0").UID
	scale := func(n string) {
		require.NoError(t, w.c.Patch(t.Context(), f, client.RawPatch("application/json-patch+json",
			[]byte(`[{"op":"replace","path":"/spec/taskRoles/0/taskNumber","value":`+n+`}]`))))
	}
	scale("120") // more than the status can hold
	w.until("scale", "runs 120 tasks", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 120 })
	assert.Equal(t, int32(2), w.job("scale").Status.AttemptStatus.TaskChunks)
	scale("2")
	w.until("scale", "runs 2 tasks", func(f *v1.Framework) bool {
		r := f.Status.AttemptStatus.TaskRoleStatuses[0]
		return len(r.TaskStatuses) == 2 && r.Counts.Running == 2
	})
	assert.Equal(t, before, w.pod("scale-worker-0").UID)
}

func TestADeletedJobIsStoppedArchivedAndGone(t *testing.T) {
	w := begin(t)
	f := w.submit("gone", workers(2))
	w.reaches("gone", v1.AttemptRunning)
	require.NoError(t, w.c.Delete(t.Context(), f))
	w.eventually("the Framework is gone", func() bool { return !w.get(&v1.Framework{}, "gone") })
	require.NotNil(t, w.store.job("gone"))
	assert.True(t, w.store.callsDeleted(f))
	assert.Equal(t, int32(-210), w.store.job("gone").Status.AttemptStatus.CompletionStatus.Code)
	w.eventually("its pods are gone", func() bool { return !w.get(&corev1.Pod{}, "gone-worker-0") })
	w.submit("gone", workers(1))
	w.reaches("gone", v1.AttemptRunning)
}

func TestAnArchiveThatIsDownKeepsAFinishedJobUntilItAnswers(t *testing.T) {
	w := simulate(t)
	w.o.TTL = time.Millisecond
	w.start()
	w.store.setDown(true)
	w.submit("kept", workers(1))
	w.exits("kept-worker-0", 0)
	f := w.reaches("kept", v1.Completed)
	assert.Nil(t, f.Status.ArchivedTime)
	w.store.setDown(false)
	w.eventually("the Framework leaves after its time", func() bool { return !w.get(&v1.Framework{}, "kept") })
	assert.NotNil(t, w.store.job("kept"))
	assert.True(t, w.store.lists(f))
	assert.False(t, w.store.callsDeleted(f), "its time was over")
}

func TestAPodThatIsDeletedByOthersIsMadeAgain(t *testing.T) {
	w := begin(t)
	w.submit("evicted", workers(2))
	w.until("evicted", "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 2 })
	require.NoError(t, w.c.Delete(t.Context(), w.pod("evicted-worker-0")))
	f := w.until("evicted", "begins another attempt", func(f *v1.Framework) bool { return f.Status.AttemptStatus.ID == 1 })
	assert.Equal(t, int32(-101), w.store.attempt("evicted", 0).Status.AttemptStatus.CompletionStatus.Code)
	assert.Equal(t, int32(1), f.Status.RetryPolicyStatus.TotalRetriedCount)
}

func TestAPodThatTheAPIRefusesEndsTheJobWithTheReason(t *testing.T) {
	w := begin(t)
	r := workers(1)
	r.Task.Pod.Spec.Containers[0].Name = "Not A Name"
	w.submit("wrong", r)
	f := w.reaches("wrong", v1.Completed)
	assert.Equal(t, int32(-200), f.Status.AttemptStatus.CompletionStatus.Code)
	assert.Contains(t, f.Status.AttemptStatus.CompletionStatus.Diagnostics, "spec.containers[0].name")
}

func TestAPodAboveTheMaximumOfTheNamespaceEndsTheJobWithTheReason(t *testing.T) {
	w := simulate(t)
	most := corev1.ResourceList{corev1.ResourceEphemeralStorage: quantity("1Gi")}
	require.NoError(t, w.c.Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "jobs", Namespace: w.namespace},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: most}}}}))
	w.start()
	r := workers(1)
	r.Task.Pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: quantity("2Gi")}
	w.submit("large", r)
	f := w.reaches("large", v1.Completed)
	assert.Equal(t, int32(-200), f.Status.AttemptStatus.CompletionStatus.Code, "another attempt would be refused, too")
	assert.Equal(t, []string{"ephemeral-storage", "1Gi", "2Gi"}, machine.AboveLimit.FindStringSubmatch(f.Status.AttemptStatus.CompletionStatus.Diagnostics)[1:])
	w.submit("small", workers(1))
	w.reaches("small", v1.AttemptRunning)
}

func TestAUsedUpQuotaIsSaidAndWaitedFor(t *testing.T) {
	w := simulate(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: w.namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": quantity("0")}}}
	require.NoError(t, w.c.Create(t.Context(), quota))
	w.eventually("the API server knows the quota", func() bool {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: w.namespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}}}
		err := w.c.Create(t.Context(), probe, client.DryRunAll)
		return err != nil && contains(err.Error(), "exceeded quota")
	})
	w.start()
	w.submit("quota", workers(1))
	w.until("quota", "says why", func(f *v1.Framework) bool { return contains(f.Status.Message, "exceeded quota") })
	require.NoError(t, w.c.Delete(t.Context(), quota))
	w.until("quota", "runs", func(f *v1.Framework) bool { return f.Status.State == v1.AttemptRunning && f.Status.Message == "" })
}

func TestTheFinalizerIsAddedWhereASubmissionDidNot(t *testing.T) {
	w := simulate(t)
	f := w.submit("plain", workers(1))
	f.Finalizers = nil
	require.NoError(t, w.c.Update(t.Context(), f))
	w.start()
	w.eventually("it has the finalizer", func() bool {
		got := &v1.Framework{}
		return w.get(got, "plain") && len(got.Finalizers) == 1
	})
	w.reaches("plain", v1.AttemptRunning)
}

func TestPodsMountTheRuntimeOrCopyIt(t *testing.T) {
	role := workers(1)
	p := &role.Task.Pod.Spec
	p.InitContainers = []corev1.Container{{Name: spec.InitContainer, Image: "pai-runtime", Args: []string{"install", spec.Home}}}
	p.Containers[0].Command = []string{spec.Runtime, "run"}
	for delivery, inits := range map[controller.Delivery]int{controller.DeliverImageVolume: 0, controller.DeliverInitContainer: 1} {
		w := simulate(t)
		w.o.Delivery = delivery
		w.start()
		w.submit("a", role)
		w.until("a", "runs", func(f *v1.Framework) bool { return f.Status.State == v1.AttemptRunning })
		made := w.pod(v1.PodName("a", "worker", 0))
		assert.Len(t, made.Spec.InitContainers, inits)
		assert.Equal(t, inits == 0, slices.ContainsFunc(made.Spec.Volumes, func(v corev1.Volume) bool { return v.Image != nil }))
		w.exits(made.Name, 0)
		w.reaches("a", v1.Completed)
	}
}
