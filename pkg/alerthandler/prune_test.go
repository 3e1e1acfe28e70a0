package alerthandler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// An Action whose alert still fires is kept, regardless of the number of finished Actions, because the alert would create the Action again.
func TestActionsOfAlertsThatFireAreKept(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	action := func(name, incident, step string, ago time.Duration, change ...func(*v1.Action)) *v1.Action {
		at := metav1.NewTime(now.Add(-ago))
		a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at, Annotations: map[string]string{},
			Labels: map[string]string{LabelPolicy: "p", LabelIncident: incident, LabelStep: step}},
			Spec: v1.ActionSpec{By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}}, Status: v1.ActionStatus{Phase: v1.PhaseSucceeded, EndTime: &at}}
		for _, c := range change {
			c(a)
		}
		return a
	}
	heard := func(ago time.Duration) func(*v1.Action) {
		return func(a *v1.Action) { a.Annotations[AnnotationLastAlert] = annotation(now.Add(-ago)) }
	}
	ended := func(a *v1.Action) { a.Annotations[AnnotationAlertEnded] = annotation(now) }
	all := []*v1.Action{
		action("silent for longer than a day", "c-1", "0", 90*time.Hour, heard(30*time.Hour)),
		action("fires", "a-2", "0", 80*time.Hour, heard(time.Hour)),
		action("a later step of it", "a-2", "1", 80*time.Hour),
		action("an earlier incident", "a-1", "0", 20*time.Hour),
		action("ended", "b-1", "0", 19*time.Hour, ended),
		action("p-d-1-1", "d-1", "0", 30*time.Minute),
		action("p-d-1-2", "d-1", "1", 20*time.Minute),
		action("acts", "e-1", "0", 100*time.Hour, func(a *v1.Action) { a.Status.Phase = v1.PhaseActing }),
		action("of a person", "", "", 10*time.Minute, func(a *v1.Action) { a.Labels, a.Spec.By = nil, v1.Requester{Kind: v1.ByOperator, Name: "root"} }),
	}
	names := func(most int) (out []string) {
		for _, a := range removable(all, keeping(most), now) {
			out = append(out, a.Name)
		}
		return out
	}
	require.Equal(t, []string{"silent for longer than a day", "a later step of it"}, names(100))
	require.Equal(t, []string{"silent for longer than a day", "a later step of it", "an earlier incident"}, names(5))
	require.Equal(t, []string{"silent for longer than a day", "a later step of it", "an earlier incident", "ended", "of a person"}, names(0), "three are needed")
}

// keeping returns a kept that keeps at most the given number of Actions for a day. No machine is cordoned.
func keeping(most int) kept {
	return kept{time: 24 * time.Hour, most: most, steady: true, holds: func(*v1.Action) bool { return false }, policy: func(string) *policy.Policy { return nil }}
}

// After the clock was set, or just after the start of the handler, Alertmanager may not have repeated a firing alert yet. The Actions of all of its
// steps are kept.
func TestActionsOfAlertsAreKeptUntilTheClockIsSteady(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	step := func(number string) *v1.Action {
		at := metav1.NewTime(now.Add(-time.Hour))
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "p-a-1-" + number, CreationTimestamp: at, Annotations: map[string]string{AnnotationLastAlert: annotation(now)},
			Labels: map[string]string{LabelPolicy: "p", LabelIncident: "a-1", LabelStep: number}},
			Spec: v1.ActionSpec{By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}}, Status: v1.ActionStatus{Phase: v1.PhaseSucceeded, EndTime: &at}}
	}
	all, ahead := []*v1.Action{step("0"), step("1")}, now.Add(240*time.Hour)
	keep := keeping(0)
	require.Equal(t, all[1:], removable(all, keep, ahead))
	keep.steady = false
	require.Empty(t, removable(all, keep, ahead))
	all[0].Annotations[AnnotationAlertEnded] = annotation(now)
	keep.most = 100
	require.Empty(t, removable(all, keep, ahead), "nothing is removed for its age")

	synctest.Test(t, func(t *testing.T) {
		var c clock
		offset := time.Duration(0)
		now := func() time.Time { return time.Now().Round(0).Add(offset) }
		c.begin()
		require.False(t, c.steady(), "it has just begun")
		require.False(t, c.look(now()))
		time.Sleep(settles)
		require.True(t, c.steady())
		offset = 240 * time.Hour
		time.Sleep(time.Minute)
		require.True(t, c.look(now()))
		require.True(t, c.look(now()))
		time.Sleep(settles - time.Minute)
		require.False(t, c.steady())
		c.begin()
		require.True(t, c.look(now()), "the next term")
		offset = 0
		require.True(t, c.look(now()))
		time.Sleep(settles)
		offset = 30 * time.Second
		require.False(t, c.look(now()), "it drifts")
		require.True(t, c.steady())
	})
}

// A step is kept as long as the previous step would create it again, regardless of the number of finished Actions. Otherwise a machine that was
// returned to service would be drained again.
func TestStepsAreKeptThatTheStepBeforeWouldMakeAgain(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	step := func(number string, ago time.Duration) *v1.Action {
		at := metav1.NewTime(now.Add(-ago))
		p := policy.Policy{Name: "p"}
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: p.ActionName("a-1", int(number[0]-'0')), CreationTimestamp: at, Annotations: map[string]string{AnnotationAlertEnded: annotation(now)},
			Labels: map[string]string{LabelPolicy: "p", LabelIncident: "a-1", LabelStep: number}},
			Spec:   v1.ActionSpec{Do: v1.OperationDrain, By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}},
			Status: v1.ActionStatus{Phase: v1.PhaseSucceeded, EndTime: &at}}
	}
	recent := []*v1.Action{step("0", 11*time.Hour), step("1", 10*time.Hour), step("2", 9*time.Hour)}
	require.Empty(t, removable(recent, keeping(0), now), "the first one is kept as long as a later one")
	old := []*v1.Action{step("0", 15*time.Hour), step("1", 14*time.Hour), step("2", 13*time.Hour)}
	require.Equal(t, old[1:], removable(old, keeping(0), now))
	require.Empty(t, removable(old, kept{time: 24 * time.Hour, steady: true, holds: func(*v1.Action) bool { return true }, policy: keeping(0).policy}, now), "the machine is still cordoned")
	mixed := []*v1.Action{step("0", 15*time.Hour), step("1", 13*time.Hour), step("2", 11*time.Hour)}
	require.Equal(t, mixed[1:], removable(mixed, keeping(0), now), "neither is made again")
	mixed[1] = step("1", 11*time.Hour)
	require.Equal(t, mixed[1:2], removable(mixed, keeping(0), now))

	failed := []*v1.Action{step("0", 15*time.Hour), step("1", 11*time.Hour), step("2", 10*time.Hour)}
	failed[1].Status.Phase, failed[1].Labels[LabelAlternative] = v1.PhaseFailed, "true"
	keep := keeping(0)
	require.Contains(t, removable(failed, keep, now), failed[2])
	keep.policy = func(string) *policy.Policy { return &policy.Policy{Steps: []policy.Step{{}, {}, {IfFailed: true}}} }
	require.NotContains(t, removable(failed, keep, now), failed[2], "the failed step would make it again")

	alone := step("0", 5*time.Hour)
	alone.Annotations[AnnotationLastAlert] = annotation(now.Add(-time.Minute))
	require.Empty(t, removable([]*v1.Action{alone}, keeping(0), now), "a late message would begin another incident")
	alone.Annotations[AnnotationLastAlert] = annotation(now.Add(-settles))
	require.Len(t, removable([]*v1.Action{alone}, keeping(0), now), 1)
}

// The first step of an incident is kept as long as a later step. Otherwise the next incident of the alert would get the same number, and its steps
// would count as done.
func TestTheFirstStepIsRemovedLast(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	action := func(step string, ago time.Duration, phase v1.Phase) *v1.Action {
		at := metav1.NewTime(now.Add(-ago))
		return &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: "p-a-1-" + step, CreationTimestamp: at, Annotations: map[string]string{AnnotationAlertEnded: annotation(at.Time)},
			Labels: map[string]string{LabelPolicy: "p", LabelIncident: "a-1", LabelStep: step}},
			Spec: v1.ActionSpec{By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}}, Status: v1.ActionStatus{Phase: phase, EndTime: &at}}
	}
	first, second := action("0", 25*time.Hour, v1.PhaseSucceeded), action("1", 23*time.Hour, v1.PhaseSucceeded)
	require.Empty(t, removable([]*v1.Action{first, second}, keeping(100), now))
	require.Empty(t, removable([]*v1.Action{first, action("1", 25*time.Hour, v1.PhasePending)}, keeping(100), now))
	require.Equal(t, []*v1.Action{second}, removable([]*v1.Action{first, second}, keeping(0), now))
	require.Equal(t, []*v1.Action{first}, removable([]*v1.Action{first}, keeping(100), now))
}

// Actions that count toward limits are kept, regardless of the number of finished Actions. So a flood of short alerts doesn't hide the effects of
// policies.
func TestActionsThatLimitsCountAreKept(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	action := func(name string, do v1.Operation, ago time.Duration, begun bool) *v1.Action {
		at := metav1.NewTime(now.Add(-ago))
		a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at}, Spec: v1.ActionSpec{Do: do, By: v1.Requester{Kind: v1.ByPolicy, Name: "p"}},
			Status: v1.ActionStatus{Phase: v1.PhaseSucceeded, EndTime: &at}}
		if begun {
			a.Status.StartTime = &at
		}
		return a
	}
	var names []string
	for _, a := range removable([]*v1.Action{
		action("an old restart", v1.OperationRestartMachine, 25*time.Hour, true), action("a restart", v1.OperationRestartMachine, 23*time.Hour, true),
		action("a drain of the day", v1.OperationDrain, 2*time.Hour, true), action("a drain of the hour", v1.OperationDrain, 50*time.Minute, true),
		action("a stop of the day", v1.OperationStopJob, 22*time.Hour, true),
		action("a stop without effect", v1.OperationStopJob, 40*time.Minute, false),
	}, keeping(0), now) {
		names = append(names, a.Name)
	}
	require.Equal(t, []string{"an old restart", "a drain of the day", "a stop without effect"}, names)
}
