package job

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// withHistory starts a cluster with the API of the job controller over an archive, and with its garbage collector.
func withHistory(t *testing.T) (kubeconfig string, store archive.Store, c *job.Client) {
	t.Helper()
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	store, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := server.New(server.Options{Store: store, Ready: func(context.Context) error { return nil }, Metrics: prometheus.NewRegistry(), Token: func() string { return jobtest.Token }, AuditToken: func() string { return jobtest.AuditToken }, Log: slog.New(slog.DiscardHandler)}).Handler()
	kubeconfig = jobtest.Front(t, cluster, jobtest.Services{api.Service: h})
	c, err = job.Open(kube.Options{Kubeconfig: kubeconfig})
	require.NoError(t, err)
	return kubeconfig, store, c
}

// saveEnded saves a finished job in the archive. n distinguishes jobs with the same name.
func saveEnded(t *testing.T, store archive.Store, user, name, uid string, n int) {
	t.Helper()
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, n, 0, 0, time.UTC))
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName(user, name), UID: types.UID(uid), CreationTimestamp: at,
		Labels: map[string]string{v1.LabelUser: user}, Annotations: map[string]string{v1.AnnotationJobName: name, v1.AnnotationConfig: "name: " + name}},
		Status: &v1.FrameworkStatus{State: v1.Completed, StartTime: at, CompletionTime: &at, AttemptStatus: v1.FrameworkAttemptStatus{StartTime: at,
			CompletionStatus: &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{Code: 0, Type: v1.CompletionType{Name: v1.Succeeded}}}}}}
	require.NoError(t, store.SaveJob(t.Context(), f))
	require.NoError(t, store.SaveLog(t.Context(), api.LogKey{Framework: f.Name, UID: uid, Role: "worker"}, []byte("hello"), false))
}

// submitted creates a live job. When the job is deleted, submitted removes its finalizers, as the job controller and the garbage collector do in
// a cluster.
func submitted(t *testing.T, c *job.Client, user, name string) {
	t.Helper()
	object := v1.ObjectName(user, name)
	_, err := c.Frameworks.Create(t.Context(), &v1.Framework{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: object, Labels: map[string]string{v1.LabelUser: user}, Annotations: map[string]string{v1.AnnotationJobName: name}},
		Spec:       v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{}}}, false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if f, err := c.Frameworks.Get(ctx, object); err == nil && f.DeletionTimestamp != nil {
				_, _ = c.Frameworks.Patch(ctx, object, types.MergePatchType, map[string]any{"metadata": map[string]any{"finalizers": []string{}, "uid": f.UID}}) // again, if it failed
			}
		}
	}()
}

func TestJobsAreDeletedFromTheHistoryOnRequestOnly(t *testing.T) {
	kubeconfig, store, c := withHistory(t)
	run := func(args ...string) (string, error) {
		_, stderr, err := paictl(t, nil, append([]string{"delete", "--kubeconfig", kubeconfig, "--user", "del"}, args...)...)
		return stderr, err
	}
	for _, name := range []string{"a", "b"} {
		submitted(t, c, "del", name)
	}
	saveEnded(t, store, "del", "a", "a-1", 0)
	saveEnded(t, store, "del", "a", "a-2", 10)
	saveEnded(t, store, "del", "b", "b-1", 0)
	saveEnded(t, store, "del", "other", "o-1", 0)

	stderr, err := run("a", "b", "--yes")
	require.NoError(t, err)
	assert.Equal(t, "del/a is deleted\ndel/b is deleted\n", stderr, "one after the other")
	stderr, err = run("a", "--yes")
	require.NoError(t, err)
	assert.Equal(t, "del/a is already gone; the history keeps it (--history removes it there)\n", stderr, "a repetition loses nothing")
	_, err = store.Job(t.Context(), "a-2")
	require.NoError(t, err)

	_, err = run("a", "--history")
	require.ErrorContains(t, err, "the removal of del/a must be confirmed, but there is no terminal to ask on: add --yes")
	stderr, err = run("a", "--history", "--yes")
	require.NoError(t, err)
	assert.Equal(t, "2 jobs named del/a were removed from the history\n", stderr)
	for _, uid := range []string{"a-1", "a-2"} {
		_, err = store.Job(t.Context(), uid)
		require.ErrorIs(t, err, archive.ErrNotFound)
		_, _, err = store.Log(t.Context(), api.LogKey{UID: uid, Role: "worker"})
		require.ErrorIs(t, err, archive.ErrNotFound)
	}
	_, err = run("a", "--history", "--yes")
	require.True(t, job.IsNotFound(err), "%v", err)

	submitted(t, c, "del", "b")
	stderr, err = run("b", "--history", "--yes")
	require.NoError(t, err)
	assert.Equal(t, "del/b is deleted\ndel/b was removed from the history\n", stderr)
	submitted(t, c, "del", "b")
	stderr, err = run("b", "--history", "--yes")
	require.NoError(t, err)
	assert.Equal(t, "del/b is deleted\nthe history has no entry for del/b\n", stderr)
	page, err := c.List(t.Context(), job.Filter{User: "del"})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.Equal(t, "other", page.Items[0].Name)
}

func TestTheQuestionSaysWhatIsLost(t *testing.T) {
	live := job.Of(&v1.Framework{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}}})
	for want, c := range map[string]struct {
		history bool
		job     *job.Job
	}{
		"Delete ann/train, which is waiting? Its tasks are stopped.":                                                                                       {false, live},
		"Delete ann/train, which is waiting, and what the history has of jobs of that name, with their logs? This can't be undone. Its tasks are stopped.": {true, live},
		"Delete ann/train: what the history has of jobs of that name, with their logs? This can't be undone.":                                              {true, &job.Job{User: "ann", Name: "train"}},
	} {
		assert.Equal(t, want, (&DeleteOptions{History: c.history}).question(c.job))
	}
}

func TestAJobThatHasNotEndedStaysInTheHistory(t *testing.T) {
	kubeconfig, store, _ := withHistory(t)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName("open", "train"), UID: "open-1", Labels: map[string]string{v1.LabelUser: "open"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}},
		Status: &v1.FrameworkStatus{State: v1.AttemptRunning}}
	require.NoError(t, store.SaveJob(t.Context(), f))
	_, _, err := paictl(t, nil, "delete", "train", "--kubeconfig", kubeconfig, "--user", "open", "--history", "--yes")
	require.ErrorContains(t, err, "has not ended")
	assert.Contains(t, hint.Of(err), "within ten minutes")
	assert.NotContains(t, err.Error(), "409")
}
