package step_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

func office(t *testing.T) *step.Hours {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	return &step.Hours{Zone: zone, Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * 60, To: 18 * 60}
}

// Hours refer to a time zone, even when the clock of the zone changes.
func TestHours(t *testing.T) {
	for at, want := range map[string]string{
		"2026-11-30T08:30:00Z": "2026-11-30T08:30:00Z", // a Monday, 9:30 in Berlin
		"2026-11-30T07:59:00Z": "2026-11-30T08:00:00Z",
		"2026-11-30T16:59:59Z": "2026-11-30T16:59:59Z",
		"2026-11-30T17:00:00Z": "2026-12-01T08:00:00Z",
		"2026-12-04T20:00:00Z": "2026-12-07T08:00:00Z", // over the weekend
		"2026-11-29T23:30:00Z": "2026-11-30T08:00:00Z", // Monday in Berlin, Sunday in UTC
		"2026-03-27T20:00:00Z": "2026-03-30T07:00:00Z", // summer time begins
	} {
		t0, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		require.Equal(t, want, office(t).Next(t0).UTC().Format(time.RFC3339), at)
	}
	now := time.Now()
	require.Equal(t, now, (*step.Hours)(nil).Next(now))
}

// A grace period that would end at night is extended to the next morning. The notice contains that time, and the limits count the Action at that
// time.
func TestAPolicyActsInItsHours(t *testing.T) {
	friday := time.Date(2026, 12, 4, 15, 0, 0, 0, time.UTC)
	monday := time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC)
	valid := func(a *v1.Action) { a.Spec.NotAfter = metav1.NewTime(monday.Add(24 * time.Hour)) }
	a, f := stop(grace(4*time.Hour), valid), facts()
	f.Hours = office(t)
	n := step.Decide(a, f, friday)
	require.Equal(t, v1.PhaseNoticed, n.Status.Phase)
	require.Equal(t, monday, n.Status.ActTime.Time)
	require.Equal(t, "it will stop ann/train at 2026-12-07T08:00:00Z", n.Status.Message)
	a.Status = n.Status

	l := step.Limits{StopsPerHour: 1, StopsPerHourAndVC: 1, Hours: f.Hours}
	other := stop(grace(time.Hour), func(o *v1.Action) { o.Name = "other" })
	require.Equal(t, step.Limit{}, l.Check(other, []*v1.Action{a}, step.Machines{}, friday), "it acts on Friday")
	require.NotEmpty(t, l.Check(other, []*v1.Action{a}, step.Machines{}, friday.Add(4*time.Hour)).Wait, "it would act on Monday at the same time")

	require.Equal(t, step.EffectStopJob, step.Decide(a, f, monday).Effect)
	n = step.Decide(a, f, monday.Add(12*time.Hour))
	require.Equal(t, v1.PhaseNoticed, n.Status.Phase, "the handler was away for the day")
	require.Equal(t, "it waits for the hours of its policy, which begin at 2026-12-08T09:00:00+01:00", n.Status.Message)

	n = step.Decide(stop(valid), f, friday.Add(6*time.Hour))
	require.Equal(t, v1.PhasePending, n.Status.Phase)
	require.Empty(t, n.Effect)
	require.Equal(t, monday.Sub(friday.Add(6*time.Hour)), n.After)
}

// An Action doesn't begin if its alert wasn't repeated, because the alert may have ended.
func TestAnAlertThatWasntRepeated(t *testing.T) {
	a, f := stop(grace(time.Hour)), facts()
	f.Unheard = "it waits: the alert"
	a.Status = step.Decide(a, f, start).Status
	require.Equal(t, v1.PhaseNoticed, a.Status.Phase)
	n := step.Decide(a, f, start.Add(time.Hour))
	require.Equal(t, v1.PhaseNoticed, n.Status.Phase, "it was announced, and keeps its place")
	require.Equal(t, "it waits: the alert", n.Status.Message)
	require.Empty(t, n.Effect)
	a.Status, f.Unheard = n.Status, ""
	require.Equal(t, step.EffectStopJob, step.Decide(a, f, start.Add(time.Hour)).Effect)
	n = step.Decide(a, f, start.Add(2*time.Hour))
	require.Equal(t, v1.PhaseExpired, n.Status.Phase)
	require.Contains(t, n.Status.Message, "; before that: it waits: the alert")
	f.Unheard = "it waits: the alert"
	require.Equal(t, v1.PhasePending, step.Decide(stop(), f, start).Status.Phase)
}
