package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/templates"
	"github.com/openpai/paictl/test/output"
	"github.com/openpai/paictl/test/tier"
)

// libraries collects the log messages of the libraries in all tests.
var libraries = &output.Buffer{}

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(libraries, nil)))
	os.Exit(kubetest.Wrap(m).Run())
}

// installed returns a cluster with the objects that the chart contains, except for the chart's pods.
func installed(t *testing.T) (client.Client, *kube.Cluster) {
	t.Helper()
	tier.More(t, "an API server with nodes")
	cluster := kubetest.StartNodes(t)
	s := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(s))
	require.NoError(t, v1.AddToScheme(s))
	c, err := client.New(cluster.Config, client.Options{Scheme: s})
	require.NoError(t, err)
	for _, name := range []string{kube.SystemNamespace, kube.JobNamespace} {
		ensure(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	kinds := map[string][]string{
		"job-controller":        {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap"},
		"cluster-configuration": {"PriorityClass"},
	}
	definition := &unstructured.Unstructured{} // the golden files hold only its name
	require.NoError(t, yaml.Unmarshal(templates.JobDefinition, &definition.Object))
	ensure(t, c, definition)
	for chart, kinds := range kinds {
		manifest, err := os.ReadFile("../../templates/testdata/golden/" + chart + ".yaml")
		require.NoError(t, err)
		for doc := range strings.SplitSeq(string(manifest), "\n---\n") {
			o := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(doc), &o.Object))
			if slices.Contains(kinds, o.GetKind()) {
				ensure(t, c, o)
			}
		}
	}
	eventually(t, "the definition is served", func() bool { return c.List(t.Context(), &v1.FrameworkList{}) == nil })
	return c, cluster
}

func ensure(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) { return f(), nil })
	require.NoError(t, err, what)
}

// asService writes a kubeconfig for the chart's service account, and returns its path.
func asService(t *testing.T, cluster *kube.Cluster) string {
	t.Helper()
	config := cluster.Raw.DeepCopy()
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + kube.SystemNamespace + ":job-controller"
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + kube.SystemNamespace, "system:authenticated"}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// The program has exactly the permissions that the chart grants. With these permissions, it must run a job from
// submission to archive.
func TestAJobRunsWithTheRightsOfTheChart(t *testing.T) {
	c, cluster := installed(t)
	o, err := parse([]string{
		"--kubeconfig", asService(t, cluster), "--database", filepath.Join(t.TempDir(), "archive.db"), "--listen", "127.0.0.1:0", "--code-listen", "127.0.0.1:0",
	}, os.Stderr)
	require.NoError(t, err)
	said := &output.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, slog.New(slog.NewTextHandler(said, nil))) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		assert.NotContains(t, libraries.String()+said.String(), "forbidden", "a right is missing")
		if t.Failed() {
			t.Log(said.String())
		}
	})

	f := twoTasks()
	require.NoError(t, c.Create(t.Context(), f))
	for i := range int32(2) {
		succeed(t, c, v1.PodName(f.Name, "worker", i))
	}
	eventually(t, "the job is archived", func() bool {
		have := &v1.Framework{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(f), have))
		return have.Status != nil && have.Status.State == v1.Completed && have.Status.ArchivedTime != nil
	})
	lease, err := cluster.Client.CoordinationV1().Leases(kube.SystemNamespace).Get(t.Context(), api.Lease, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, o.identity, *lease.Spec.HolderIdentity)

	secret, err := cluster.Client.CoreV1().Secrets(kube.SystemNamespace).Get(t.Context(), api.TokenSecret, metav1.GetOptions{})
	require.NoError(t, err)
	_, listens, found := strings.Cut(said.String(), " listen=") // on a port that was free
	require.True(t, found, said.String())
	address, _, _ := strings.Cut(listens, " ")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/jobs/"+f.Name, nil)
	require.NoError(t, err)
	r.Header.Set(api.TokenHeader, string(secret.Data[api.TokenKey]))
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	var d api.JobDetail
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&d))
	assert.Equal(t, api.Succeeded, d.State)
	require.Len(t, d.Attempts, 1)
	assert.Len(t, d.Attempts[0].Tasks, 2)
}

// twoTasks returns a job with two tasks that need each other's addresses. The controller creates a service, a service
// account and a role for such a job.
func twoTasks() *v1.Framework {
	name := v1.ObjectName("alice", fmt.Sprint("job", time.Now().UnixNano()))
	return &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: kube.JobNamespace, Finalizers: []string{v1.Finalizer}, Labels: map[string]string{v1.LabelUser: "alice"},
			Annotations: map[string]string{v1.AnnotationRuntime: v1.RuntimeV1, v1.AnnotationJobName: "train"},
		},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{
			Name: "worker", TaskNumber: 2, FrameworkAttemptCompletionPolicy: v1.CompletionPolicy{MinFailedTaskCount: 1, MinSucceededTaskCount: 2},
			Task: v1.Task{Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox"}}}}},
		}}},
	}
}

// succeed marks a pod as succeeded, as a kubelet does.
func succeed(t *testing.T, c client.Client, name string) {
	t.Helper()
	eventually(t, name+" runs and ends", func() bool {
		p := &corev1.Pod{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: kube.JobNamespace, Name: name}, p)
		if err != nil || p.Status.Phase != corev1.PodRunning {
			return false
		}
		p.Status.Phase = corev1.PodSucceeded
		now := metav1.Now()
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}}
		}
		err = c.Status().Update(t.Context(), p)
		if !apierrors.IsConflict(err) { // KWOK may play another stage at the same time
			require.NoError(t, err)
		}
		return err == nil
	})
}

func TestLiveCodeIsThatOfAllJobs(t *testing.T) {
	c, cluster := installed(t)
	f := twoTasks()
	f.Annotations[v1.AnnotationCode] = "0123"
	f.Spec.ExecutionType = v1.ExecutionCreate
	require.NoError(t, c.Create(t.Context(), f))
	objects, err := metadata.NewForConfig(cluster.Config)
	require.NoError(t, err)
	found, err := liveCode(t.Context(), objects, kube.JobNamespace)
	require.NoError(t, err)
	assert.Equal(t, []string{"0123"}, found)
}
