package alerthandler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

func requeueAction(fired time.Time) *v1.Action {
	return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "broken-0c4f-1-1", UID: "a1", CreationTimestamp: metav1.NewTime(fired.Add(time.Minute)),
		Labels:      map[string]string{LabelPolicy: "broken", LabelIncident: "0c4f-1", LabelStep: "0"},
		Annotations: map[string]string{AnnotationAlertStarted: annotation(fired)}},
		Spec: v1.ActionSpec{Do: v1.OperationRequeueJob, Job: &v1.Job{Object: "o1", UID: "u1", Name: "ann/train"}, By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}, Reason: "GPU 3 is broken"}}
}

// The record of a job contains the requeues by this Action, the requeues by other Actions since the alert began, and the number of requeues by
// policies.
func TestTheFactsOfARequeue(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	fired := now.Add(-10 * time.Minute)
	h := &Handler{o: Options{Policies: &policy.Config{Limits: policy.Limits{RequeuesPerJob: 2}}}}
	by := func(restart, policy string, ago time.Duration) jobv1.Requeue {
		return jobv1.Requeue{Restart: restart, Action: "the-action-of-" + restart, Policy: policy, At: now.Add(-ago)}
	}
	for _, c := range []struct {
		name      string
		attempt   time.Duration // how long ago it began
		requeues  []jobv1.Requeue
		restarted string
		want      step.Job
		stays     bool
	}{
		{"never", time.Hour, nil, "", step.Job{}, false},
		{"another attempt since the alert", 9 * time.Minute, nil, "", step.Job{Renewed: true}, false},
		{"by this Action", 9 * time.Minute, []jobv1.Requeue{by("action-a1", "broken", 9*time.Minute)}, "", step.Job{Requeued: true, Renewed: true}, false},
		{"by another one since the alert", time.Hour, []jobv1.Requeue{by("action-a2", "broken", 9*time.Minute)}, "the-action-of-action-a2", step.Job{}, false},
		{"before the alert", time.Hour, []jobv1.Requeue{by("action-a2", "broken", 2*time.Hour)}, "", step.Job{}, false},
		{"twice within a day", time.Hour, []jobv1.Requeue{by("action-a2", "broken", 2*time.Hour), by("action-a3", "hot", 3*time.Hour)}, "", step.Job{}, true},
		{"once by a person", time.Hour, []jobv1.Requeue{by("action-a2", "broken", 2*time.Hour), by("action-a3", "", 3*time.Hour)}, "", step.Job{}, false},
		{"once two days ago", time.Hour, []jobv1.Requeue{by("action-a2", "broken", 2*time.Hour), by("action-a3", "broken", 48*time.Hour)}, "", step.Job{}, false},
	} {
		f := &step.Facts{Job: &step.Job{}}
		h.requeueFacts(f, requeueAction(fired), &jobFacts{uid: "u1", attempt: now.Add(-c.attempt), requeues: c.requeues}, now)
		require.Equal(t, c.want, *f.Job, c.name)
		require.Equal(t, c.restarted, f.Restarted, c.name)
		require.Equal(t, c.stays, f.NoReturn != "", c.name)
	}
	other := requeueAction(fired)
	other.Labels = nil
	require.Equal(t, other.CreationTimestamp.Time, firingSince(other), "a request of a person")
}

// One patch contains the request and its record. The request isn't repeated. A job that is being stopped, and another job with the same name, don't
// change.
func TestARequestForAnotherAttempt(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	build := func(uid, execution string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": jobv1.GroupVersion.String(), "kind": jobv1.Kind,
			"metadata": map[string]any{"name": "o1", "namespace": "pai-jobs", "uid": uid, "resourceVersion": "7", "annotations": map[string]any{jobv1.AnnotationRestart: "before"}},
			"spec":     map[string]any{"executionType": execution},
			"status":   map[string]any{"attemptStatus": map[string]any{"restart": "before"}}}}
	}
	requested := build("u1", "Start")
	requested.Object["status"] = map[string]any{"attemptStatus": map[string]any{"restart": "earlier"}}
	finished := build("u1", "Start")
	finished.Object["status"] = map[string]any{"attemptStatus": map[string]any{"restart": "before", "completionStatus": map[string]any{"code": int64(1)}}}
	for name, c := range map[string]struct {
		job     *unstructured.Unstructured
		touched bool
	}{
		"runs":                         {build("u1", "Start"), true},
		"is being stopped":             {build("u1", "Stop"), false},
		"is another one with its name": {build("u2", "Start"), false},
		"gets another attempt already": {requested, false},
		"has finished its attempt":     {finished, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), c.job)
			h := &Handler{o: Options{JobNamespace: "pai-jobs", Now: func() time.Time { return at }}, objects: objects}
			a := requeueAction(at)
			for range 2 {
				require.NoError(t, h.requeueJob(t.Context(), a))
			}
			f, err := objects.Resource(frameworks).Namespace("pai-jobs").Get(t.Context(), "o1", metav1.GetOptions{})
			require.NoError(t, err)
			requeues := jobv1.ReadRequeues(f.GetAnnotations())
			if !c.touched {
				require.Empty(t, requeues)
				require.Equal(t, "before", f.GetAnnotations()[jobv1.AnnotationRestart])
				return
			}
			require.Equal(t, []jobv1.Requeue{{Restart: "action-a1", Action: a.Name, Policy: "broken", Reason: "GPU 3 is broken (policy broken)", At: at}}, requeues)
			require.Equal(t, "action-a1", f.GetAnnotations()[jobv1.AnnotationRestart])
		})
	}
	h := &Handler{o: Options{JobNamespace: "pai-jobs"}, objects: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}
	require.NoError(t, h.requeueJob(t.Context(), requeueAction(at)), "it was deleted")
}

// A request for another attempt has no effect if the current attempt has already finished. The result and the notices don't claim an effect.
func TestARequeueOfAJobThatFinishesItsAttempt(t *testing.T) {
	fired := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	text, err := jobv1.WriteRequeues(nil, jobv1.Requeue{Restart: "action-a1", Action: "broken-0c4f-1-1", Policy: "broken", At: fired})
	require.NoError(t, err)
	delay := int64(60)
	for _, c := range []struct {
		name     string
		code     int32
		began    string // the request by which the attempt began
		delay    *int64
		want     step.Job
		requests int
	}{
		{"the controller hasn't seen the request", 0, "", nil, step.Job{Requeued: true, Pending: true}, 0},
		{"it is being ended for the request", jobv1.CodeRestart, "", nil, step.Job{Requeued: true, Pending: true}, 1},
		{"it had failed before the request", 137, "", nil, step.Job{Requeued: true, Finished: true, Missed: true}, 0},
		{"it had failed before the request, and is retried", 137, "", &delay, step.Job{Requeued: true, Pending: true, Retrying: true}, 1},
		{"the next one has begun", 0, "action-a1", nil, step.Job{Requeued: true}, 1},
		{"the next one has failed", 137, "action-a1", nil, step.Job{Requeued: true, Finished: true}, 1},
	} {
		f := &jobv1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "o1", UID: "u1", Labels: map[string]string{jobv1.LabelUser: "ann"},
			Annotations: map[string]string{jobv1.AnnotationRestart: "action-a1", jobv1.AnnotationRequeues: text}},
			Status: &jobv1.FrameworkStatus{State: jobv1.AttemptDeleting, RetryPolicyStatus: jobv1.RetryPolicyStatus{RetryDelaySec: c.delay}, AttemptStatus: jobv1.FrameworkAttemptStatus{Restart: c.began}}}
		if c.code != 0 {
			f.Status.AttemptStatus.CompletionStatus = &jobv1.FrameworkAttemptCompletionStatus{CompletionStatus: &jobv1.CompletionStatus{Code: c.code}}
		}
		j, err := keepJob(f)
		require.NoError(t, err)
		h := &Handler{o: Options{Policies: &policy.Config{}}}
		facts := &step.Facts{Job: &step.Job{}}
		h.requeueFacts(facts, requeueAction(fired), j, fired)
		require.Equal(t, c.want, *facts.Job, c.name)
		require.Len(t, j.news.Requests, c.requests, c.name)
	}
}

// Eight GPUs of a job break, and their Actions may begin in any order. Only one Action is announced. The other Actions wait for its end, cause no
// notices, and don't count toward the limit.
func TestOneRequeueIsForAllBrokenGPUsOfAJob(t *testing.T) {
	for _, end := range []v1.Phase{v1.PhaseSucceeded, v1.PhaseCanceled, v1.PhaseNew} {
		for first := range 8 {
			now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
			h, job := ofJob(t)
			var all []*v1.Action
			for i := range 8 {
				a := requeueAction(now)
				a.Name, a.UID, a.Labels[LabelIncident] = fmt.Sprintf("broken-%d-1-1", i), types.UID(fmt.Sprint("a", i)), fmt.Sprintf("%d-1", i)
				a.CreationTimestamp, a.Spec.GraceSeconds, a.Spec.NotAfter = metav1.NewTime(now), 600, metav1.NewTime(now.Add(24*time.Hour))
				all = append(all, a)
			}
			requests := 0
			round := func(order ...*v1.Action) map[v1.Phase]int {
				by := map[v1.Phase]int{}
				for _, a := range order {
					f, err := h.facts(t.Context(), a, all, now)
					require.NoError(t, err)
					next := step.Decide(a, f, now)
					a.Status = next.Status
					by[a.Status.Phase]++
					if next.Effect == step.EffectRequeue {
						requests++
						text, err := jobv1.WriteRequeues(nil, jobv1.Requeue{Restart: restartValue(a), Action: a.Name, Policy: "broken", At: now})
						require.NoError(t, err)
						job.Annotations = map[string]string{jobv1.AnnotationRestart: restartValue(a), jobv1.AnnotationRequeues: text}
					}
				}
				require.NoError(t, h.jobs.Update(job)) // the watch is behind
				return by
			}
			announces := all[first]
			require.Equal(t, map[v1.Phase]int{v1.PhaseNoticed: 1}, round(announces))
			require.Equal(t, map[v1.Phase]int{v1.PhaseNoticed: 1, v1.PhasePending: 7}, round(all...))
			now = now.Add(9 * time.Minute)
			switch end {
			case v1.PhaseCanceled: // by a person, who means all
				announces.Spec.Canceled = "root1: not now"
				round(all...)
				require.Equal(t, map[v1.Phase]int{v1.PhaseCanceled: 8}, round(all...))
				require.Zero(t, requests)
				continue
			case v1.PhaseNew: // its alert has ended, and that of another GPU hasn't
				announces.Spec.Canceled = alertEnded
				round(all...)
				require.Equal(t, map[v1.Phase]int{v1.PhaseCanceled: 1, v1.PhaseNoticed: 1, v1.PhasePending: 6}, round(all...))
				continue
			}
			now = now.Add(time.Minute)
			by := round(all...)
			require.Equal(t, 1, by[v1.PhaseActing], "%v", by)
			require.Zero(t, by[v1.PhaseNoticed], "%v", by)
			now = now.Add(5 * time.Second)
			require.Equal(t, map[v1.Phase]int{v1.PhaseSucceeded: 8}, round(all...))
			require.Equal(t, 1, requests)
			for _, a := range all {
				require.Equal(t, a == announces, a.Status.NoticeTime != nil)
			}
		}
	}
}

// Several alerts of one policy are about the same job. Only one stop is announced, and the other Actions wait for this stop. Another policy announces
// a separate stop.
func TestOneStopIsForAllAlertsOfAJob(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	h, _ := ofJob(t)
	h.o.Policies.Policies = append(h.o.Policies.Policies, policy.Policy{Name: "costly"})
	h.o.Policies.Limits.StopsPerHour, h.o.Policies.Limits.StopsPerHourPerVirtualCluster = 2, 2
	var all []*v1.Action
	for i, name := range []string{"broken", "broken", "broken", "costly"} {
		a := requeueAction(now)
		a.Name, a.UID, a.Labels = fmt.Sprintf("%s-%d-1-1", name, i), types.UID(fmt.Sprint("a", i)), map[string]string{LabelPolicy: name, LabelIncident: fmt.Sprintf("%d-1", i), LabelStep: "0"}
		a.CreationTimestamp, a.Spec.GraceSeconds, a.Spec.NotAfter = metav1.NewTime(now), 600, metav1.NewTime(now.Add(24*time.Hour))
		a.Spec.Do, a.Spec.By.Name = v1.OperationStopJob, name
		all = append(all, a)
	}
	round := func() map[v1.Phase]int {
		by := map[v1.Phase]int{}
		for _, a := range all {
			f, err := h.facts(t.Context(), a, all, now)
			require.NoError(t, err)
			f.Forbidden = nil
			a.Status = step.Decide(a, f, now).Status
			by[a.Status.Phase]++
		}
		return by
	}
	require.Equal(t, map[v1.Phase]int{v1.PhaseNoticed: 2, v1.PhasePending: 2}, round())
	require.Equal(t, "it waits: the action broken-0-1-1 will stop ann/train at 2026-11-30T09:10:00Z", all[1].Status.Message)
	now = now.Add(12 * time.Minute)
	all[0].Status.Message, all[0].Status.ActTime = "it waits: the notice to the job's owner couldn't be sent yet", &metav1.Time{Time: now.Add(-2 * time.Minute)}
	next, _ := announced(all[1], all, now)
	require.Equal(t, "broken-0-1-1", next.Action, "it waits for its notice")
	now = now.Add(-12 * time.Minute)
	all[0].Spec.Canceled = alertEnded
	require.Equal(t, map[v1.Phase]int{v1.PhaseCanceled: 1, v1.PhaseNoticed: 2, v1.PhasePending: 1}, round())
	all[1].Spec.Canceled = "root1: it is mine"
	now = now.Add(time.Minute)
	round()
	require.Equal(t, map[v1.Phase]int{v1.PhaseCanceled: 3, v1.PhaseNoticed: 1}, round(), "the other policy's isn't withdrawn")

	canceled, noticed := all[0], all[1] // both were announced
	at, later := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(time.Hour))
	noticed.CreationTimestamp, noticed.Status = at, v1.ActionStatus{Phase: v1.PhaseNoticed, NoticeTime: &at, ActTime: &later}
	ended := metav1.NewTime(now)
	canceled.Spec.Canceled, canceled.Status = "root1: it is mine", v1.ActionStatus{Phase: v1.PhaseCanceled, NoticeTime: &at, ActTime: &later, EndTime: &ended}
	_, why := announced(noticed, []*v1.Action{canceled, noticed}, now)
	require.Contains(t, why, "it is mine")
	ended = metav1.NewTime(now.Add(72 * time.Hour))
	_, why = announced(noticed, []*v1.Action{canceled, noticed}, now)
	require.Empty(t, why, "the clock was ahead at its end")
}
