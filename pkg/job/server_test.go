package job

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the output of the tests must not depend on the time zone
	os.Exit(kubetest.Wrap(m).Run())
}

// history is a job controller that knows only some jobs.
type history struct {
	sync.Mutex
	jobs []api.JobDetail
}

func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Lock()
	defer h.Unlock()
	if jobtest.RefusesLists(w, r) {
		return
	}
	if r.URL.Path == "/v1/jobs" {
		page := api.JobPage{Items: []api.Job{}}
		for i := range h.jobs {
			if u := r.URL.Query().Get("user"); u == "" || u == h.jobs[i].User {
				page.Items = append(page.Items, h.jobs[i].Job)
			}
		}
		_ = json.NewEncoder(w).Encode(page)
		return
	}
	for i := range h.jobs {
		if r.URL.Path == "/v1/jobs/"+h.jobs[i].Framework || r.URL.Path == "/v1/jobs/"+h.jobs[i].UID {
			_ = json.NewEncoder(w).Encode(h.jobs[i])
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(api.Error{Code: "NotFound", Message: "no such job"})
}

// onServer returns a client of a real API server whose services are handlers of the test.
func onServer(t *testing.T, services jobtest.Services) (*Client, *kube.Cluster) {
	t.Helper()
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	c, err := Open(kube.Options{Kubeconfig: jobtest.Front(t, cluster, services)})
	require.NoError(t, err)
	return c, cluster
}

// objects renders a job of a user. Each test uses a different user.
func objects(t *testing.T, user, name, command string) *render.Objects {
	t.Helper()
	return secretly(t, user, name, command, "hunter2")
}

func secretly(t *testing.T, user, name, command, secret string) *render.Objects {
	t.Helper()
	text := "protocolVersion: 2\nname: " + name + "\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\nsecrets: {token: " + secret + "}\n" +
		"taskRoles: {Worker_1: {instances: 2, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: ['" + command + " <% $secrets.token %>']}}\nextras: {gangAllocation: false}\n"
	j, found := protocol.Parse("job.yaml", []byte(text))
	require.NoError(t, found.Err())
	o, found := render.Render(j, render.Options{User: user, Namespace: kube.JobNamespace, Cluster: render.Cluster{RuntimeImage: "pai-runtime:1"}})
	require.NoError(t, found.Err())
	return o
}

func TestAJobIsSubmittedOnceHoweverOftenItIsSent(t *testing.T) {
	c, _ := onServer(t, nil)
	ctx := t.Context()
	o := objects(t, "once", "train", "echo")
	outcome, err := c.Submit(ctx, o, SubmitOptions{DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, Checked, outcome)
	_, err = c.Resolve(ctx, "once", "train")
	require.True(t, IsNotFound(err), "a dry run keeps nothing")

	for i, want := range []Outcome{Submitted, Repeated, Repeated} {
		outcome, err := c.Submit(ctx, o, SubmitOptions{})
		require.NoError(t, err)
		assert.Equal(t, want, outcome, i)
	}
	j, err := c.Resolve(ctx, "once", "train")
	require.NoError(t, err)
	assert.Equal(t, []string{"Worker_1"}, j.RoleNames())
	assert.NotContains(t, j.framework.Annotations[v1.AnnotationConfig], "hunter2")
	s, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, v1.SpecSecretName(j.Object), metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, metav1.IsControlledBy(s, j.framework))
	assert.Contains(t, string(s.Data[v1.SpecKey]), "hunter2")

	_, err = c.Submit(ctx, objects(t, "once", "train", "another"), SubmitOptions{})
	require.EqualError(t, err, "user once has another job train, which has not finished")
	assert.Equal(t, "give this job another name, or stop the other one first: paictl job stop once/train", hint.Of(err))
	_, err = c.Submit(ctx, objects(t, "once", "train", "another"), SubmitOptions{Replace: true})
	require.ErrorContains(t, err, "which has not finished", "only the name of an ended job is taken")

	for _, opts := range []SubmitOptions{{DryRun: true}, {}} {
		_, err = c.Submit(ctx, secretly(t, "once", "train", "echo", "hunter3"), opts)
		require.EqualError(t, err, "user once has another job train, which has not finished", "another secret makes another job")
	}
	for _, name := range []string{"once~train", "once/train", j.Object} {
		other, err := c.Resolve(ctx, "somebody", name)
		require.NoError(t, err, name)
		assert.Equal(t, j.Object, other.Object)
		assert.Equal(t, "once/train", other.Title())
	}
}

func TestASubmissionThatWasKilledBetweenItsObjectsIsCompleted(t *testing.T) {
	c, _ := onServer(t, nil)
	ctx := t.Context()
	o := objects(t, "killed", "train", "echo")
	_, err := c.Frameworks.Create(ctx, o.Framework, false) // and here the command was killed
	require.NoError(t, err)
	_, err = c.Submit(ctx, objects(t, "killed", "train", "another"), SubmitOptions{})
	require.ErrorContains(t, err, "another job train")
	outcome, err := c.Submit(ctx, o, SubmitOptions{})
	require.NoError(t, err)
	assert.Equal(t, Completed, outcome)
	outcome, err = c.Submit(ctx, o, SubmitOptions{})
	require.NoError(t, err)
	assert.Equal(t, Repeated, outcome)
}

func TestASecretOfAnEarlierJobOfThatNameIsReplaced(t *testing.T) {
	c, _ := onServer(t, nil)
	ctx := t.Context()
	o := objects(t, "stale", "train", "echo")
	old := o.Secrets[0].DeepCopy()
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Framework", Name: o.Framework.Name, UID: "gone", Controller: new(true)}}
	old.Data = map[string][]byte{v1.SpecKey: []byte("old")}
	_, err := c.Client.CoreV1().Secrets(c.Namespace).Create(ctx, old, metav1.CreateOptions{})
	require.NoError(t, err)
	outcome, err := c.Submit(ctx, o, SubmitOptions{})
	require.NoError(t, err)
	assert.Equal(t, Submitted, outcome)
	s, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, old.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEqual(t, "old", string(s.Data[v1.SpecKey]))
}

func TestWhatTheAPIServerRefusesLeavesNothing(t *testing.T) {
	c, _ := onServer(t, nil)
	ctx := t.Context()
	o := objects(t, "refused", "train", "echo")
	o.Secrets[0].Name = "Not A Name"
	collect(t, c, o.Framework.Name)
	_, err := c.Submit(ctx, o, SubmitOptions{})
	require.ErrorContains(t, err, "store the job's commands")
	require.Eventually(t, func() bool {
		_, err := c.Frameworks.Get(ctx, o.Framework.Name)
		return apierrors.IsNotFound(err)
	}, time.Minute, 20*time.Millisecond, "the name is free again")
	o = objects(t, "refused", "train", "echo")
	o.Framework.Spec.TaskRoles[0].TaskNumber = -1
	_, err = c.Submit(ctx, o, SubmitOptions{DryRun: true})
	require.ErrorContains(t, err, "taskNumber")
}

func TestANameThatOnlyTheHistoryHasIsTaken(t *testing.T) {
	past := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := &history{jobs: []api.JobDetail{{Job: api.Job{Framework: v1.ObjectName("past", "train"), UID: "u", User: "past", Name: "train", State: "failed", Submitted: past, Completed: &past}, Config: "name: train\n"}}}
	c, _ := onServer(t, jobtest.Services{api.Service: h})
	_, err := c.Submit(t.Context(), objects(t, "past", "train", "echo"), SubmitOptions{})
	require.EqualError(t, err, "user past already had a job train, which has failed on 2026-01-02")
	assert.Contains(t, hint.Of(err), "--replace")
	j, err := c.Resolve(t.Context(), "past", "train")
	require.NoError(t, err)
	assert.False(t, j.Live)
	name, err := c.FreeName(t.Context(), j, "past")
	require.NoError(t, err)
	assert.Equal(t, "train-2", name)
	h.jobs = append(h.jobs, api.JobDetail{Job: api.Job{Framework: v1.ObjectName("past", "train-2"), UID: "v", User: "past", Name: "train-2", State: "failed", Submitted: past, Completed: &past}})
	name, err = c.FreeName(t.Context(), j, "past")
	require.NoError(t, err)
	assert.Equal(t, "train-3", name)
	name, err = c.FreeName(t.Context(), j, "other")
	require.NoError(t, err)
	assert.Equal(t, "train-2", name, "the names of whose copy it is count")
	_, err = c.Retry(t.Context(), j, RetryOptions{})
	require.ErrorContains(t, err, "has failed long ago")
	outcome, err := c.Submit(t.Context(), objects(t, "past", "train", "echo"), SubmitOptions{SkipEnded: true})
	require.NoError(t, err)
	assert.Equal(t, Ended, outcome)
	_, err = c.Frameworks.Get(t.Context(), v1.ObjectName("past", "train"))
	require.True(t, apierrors.IsNotFound(err), "it is left alone")
	outcome, err = c.Submit(t.Context(), objects(t, "past", "train", "echo"), SubmitOptions{Replace: true, SkipEnded: true})
	require.NoError(t, err)
	assert.Equal(t, Submitted, outcome)
}

func TestAListPutsLiveJobsAndTheHistoryTogether(t *testing.T) {
	h := &history{}
	c, _ := onServer(t, jobtest.Services{api.Service: h})
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "lists", "live", "echo"), SubmitOptions{})
	require.NoError(t, err)
	live, err := c.Frameworks.Get(ctx, v1.ObjectName("lists", "live"))
	require.NoError(t, err)
	now := live.CreationTimestamp.UTC()
	row := func(name, uid, state string, ago time.Duration) api.JobDetail {
		return api.JobDetail{Job: api.Job{Framework: v1.ObjectName("lists", name), UID: uid, User: "lists", Name: name, State: state, Submitted: now.Add(-ago)}}
	}
	h.jobs = []api.JobDetail{row("live", string(live.UID), "running", 0), row("b", "2", "failed", time.Hour), row("a", "1", "failed", time.Hour), row("gone", "0", "running", 2*time.Hour), row("old", "9", "succeeded", 3*time.Hour)}

	names := func(o Filter) (out []string, next string) {
		o.User = "lists"
		page, err := c.List(ctx, o)
		require.NoError(t, err)
		for _, r := range page.Items {
			out = append(out, r.Name+" "+r.State)
		}
		return out, page.Next
	}
	all, next := names(Filter{})
	assert.Equal(t, []string{"live waiting", "b failed", "a failed", "gone deleted", "old succeeded"}, all)
	assert.Empty(t, next)
	some, _ := names(Filter{Phases: []Phase{Failed, Waiting}})
	assert.Equal(t, []string{"live waiting", "b failed", "a failed"}, some)
	some, _ = names(Filter{Keyword: "OL"})
	assert.Equal(t, []string{"old succeeded"}, some)
	some, _ = names(Filter{Since: now.Add(-90 * time.Minute)})
	assert.Equal(t, []string{"live waiting", "b failed", "a failed"}, some)

	var paged []string
	cursor := ""
	for range 10 {
		page, next := names(Filter{Limit: 2, Cursor: cursor})
		paged = append(paged, page...)
		if cursor = next; cursor == "" {
			break
		}
		assert.LessOrEqual(t, len(cursor), 15, "people type it")
	}
	assert.Equal(t, all, paged, "pages have every job once")
	_, err = c.List(ctx, Filter{Cursor: "%%%"})
	require.ErrorContains(t, err, "is not a cursor")
}

func TestWithoutAControllerLiveJobsAreListedWithANote(t *testing.T) {
	c, _ := onServer(t, nil)
	page, err := c.List(t.Context(), Filter{User: "nobody-at-all"})
	require.NoError(t, err)
	assert.Empty(t, page.Items)
	assert.Equal(t, "jobs that finished long ago are not shown: the job controller doesn't answer: it isn't installed", page.Note)
	_, err = c.Resolve(t.Context(), "nobody-at-all", "x")
	require.True(t, IsNotFound(err))
	assert.Contains(t, err.Error(), "the job controller doesn't answer")
}

func TestStopAndScaleChangeWhatTheControllerReads(t *testing.T) {
	c, _ := onServer(t, nil)
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "change", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	get := func() *Job {
		j, err := c.Resolve(ctx, "change", "train")
		require.NoError(t, err)
		return j
	}
	scaled, err := c.Scale(ctx, get(), "Worker_1", 5, ScaleOptions{})
	require.NoError(t, err)
	assert.Equal(t, 2, scaled.Before)
	f := get().framework
	assert.EqualValues(t, 5, f.Spec.TaskRoles[0].TaskNumber)
	assert.EqualValues(t, 5, f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinSucceededTaskCount, "all of them still")
	s, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, v1.SpecSecretName(f.Name), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, string(s.Data[v1.SpecKey]), `"instances":5`)
	assert.NotContains(t, f.Annotations, v1.AnnotationGPUsTaken)
	gang := get()
	gang.framework.Annotations[v1.AnnotationGang] = "true"
	_, err = c.Scale(ctx, gang, "", 6, ScaleOptions{})
	require.EqualError(t, err, "change/train can't be scaled: its tasks are a gang, which gets its machines together, and each task knows all others from the start")
	assert.Contains(t, hint.Of(err), "paictl job clone change/train -o job.yaml")
	_, err = c.Scale(ctx, get(), "nobody", 5, ScaleOptions{})
	require.ErrorContains(t, err, `has no role "nobody"`)

	phase, err := c.Stop(ctx, get())
	require.NoError(t, err)
	assert.Equal(t, Waiting, phase)
	assert.Equal(t, v1.ExecutionStop, get().framework.Spec.ExecutionType)
	assert.Equal(t, Stopping, StateOf(get().framework, nil, nil).Phase)
	_, err = c.Retry(ctx, get(), RetryOptions{})
	require.ErrorContains(t, err, "is stopping")
}

func TestAScaledJobTakesAsManyGPUsAsItsTasks(t *testing.T) {
	c, _ := onServer(t, nil)
	ctx := t.Context()
	text := "protocolVersion: 2\nname: wide\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n" +
		"taskRoles: {w: {instances: 2, dockerImage: i, resourcePerInstance: {cpu: 9, memoryMB: 64, gpu: 4}, commands: [echo]}}\nextras: {gangAllocation: false}\n"
	parsed, found := protocol.Parse("job.yaml", []byte(text))
	require.NoError(t, found.Err())
	o, found := render.Render(parsed, render.Options{User: "scaled", Namespace: kube.JobNamespace, Cluster: render.Cluster{RuntimeImage: "pai-runtime:1",
		SchedulerName: "pai-scheduler", SKUs: map[string]render.SKU{"A100": {GPU: 1, MilliCPU: 2000, MemoryMB: 1 << 10, PerNode: 8}}}})
	require.NoError(t, found.Err())
	_, err := c.Submit(ctx, o, SubmitOptions{})
	require.NoError(t, err)
	get := func() *Job {
		j, err := c.Resolve(ctx, "scaled", "wide")
		require.NoError(t, err)
		return j
	}
	row := api.Summary(get().framework)
	assert.Equal(t, []int{8, 10, 10}, []int{row.GPUs, row.TakesGPUs, row.Taken()})
	_, err = c.Scale(ctx, get(), "", 3, ScaleOptions{})
	require.NoError(t, err)
	row = api.Summary(get().framework)
	assert.Equal(t, []int{12, 15}, []int{row.GPUs, row.TakesGPUs})
	why, err := c.Why(ctx, get())
	require.NoError(t, err)
	assert.Contains(t, why.Facts, Fact{"takes", "15 GPUs: its processors or memory are the share of that many"})
}

// completedStatus returns the status of a failed job.
func completedStatus() *v1.FrameworkStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return &v1.FrameworkStatus{StartTime: now, TransitionTime: now, CompletionTime: &now, State: v1.Completed,
		AttemptStatus: v1.FrameworkAttemptStatus{StartTime: now, ConfigMapName: "x", TaskRoleStatuses: []*v1.TaskRoleStatus{},
			CompletionStatus: &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{Code: 226, Phrase: "ContainerCudaOOMKilled", Type: v1.CompletionType{Name: v1.Failed, Attributes: []v1.CompletionTypeAttribute{v1.Permanent}}}}}}
}

func TestAnEndedJobRunsAgainAsItWasSubmitted(t *testing.T) {
	c, cluster := onServer(t, nil)
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "again", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("again", "train")
	first, err := c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	jobtest.SetStatus(t, cluster, object, completedStatus())
	j, err := c.Resolve(ctx, "again", "train")
	require.NoError(t, err)
	_, err = c.Submit(ctx, objects(t, "again", "train", "echo"), SubmitOptions{})
	require.ErrorContains(t, err, "already has a job train, which has failed")

	collect(t, c, object)
	before, err := c.Retry(ctx, j, RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, Failed, before)
	second, err := c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	assert.NotEqual(t, first.UID, second.UID)
	assert.Nil(t, second.Status)
	assert.Equal(t, first.Spec.TaskRoles, second.Spec.TaskRoles)
	s, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, v1.SpecSecretName(object), metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, metav1.IsControlledBy(s, second))
	assert.Contains(t, string(s.Data[v1.SpecKey]), "hunter2")
	_, err = c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, object+keptSuffix, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "nothing is kept that isn't needed")

	j, err = c.Resolve(ctx, "again", "train")
	require.NoError(t, err)
	before, err = c.Retry(ctx, j, RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, Waiting, before)
	third, err := c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	assert.Equal(t, second.UID, third.UID)
	assert.NotEmpty(t, third.Annotations[v1.AnnotationRestart], "a job that has not ended is asked for one more attempt")
}

// collect does the work of Kubernetes' garbage collector, which doesn't run in the test: it removes the finalizer of foreground deletion.
func collect(t *testing.T, c *Client, object string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for sleep(ctx, 20*time.Millisecond, nil) == nil {
			f, err := c.Frameworks.Get(ctx, object)
			if err == nil && f.DeletionTimestamp != nil {
				_, _ = c.Frameworks.Patch(ctx, object, "application/merge-patch+json", map[string]any{"metadata": map[string]any{"finalizers": []string{}, "uid": f.UID}})
			}
		}
	}()
}

func TestARetryStartsAfterTheJobThatHasTheNameNow(t *testing.T) {
	c, cluster := onServer(t, nil)
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "chain", "first", "echo"), SubmitOptions{})
	require.NoError(t, err)
	_, err = c.Submit(ctx, objects(t, "chain", "second", "echo"), SubmitOptions{After: []protocol.After{{Job: "first"}}})
	require.NoError(t, err)
	object := v1.ObjectName("chain", "second")
	jobtest.SetStatus(t, cluster, object, completedStatus())
	collect(t, c, object)
	// Replace the first job with a new job of the same name.
	first := v1.ObjectName("chain", "first")
	f, err := c.Frameworks.Get(ctx, first)
	require.NoError(t, err)
	collect(t, c, first)
	require.NoError(t, c.Remove(ctx, Of(f)))
	_, err = c.Submit(ctx, objects(t, "chain", "first", "echo"), SubmitOptions{Replace: true})
	require.NoError(t, err)
	again, err := c.Frameworks.Get(ctx, first)
	require.NoError(t, err)

	j, err := c.Resolve(ctx, "chain", "second")
	require.NoError(t, err)
	_, err = c.Retry(ctx, j, RetryOptions{})
	require.NoError(t, err)
	f, err = c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	after, err := f.After()
	require.NoError(t, err)
	assert.Equal(t, []v1.After{{Framework: first, UID: again.UID, Job: "chain/first"}}, after)
}

func TestARetryThatWasKilledGoesOn(t *testing.T) {
	c, cluster := onServer(t, nil)
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "halfway", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("halfway", "train")
	jobtest.SetStatus(t, cluster, object, completedStatus())
	j, err := c.Resolve(ctx, "halfway", "train")
	require.NoError(t, err)
	collect(t, c, object)
	kept, err := c.keep(ctx, j)
	require.NoError(t, err)
	require.NoError(t, c.Remove(ctx, j)) // and here the command was killed
	require.NoError(t, c.Client.CoreV1().Secrets(c.Namespace).Delete(ctx, v1.SpecSecretName(object), metav1.DeleteOptions{}))

	j, err = c.Resolve(ctx, "halfway", "train")
	require.True(t, IsNotFound(err))
	_, err = c.Retry(ctx, j, RetryOptions{CheckLimit: func(tasks int) error { return hint.Errorf("", "no room for %d", tasks) }})
	require.EqualError(t, err, "no room for 2", "the tasks that come back count, which the history need not have")
	_, err = c.Retry(ctx, j, RetryOptions{})
	require.NoError(t, err)
	_, err = c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, v1.SpecSecretName(object), metav1.GetOptions{})
	require.NoError(t, err, "its commands are back")
	f, err := c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	equal, err := c.same(ctx, f, kept)
	require.NoError(t, err)
	assert.True(t, equal)
	j.framework = nil
	other := &Job{User: "halfway", Name: "never", Object: v1.ObjectName("halfway", "never")}
	_, err = c.Retry(ctx, other, RetryOptions{})
	assert.True(t, IsNotFound(err))
}

func TestARetryThatWasKilledIsNotTakenForAJobWithAnotherSecret(t *testing.T) {
	c, cluster := onServer(t, nil)
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "stalekept", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("stalekept", "train")
	jobtest.SetStatus(t, cluster, object, completedStatus())
	j, err := c.Resolve(ctx, "stalekept", "train")
	require.NoError(t, err)
	collect(t, c, object)
	about := []string{v1.AnnotationRestart, v1.AnnotationRequeues, v1.AnnotationStopped}
	for _, key := range about {
		j.framework.Annotations[key] = "about the job that has ended"
	}
	kept, err := c.keep(ctx, j)
	require.NoError(t, err)
	for _, key := range about {
		assert.NotContains(t, kept.Framework.Annotations, key)
	}
	require.NoError(t, c.Remove(ctx, j)) // and here the command was killed
	_, err = c.Submit(ctx, secretly(t, "stalekept", "train", "echo", "hunter3"), SubmitOptions{})
	require.NoError(t, err)
	j, err = c.Resolve(ctx, "stalekept", "train")
	require.NoError(t, err)
	_, err = c.Retry(ctx, j, RetryOptions{})
	require.NoError(t, err)
	f, err := c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	assert.NotEmpty(t, f.Annotations[v1.AnnotationRestart], "it got another attempt")
}

func TestFollowingSurvivesAServerThatIsAway(t *testing.T) {
	c, cluster := onServer(t, nil)
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "follow", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("follow", "train")
	h, err := jobtest.Handler(cluster.Config, nil)
	require.NoError(t, err)
	var away sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := away.Load("yes"); ok {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	cluster2 := *c.Cluster
	cluster2.Config = cloned(c, srv.URL)
	c2, err := New(rebuilt(t, &cluster2))
	require.NoError(t, err)

	var phases []string
	var problems []error
	err = c2.Follow(ctx, &Job{User: "follow", Name: "train", Object: object}, func(d *Detail) bool {
		phases = append(phases, d.State)
		if len(phases) == 1 {
			away.Store("yes", true)
			jobtest.SetStatus(t, cluster, object, completedStatus())
		}
		return !Phase(d.State).Done()
	}, func(err error) {
		problems = append(problems, err)
		away.Delete("yes")
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"waiting", "failed"}, phases)
	require.Len(t, problems, 2, "lost, and back")
	require.Error(t, problems[0])
	require.NoError(t, problems[1])

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	err = c.Follow(canceled, &Job{Object: object}, func(*Detail) bool { return true }, func(error) {})
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheQueueAndPendingPodsAreInAList(t *testing.T) {
	scheduler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"items":[{"position":1,"positionInVC":1,"vc":"default","group":"queued~train/default","state":"Waiting","gpus":8,"pods":2}]}`))
	})
	c, cluster := onServer(t, jobtest.Services{"scheduler": scheduler, api.Service: &history{}})
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "queued", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("queued", "train")
	s := completedStatus()
	s.State, s.CompletionTime, s.AttemptStatus.CompletionStatus = v1.AttemptPreparing, nil, nil
	jobtest.SetStatus(t, cluster, object, s)
	_, err = cluster.Client.CoreV1().Pods(c.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: object + "-worker1-0", Labels: map[string]string{v1.LabelFramework: object}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}, AutomountServiceAccountToken: new(false)}}, metav1.CreateOptions{})
	require.NoError(t, err)
	page, err := c.List(ctx, Filter{User: "queued"})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.Equal(t, "queued (1st)", page.Items[0].At().Text(time.Now()))
	waiting, err := c.Waiting(ctx, "", 0, nil)
	require.NoError(t, err)
	require.Len(t, waiting.Items, 1)
	assert.Equal(t, "queued/train", waiting.Items[0].Job)
}

// cloned returns a copy of the client's configuration with another address.
func cloned(c *Client, host string) *rest.Config {
	out := rest.CopyConfig(c.Config)
	out.Host = host
	return out
}

// rebuilt returns a cluster with a new client for the cluster's configuration.
func rebuilt(t *testing.T, c *kube.Cluster) *kube.Cluster {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	c.Client = client
	return c
}
