package step_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

func requeue(change ...func(*v1.Action)) *v1.Action {
	return stop(append([]func(*v1.Action){func(a *v1.Action) {
		a.Name, a.Spec.Do, a.Spec.By.Name, a.Spec.Reason = "broken-1", v1.OperationRequeueJob, "broken", "XID 79"
	}}, change...)...)
}

// A finished job isn't requeued. A job also isn't requeued if its attempt began after the alert, or if policies have requeued it too often.
func TestTheFirstStepOfARequeue(t *testing.T) {
	with := func(change func(*step.Facts)) *step.Facts {
		f := facts()
		change(f)
		return f
	}
	for _, c := range []struct {
		name    string
		a       *v1.Action
		f       *step.Facts
		phase   v1.Phase
		effect  step.Effect
		message string
	}{
		{"a job that runs", requeue(), facts(), v1.PhaseActing, step.EffectRequeue, "it is to requeue ann/train"},
		{"a grace", requeue(grace(time.Hour)), facts(), v1.PhaseNoticed, "", "it will requeue ann/train at 2026-11-30T10:00:00Z"},
		{"a dry run", requeue(dryRun), facts(), v1.PhaseSucceeded, "", "dry run: it would requeue ann/train"},
		{"a job of the same name", requeue(), with(func(f *step.Facts) { f.Job.UID = "u2" }), v1.PhaseRefused, "", "another job has the name"},
		{"a job that is gone", requeue(), with(func(f *step.Facts) { f.Job = nil }), v1.PhaseSucceeded, "", "has ended"},
		{"a job that ended", requeue(), with(func(f *step.Facts) { f.Job.Ended = true }), v1.PhaseSucceeded, "", "has ended"},
		{"a job that is being stopped", requeue(), with(func(f *step.Facts) { f.Job.Stopping = true }), v1.PhaseSucceeded, "", "is being stopped"},
		{"another attempt", requeue(), with(func(f *step.Facts) { f.Job.Renewed = true }), v1.PhaseSucceeded, "", "has begun another attempt since the alert began"},
		{"an attempt that has finished", requeue(), with(func(f *step.Facts) { f.Job.Finished = true }), v1.PhaseSucceeded, "", "ann/train has finished its attempt: another one follows only if the job is retried"},
		{"an attempt that has finished, and a person", requeue(byAdmin), with(func(f *step.Facts) { f.Job.Finished = true }), v1.PhaseSucceeded, "", "has finished its attempt"},
		{"a job that waits for its retry", requeue(), with(func(f *step.Facts) { f.Job.Retrying = true }), v1.PhaseSucceeded, "", "has finished its attempt and waits for its retry"},
		{"a job that waits for its retry, and a person", requeue(byAdmin), with(func(f *step.Facts) { f.Job.Retrying = true }), v1.PhaseActing, step.EffectRequeue, ""},
		{"another attempt that hasn't begun", requeue(), with(func(f *step.Facts) { f.Job.Pending = true }), v1.PhaseSucceeded, "", "was requested already"},
		{"another attempt that hasn't begun, and a person", requeue(byAdmin), with(func(f *step.Facts) { f.Job.Pending = true }), v1.PhaseActing, step.EffectRequeue, ""},
		{"another attempt, and a person", requeue(byAdmin), with(func(f *step.Facts) { f.Job.Renewed, f.Restarted = true, "broken-2" }), v1.PhaseActing, step.EffectRequeue, ""},
		{"another Action has done it", requeue(), with(func(f *step.Facts) { f.Restarted = "broken-2" }), v1.PhaseSucceeded, "", "was requeued since the alert began, by the action broken-2"},
		{"another Action is doing it", requeue(), with(func(f *step.Facts) { f.Restarting = "broken-2" }), v1.PhasePending, "", "it waits: the action broken-2 requeues ann/train"},
		{"another Action is doing it, before the grace", requeue(grace(time.Hour)), with(func(f *step.Facts) { f.Restarting = "broken-2" }), v1.PhasePending, "", "it waits: the action broken-2 requeues ann/train"},
		{"another Action has announced it", requeue(grace(time.Hour)), with(func(f *step.Facts) { f.Announced = announced(time.Hour) }), v1.PhasePending, "", "it waits: the action broken-2 will requeue ann/train at 2026-11-30T10:00:00Z"},
		{"another Action has announced it, and a limit", requeue(grace(time.Hour)), with(func(f *step.Facts) { f.Announced, f.Limit.Wait = announced(0), "wait" }), v1.PhasePending, "", "it waits: the action broken-2"},
		{"another Action has announced it for later", requeue(), with(func(f *step.Facts) { f.Announced = announced(time.Minute) }), v1.PhaseActing, step.EffectRequeue, ""},
		{"another Action has announced it, and a dry run", requeue(dryRun), with(func(f *step.Facts) { f.Announced = announced(0) }), v1.PhaseSucceeded, "", "dry run"},
		{"another Action has announced it, and a person", requeue(byAdmin), with(func(f *step.Facts) { f.Announced = announced(0) }), v1.PhaseActing, step.EffectRequeue, ""},
		{"a person has withdrawn another one", requeue(grace(time.Hour)), with(func(f *step.Facts) { f.Withdrawn = "canceled with the action broken-2: root1: not now" }), v1.PhaseCanceled, "", "root1: not now"},
		{"too often", requeue(), with(func(f *step.Facts) { f.NoReturn = "too often" }), v1.PhaseRefused, "", "ann/train: too often"},
		{"too often, and a limit", requeue(), with(func(f *step.Facts) { f.NoReturn, f.Limit.Wait = "too often", "wait" }), v1.PhaseRefused, "", "too often"},
		{"too often, by a dry run", requeue(dryRun), with(func(f *step.Facts) { f.NoReturn = "too often" }), v1.PhaseRefused, "", "too often"},
		{"too often for policies", requeue(byAdmin), with(func(f *step.Facts) { f.NoReturn = "too often" }), v1.PhaseActing, step.EffectRequeue, ""},
		{"a limit", requeue(), with(func(f *step.Facts) { f.Limit = step.Limit{Wait: "wait", After: time.Minute} }), v1.PhasePending, "", "wait"},
		{"no job", requeue(func(a *v1.Action) { a.Spec.Job = nil }), facts(), v1.PhaseRefused, "", "no job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := step.Decide(c.a, c.f, start)
			require.Equal(t, c.phase, n.Status.Phase, n.Status.Message)
			require.Equal(t, c.effect, n.Effect)
			require.Contains(t, n.Status.Message, c.message)
		})
	}
}

func announced(after time.Duration) *step.Announced {
	return &step.Announced{Action: "broken-2", At: start.Add(after)}
}

// After the beginning, and after a crash, the request is made only once. It isn't made if another job now has the name.
func TestARequeueThatHasBegun(t *testing.T) {
	a, f := requeue(), facts()
	a.Status = step.Decide(a, f, start).Status
	require.Equal(t, step.EffectRequeue, step.Decide(a, f, start.Add(time.Hour)).Effect, "it was killed before the request")
	for _, c := range []struct {
		job  step.Job
		want string
	}{
		{step.Job{UID: "u1", Requeued: true}, "another attempt of ann/train was requested: its tasks are stopped, and all of them are placed again"},
		{step.Job{UID: "u1", Requeued: true, Renewed: true, Ended: true}, "another attempt of ann/train was requested, and the job has finished since"},
		{step.Job{UID: "u1", Requeued: true, Finished: true, Missed: true}, "ann/train had finished its attempt before the request: another one follows only if the job is retried"},
		{step.Job{UID: "u1", Requeued: true, Finished: true, Missed: true, Ended: true}, "ann/train has ended before another attempt began"},
		{step.Job{UID: "u2"}, "ann/train has ended, and another job has the name now"},
	} {
		f.Job = &c.job
		n := step.Decide(a, f, start.Add(time.Hour))
		require.Equal(t, v1.PhaseSucceeded, n.Status.Phase)
		require.Empty(t, n.Effect)
		require.Equal(t, c.want, n.Status.Message)
	}
}

// Stops and requeues have separate limits.
func TestTheLimitsOfRequeues(t *testing.T) {
	l := step.Limits{RequeuesPerHour: 2, RequeuesPerHourAndVC: 1, StopsPerHour: 9, StopsPerHourAndVC: 9}
	other := func(name, vc string, change ...func(*v1.Action)) *v1.Action {
		a, at := requeue(change...), metav1.NewTime(start.Add(-20*time.Minute))
		a.Name, a.Spec.Job.VirtualCluster, a.Status = name, vc, v1.ActionStatus{Phase: v1.PhaseSucceeded, StartTime: &at}
		return a
	}
	stopped := other("s", "vision", func(a *v1.Action) { a.Spec.Do = v1.OperationStopJob })
	check := func(a *v1.Action, all ...*v1.Action) step.Limit { return l.Check(a, all, step.Machines{}, start) }
	require.Equal(t, step.Limit{}, check(requeue(), stopped, other("p", "vision", byAdmin), other("d", "vision", dryRun)))
	require.Equal(t, step.Limit{Wait: "it waits: policies may requeue 1 job of vision an hour", After: 40 * time.Minute}, check(requeue(), other("a", "vision")))
	require.Equal(t, step.Limit{Wait: "it waits: policies may requeue 2 jobs an hour", After: 40 * time.Minute}, check(requeue(), other("a", "speech"), other("b", "lab")))
	require.Equal(t, step.Limit{}, check(stop(), other("a", "vision"), other("b", "vision")))
}

func TestPoliciesRequeueAJobOnlySoOften(t *testing.T) {
	l := step.Limits{RequeuesPerJob: 3}
	at := []time.Time{start.Add(-24 * time.Hour), start.Add(-23 * time.Hour), start.Add(-2 * time.Hour)}
	require.Empty(t, l.NoRequeue(at, start), "the first one was a day ago")
	require.Equal(t, "it isn't requeued: policies have done so 3 times within a day (limits.requeuesPerJob: 3)", l.NoRequeue(append(at, start), start))
	require.Equal(t, "policies requeue no job (limits.requeuesPerJob: 0)", step.Limits{}.NoRequeue(nil, start))
}
