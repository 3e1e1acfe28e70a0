package alerthandler_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/job/jobtest"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

const requeueBroken = `
policies:
  - {name: broken, alerts: {alertname: JobGpuBroken, xid: "79"}, exempt: {tags: [keep]}, steps: [{do: requeue-job}]}
`

// broken returns an alert about a broken GPU of a job. The alert begins now.
func broken(job, gpu string) policy.Alert {
	return alert(map[string]string{"alertname": "JobGpuBroken", "xid": "79", "node": "gpu-1", "gpu": gpu, "user": "ann", "job_name": job}, time.Now())
}

// attempt returns the status of a job whose attempt id began at a time.
func attempt(id int32, began time.Time) *jobv1.FrameworkStatus {
	at := metav1.NewTime(began)
	return &jobv1.FrameworkStatus{StartTime: at, RunTime: &at, TransitionTime: at, State: jobv1.AttemptRunning, RetryPolicyStatus: jobv1.RetryPolicyStatus{TotalRetriedCount: id},
		AttemptStatus: jobv1.FrameworkAttemptStatus{ID: id, StartTime: at, RunTime: &at, TaskRoleStatuses: []*jobv1.TaskRoleStatus{}}}
}

// A job with a broken GPU gets exactly one more attempt although the handler is killed at any request. A person's request for another attempt in
// between isn't lost.
func TestAJobIsRequeuedOnceThoughTheHandlerIsKilled(t *testing.T) {
	w := open(t)
	c := config(t, requeueBroken)
	c.Limits.RequeuesPerHour = 1
	name, between := jobv1.ObjectName("ann", "train"), 0
	for point, more := 0, true; more; point++ {
		for _, answered := range []bool{true, false} {
			require.NoError(t, w.objects.Resource(v1.Actions).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			require.NoError(t, w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			w.job("ann", "train")
			jobtest.SetStatus(t, w.Cluster, name, attempt(0, start.Add(-time.Hour)))
			xid := broken("train", "3")
			killed := &mortal{answered: answered}
			killed.left.Store(int64(point))
			mortal := rest.CopyConfig(w.Config)
			mortal.Wrap(killed.wrap)
			h, end := w.handler(c, mortal)
			require.Eventually(t, func() bool { return post(t, h, xid) == http.StatusNoContent || killed.dead.Load() }, waitFor, 10*time.Millisecond)
			require.Eventually(t, func() bool { return killed.dead.Load() || len(w.actions()) == 1 && finished(w.actions()) }, waitFor, 10*time.Millisecond)
			end()
			more = killed.dead.Load()
			want := ""
			if f := jobtest.Framework(t, w.Cluster, name); f.Annotations[jobv1.AnnotationRestart] != "" { // a person retries it
				want = "2026-11-30T09:00:00.000Z"
				between++
				_, err := w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).Patch(t.Context(), name, types.MergePatchType,
					[]byte(`{"metadata":{"annotations":{"`+jobv1.AnnotationRestart+`":"`+want+`"}}}`), metav1.PatchOptions{})
				require.NoError(t, err)
			}
			h, end = w.handler(c, w.Config)
			w.send(h, xid) // Alertmanager repeats it
			for _, a := range w.settled(1) {
				require.Equal(t, v1.PhaseSucceeded, a.Status.Phase, "point %d: %s", point, a.Status.Message)
				require.Contains(t, a.Status.Message, "another attempt of ann/train was requested", "point %d", point)
				if want == "" {
					want = "action-" + string(a.UID)
				}
				f := jobtest.Framework(t, w.Cluster, name)
				require.Equal(t, want, f.Annotations[jobv1.AnnotationRestart], "point %d", point)
				requeues := jobv1.ReadRequeues(f.Annotations)
				require.Len(t, requeues, 1, "point %d: the job is requeued once", point)
				require.Equal(t, "action-"+string(a.UID), requeues[0].Restart)
				require.Equal(t, "it is so because of a reason (policy broken)", requeues[0].Reason)
				require.Equal(t, jobv1.ExecutionStart, f.Spec.ExecutionType)
			}
			end()
		}
	}
	require.Positive(t, between)
}

// Several broken GPUs of a job cause only one requeue. A job that repeatedly gets broken GPUs is no longer requeued. Ended or exempt jobs, and other
// jobs with the same name, don't change.
func TestRequeuesOfAJob(t *testing.T) {
	w := open(t)
	c := config(t, requeueBroken)
	c.Limits.RequeuesPerHour, c.Limits.RequeuesPerHourPerVirtualCluster, c.Limits.RequeuesPerJob = 20, 20, 2
	name := jobv1.ObjectName("ann", "train")
	former := w.job("ann", "train").UID
	require.NoError(t, w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	w.job("ann", "train")
	w.job("ann", "kept", "keep")
	w.job("ann", "over")
	jobtest.SetStatus(t, w.Cluster, name, attempt(0, start.Add(-time.Hour)))
	over := attempt(0, start.Add(-time.Hour))
	over.State, over.CompletionTime = jobv1.Completed, &over.StartTime
	over.AttemptStatus.CompletionStatus = &jobv1.FrameworkAttemptCompletionStatus{CompletionStatus: &jobv1.CompletionStatus{Phrase: "Succeeded", Type: jobv1.CompletionType{Name: jobv1.Succeeded, Attributes: []jobv1.CompletionTypeAttribute{}}}}
	jobtest.SetStatus(t, w.Cluster, jobv1.ObjectName("ann", "over"), over)
	h, end := w.handler(c, w.Config)
	requeues := func(job string) []jobv1.Requeue {
		return jobv1.ReadRequeues(jobtest.Framework(t, w.Cluster, jobv1.ObjectName("ann", job)).Annotations)
	}
	messages := func(n int) string {
		var all []string
		for _, a := range w.settled(n) {
			all = append(all, fmt.Sprintf("%s: %s", a.Status.Phase, a.Status.Message))
		}
		return strings.Join(all, "\n")
	}
	w.send(h, broken("train", "0"), broken("train", "1"), broken("kept", "2"), broken("over", "3"))
	got := messages(3)
	require.Contains(t, got, "Succeeded: another attempt of ann/train was requested")
	require.Contains(t, got, "Succeeded: ann/train was requeued since the alert began, by the action broken-")
	require.Contains(t, got, "Succeeded: ann/over has ended")
	require.Len(t, requeues("train"), 1)
	require.Empty(t, requeues("kept"))
	require.Empty(t, requeues("over"))

	// begins sets the status of the job as after the start of a requested attempt.
	begins := func(id int32, at time.Time) {
		status := attempt(id, at)
		status.AttemptStatus.Restart = jobtest.Framework(t, w.Cluster, name).Annotations[jobv1.AnnotationRestart]
		jobtest.SetStatus(t, w.Cluster, name, status)
		end()
		h, end = w.handler(c, w.Config) // it has read the new status
	}
	late := broken("train", "4")
	begins(1, late.StartsAt.Add(2*time.Second))
	w.send(h, late)
	require.Contains(t, messages(4), "ann/train has begun another attempt since the alert began")
	require.Len(t, requeues("train"), 1)

	next := func(gpu string) policy.Alert {
		a := broken("train", gpu)
		a.StartsAt = late.StartsAt.Add(2 * time.Minute) // after the attempt, and the requeue before
		return a
	}
	w.send(h, next("5"))
	messages(5)
	require.Len(t, requeues("train"), 2)
	again := next("6")
	again.StartsAt = again.StartsAt.Add(time.Minute) // the tasks of the attempt before are still being stopped
	w.send(h, again)
	require.Contains(t, messages(6), "another attempt of ann/train was requested already, and hasn't begun")
	require.Len(t, requeues("train"), 2)
	begins(2, again.StartsAt)
	again = next("7")
	again.StartsAt = again.StartsAt.Add(3 * time.Minute)
	w.send(h, again)
	require.Contains(t, messages(7), "Refused: ann/train: it isn't requeued: policies have done so 2 times within a day (limits.requeuesPerJob: 2)")
	require.Len(t, requeues("train"), 2)

	a := w.request(func(a *v1.Action) {
		a.Spec.Do, a.Spec.Job = v1.OperationRequeueJob, &v1.Job{Object: name, UID: former, Name: "ann/train"}
	})
	messages(8)
	require.Equal(t, v1.PhaseRefused, w.actions()[a.Name].Status.Phase)
	require.Len(t, requeues("train"), 2)
	w.request(func(a *v1.Action) {
		a.Spec.Do, a.Spec.Job = v1.OperationRequeueJob, &v1.Job{Object: name, UID: jobtest.Framework(t, w.Cluster, name).UID, Name: "ann/train"}
	})
	messages(9)
	require.Len(t, requeues("train"), 3, "the limits bound policies alone")
}
