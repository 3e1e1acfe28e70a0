package alerthandler

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

// restartPrefix is the prefix of the values that Actions write to a Framework's restart annotation. Requests of people contain times instead.
const restartPrefix = "action-"

// restartValue returns the value of a Framework's restart annotation for an Action. Each try writes the same value, so that the job is requeued only
// once.
func restartValue(a *v1.Action) string { return restartPrefix + string(a.UID) }

// aliveFor is the time after the end of an attempt within which an alert about the attempt's GPUs may still begin. Prometheus reads the agent's
// measurements only at intervals. Rules about the next attempt take longer than aliveFor to fire.
const aliveFor = 45 * time.Second

// requeueFacts adds the facts for the requeue of a job.
func (h *Handler) requeueFacts(f *step.Facts, a *v1.Action, j *jobFacts, now time.Time) {
	if a.Spec.Do != v1.OperationRequeueJob || j.uid != a.Spec.Job.UID {
		return
	}
	f.Job.Requeued = jobv1.FindRequeue(j.requeues, restartValue(a)) != nil
	var policies []time.Time
	since := firingSince(a)
	for _, r := range j.requeues {
		if r.Policy != "" {
			policies = append(policies, r.At)
		}
		if r.Restart != restartValue(a) && !r.At.Before(since) {
			f.Restarted = r.Action
		}
	}
	f.Job.Renewed, f.Job.Pending, f.Job.Finished, f.Job.Retrying = j.attempt.After(since.Add(-aliveFor)), j.requested != "" && !j.finished, j.finished, j.retrying
	f.Job.Missed = j.finished && j.requested == restartValue(a)
	f.NoReturn = h.o.Policies.Limits.Step().NoRequeue(policies, now)
}

// overdue is the delay of an announced requeue after which other Actions stop waiting for it. Its alert may have ended without a message.
const overdue = time.Minute

// announced returns the next Action of a policy that has announced another attempt of the same job. For a stop, it returns the next Action of the
// same policy that has announced the end of the job. withdrawn is the reason if a person has canceled such an Action since Action a was created. The
// notice to the owner covers all alerts about the job.
func announced(a *v1.Action, all []*v1.Action, now time.Time) (next *step.Announced, withdrawn string) {
	stop := a.Spec.Do == v1.OperationStopJob
	if !a.Spec.Do.ForJobs() || a.Spec.By.Kind != v1.ByPolicy || a.Spec.DryRun || a.Status.NoticeTime != nil && !stop {
		return nil, ""
	}
	for _, other := range restartsOf(a, all) {
		s := &other.Status
		if other.Spec.By.Kind != v1.ByPolicy || s.NoticeTime == nil || s.ActTime == nil {
			continue
		}
		switch {
		case s.Phase == v1.PhaseNoticed && (now.Sub(s.ActTime.Time) < overdue || stop && unheard(other, now) == "") && (next == nil || s.ActTime.Time.Before(next.At)):
			next = &step.Announced{Action: other.Name, At: s.ActTime.Time}
		case s.Phase == v1.PhaseCanceled && other.Spec.Canceled != alertEnded && s.EndTime != nil && s.EndTime.After(a.CreationTimestamp.Time) && !s.EndTime.After(now):
			withdrawn = "canceled with the action " + other.Name + ": " + other.Spec.Canceled
		}
	}
	return next, withdrawn
}

// firingSince returns the time at which the alert of a policy's Action began to fire. For other Actions it returns the creation time.
func firingSince(a *v1.Action) time.Time {
	if i := incidentOf(a); i != nil && !i.Started.IsZero() {
		return i.Started
	}
	return a.CreationTimestamp.Time
}

// requeueJob requests another attempt of a job, as "paictl job retry" does, and records the request. A single patch writes both changes, so that an
// interrupted Action doesn't request a second attempt.
func (h *Handler) requeueJob(ctx context.Context, a *v1.Action) error {
	jobs := h.objects.Resource(frameworks).Namespace(h.o.JobNamespace)
	u, err := jobs.Get(ctx, a.Spec.Job.Object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it has ended; the watch shows it
	}
	if err != nil {
		return fmt.Errorf("read the job %s: %w", a.Spec.Job.Name, err)
	}
	f := &jobv1.Framework{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, f); err != nil {
		return fmt.Errorf("read the job %s: %w", a.Spec.Job.Name, err)
	}
	if a.Spec.By.Kind == v1.ByPolicy && f.Requested() != "" || f.Finished() {
		return nil // another attempt was requested in the meantime, or the present one has ended
	}
	before := jobv1.ReadRequeues(f.Annotations)
	if f.UID != a.Spec.Job.UID || f.Spec.ExecutionType == jobv1.ExecutionStop || jobv1.FindRequeue(before, restartValue(a)) != nil {
		return nil // the watch shows it
	}
	next := jobv1.Requeue{Restart: restartValue(a), Action: a.Name, Reason: a.Spec.Reason + " (" + a.Spec.By.Text() + ")", At: h.o.Now().UTC()}
	if a.Spec.By.Kind == v1.ByPolicy {
		next.Policy = a.Spec.By.Name
	}
	record, err := jobv1.WriteRequeues(before, next)
	if err != nil {
		return err
	}
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": f.ResourceVersion,
		"annotations":     map[string]any{jobv1.AnnotationRestart: next.Restart, jobv1.AnnotationRequeues: record},
	}}
	return h.patch(ctx, a.Spec.Job.UID, patch, func(data []byte) error {
		_, err := jobs.Patch(ctx, a.Spec.Job.Object, types.MergePatchType, data, metav1.PatchOptions{})
		return err
	})
}
