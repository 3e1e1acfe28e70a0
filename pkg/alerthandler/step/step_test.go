package step_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func stop(change ...func(*v1.Action)) *v1.Action {
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "idle-1"}, Spec: v1.ActionSpec{
		Do: v1.OperationStopJob, Job: &v1.Job{Object: "o1", UID: "u1", Name: "ann/train", VirtualCluster: "vision"},
		By: v1.Requester{Kind: v1.ByPolicy, Name: "idle"}, Reason: "its GPUs are idle", NotAfter: metav1.NewTime(start.Add(2 * time.Hour)),
	}}
	for _, c := range change {
		c(a)
	}
	return a
}

func onMachine(do v1.Operation, change ...func(*v1.Action)) *v1.Action {
	gpu := int32(2)
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "broken-1"}, Spec: v1.ActionSpec{
		Do: do, Machine: &v1.Machine{Name: "node3", UID: "n3", GPU: &gpu},
		By: v1.Requester{Kind: v1.ByPolicy, Name: "broken"}, Reason: "XID 79", NotAfter: metav1.NewTime(start.Add(2 * time.Hour)),
	}}
	for _, c := range change {
		c(a)
	}
	return a
}

func grace(d time.Duration) func(*v1.Action) {
	return func(a *v1.Action) { a.Spec.GraceSeconds = int64(d.Seconds()) }
}

func dryRun(a *v1.Action)  { a.Spec.DryRun = true }
func byAdmin(a *v1.Action) { a.Spec.By = v1.Requester{Kind: v1.ByPerson, Name: "root1"} }
func canceled(a *v1.Action) {
	a.Spec.Canceled = "root1: it is mine"
}

func facts() *step.Facts {
	return &step.Facts{Job: &step.Job{UID: "u1"}, Machine: &step.Machine{UID: "n3", Ready: true, Agent: true}, DrainTimeout: 30 * time.Minute}
}

// The first decision about a request ends, begins or delays the request.
func TestTheFirstStep(t *testing.T) {
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
		{"a job is stopped", stop(), facts(), v1.PhaseActing, step.EffectStopJob, "stop ann/train"},
		{"a grace is a notice first", stop(grace(time.Hour)), facts(), v1.PhaseNoticed, "", "it will stop ann/train at 2026-11-30T10:00:00Z"},
		{"a dry run has no effect", stop(dryRun, grace(time.Hour)), facts(), v1.PhaseSucceeded, "", "dry run: it would stop ann/train"},
		{"a canceled request ends", stop(canceled), facts(), v1.PhaseCanceled, "", "root1: it is mine"},
		{"an old request expires", stop(func(a *v1.Action) { a.Spec.NotAfter = metav1.NewTime(start) }), facts(), v1.PhaseExpired, "", "expired"},
		{"a right that was taken away", stop(), with(func(f *step.Facts) { f.Forbidden = errors.New("root1 is no longer an administrator") }), v1.PhaseRefused, "", "no longer an administrator"},
		{"a job of the same name", stop(), with(func(f *step.Facts) { f.Job.UID = "u2" }), v1.PhaseRefused, "", "another job"},
		{"a job that is gone", stop(), with(func(f *step.Facts) { f.Job = nil }), v1.PhaseSucceeded, "", "has ended"},
		{"a job that ended", stop(), with(func(f *step.Facts) { f.Job.Ended = true }), v1.PhaseSucceeded, "", "has ended"},
		{"a limit that refuses", stop(), with(func(f *step.Facts) { f.Limit.Refused = "too many" }), v1.PhaseRefused, "", "too many"},
		{"a limit that waits", stop(), with(func(f *step.Facts) { f.Limit = step.Limit{Wait: "wait", After: time.Minute} }), v1.PhasePending, "", "wait"},
		{"limits don't bound people", stop(byAdmin), with(func(f *step.Facts) { f.Limit.Refused = "too many" }), v1.PhaseActing, step.EffectStopJob, ""},
		{"a dry run meets limits", stop(dryRun), with(func(f *step.Facts) { f.Limit.Refused = "too many" }), v1.PhaseRefused, "", "too many"},
		{"a machine is cordoned", onMachine(v1.OperationCordon), facts(), v1.PhaseActing, step.EffectCordon, ""},
		{"a machine that left", onMachine(v1.OperationCordon), with(func(f *step.Facts) { f.Machine = nil }), v1.PhaseRefused, "", "no longer in the cluster"},
		{"a machine of the same name", onMachine(v1.OperationDrain), with(func(f *step.Facts) { f.Machine.UID = "n4" }), v1.PhaseRefused, "", "added again"},
		{"a drain cordons first", onMachine(v1.OperationDrain), with(func(f *step.Facts) { f.Machine.Pods = []step.Pod{{Namespace: "pai-jobs", Name: "p", Managed: true}} }), v1.PhaseActing, step.EffectCordon, ""},
		{"a policy keeps a person's cordon", onMachine(v1.OperationUncordon), with(func(f *step.Facts) { f.Machine.Unschedulable = true }), v1.PhaseRefused, "", "by a person"},
		{"a policy ends its own cordon", onMachine(v1.OperationUncordon), with(func(f *step.Facts) {
			f.Machine.Unschedulable, f.Machine.Mark = true, &v1.Mark{Action: "broken-1", By: v1.Requester{Kind: v1.ByPolicy}}
		}), v1.PhaseActing, step.EffectUncordon, ""},
		{"a person ends any cordon", onMachine(v1.OperationUncordon, byAdmin), with(func(f *step.Facts) { f.Machine.Unschedulable = true }), v1.PhaseActing, step.EffectUncordon, ""},
		{"a GPU is reset", onMachine(v1.OperationResetGPU), facts(), v1.PhaseActing, step.EffectReset, "GPU 2 of node3"},
		{"another Action resets it", onMachine(v1.OperationResetGPU), with(func(f *step.Facts) { f.Restarting = "broken-2" }), v1.PhasePending, "", "it waits: the action broken-2 resets GPU 2 of node3"},
		{"another Action has reset it", onMachine(v1.OperationResetGPU), with(func(f *step.Facts) { f.Restarted = "broken-2" }), v1.PhaseSucceeded, "", "was reset since the alert began, by the action broken-2"},
		{"another Action has reset it, and it is broken", onMachine(v1.OperationResetGPU), with(func(f *step.Facts) { f.Restarted, f.Machine.BrokenGPUs = "broken-2", "GPU 2: XID 48" }), v1.PhaseActing, step.EffectReset, ""},
		{"another Action has reset it, and another GPU is broken", onMachine(v1.OperationResetGPU), with(func(f *step.Facts) { f.Restarted, f.Machine.BrokenGPUs = "broken-2", "GPU 12: XID 48" }), v1.PhaseSucceeded, "", "was reset since"},
		{"a person resets it again", onMachine(v1.OperationResetGPU, byAdmin), with(func(f *step.Facts) { f.Restarted = "broken-2" }), v1.PhaseActing, step.EffectReset, ""},
		{"no GPU", onMachine(v1.OperationResetGPU, func(a *v1.Action) { a.Spec.Machine.GPU = nil }), facts(), v1.PhaseRefused, "", "no GPU"},
		{"no target", stop(func(a *v1.Action) { a.Spec.Job = nil }), facts(), v1.PhaseRefused, "", "no job"},
		{"an operation of a later version", onMachine("explode"), facts(), v1.PhaseRefused, "", "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := step.Decide(c.a, c.f, start)
			require.Equal(t, c.phase, n.Status.Phase, n.Status.Message)
			require.Equal(t, c.effect, n.Effect)
			require.Contains(t, n.Status.Message, c.message)
			require.Equal(t, c.phase.Final(), n.Status.EndTime != nil)
			require.Equal(t, c.phase.Final(), n.After == 0, "a request that isn't final is looked at again")
		})
	}
}

// A drain evicts pods until none are left. Its message lists the pods that can't be moved.
func TestADrain(t *testing.T) {
	a := onMachine(v1.OperationDrain)
	f := facts()
	pod := func(name string, managed bool) step.Pod {
		return step.Pod{Namespace: "pai-jobs", Name: name, Managed: managed}
	}
	f.Machine.Pods = []step.Pod{pod("a", true), pod("b", true)}
	apply := func(at time.Duration) step.Next {
		n := step.Decide(a, f, start.Add(at))
		a.Status = n.Status
		return n
	}
	require.Equal(t, step.EffectCordon, apply(0).Effect)
	f.Machine.Unschedulable = true
	require.Equal(t, step.EffectEvict, apply(time.Second).Effect)
	f.Machine.Pods[0].Refused = "a disruption budget"
	f.Machine.Pods = f.Machine.Pods[:1]
	n := apply(2 * time.Second)
	require.Equal(t, step.EffectEvict, n.Effect)
	require.Equal(t, []v1.Result{{Target: "pai-jobs/a", Message: "a disruption budget"}, {Target: "pai-jobs/b", Done: true}}, n.Status.Results)

	late := *a
	require.Contains(t, step.Decide(&late, f, start.Add(31*time.Minute)).Status.Message, "weren't gone after 30m0s: pai-jobs/a")

	f.Machine.Pods = []step.Pod{pod("alone", false)}
	n = step.Decide(a, f, start.Add(3*time.Second))
	require.Equal(t, v1.PhaseFailed, n.Status.Phase)
	require.Contains(t, n.Status.Message, "nothing makes these pods again elsewhere, so that they stay: pai-jobs/alone")

	f.Machine.Pods = nil
	n = apply(4 * time.Second)
	require.Equal(t, v1.PhaseSucceeded, n.Status.Phase)
	require.True(t, n.Status.Results[0].Done)
}

// A request acts after its grace period, unless the request was canceled or the job is finished.
func TestAfterTheGrace(t *testing.T) {
	a := stop(grace(time.Hour))
	f := facts()
	n := step.Decide(a, f, start)
	require.Equal(t, time.Hour, n.After)
	a.Status = n.Status
	f.Limit.Refused = "too many"
	require.Equal(t, v1.PhaseNoticed, step.Decide(a, f, start.Add(59*time.Minute)).Status.Phase)
	require.Equal(t, v1.PhaseRefused, step.Decide(a, f, start.Add(time.Hour)).Status.Phase)
	f.Limit = step.Limit{Wait: "it waits", After: time.Minute}
	n = step.Decide(a, f, start.Add(time.Hour))
	require.Equal(t, v1.PhaseNoticed, n.Status.Phase)
	require.Empty(t, n.Effect)
	f.Limit = step.Limit{}
	n = step.Decide(a, f, start.Add(time.Hour))
	require.Equal(t, step.EffectStopJob, n.Effect)
	require.Equal(t, start, n.Status.NoticeTime.Time, "the notice is from the first look")

	withdrawn := stop(grace(time.Hour), canceled)
	withdrawn.Status = a.Status
	require.Equal(t, v1.PhaseCanceled, step.Decide(withdrawn, f, start.Add(time.Hour)).Status.Phase)
}

// A policy stops a job only if its owner got the notice early enough to react. A person's request isn't delayed.
func TestAJobWhoseOwnerHasNoNoticeIsNotStopped(t *testing.T) {
	a, f := stop(grace(time.Hour)), facts()
	a.Spec.NotAfter = metav1.NewTime(start.Add(24 * time.Hour))
	a.Status = step.Decide(a, f, start).Status
	over := start.Add(time.Hour)
	for _, c := range []struct {
		notice *step.Notice
		at     time.Time
		phase  v1.Phase
		effect step.Effect
		text   string
	}{
		{nil, over, v1.PhaseActing, step.EffectStopJob, ""},
		{&step.Notice{}, over, v1.PhaseActing, step.EffectStopJob, ""},
		{&step.Notice{Sent: start.Add(time.Minute)}, over, v1.PhaseActing, step.EffectStopJob, ""},
		{&step.Notice{Unknown: true}, over, v1.PhaseNoticed, "", "it waits until the handler has read which notices were sent"},
		{&step.Notice{Waits: true}, over, v1.PhaseNoticed, "", "it waits: the notice to the job's owner couldn't be sent yet"},
		{&step.Notice{Waits: true}, start.Add(25 * time.Hour), v1.PhaseExpired, "", "it expired"},
		{&step.Notice{Sent: over}, over.Add(59 * time.Minute), v1.PhaseNoticed, "", "its notice was sent late, and it will stop ann/train at 2026-11-30T11:00:00Z"},
		{&step.Notice{Sent: over}, over.Add(time.Hour), v1.PhaseActing, step.EffectStopJob, ""},
	} {
		f.Notice = c.notice
		n := step.Decide(a, f, c.at)
		require.Equal(t, c.phase, n.Status.Phase, n.Status.Message)
		require.Equal(t, c.effect, n.Effect)
		require.Contains(t, n.Status.Message, c.text)
	}
	person := stop(grace(time.Hour), byAdmin)
	person.Status = a.Status
	f.Notice = &step.Notice{Waits: true}
	require.Equal(t, v1.PhaseActing, step.Decide(person, f, over).Status.Phase)
}

// A stop that waits for its notice doesn't count toward the limits after its grace period. So stops of other jobs don't wait for the mail to its
// owner.
func TestAStopThatWaitsForItsNoticeTakesNoPlace(t *testing.T) {
	at, act := metav1.NewTime(start), metav1.NewTime(start.Add(30*time.Minute))
	waits := stop(grace(30*time.Minute), func(a *v1.Action) {
		a.Name, a.Status = "ann", v1.ActionStatus{Phase: v1.PhaseNoticed, NoticeTime: &at, ActTime: &act}
	})
	l := step.Limits{StopsPerHour: 1, StopsPerHourAndVC: 1, Waits: func(a *v1.Action) bool { return a == waits }}
	other := stop(grace(10 * time.Minute))
	require.NotEmpty(t, l.Check(other, []*v1.Action{waits}, step.Machines{}, start).Wait, "it is in its grace")
	require.Empty(t, l.Check(other, []*v1.Action{waits}, step.Machines{}, start.Add(time.Hour)).Wait)
	l.Waits = nil
	require.NotEmpty(t, l.Check(other, []*v1.Action{waits}, step.Machines{}, start.Add(time.Hour)).Wait, "it is late")
}

// After a jump of the clock, no Action begins, expires, or fails because of the time.
func TestNoTimePassesWhileTheClockJumps(t *testing.T) {
	late := start.Add(48 * time.Hour)
	jumped := func(f *step.Facts) *step.Facts { f.Jumped = true; return f }
	n := step.Decide(onMachine(v1.OperationDrain), jumped(facts()), late)
	require.Equal(t, v1.PhasePending, n.Status.Phase)
	require.Contains(t, n.Status.Message, "clock")
	require.Equal(t, time.Minute, n.After)
	for _, do := range []v1.Operation{v1.OperationDrain, v1.OperationResetGPU, v1.OperationRestartMachine} {
		a, f := onMachine(do), drained()
		if do == v1.OperationDrain {
			f.Machine.Pods = []step.Pod{{Namespace: "jobs", Name: "p", Managed: true}}
		}
		a.Status = step.Decide(a, f, start).Status
		require.Equal(t, v1.PhaseActing, step.Decide(a, jumped(f), late).Status.Phase, do)
		f.Jumped = false
		require.Equal(t, v1.PhaseFailed, step.Decide(a, f, late).Status.Phase, do)
	}
	a := stop(canceled)
	require.Equal(t, v1.PhaseCanceled, step.Decide(a, jumped(facts()), late).Status.Phase)
}

// A late notice contains a time after the expiry of the Action, and the job is stopped at that time.
func TestTheGraceThatBeginsAgainOutlastsTheExpiry(t *testing.T) {
	a, f := stop(grace(time.Hour)), facts()
	a.Spec.NotAfter = metav1.NewTime(start.Add(90 * time.Minute))
	a.Status = step.Decide(a, f, start).Status
	f.Notice = &step.Notice{Sent: start.Add(70 * time.Minute)}
	for after, want := range map[time.Duration]v1.Phase{100 * time.Minute: v1.PhaseNoticed, 130 * time.Minute: v1.PhaseActing, 176 * time.Minute: v1.PhaseExpired} {
		n := step.Decide(a, f, start.Add(after))
		require.Equal(t, want, n.Status.Phase, n.Status.Message)
		require.True(t, n.After == 0 || n.After > 10*time.Second || want == v1.PhaseActing, "%s", n.After)
	}
	f.Notice = &step.Notice{Waits: true}
	require.Equal(t, v1.PhaseExpired, step.Decide(a, f, start.Add(90*time.Minute)).Status.Phase)
}

// A policy returns a machine to service only when its agent reports no fault, because another GPU may be broken, too. A person may return the machine
// at once.
func TestAMachineWithABrokenGPUStaysCordoned(t *testing.T) {
	a, f := onMachine(v1.OperationUncordon), facts()
	f.Machine.Unschedulable, f.Machine.Mark, f.Machine.BrokenGPUs = true, &v1.Mark{Action: "broken-1", By: v1.Requester{Kind: v1.ByPolicy}}, "GPU 3: XID 79"
	n := step.Decide(a, f, start)
	require.Equal(t, v1.PhasePending, n.Status.Phase)
	require.Equal(t, "node3 stays cordoned until its agent finds no fault: GPU 3: XID 79", n.Status.Message)
	require.Empty(t, n.Effect)
	a.Status = n.Status
	require.Equal(t, "it wasn't begun until 2026-11-30T11:00:00Z, when it expired; before that: node3 stays cordoned until its agent finds no fault: GPU 3: XID 79",
		step.Decide(a, f, start.Add(3*time.Hour)).Status.Message)
	require.Equal(t, step.EffectUncordon, step.Decide(onMachine(v1.OperationUncordon, byAdmin), f, start).Effect)
	f.Machine.BrokenGPUs = ""
	require.Equal(t, step.EffectUncordon, step.Decide(a, f, start.Add(time.Minute)).Effect)
}

// A machine that policies have returned to service three times within a week stays out of service, and its mark contains the reason. Only a person
// can return the machine.
func TestAMachineThatBreaksAgainStaysOut(t *testing.T) {
	l := step.Limits{Returns: 3, ReturnsWithin: 168 * time.Hour}
	ago := func(hours ...int) (out []time.Time) {
		for _, h := range hours {
			out = append(out, start.Add(-time.Duration(h)*time.Hour))
		}
		return out
	}
	require.Empty(t, l.NoReturn(nil, start))
	require.Empty(t, l.NoReturn(ago(200, 100, 50), start))
	stays := l.NoReturn(ago(167, 100, 50), start)
	require.Equal(t, "it stays out: policies have returned it to service 3 times within 168h0m0s, and it broke again", stays)
	require.NotEmpty(t, step.Limits{}.NoReturn(nil, start))

	a, f := onMachine(v1.OperationUncordon), facts()
	f.NoReturn, f.Machine.Unschedulable, f.Machine.Mark, f.Machine.BrokenGPUs = stays, true, &v1.Mark{Action: "broken-1", By: v1.Requester{Kind: v1.ByPolicy}, Reason: "XID 79"}, "GPU 3"
	n := step.Decide(a, f, start)
	require.Equal(t, v1.PhasePending, n.Status.Phase)
	require.Equal(t, step.EffectStay, n.Effect)
	require.Positive(t, n.After)
	a.Status = n.Status
	f.Machine.Mark.Stays, f.Machine.Mark.Reason = true, stays
	n = step.Decide(a, f, start)
	require.Equal(t, v1.PhaseRefused, n.Status.Phase)
	require.Equal(t, "node3: "+stays, n.Status.Message)
	require.Empty(t, n.Effect)
	f.NoReturn = ""
	require.Equal(t, v1.PhaseRefused, step.Decide(onMachine(v1.OperationUncordon), f, start).Status.Phase, "the mark remains when the time is over")
	require.Equal(t, step.EffectUncordon, step.Decide(onMachine(v1.OperationUncordon, byAdmin), f, start).Effect)
	f.NoReturn, f.Machine.Mark.Stays = stays, false
	require.Equal(t, v1.PhaseRefused, step.Decide(onMachine(v1.OperationUncordon, dryRun), f, start).Status.Phase)
	require.Empty(t, step.Decide(onMachine(v1.OperationUncordon, dryRun), f, start).Effect)
	require.Equal(t, step.EffectCordon, step.Decide(onMachine(v1.OperationCordon), &step.Facts{Machine: &step.Machine{UID: "n3"}, NoReturn: stays}, start).Effect)
}

// A reset waits until the agent has answered this request.
func TestAReset(t *testing.T) {
	a, f := onMachine(v1.OperationResetGPU), facts()
	a.Status = step.Decide(a, f, start).Status
	require.Equal(t, step.EffectReset, step.Decide(a, f, start.Add(time.Minute)).Effect)
	require.Contains(t, step.Decide(a, f, start.Add(21*time.Minute)).Status.Message, "didn't answer within 20m0s")
	f.Machine.Reset = &step.Answer{Message: "a pod has it"}
	require.Equal(t, "a pod has it", step.Decide(a, f, start.Add(time.Minute)).Status.Message)
	f.Machine.Reset = &step.Answer{Done: true}
	require.Equal(t, v1.PhaseSucceeded, step.Decide(a, f, start.Add(time.Minute)).Status.Phase)
}

// Each request ends, with any facts and after a crash at any point. A request has no effect after its end, before the end of its grace period, or in
// a dry run.
func TestAnyRequestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		do := rapid.SampledFrom(v1.Operations()).Draw(t, "do")
		a := onMachine(do)
		if do.ForJobs() {
			a = stop(func(a *v1.Action) { a.Spec.Do = do })
		}
		a.Spec.DryRun = rapid.Bool().Draw(t, "dry run")
		a.Spec.GraceSeconds = rapid.SampledFrom([]int64{0, 60, 3600}).Draw(t, "grace")
		f := facts()
		f.Restarts, f.Machine.Agent, f.Machine.Boot, f.Machine.Unschedulable = true, true, "boot-1", rapid.Bool().Draw(t, "cordoned")
		for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
			f.Machine.Pods = append(f.Machine.Pods, step.Pod{Namespace: "ns", Name: fmt.Sprint(i), Managed: rapid.Bool().Draw(t, "managed")})
		}
		refuses := rapid.IntRange(0, 4).Draw(t, "the API server refuses") == 0
		now, final := start, false
		for i := 0; !final; i++ {
			if i > 10_000 {
				t.Fatalf("it doesn't end: %+v", a.Status)
			}
			n := step.Decide(a, f, now)
			if n.Effect != "" && (a.Spec.DryRun || now.Before(start.Add(a.Spec.Grace()))) {
				t.Fatalf("%s at %s: %+v", n.Effect, now, a.Spec)
			}
			if again := step.Decide(a, f, now); again.Effect != n.Effect || again.Status.Phase != n.Status.Phase {
				t.Fatal("the same facts give another decision")
			}
			lost := rapid.IntRange(0, 9).Draw(t, "crash") == 0 // before the status was written
			if lost {
				now = now.Add(time.Second)
				continue
			}
			a.Status = n.Status
			if crashed := rapid.IntRange(0, 9).Draw(t, "no effect") == 0; refuses && n.Effect != "" {
				f.Refused = "forbidden"
				if f.RefusedSince.IsZero() {
					f.RefusedSince = now
				}
			} else if !crashed {
				switch n.Effect {
				case step.EffectStopJob:
					f.Job.Stopping = true
				case step.EffectRequeue:
					f.Job.Requeued = true
				case step.EffectCordon:
					f.Machine.Unschedulable, f.Machine.Mark = true, &v1.Mark{Action: a.Name, By: a.Spec.By}
				case step.EffectUncordon:
					f.Machine.Unschedulable = false
				case step.EffectEvict:
					f.Machine.Pods = f.Machine.Pods[1:]
				case step.EffectReset:
					f.Machine.Reset = &step.Answer{Done: rapid.Bool().Draw(t, "answer")}
				case step.EffectRestart:
					f.Machine.Ordered, f.Machine.Boot, f.Machine.Ready = true, "boot-2", true
					f.Machine.Restart = &step.Answer{Done: rapid.Bool().Draw(t, "restarted")}
				}
			}
			final = n.Status.Phase.Final()
			if !final && n.After <= 0 {
				t.Fatalf("nothing wakes it: %+v", n)
			}
			now = now.Add(n.After)
		}
		if n := step.Decide(a, f, now); n.Effect != "" || n.Status.Phase != a.Status.Phase {
			t.Fatalf("it goes further after its end: %+v", n)
		}
	})
}

// Limits count past and announced Actions of policies, both for one virtual cluster and for all. They don't count Actions of people.
func TestLimits(t *testing.T) {
	l := step.Limits{StopsPerHour: 3, StopsPerHourAndVC: 2, MachinesPerHour: 2, MachinesOut: 10}
	began := func(a *v1.Action, name string, ago time.Duration) *v1.Action {
		at := metav1.NewTime(start.Add(-ago))
		a.Name, a.Status = name, v1.ActionStatus{Phase: v1.PhaseSucceeded, StartTime: &at}
		return a
	}
	in := func(vc string) func(*v1.Action) { return func(a *v1.Action) { a.Spec.Job.VirtualCluster = vc } }
	m := step.Machines{Total: 160, Out: map[string]bool{}}

	require.Equal(t, step.Limit{}, l.Check(stop(), []*v1.Action{began(stop(), "x", 10*time.Minute), began(stop(), "y", 61*time.Minute)}, m, start))
	w := l.Check(stop(), []*v1.Action{began(stop(), "x", 10*time.Minute), began(stop(), "y", 20*time.Minute)}, m, start)
	require.Equal(t, step.Limit{Wait: "it waits: policies may stop 2 jobs of vision an hour", After: 40 * time.Minute}, w)
	others := []*v1.Action{began(stop(in("a")), "x", time.Minute), began(stop(in("b")), "y", time.Minute), began(stop(in("c")), "z", 2*time.Minute)}
	require.Equal(t, "it waits: policies may stop 3 jobs an hour", l.Check(stop(), others, m, start).Wait)
	for _, o := range others {
		o.Spec.By.Kind = v1.ByPerson
	}
	require.Equal(t, step.Limit{}, l.Check(stop(), others, m, start))

	noticed := stop()
	noticed.Name, noticed.Status.Phase = "n", v1.PhaseNoticed
	w = l.Check(stop(), []*v1.Action{noticed, began(stop(), "x", time.Minute)}, m, start)
	require.NotEmpty(t, w.Wait, "one that was announced counts")
	tomorrow := metav1.NewTime(start.Add(24 * time.Hour))
	noticed.Status.ActTime = &tomorrow
	require.Equal(t, step.Limit{}, l.Check(stop(), []*v1.Action{noticed, began(stop(), "x", time.Minute)}, m, start), "one that will act in another hour doesn't")
	w = l.Check(stop(grace(24*time.Hour)), []*v1.Action{noticed, noticed}, m, start)
	require.Equal(t, step.Limit{Wait: "it waits: policies may stop 2 jobs of vision an hour", After: time.Hour}, w, "those of the same hour do")
	self := stop()
	self.Status.Phase = v1.PhaseNoticed
	require.Equal(t, step.Limit{}, l.Check(self, []*v1.Action{self, began(stop(), "x", time.Minute)}, m, start), "it doesn't count itself")

	for i := range 15 {
		m.Out[fmt.Sprintf("out%d", i)] = true
	}
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationDrain), nil, m, start))
	m.Out["out15"] = true
	require.Equal(t, "16 of 160 machines are out of service, and policies may raise that to 16 (machinesOut: 10 %)",
		l.Check(onMachine(v1.OperationDrain), nil, m, start).Refused)
	m.Out["node3"], m.Cordoned = true, map[string]bool{"node3": true}
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationDrain), nil, m, start), "it is cordoned already")

	own := []*v1.Action{began(onMachine(v1.OperationDrain), "a", time.Minute), began(onMachine(v1.OperationDrain, func(a *v1.Action) { a.Spec.Machine.Name = "b" }), "b", time.Minute)}
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationResetGPU), own, step.Machines{Total: 160}, start), "a later step for a machine that was counted")

	few := step.Machines{Total: 3, Out: map[string]bool{}}
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationDrain), nil, few, start), "one always may")
	acting := onMachine(v1.OperationCordon)
	acting.Name, acting.Spec.Machine.Name = "other", "node4"
	at := metav1.NewTime(start)
	acting.Status = v1.ActionStatus{Phase: v1.PhaseActing, StartTime: &at}
	require.NotEmpty(t, l.Check(onMachine(v1.OperationDrain), []*v1.Action{acting}, few, start).Refused, "one that is about to be cordoned counts")
	require.True(t, strings.HasPrefix(l.Check(onMachine(v1.OperationDrain), []*v1.Action{began(onMachine(v1.OperationDrain, func(a *v1.Action) { a.Spec.Machine.Name = "a" }), "a", time.Minute),
		began(onMachine(v1.OperationDrain, func(a *v1.Action) { a.Spec.Machine.Name = "b" }), "b", time.Minute)}, step.Machines{Total: 160}, start).Wait, "it waits: policies may put 2 machines"))
}
