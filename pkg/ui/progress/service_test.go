package progress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/tui"
	"github.com/openpai/paictl/test/output"
)

// serviceStory returns the events of a start of five services, up to the moment when one service is ready, one waits for its image, one failed
// and was reverted, and one waits.
func serviceStory() []services.Event {
	on := func(s float64, kind, service, message string) services.Event {
		return services.Event{Time: at(s), Kind: kind, Service: service, Message: message}
	}
	pull := ready.Problem{Object: "pod/prometheus-0", Reason: "ImagePullBackOff", Message: "image can't be pulled: no such image quay.io/prometheus:v9", Hint: "check image.tag of prometheus", Final: true}
	crash := ready.Problem{Object: "pod/alert-manager-0", Reason: "CrashLoopBackOff", Message: "keeps crashing: exited with 1", Hint: "see its log", Log: []string{"level=error", "cannot read the configuration"}}
	return []services.Event{
		{Time: at(0), Kind: services.EventRunStarted, Message: "service start", Services: []string{"alert-manager", "node-exporter", "storage", "prometheus", "grafana"}},
		on(0, services.EventWarning, "", "1 machine of the layout not in the cluster: m1"),
		on(0, services.EventAdded, "storage", "added: required by prometheus"),
		on(0, services.EventChanged, "", "label disk=big on node w1"),
		on(0, services.EventWaiting, "prometheus", "waits for storage"),
		on(0, services.EventWaiting, "grafana", "waits for prometheus"),
		on(0, services.EventStarted, "alert-manager", ""),
		on(0, services.EventStarted, "node-exporter", ""),
		on(0, services.EventStarted, "storage", ""),
		{Time: at(1), Kind: services.EventApplied, Service: "storage", Action: release.Installed, Revision: 1},
		{Time: at(1), Kind: services.EventApplied, Service: "alert-manager", Action: release.Installed, Revision: 1},
		{Time: at(1), Kind: services.EventApplied, Service: "node-exporter", Action: release.Unchanged, Revision: 3},
		{Time: at(1), Kind: services.EventReady, Service: "node-exporter", Action: release.Unchanged, Revision: 3, Elapsed: time.Second},
		{Time: at(4), Kind: services.EventReady, Service: "storage", Action: release.Installed, Revision: 1, Elapsed: 4 * time.Second},
		on(4, services.EventStarted, "prometheus", ""),
		{Time: at(5), Kind: services.EventApplied, Service: "prometheus", Action: release.Upgraded, Revision: 4},
		{Time: at(6), Kind: services.EventProblem, Service: "alert-manager", Problem: &crash},
		{Time: at(6), Kind: services.EventProblem, Service: "prometheus", Problem: &pull},
		{Time: at(6), Kind: services.EventProgress, Service: "prometheus", State: &ready.State{Pods: 2, ReadyPods: 1, Problems: []ready.Problem{pull}}},
		{Time: at(16), Kind: services.EventFailed, Service: "alert-manager", Error: "pod/alert-manager-0: keeps crashing: exited with 1", Hint: "see its log", Elapsed: 16 * time.Second},
		{Time: at(17), Kind: services.EventReverted, Service: "alert-manager", Message: "removed; volumes stay"},
	}
}

func serviceEnding() []services.Event {
	s := &services.Summary{
		Command: "paictl service start", Services: 5, Changed: []string{"alert-manager", "prometheus", "storage"}, Changes: 4, Elapsed: 25 * time.Second,
		Failed: []services.Failed{
			{Service: "alert-manager", Error: "pod/alert-manager-0: keeps crashing: exited with 1", Hint: "see its log"},
			{Service: "prometheus", Error: "pod/prometheus-0: image can't be pulled: no such image quay.io/prometheus:v9", Hint: "check image.tag of prometheus"},
		},
		NotStarted: []string{"grafana"}, Retry: "paictl service start -n alert-manager,grafana,prometheus",
	}
	return []services.Event{
		{Time: at(24), Kind: services.EventFailed, Service: "prometheus", Error: s.Failed[1].Error, Hint: s.Failed[1].Hint, Elapsed: 20 * time.Second},
		{Time: at(24), Kind: services.EventReverted, Service: "prometheus", Message: "rolled back to revision 3"},
		{Time: at(25), Kind: services.EventNotStarted, Service: "grafana", Message: "not started: waits for prometheus"},
		{Time: at(25), Kind: services.EventRunDone, Summary: s, Elapsed: s.Elapsed},
	}
}

func TestPlainTellsARunOnServices(t *testing.T) {
	var out bytes.Buffer
	r := newServicePlain(&out, false)
	for _, e := range append(serviceStory(), serviceEnding()...) {
		r.Emit(e)
	}
	require.NoError(t, r.Close())
	golden(t, "service_plain.golden", out.String())
}

func TestFramesOfServicesFitTheirScreen(t *testing.T) {
	for _, tc := range []struct {
		name          string
		width, height int
		events        []services.Event
		stopping      bool
	}{
		{name: "wide", width: 140, height: 30, events: serviceStory()},
		{name: "usual", width: 80, height: 24, events: serviceStory()},
		{name: "low", width: 80, height: 9, events: serviceStory()},
		{name: "tiny", width: 20, height: 4, events: serviceStory()},
		{name: "stopping", width: 100, height: 24, events: serviceStory(), stopping: true},
		{name: "over", width: 100, height: 24, events: append(serviceStory(), serviceEnding()...)},
		{name: "nothing yet", width: 80, height: 24},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := serviceModel(tc.width, tc.height, tc.events)
			if tc.stopping {
				next, _ := m.Update(stoppingMsg{})
				m = next.(model[services.Event])
			}
			frame := m.View()
			lines := strings.Split(frame, "\n")
			assert.LessOrEqual(t, len(lines), max(tc.height-1, 1), "higher than the screen")
			for _, l := range lines {
				assert.LessOrEqual(t, tui.Width(l), tc.width, "wider than the screen: %q", l)
			}
			golden(t, fmt.Sprintf("service_frame_%s_%dx%d.golden", strings.ReplaceAll(tc.name, " ", "_"), tc.width, tc.height), frame+"\n")
		})
	}
}

func serviceModel(w, h int, events []services.Event) model[services.Event] {
	m := model[services.Event]{run: newReleases(), p: tui.NewLinePalette(false), now: at(0), next: func() tea.Msg { return nil }}
	for _, msg := range []tea.Msg{tea.WindowSizeMsg{Width: w, Height: h}, frame[services.Event]{now: at(17.3), events: events}} {
		next, _ := m.Update(msg)
		m = next.(model[services.Event])
	}
	return m
}

func TestAServiceThatHasStoppedWaitsForNothing(t *testing.T) {
	frame := serviceModel(100, 24, []services.Event{
		{Time: at(0), Kind: services.EventRunStarted, Message: "service stop", Services: []string{"prometheus"}},
		{Time: at(0), Kind: services.EventStarted, Service: "prometheus"},
		{Time: at(1), Kind: services.EventProgress, Service: "prometheus", Message: "waits for 1 pod to end"},
		{Time: at(2), Kind: services.EventStopped, Service: "prometheus", Action: "stopped", Elapsed: 2 * time.Second},
	}).View()
	assert.Contains(t, frame, "stopped")
	assert.NotContains(t, frame, "waits for")
}

func TestTheLastPictureOfServicesHasTableProblemsSummaryAndRetry(t *testing.T) {
	m := serviceModel(100, 24, append(serviceStory(), serviceEnding()...))
	golden(t, "service_final.golden", m.screen().final(m.run.picture()))
}

func TestLiveLeavesTheFinalTableOfServicesBehind(t *testing.T) {
	out := &output.Buffer{}
	l := newServiceLive(t.Context(), LiveOptions{Out: out, Now: func() time.Time { return at(40) }})
	for _, e := range append(serviceStory(), serviceEnding()...) {
		l.Emit(e)
	}
	require.NoError(t, l.Close())
	assert.Contains(t, out.String(), "paictl service start -n alert-manager,grafana,prometheus")
}

func TestJSONLinesOfServicesReadBackAsTheSameEvents(t *testing.T) {
	io, _, out, _ := iostreams.Test()
	r := OpenServices(t.Context(), io, "json")
	want := append(serviceStory(), serviceEnding()...)
	for _, e := range want {
		r.Emit(e)
	}
	require.NoError(t, r.Close())
	dec := json.NewDecoder(out)
	var got []services.Event
	for dec.More() {
		var e services.Event
		require.NoError(t, dec.Decode(&e))
		got = append(got, e)
	}
	assert.Equal(t, want, got)
	assert.Equal(t, services.EventRunDone, got[len(got)-1].Kind, "the last line is the summary")
}

func TestAPlanOfServicesIsPrintedWithItsDiffs(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteServicePlan(&out, []services.Event{
		{Kind: services.EventPlanned, Plan: &release.Plan{Changes: []release.Change{{Action: "update", Object: "Node w1", Diff: "+ label disk=big\n"}}}},
		{Kind: services.EventPlanned, Service: "grafana", Plan: &release.Plan{Action: release.Unchanged}},
		{Kind: services.EventPlanned, Service: "prometheus", Plan: &release.Plan{Action: release.Upgraded, Changes: []release.Change{
			{Action: "update", Object: "ConfigMap pai-system/prometheus", Diff: "@@ -1 +1 @@\n-a: 1\n+a: 2\n"},
			{Action: "delete", Object: "Service pai-system/old"},
		}}},
	}))
	golden(t, "service_plan.golden", out.String())
	out.Reset()
	require.NoError(t, WriteServicePlan(&out, nil))
	assert.Equal(t, "No changes: the services match the configuration.\n", out.String())
}

func TestNoRenderingLetsAPodControlTheTerminal(t *testing.T) {
	evil := "bad\x1b[2J\x1b]0;title\a\r\nsecond\u202eline"
	e := services.Event{Kind: services.EventProblem, Service: "a\x1b", Problem: &ready.Problem{Object: evil, Reason: evil, Message: evil, Hint: evil, Log: []string{evil}}}
	var out bytes.Buffer
	newServicePlain(&out, false).Emit(e)
	b := newReleases()
	b.apply(e)
	b.apply(services.Event{Kind: services.EventFailed, Service: "a\x1b", Error: evil, Hint: evil})
	out.WriteString(screen{width: 80, height: 24, p: tui.NewLinePalette(false)}.frame(b.board, ""))
	for _, bad := range []string{"\x1b", "\a", "\r", "\u202e"} {
		assert.NotContains(t, out.String(), bad)
	}
}
