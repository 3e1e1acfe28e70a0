package progress

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ui/tui"
	"github.com/openpai/paictl/test/output"
)

// newModel returns the model of a live table. It counts interrupts instead of sending them.
func newModel(interrupts *int) model[engine.Event] {
	return model[engine.Event]{
		run: newHosts(), p: tui.NewLinePalette(false), now: at(0),
		next:      func() tea.Msg { return nil },
		interrupt: func() tea.Msg { *interrupts++; return nil },
	}
}

func send(m model[engine.Event], msgs ...tea.Msg) (model[engine.Event], tea.Cmd) {
	var cmd tea.Cmd
	for _, msg := range msgs {
		var next tea.Model
		next, cmd = m.Update(msg)
		m = next.(model[engine.Event])
	}
	return m, cmd
}

func TestFramesFitTheirScreen(t *testing.T) {
	for _, tc := range []struct {
		name          string
		width, height int
		events        []engine.Event
		stopping      bool
	}{
		{name: "wide", width: 140, height: 30, events: story()},
		{name: "usual", width: 80, height: 24, events: story()},
		{name: "narrow", width: 44, height: 20, events: story()},
		{name: "tiny", width: 20, height: 6, events: story()},
		{name: "one line", width: 10, height: 1, events: story()},
		{name: "stopping", width: 100, height: 24, events: story(), stopping: true},
		{name: "over", width: 100, height: 24, events: append(story(), ending()...)},
		{name: "thousand hosts", width: 110, height: 20, events: crowd(1000)},
		{name: "thousand hosts narrow", width: 50, height: 12, events: crowd(1000)},
		{name: "nothing yet", width: 80, height: 24},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, _ := send(newModel(new(int)), tea.WindowSizeMsg{Width: tc.width, Height: tc.height}, frame[engine.Event]{now: at(17.3), events: tc.events})
			if tc.stopping {
				m, _ = send(m, stoppingMsg{})
			}
			frame := m.View()
			lines := strings.Split(frame, "\n")
			assert.LessOrEqual(t, len(lines), max(tc.height-1, 1), "higher than the screen")
			for _, l := range lines {
				assert.LessOrEqual(t, tui.Width(l), tc.width, "wider than the screen: %q", l)
				assert.NotContains(t, l, "\x1b", "colour without leave")
			}
			golden(t, fmt.Sprintf("frame_%s_%dx%d.golden", strings.ReplaceAll(tc.name, " ", "_"), tc.width, tc.height), frame+"\n")
		})
	}
}

func TestTheLastPictureHasTableWarningsSummaryAndRetry(t *testing.T) {
	for _, w := range []int{120, 60} {
		m, _ := send(newModel(new(int)), tea.WindowSizeMsg{Width: w, Height: 24}, frame[engine.Event]{now: at(40), events: append(story(), ending()...), closed: true})
		assert.Empty(t, m.View(), "what stays is printed, not drawn")
		golden(t, fmt.Sprintf("final_%d.golden", w), m.screen().final(m.run.picture()))
	}
}

func TestARunThatIsRefusedNamesEveryFailedCheckAtTheEnd(t *testing.T) {
	events := []engine.Event{
		story()[0],
		{Time: at(1), Kind: engine.EventPhaseStarted, Host: "gpu-1", Phase: "preflight"},
		{Time: at(1), Kind: engine.EventPhaseFailed, Phase: "preflight", Error: "the pod and service networks overlap", Hint: "choose another pod-cidr"},
		{Time: at(1), Kind: engine.EventPhaseFailed, Host: "gpu-1", Phase: "preflight", Error: "port 6443 is taken", Hint: "stop nginx"},
		{Time: at(1), Kind: engine.EventPhaseFailed, Host: "gpu-1", Phase: "preflight", Error: "1 GB of disk", Hint: "give it more"},
	}
	m, _ := send(newModel(new(int)), tea.WindowSizeMsg{Width: 100, Height: 24}, frame[engine.Event]{now: at(2), events: events, closed: true})
	golden(t, "final_refused.golden", m.screen().final(m.run.picture()))

	var out bytes.Buffer
	r := NewPlain(&out, false)
	for _, e := range events {
		r.Emit(e)
	}
	golden(t, "plain_refused.golden", out.String())
}

func TestTheLastPictureOfManyHostsIsBounded(t *testing.T) {
	m, _ := send(newModel(new(int)), frame[engine.Event]{now: at(40), events: crowd(1000), closed: true})
	final := m.screen().final(m.run.picture())
	assert.Less(t, strings.Count(final, "\n"), finalMax+10)
	assert.Contains(t, final, "… and 960 hosts more:")
	assert.Contains(t, final, "\nnode-0500", "the one that failed comes first")
}

func TestColourIsUsedWhenAllowed(t *testing.T) {
	m := newModel(new(int))
	m.p = tui.NewLinePalette(true)
	m, _ = send(m, tea.WindowSizeMsg{Width: 80, Height: 24}, frame[engine.Event]{now: at(17), events: story()})
	assert.Contains(t, m.View(), "\x1b[31m✗\x1b[0m", "a failure is red")
	for _, l := range strings.Split(m.View(), "\n") {
		assert.LessOrEqual(t, tui.Width(l), 80)
	}
}

func TestCtrlCAsksOnceAndThenLeaves(t *testing.T) {
	interrupts := 0
	m, _ := send(newModel(&interrupts), frame[engine.Event]{now: at(17), events: story()})
	m, cmd := send(m, tea.KeyMsg{Type: tea.KeyCtrlC})
	require.NotNil(t, cmd)
	cmd()
	assert.Equal(t, 1, interrupts)
	assert.Contains(t, m.View(), "finishing the running steps…")

	m, cmd = send(m, tea.KeyMsg{Type: tea.KeyCtrlC})
	require.NotNil(t, cmd)
	assert.Equal(t, tea.QuitMsg{}, cmd())
	assert.True(t, m.aborted)
	assert.Equal(t, 1, interrupts, "the second one is sent when the terminal is restored")
}

func TestOtherKeysDoNothing(t *testing.T) {
	m, cmd := send(newModel(new(int)), frame[engine.Event]{now: at(17), events: story()}, tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q")})
	assert.Nil(t, cmd)
	assert.False(t, m.over)
}

func TestAPhaseThatTheStartDidNotNameGetsAColumn(t *testing.T) {
	b := newHosts()
	b.apply(engine.Event{Kind: engine.EventRunStarted, Message: "x", Hosts: []string{"a"}, Phases: []string{"p"}})
	b.apply(engine.Event{Kind: engine.EventPhaseDone, Host: "b", Phase: "q", Changes: 2})
	assert.Equal(t, []string{"p", "q"}, b.phases)
	require.Len(t, b.rows, 2)
	assert.Len(t, b.rows[0].cells, 2)
	assert.Equal(t, 2, b.rows[1].cells[1].changes)
}

func TestLiveLeavesTheFinalTableBehind(t *testing.T) {
	out := &output.Buffer{}
	l := NewLive(t.Context(), LiveOptions{Out: out, Now: func() time.Time { return at(40) }})
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, e := range append(story(), ending()...) {
			l.Emit(e)
		}
	})
	wg.Wait()
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "closing twice is harmless")
	assert.Contains(t, out.String(), "paictl cluster up -p ./cluster --limit gpu-2")
	assert.Equal(t, 1, strings.Count(out.String(), "1 host failed:"))
}

func TestLiveShowsThatACancelledRunFinishesItsSteps(t *testing.T) {
	out := &output.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	l := NewLive(ctx, LiveOptions{Out: out, Now: func() time.Time { return at(40) }})
	for _, e := range story() {
		l.Emit(e)
	}
	cancel()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "finishing the running steps") }, time.Minute, 10*time.Millisecond)
	require.NoError(t, l.Close())
}

func TestLiveGoesOnWithPlainLinesAfterTheSecondCtrlC(t *testing.T) {
	out := &output.Buffer{}
	interrupts := make(chan struct{}, 2)
	l := NewLive(t.Context(), LiveOptions{Out: out, Now: func() time.Time { return at(40) }, Interrupt: func() { interrupts <- struct{}{} }})
	l.program.Send(tea.KeyMsg{Type: tea.KeyCtrlC})
	<-interrupts
	l.program.Send(tea.KeyMsg{Type: tea.KeyCtrlC})
	<-interrupts
	<-l.ended
	for _, e := range ending() {
		l.Emit(e)
	}
	require.NoError(t, l.Close())
	assert.Contains(t, out.String(), "master-01  images  done, 12 changes (25 s)\n")
	assert.Contains(t, out.String(), "3 hosts, 2 changed, 41 changes, 38 s")
}
