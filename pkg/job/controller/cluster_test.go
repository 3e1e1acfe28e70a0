package controller_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/job/controller"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/status/stored"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/templates"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// cluster is a namespace in a real API server with simulated nodes, and a controller that the test can kill and start.
type cluster struct {
	t           testing.TB
	c           client.Client
	config      *rest.Config
	namespace   string
	store       *memory
	o           controller.Options
	stop        func()
	annotations map[string]string // added to the next submission
}

var namespaces atomic.Int32

// simulate returns a cluster without a controller.
func simulate(t testing.TB) *cluster {
	t.Helper()
	tier.More(t, "an API server with nodes")
	s := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(s))
	require.NoError(t, v1.AddToScheme(s))
	nodes := kubetest.StartNodes(t)
	config := rest.CopyConfig(nodes.Config)
	config.QPS, config.Burst = 1000, 2000
	c, err := client.New(config, client.Options{Scheme: s})
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(templates.JobDefinition, &crd.Object))
	if err := c.Create(t.Context(), crd); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	kubetest.PriorityClasses(t, nodes)
	w := &cluster{t: t, c: c, config: config, namespace: fmt.Sprintf("jobs-%d", namespaces.Add(1)), store: newMemory()}
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	t.Cleanup(func() { // nodes have room for a few hundred
		_ = c.DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Pod{}, client.InNamespace(w.namespace), client.GracePeriodSeconds(0))
	})
	w.eventually("the definition is served", func() bool { return c.List(t.Context(), &v1.FrameworkList{}) == nil })
	w.eventually("the namespace has its service account", func() bool {
		return w.get(&corev1.ServiceAccount{}, "default")
	})
	policy := machine.DefaultPolicy()
	policy.BackoffFirst, policy.ConflictMin, policy.ConflictMax = time.Second, time.Second, 2*time.Second
	w.o = controller.Options{Config: config, Namespace: w.namespace, SystemNamespace: w.namespace, Store: w.store, Log: logr.Discard()}
	if os.Getenv("PAICTL_TEST_LOG") != "" {
		w.o.Log = testr.New(t.(*testing.T))
	}
	w.o.SetPolicy(policy)
	return w
}

// begin returns a cluster whose controller runs.
func begin(t testing.TB) *cluster {
	t.Helper()
	w := simulate(t)
	w.start()
	return w
}

// start starts a controller. It stops at the end of the test, or when the test calls stop.
func (w *cluster) start() {
	w.t.Helper()
	w.o.Registry = prometheus.NewRegistry()
	c, err := controller.New(w.o)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(w.t, <-done)
	}
	w.t.Cleanup(w.stop)
}

func (w *cluster) eventually(what string, f func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) { return f(), nil })
	require.NoError(w.t, err, what)
}

func (w *cluster) get(o client.Object, name string) bool {
	err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o)
	if !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
	return err == nil
}

// submit creates a job with the given roles.
func (w *cluster) submit(name string, roles ...v1.TaskRole) *v1.Framework {
	w.t.Helper()
	f := &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, Finalizers: []string{v1.Finalizer},
			Labels:      map[string]string{v1.LabelUser: "alice"},
			Annotations: map[string]string{v1.AnnotationRuntime: v1.RuntimeV2, v1.AnnotationJobName: name, v1.AnnotationConfig: "name: " + name}},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, RetryPolicy: v1.RetryPolicy{FancyRetryPolicy: true}, TaskRoles: roles},
	}
	for key, value := range w.annotations {
		f.Annotations[key] = value
	}
	require.NoError(w.t, w.c.Create(w.t.Context(), f))
	return f
}

func workers(n int32) v1.TaskRole {
	limit := int64(600)
	return v1.TaskRole{Name: "worker", TaskNumber: n,
		FrameworkAttemptCompletionPolicy: v1.CompletionPolicy{MinFailedTaskCount: 1, MinSucceededTaskCount: n},
		Task: v1.Task{PodGracefulDeletionTimeoutSec: &limit, Pod: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationTaskRole: "Worker"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox", Args: []string{"{{FC_TASKROLE_NAME}}-{{FC_TASK_INDEX}}"}}}},
		}},
	}
}

func (w *cluster) job(name string) *v1.Framework {
	w.t.Helper()
	f, err := stored.Load(w.t.Context(), w.c, w.namespace, name)
	require.NoError(w.t, err)
	return f
}

// reaches waits until a job is in a state.
func (w *cluster) reaches(name string, state v1.State) *v1.Framework {
	w.t.Helper()
	return w.until(name, "is "+string(state), func(f *v1.Framework) bool { return f.Status.State == state })
}

func (w *cluster) until(name, what string, ok func(*v1.Framework) bool) *v1.Framework {
	w.t.Helper()
	var f *v1.Framework
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		f = w.job(name)
		return f.Status != nil && ok(f), nil
	})
	if err != nil {
		text, _ := yaml.Marshal(f.Status)
		pods, left := &corev1.PodList{}, []string{}
		require.NoError(w.t, w.c.List(w.t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{v1.LabelFramework: name}))
		for i := range pods.Items {
			p := &pods.Items[i]
			left = append(left, fmt.Sprintf("%s %s on %q, being deleted since %v, finalizers %v", p.Name, p.Status.Phase, p.Spec.NodeName, p.DeletionTimestamp, p.Finalizers))
		}
		// The message is cut, because the output after this line is needed, too.
		w.t.Fatalf("job %s never %s: it is %s of %v, delay %v, with the pods\n%s\n%.3000s", name, what, f.Status.State, f.Status.TransitionTime,
			f.Status.RetryPolicyStatus.RetryDelaySec, strings.Join(left, "\n"), text)
	}
	return f
}

func (w *cluster) pod(name string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{}
	require.True(w.t, w.get(p, name), name)
	return p
}

// end sets the status of a pod as a kubelet does when all containers of the pod have ended.
func end(p *corev1.Pod, code int32) {
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	now := metav1.Now()
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: now, FinishedAt: now}}
	}
}

// exits waits until a pod runs, and then ends it with an exit code, as its kubelet does.
func (w *cluster) exits(name string, code int32) {
	w.t.Helper()
	w.eventually(name+" runs", func() bool {
		p := &corev1.Pod{}
		return w.get(p, name) && p.Status.Phase == corev1.PodRunning
	})
	// KWOK may write the status at the same time.
	require.NoError(w.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		p := w.pod(name)
		end(p, code)
		return w.c.Status().Update(w.t.Context(), p)
	}))
}
