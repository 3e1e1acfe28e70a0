package step_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// An Action that began while the clock was ahead counts until its start time has passed, because it may have begun just now.
func TestLimitsCountWhatBeganWhileTheClockWasAhead(t *testing.T) {
	ahead := metav1.NewTime(start.Add(240 * time.Hour))
	began := onMachine(v1.OperationDrain, func(a *v1.Action) { a.Name, a.Spec.Machine = "broken-2", &v1.Machine{Name: "node9", UID: "n9"} })
	began.Status = v1.ActionStatus{Phase: v1.PhaseSucceeded, StartTime: &ahead, EndTime: &ahead}
	l := step.Limits{MachinesPerHour: 1, MachinesOut: 100}
	machines := step.Machines{Total: 20}
	require.Equal(t, step.Limit{Wait: "it waits: policies may put 1 machine out of service an hour", After: time.Hour}, l.Check(onMachine(v1.OperationDrain), []*v1.Action{began}, machines, start))
	require.Equal(t, step.Limit{}, l.Check(onMachine(v1.OperationDrain), []*v1.Action{began}, machines, ahead.Add(time.Hour)))
}

// Some clocks change at midnight, so that the first hour of a day doesn't exist. Hours that don't exist on a day are skipped and not replaced.
func TestHoursWhenTheClockChanges(t *testing.T) {
	day := func(d time.Weekday) (out [7]bool) { out[d] = true; return out }
	every := [7]bool{true, true, true, true, true, true, true}
	for _, c := range []struct {
		name, zone string
		days       [7]bool
		from, to   int
		at, want   string
	}{
		{"Saturday night isn't Sunday", "America/Havana", day(time.Sunday), 0, 60, "2026-03-08T04:30:00Z", "2026-03-15T04:00:00Z"},
		{"Sunday has no such hour", "America/Havana", day(time.Sunday), 0, 60, "2026-03-08T05:10:00Z", "2026-03-15T04:00:00Z"},
		{"the week before", "America/Havana", day(time.Sunday), 0, 60, "2026-03-02T12:00:00Z", "2026-03-15T04:00:00Z"},
		{"a day that begins at one", "America/Havana", day(time.Sunday), 0, 120, "2026-03-08T04:30:00Z", "2026-03-08T05:00:00Z"},
		{"a Friday that begins at one", "Africa/Cairo", day(time.Friday), 0, 24 * 60, "2026-04-23T20:00:00Z", "2026-04-23T22:00:00Z"},
		{"the hour before it", "Africa/Cairo", day(time.Thursday), 0, 24 * 60, "2026-04-23T21:30:00Z", "2026-04-23T21:30:00Z"},
		{"an hour that doesn't exist", "Europe/Berlin", every, 150, 180, "2026-03-29T00:00:00Z", "2026-03-30T00:30:00Z"},
		{"an hour that comes twice", "Europe/Berlin", every, 150, 180, "2026-10-25T01:45:00Z", "2026-10-25T01:45:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339, c.at)
		require.NoError(t, err)
		h := &step.Hours{Zone: zone, Days: c.days, From: c.from, To: c.to}
		got := h.Next(at)
		require.Equal(t, c.want, got.UTC().Format(time.RFC3339), c.name)
		require.Equal(t, got, h.Next(got), c.name)
	}
	never := &step.Hours{Zone: time.UTC, From: 0, To: 60}
	require.True(t, never.Next(start).After(start))
}
