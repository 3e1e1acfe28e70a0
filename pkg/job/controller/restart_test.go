package controller_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller"
	"github.com/openpai/paictl/pkg/job/controller/status"
	"github.com/openpai/paictl/pkg/job/controller/status/stored"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// kubelet ends the pods of a cluster some time after they run. The function exit returns the exit code for a pod. kubelet also records which pods
// ran for each attempt of each task.
type kubelet struct {
	mu  sync.Mutex
	ran map[string]map[string]bool // attempt of a task → UIDs
}

func (w *cluster) kubelet(exit func(p *corev1.Pod) int32) *kubelet {
	k := &kubelet{ran: map[string]map[string]bool{}}
	clients, err := kubernetes.NewForConfig(w.config)
	require.NoError(w.t, err)
	work := make(chan *corev1.Pod, 100_000)
	see := func(o any) {
		p := o.(*corev1.Pod)
		if p.DeletionTimestamp != nil {
			// KWOK doesn't always delete a pod whose status changed at the same time, unlike a real kubelet. So the pod is deleted here.
			time.AfterFunc(5*time.Second, func() {
				now := int64(0)
				_ = clients.CoreV1().Pods(w.namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
			})
			return
		}
		// A pod may run again after its end, because KWOK may act on an earlier state of the pod.
		if p.Status.Phase == corev1.PodRunning {
			k.note(p)
			work <- p
		}
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: toolscache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "pods", w.namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler:       toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }},
	})
	go informer.RunWithContext(w.t.Context())
	for range 16 {
		go func() {
			for {
				select {
				case p := <-work:
					w.end(clients, p, exit(p))
				case <-w.t.Context().Done():
					return
				}
			}
		}()
	}
	return k
}

// note records that a pod ran.
func (k *kubelet) note(p *corev1.Pod) {
	id := strings.Join([]string{p.Name, p.Annotations["FC_FRAMEWORK_UID"], p.Annotations[v1.AnnotationFrameworkAttempt], p.Annotations["FC_TASK_UID"], p.Annotations[v1.AnnotationTaskAttempt]}, "/")
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ran[id] == nil {
		k.ran[id] = map[string]bool{}
	}
	k.ran[id][string(p.UID)] = true
}

// tasks returns how many attempts of tasks have run.
func (k *kubelet) tasks() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ran)
}

func (w *cluster) end(clients kubernetes.Interface, p *corev1.Pod, code int32) {
	for range 5 {
		now, err := clients.CoreV1().Pods(w.namespace).Get(context.Background(), p.Name, metav1.GetOptions{})
		if err != nil || now.UID != p.UID || now.DeletionTimestamp != nil {
			return // as a real one leaves a pod alone that is no longer its own
		}
		p = now
		end(p, code)
		_, err = clients.CoreV1().Pods(w.namespace).UpdateStatus(context.Background(), p, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return
		}
	}
}

// number returns a size from the environment, which allows runs that are larger than a normal test.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func TestKillingTheControllerLosesNoTaskAndRunsNoneTwice(t *testing.T) {
	w := simulate(t)
	jobs := number("PAICTL_TEST_JOBS", 16)
	k := w.kubelet(func(p *corev1.Pod) int32 {
		// The first attempt of every fifth job fails with an exit code that causes a retry.
		n, _ := strconv.Atoi(strings.TrimPrefix(p.Labels[v1.LabelFramework], "job"))
		if n%5 == 0 && p.Annotations[v1.AnnotationFrameworkAttempt] == "0" && p.Labels[v1.LabelTaskIndex] == "0" {
			return 200
		}
		return 0
	})
	w.start()
	go func() {
		for i := range jobs {
			w.submit(fmt.Sprintf("job%d", i), workers(int32(1+i%8)))
		}
	}()
	tasks := 0
	for i := range jobs {
		tasks += 1 + i%8
	}
	for i := range 10 {
		// The restarts are spread over the whole run, even on a slow machine.
		w.eventually("more tasks have run", func() bool { return k.tasks() > i*tasks/10 })
		w.stop()
		w.start()
	}
	for i := range jobs {
		name := fmt.Sprintf("job%d", i)
		w.eventually(name+" is submitted", func() bool { return w.get(&v1.Framework{}, name) })
		f := w.reaches(name, v1.Completed)
		assert.Equal(t, int32(0), f.Status.AttemptStatus.CompletionStatus.Code, name)
		require.NotNil(t, w.store.job(name), name)
		c := w.store.job(name).Status.AttemptStatus.TaskRoleStatuses[0].Counts
		assert.Equal(t, c.Total, c.Succeeded, name)
		if i%5 == 0 {
			assert.NotNil(t, w.store.attempt(name, 0), name)
			// KWOK deletes pods by name, so it may delete the successor of a pod that is already gone.
			for id := int32(1); id < f.Status.AttemptStatus.ID; id++ {
				assert.Equal(t, int32(rules.CodePodDeleted), w.store.attempt(name, int(id)).Status.AttemptStatus.CompletionStatus.Code, name)
			}
			assert.GreaterOrEqual(t, f.Status.AttemptStatus.ID, int32(1), name)
		}
	}
	w.eventually("no pod runs", func() bool { // a pod may run again for a moment, see kubelet
		pods := &corev1.PodList{}
		require.NoError(t, w.c.List(t.Context(), pods, client.InNamespace(w.namespace)))
		return !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, uids := range k.ran {
		assert.Len(t, uids, 1, id)
	}
}

// To list the pods of one job, the API server reads the pods of all jobs. With thousands of jobs, a list for each job would overload the API
// server after a restart of the controller.
func TestARestartAsksOnceForThePodsOfAllJobs(t *testing.T) {
	w := begin(t)
	const jobs = 20
	for i := range jobs {
		w.submit(fmt.Sprintf("once%d", i), workers(2))
	}
	for i := range jobs {
		w.reaches(fmt.Sprintf("once%d", i), v1.AttemptRunning)
	}
	w.stop()
	w.start()
	w.kubelet(func(*corev1.Pod) int32 { return 0 })
	for i := range jobs {
		w.reaches(fmt.Sprintf("once%d", i), v1.Completed)
	}
	calls := w.calls()
	assert.Less(t, calls["GET pods"], float64(jobs)/2, "%v", calls)
}

func TestANewLeaderTakesOver(t *testing.T) {
	w := simulate(t)
	w.o.LeaderElection, w.o.Identity = true, "a"
	w.start()
	w.submit("before", workers(1))
	w.reaches("before", v1.AttemptRunning)
	first := w.stop
	w.o.Identity = "b"
	w.start()
	first()
	w.exits("before-worker-0", 0)
	w.reaches("before", v1.Completed)
	w.submit("after", workers(1))
	w.reaches("after", v1.AttemptRunning)
}

func TestATaskOnALostNodeRunsElsewhere(t *testing.T) {
	w := begin(t)
	w.submit("lost", workers(1))
	w.reaches("lost", v1.AttemptRunning)
	var p *corev1.Pod
	// This is the status that Kubernetes' pod garbage collector writes to a pod of a missing node before it deletes the pod. The test doesn't
	// delete the pod, because KWOK would remove it immediately, and the controller might not see the status.
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		p = w.pod("lost-worker-0")
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists"})
		p.Status.Phase = corev1.PodFailed
		return w.c.Status().Update(t.Context(), p)
	}))
	f := w.until("lost", "begins another attempt", func(f *v1.Framework) bool { return f.Status.AttemptStatus.ID == 1 })
	assert.Equal(t, int32(-1001), w.store.attempt("lost", 0).Status.AttemptStatus.CompletionStatus.Code)
	require.Len(t, f.Status.AvoidedNodes, 1)
	assert.Equal(t, p.Spec.NodeName, f.Status.AvoidedNodes[0].Name)
	w.reaches("lost", v1.AttemptRunning)
	second := w.pod("lost-worker-0").Spec.NodeName
	assert.NotEmpty(t, second)
}

func TestAnAttemptWhoseConfigMapIsDeletedIsBegunAnew(t *testing.T) {
	w := begin(t)
	w.annotations = map[string]string{v1.AnnotationRuntime: v1.RuntimeV1}
	w.submit("cm", workers(2))
	w.until("cm", "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 2 })
	require.NoError(t, w.c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapName("cm"), Namespace: w.namespace}}))
	w.until("cm", "runs again", func(f *v1.Framework) bool {
		return f.Status.AttemptStatus.ID == 1 && f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 2
	})
	assert.Equal(t, int32(-100), w.store.attempt("cm", 0).Status.AttemptStatus.CompletionStatus.Code)
}

// Tasks whose states are lost look like tasks that never began. Without a repair, their pods would be removed, and the tasks would run again.
func TestStatesOfTasksThatAreLostAreFoundAgainInThePods(t *testing.T) {
	const tasks = 150
	all := func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == tasks }
	for name, lose := range map[string]func(w *cluster, early, now *corev1.ConfigMap){
		"missing": func(w *cluster, _, now *corev1.ConfigMap) { require.NoError(w.t, w.c.Delete(w.t.Context(), now)) },
		"older": func(w *cluster, early, now *corev1.ConfigMap) {
			now.Data, now.BinaryData = early.Data, early.BinaryData
			require.NoError(w.t, w.c.Update(w.t.Context(), now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			w.submit("large", workers(tasks))
			early, now := &corev1.ConfigMap{}, &corev1.ConfigMap{}
			w.eventually("the states are written", func() bool { return w.get(early, status.Name("large", 0)) })
			w.until("large", "runs", all)
			w.stop()
			pods := w.uids()
			require.Len(t, pods, tasks)
			require.True(t, w.get(now, status.Name("large", 0)))
			lose(w, early, now)
			w.start()
			w.eventually("the states are written again", func() bool {
				cm := &corev1.ConfigMap{}
				return w.get(cm, now.Name) && cm.Data["generation"] != early.Data["generation"]
			})
			w.until("large", "has all its tasks", all)
			w.eventually("an event tells of it", func() bool {
				events := &corev1.EventList{}
				require.NoError(t, w.c.List(t.Context(), events, client.InNamespace(w.namespace)))
				return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "TaskStatesLost" })
			})
			w.exits("large-worker-0", 200) // everything continues, too
			w.until("large", "is tried again", func(f *v1.Framework) bool { return f.Status.AttemptStatus.ID == 1 })
			first := w.store.attempt("large", 0)
			assert.Len(t, first.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, tasks)
			for _, task := range first.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
				require.NotNil(t, task.AttemptStatus.PodUID)
				assert.Equal(t, pods[task.AttemptStatus.PodName], *task.AttemptStatus.PodUID, "the pod that ran before")
			}
		})
	}
}

// uids returns the UIDs of all pods, by the names of the pods.
func (w *cluster) uids() map[string]string {
	pods := &corev1.PodList{}
	require.NoError(w.t, w.c.List(w.t.Context(), pods, client.InNamespace(w.namespace)))
	out := map[string]string{}
	for i := range pods.Items {
		out[pods.Items[i].Name] = string(pods.Items[i].UID)
	}
	return out
}

func TestAReplicaThatLostItsLeaseCannotOverwriteStatesOfTasks(t *testing.T) {
	w := begin(t)
	w.submit("large", workers(120))
	w.until("large", "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 120 })
	// If another process has written, the controller notices it and reads the state before its next write.
	cm := &corev1.ConfigMap{}
	require.True(t, w.get(cm, status.Name("large", 1)))
	cm.Labels["touched"] = "yes"
	require.NoError(t, w.c.Update(t.Context(), cm))
	w.exits("large-worker-110", 0)
	w.until("large", "counts the end", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Succeeded == 1 })
	conflicts := 0.0
	families, err := w.o.Registry.(*prometheus.Registry).Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "pai_controller_status_conflicts_total" {
			conflicts = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	assert.Positive(t, conflicts)
}

// A job grows while two replicas consider themselves the leader. Both write a chunk that neither of them knows yet.
func TestAReplicaGivesWayToStatesThatAnotherHasWritten(t *testing.T) {
	w := begin(t)
	w.submit("grows", workers(90))
	w.until("grows", "runs", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 90 })
	before := w.uids()

	// The other replica has seen that the job grew, and has written attempts of its last tasks. This replica can't know these attempts.
	other, err := stored.Load(w.t.Context(), w.c, w.namespace, "grows")
	require.NoError(t, err)
	role := other.Status.AttemptStatus.TaskRoleStatuses[0]
	for i := int32(90); i < 120; i++ {
		task := role.TaskStatuses[0].DeepCopy()
		task.Index, task.State = i, v1.AttemptCreationPending
		task.AttemptStatus = v1.TaskAttemptStatus{ID: 7, StartTime: task.StartTime, PodName: v1.PodName("grows", "worker", i)}
		role.TaskStatuses = append(role.TaskStatuses, task)
	}
	layout := &status.Layout{}
	written, err := layout.Encode(other, other.Status, layout.Update(other.Status, nil))
	require.NoError(t, err)
	require.Len(t, written, 2)
	for _, cm := range written {
		require.NoError(t, w.c.Create(t.Context(), cm))
	}

	f := &v1.Framework{}
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		require.True(t, w.get(f, "grows"))
		f.Spec.TaskRoles[0].TaskNumber = 120
		return w.c.Update(t.Context(), f)
	}))
	w.until("grows", "is large", func(f *v1.Framework) bool { return f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Running == 120 })
	now, err := stored.Load(t.Context(), w.c, w.namespace, "grows")
	require.NoError(t, err)
	require.Len(t, now.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 120)
	assert.Equal(t, int32(7), now.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[119].AttemptStatus.ID, "what the other wrote")
	for pod, uid := range w.uids() {
		if was, ran := before[pod]; ran {
			assert.Equal(t, was, uid, pod)
		}
	}
}

// Another job with the same name was submitted before or after the job on which a replica still works.
func TestAChunkOfAnotherJobOfTheNameIsReplacedOnlyByTheOneThatIsThere(t *testing.T) {
	w := simulate(t)
	chunk := func(owner *v1.Framework) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: status.Name("twice", 0), Namespace: w.namespace,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.GroupVersion.WithKind(v1.Kind))}},
			Data: map[string]string{"attemptID": "0", "generation": "1"},
		}
	}
	now := w.submit("twice", workers(120))
	owner := w.submit("former", workers(1)) // it exists, because Kubernetes may remove objects without an owner at any moment
	before := now.DeepCopy()
	before.UID = owner.UID
	require.NoError(t, controller.Put(t.Context(), w.c, now, chunk(now)))
	assert.True(t, apierrors.IsConflict(controller.Put(t.Context(), w.c, before, chunk(owner))), "it isn't there any more")

	require.NoError(t, w.c.Delete(t.Context(), chunk(now)))
	require.NoError(t, controller.Put(t.Context(), w.c, now, chunk(owner)))
	require.NoError(t, controller.Put(t.Context(), w.c, now, chunk(now)), "what an earlier one left")
	assert.True(t, apierrors.IsConflict(controller.Put(t.Context(), w.c, now, chunk(now))), "another replica was first")
}
