package notify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestWeeklyReportsAreDueOnMondays(t *testing.T) {
	monday := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for now, want := range map[time.Time]time.Time{
		monday: monday, monday.Add(-time.Second): monday.AddDate(0, 0, -7), monday.Add(time.Hour): monday, monday.AddDate(0, 0, 6): monday, monday.AddDate(0, 0, 7): monday.AddDate(0, 0, 7),
		monday.In(time.FixedZone("east", 10*3600)): monday,
	} {
		require.Equal(t, want, WeeklyAt(now), now)
	}
}

// People who have chosen the report get their own figures, and administrators get the figures of all people. Each person gets one report.
func TestWeeklyReports(t *testing.T) {
	s := newScene(t)
	s.config.Administrators, s.config.WeeklyReport = []string{"ops@example.org"}, true
	chosen := &peoplev1.Notifications{WeeklyReport: true}
	s.world.Weekly = &Weekly{At: s.now, Whole: func() string { return "everyone" }, Of: func(name string) string { return "of " + name },
		For: []Person{{Name: "ann", Address: "ann@example.org", Chosen: chosen}, {Name: "root", Address: "root@example.org", Chosen: chosen, Administrator: true}}}
	texts := map[string]string{}
	s.killed = func() { texts[s.sent[len(s.sent)-1]] = s.last.Text }
	r := s.replica()
	r.round()
	r.round()
	const subject = ": weekly report of GPU hours"
	require.Len(t, s.sent, 3)
	require.Contains(t, texts["ann@example.org"+subject], "of ann\n")
	require.Contains(t, texts["ann@example.org"+subject], "paictl notify")
	require.Contains(t, texts["root@example.org"+subject], "everyone\n")
	require.Equal(t, "everyone", texts["ops@example.org"+subject])
}
