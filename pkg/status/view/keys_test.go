package view

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
	"github.com/openpai/paictl/pkg/ui/tui"
)

func strip(s string) string { return ansi.Strip(s) }

func keyOf(k string) tea.KeyMsg {
	if t, ok := named[k]; ok {
		return tea.KeyMsg{Type: t}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
}

func TestStoppingAJobAsksByNameAndCanBeTakenBack(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("6", "/", "running", "enter")
	name := d.m.page().(*jobList).rows[0].Title()
	d.keys("x")
	assert.Contains(t, d.frame(), "Stop job "+name)
	d.keys("n")
	assert.Empty(t, d.act.called())
	assert.Contains(t, d.frame(), "nothing was done")

	d.keys("x", "y")
	assert.Equal(t, []string{"stop " + name}, d.act.called())
	assert.Contains(t, d.frame(), "stopping "+name+"   u to run it again from its start (15 s)")
	d.keys("u")
	assert.Equal(t, []string{"stop " + name, "retry " + name}, d.act.called())
}

func TestAJobOfTheListAnswersTheKeysOfAJob(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("6")
	name := d.m.page().(*jobList).rows[0].Title()
	d.keys("w")
	assert.Contains(t, d.frame(), "jobs › "+name+" › why")
	d.keys("esc", "esc", "e")
	assert.Contains(t, d.frame(), "jobs › "+name+" › events")
	d.keys("esc", "esc", "l")
	assert.Contains(t, d.frame(), "jobs › logs of "+name)
}

func TestACordonAsksAndNamesAMaster(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("2", "c")
	assert.Contains(t, d.frame(), "Cordon gpu-00?")
	d.keys("n")
	assert.Empty(t, d.act.called())
	machine := status.Machine{Name: "m1", State: status.MachineReady, Roles: []string{"master"}}
	asked, ok := machineKey(nil, &machine, "c")
	assert.True(t, ok)
	assert.Contains(t, asked.ask.text, "Cordon m1, a master?")
	asked, ok = machineKey(nil, &machine, "D")
	assert.True(t, ok)
	assert.Contains(t, asked.ask.text, "Drain m1, a master?")
}

func TestAnUndoIsOfferedForAWhile(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("2", "c", "y")
	assert.Equal(t, []string{"cordon gpu-00"}, d.act.called()[:1])
	d.now = d.now.Add(undoFor)
	d.send(secondMsg(d.now))
	assert.NotContains(t, d.frame(), "u to uncordon")
	d.keys("u")
	assert.Len(t, d.act.called(), 1)
}

func TestDrainingAsksAndShowsWhatItDoes(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome())
	d.act.hold = make(chan struct{})
	d.keys("2", "D")
	assert.Contains(t, d.frame(), "Drain gpu-00?")
	d.keys("y")
	d.until(func() bool { return strings.Contains(d.frame(), "drain gpu-00 begins") })
	d.keys("esc")
	assert.Contains(t, d.frame(), "1 work in progress")
	d.keys("q")
	assert.Contains(t, d.frame(), "Quit? 1 work in progress will be stopped.")
	d.keys("n")
	close(d.act.hold)
	d.until(func() bool { return strings.Contains(d.frame(), "drain gpu-00: done") })
}

func TestARefusalIsShownWithItsRemedy(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome())
	d.act.refuse = hint.Wrap(errors.New("nodes is forbidden"), "ask an admin")
	d.keys("2", "c", "y")
	assert.Contains(t, d.frame(), "✗ nodes is forbidden -> ask an admin")
	assert.NotContains(t, d.frame(), "u to")
	d.act.refuse = nil
	d.keys("l")
	assert.Contains(t, d.frame(), "doesn't show the journal -> look there: ssh")

	d = drive(t, small(), 60, 24, monochrome()).keys("2", "l")
	assert.Contains(t, strings.Join(strings.Fields(d.frame()), " "), "-> look there: ssh 10.0.0.1 journalctl -f", "the remedy is never cut")
}

func TestFilteringKeepsWhatFits(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("6", "/", "running")
	l := d.m.page().(*jobList)
	require.NotEmpty(t, l.rows)
	for _, j := range l.rows {
		assert.Equal(t, "running", j.State)
	}
	d.keys("backspace", " !running", "esc")
	assert.Len(t, l.rows, l.total, "esc takes back what was typed")
	d.keys("/", "zzz", "enter")
	assert.Contains(t, d.frame(), `no job matches "zzz"; esc shows all`)
	d.keys("esc")
	assert.Len(t, l.rows, l.total)
}

func TestOrderGoesThroughTheColumnsThatAreShown(t *testing.T) {
	d := drive(t, small(), 80, 24, monochrome()).keys("2", "o")
	assert.Contains(t, d.frame(), "NAME↑")
	d.keys("O")
	assert.Contains(t, d.frame(), "NAME↓")
	for range 20 {
		d.keys("o")
		l := d.m.page().(*list[*status.Machine])
		if l.sorted >= 0 {
			assert.Positive(t, l.widths[l.sorted])
		}
	}
}

func TestTheCursorStaysOnItsThingWhenTheModelChanges(t *testing.T) {
	c := small()
	d := drive(t, c, 120, 40, monochrome()).keys("6", "down", "down", "down")
	at := d.m.page().(*jobList).at
	next := *c
	next.Jobs = append([]*status.Job{{}, {}}, c.Jobs...)
	d.source.set(&next)
	d.until(func() bool { return d.m.cluster == &next })
	l := d.m.page().(*jobList)
	assert.Equal(t, at, l.at)
	assert.Equal(t, 5, l.win.Cursor)
}

func TestDrillingDownAndBack(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("2", "down", "enter")
	assert.Contains(t, d.frame(), " machines › gpu-01")
	d.keys("esc")
	assert.Equal(t, 1, d.m.page().(*list[*status.Machine]).win.Cursor, "it comes back to where it was")
	d.keys("4", "2")
	assert.Equal(t, 1, d.m.page().(*list[*status.Machine]).win.Cursor, "also by way of another screen")
}

func TestJumpingGoesAnywhere(t *testing.T) {
	c := small()
	for text, want := range map[string]string{
		"serv": " services", "gpu-02": "› gpu-02", c.Jobs[3].Title(): "› " + c.Jobs[3].Title(), c.Services[2].Name: "› " + c.Services[2].Name,
		c.VirtualClusters[0].Name: "› " + c.VirtualClusters[0].Name,
	} {
		d := drive(t, c, 120, 40, monochrome()).keys(":", text, "enter")
		assert.Contains(t, d.frame(), want)
	}
	d := drive(t, c, 120, 40, monochrome()).keys(":", "zzz")
	assert.Contains(t, d.frame(), "nothing has this name")
	d.keys("enter")
	assert.Contains(t, d.frame(), " overview")
}

func TestEachCellOfTheHeatMapExplainsItself(t *testing.T) {
	c := small()
	d := drive(t, c, 80, 24, monochrome()).keys("3")
	for i := range c.Machines {
		for k := range c.Machines[i].GPUs {
			m, g := d.m.page().(*heatPage).current()
			assert.Same(t, &c.Machines[i].GPUs[k], g)
			assert.Contains(t, d.line(m.Name+"/"), g.Health)
			assert.Contains(t, d.frame(), ownerText(g))
			if g.Reason != "" {
				assert.Contains(t, strings.Join(strings.Fields(d.frame()), " "), g.Reason)
			}
			d.keys("right")
		}
	}
	d.keys("enter")
	assert.Contains(t, d.frame(), "› gpu-02")
}

func TestTheMouseSelectsOpensAndScrolls(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome())
	d.click(16, 1)
	assert.Contains(t, d.frame(), "[2 Machines]")
	d.click(10, 5)
	assert.Equal(t, 1, d.m.page().(*list[*status.Machine]).win.Cursor)
	d.click(10, 5)
	assert.Contains(t, d.frame(), "› gpu-01")
	d.click(3, 2)
	assert.NotContains(t, d.frame(), "› gpu-01")
	d.send(tea.MouseMsg{Button: tea.MouseButtonWheelDown})
	assert.Equal(t, 2, d.m.page().(*list[*status.Machine]).win.Cursor)
	d.keys("3")
	h := d.m.page().(*heatPage)
	_ = d.frame()
	d.click(h.block+1+h.name+2*2+1, 3)
	assert.Equal(t, [2]int{1, 2}, [2]int{h.machine%max(h.beside, 1) + h.machine/h.beside, h.gpu})
}

func TestAClickEndsWhatIsBeingTyped(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("2", "/", "gpu-01")
	d.click(62, 1)
	assert.Contains(t, d.frame(), "[7 Alerts]")
	assert.Equal(t, browsing, d.m.mode, "what is typed next is no filter of this page")
	d.click(16, 1)
	assert.Contains(t, d.frame(), "/gpu-01 · 1 of 3 machines", "the filter stays, as with enter")

	d = drive(t, small(), 120, 40, monochrome()).keys(":", "gpu")
	lines := strings.Split(strip(d.frame()), "\n")
	row := func(text string) int {
		for i, l := range lines {
			if strings.Contains(l, text) && strings.HasSuffix(strings.TrimSpace(l), "machine") {
				return i
			}
		}
		t.Fatal("it isn't listed: " + text)
		return 0
	}
	d.send(tea.MouseMsg{Button: tea.MouseButtonWheelDown})
	assert.Equal(t, 1, d.m.choice, "the wheel moves in the list that is open")
	d.click(5, row("gpu-01"))
	assert.Contains(t, d.frame(), "› gpu-01")
	d.keys(":", "gpu")
	d.click(16, 1)
	assert.Contains(t, d.frame(), "[2 Machines]")
	assert.Equal(t, browsing, d.m.mode)

	d.keys("?")
	d.click(5, 9)
	assert.Equal(t, browsing, d.m.mode, "help closes, as with any key")
	assert.Equal(t, 0, d.m.page().(*list[*status.Machine]).win.Cursor)
}

func TestLogsFollowStandStillAndAreSearched(t *testing.T) {
	d := drive(t, small(), 80, 24, monochrome())
	d.act.hold = make(chan struct{})
	d.keys("6", "/", "running", "enter", "l")
	d.until(func() bool { return strings.Contains(d.frame(), "100% done") })
	assert.NotContains(t, d.frame(), "50%", "a carriage return writes over")
	assert.Contains(t, d.frame(), "101 lines · follows")
	assert.NotContains(t, d.frame(), "title")
	d.keys("up")
	assert.Contains(t, d.frame(), "continues below")
	d.keys("G", "/", "loss=7", "enter")
	assert.Contains(t, d.frame(), "11 of 101 lines")
	stream := d.m.page().(*textPage).stream
	d.keys("esc", "esc")
	d.until(func() bool { stream.mu.Lock(); defer stream.mu.Unlock(); return stream.ended })
}

func TestAShellLeavesTheTerminal(t *testing.T) {
	d := drive(t, small(), 80, 24, monochrome()).keys("6", "/", "running", "enter")
	name := d.m.page().(*jobList).rows[0].Title()
	_, cmd := d.m.Update(keyOf("s"))
	require.NotNil(t, cmd)
	assert.Equal(t, []string{"shell " + name + " "}, d.act.called())
	d.keys("esc", "/", "succeeded", "enter", "s")
	assert.Contains(t, d.frame(), "there is no task to open a shell in")
}

func TestSuspendAndQuitAreKeys(t *testing.T) {
	d := drive(t, small(), 80, 24, monochrome())
	_, cmd := d.m.Update(keyOf("ctrl+z"))
	assert.IsType(t, tea.SuspendMsg{}, firstOf(cmd))
	_, cmd = d.m.Update(keyOf("q"))
	assert.IsType(t, tea.QuitMsg{}, firstOf(cmd))
	assert.Empty(t, d.m.View(), "the last frame leaves nothing behind")
}

// firstOf runs a command and returns its message. Of several commands, it runs only the first command.
func firstOf(cmd tea.Cmd) tea.Msg {
	msg := cmd()
	if b, ok := msg.(tea.BatchMsg); ok {
		for _, c := range b {
			if c != nil {
				return firstOf(c)
			}
		}
	}
	return msg
}

func TestAFrameIsDrawnOnlyWhenSomethingHasChanged(t *testing.T) {
	d := drive(t, small(), 80, 24, monochrome())
	_ = d.frame()
	d.m.frame = "kept"
	d.send(tea.MouseMsg{X: 4, Y: 9, Action: tea.MouseActionMotion})
	d.send(tea.FocusMsg{})
	assert.Equal(t, "kept", d.frame())
	d.keys("down")
	assert.NotEqual(t, "kept", d.frame())
}

// The test presses each key on each screen, with and without rows. Nothing may panic, and Update must not call an action
// directly.
func TestEveryKeyOnEveryScreen(t *testing.T) {
	all := strings.Split("abcdefghijklmnoprstvwzBCDEFGHIJKLMNOPRSTUVWXYZ1234567890 _", "")
	for name := range named {
		if name != "ctrl+c" && name != "ctrl+z" {
			all = append(all, name)
		}
	}
	for _, c := range []*status.Cluster{small(), statustest.Cluster(statustest.Options{})} {
		for _, f := range frames {
			if f.name == "stop" || f.name == "jump" || f.name == "filter" {
				continue
			}
			d := drive(t, c, 80, 24, monochrome()).keys(f.keys...)
			for _, k := range all {
				d.send(keyOf(k))
				_ = d.frame()
				if d.m.mode == asking {
					d.send(keyOf("n"))
				}
			}
		}
	}
}

func TestAgesGrowByThemselves(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome()).keys("8")
	before := d.frame()
	d.now = d.now.Add(time.Hour)
	d.send(secondMsg(d.now))
	assert.NotEqual(t, before, d.frame())
}

func TestAMapOfManyMachinesIsDense(t *testing.T) {
	o := statustest.Small()
	o.Machines, o.Jobs = 200, 400
	d := drive(t, statustest.Cluster(o), 120, 40, monochrome()).keys("3", "right", "right", "down")
	h := d.m.page().(*heatPage)
	assert.Equal(t, 1, h.pitch)
	assert.GreaterOrEqual(t, h.beside, 5)
	l := d.line(">gpu-")
	assert.Regexp(t, `>gpu-\d+ ..\[.\].....  `, l)
	at := h.machine
	d.click(h.block*2+1+h.name+1+6, 4)
	assert.Equal(t, [2]int{at + 2, 6}, [2]int{h.machine, h.gpu})
	for _, row := range strings.Split(d.frame(), "\n")[3:30] {
		assert.Equal(t, h.beside, strings.Count(row, "gpu-"), row)
	}
}

func TestWhatIsPastedIsNoOrder(t *testing.T) {
	d := drive(t, small(), 80, 24, monochrome()).keys("6", "/", "running", "enter")
	for _, r := range "xy" {
		d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Paste: true})
	}
	assert.Empty(t, d.act.called())
	assert.Equal(t, browsing, d.m.mode)
	d.keys("/")
	d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(" alice"), Paste: true})
	assert.Equal(t, "running alice", d.m.page().(filtered).filter())
}

func TestACordonHidesNoSickGPU(t *testing.T) {
	c := small()
	require.Positive(t, sick(&c.Machines[0]))
	c.Machines[0].Cordoned = true
	for _, size := range sizes {
		frame := drive(t, c, size[0], size[1], monochrome()).keys("2").frame()
		assert.Regexp(t, `! +gpu-00 +cordoned `, strip(frame))
	}
	c = small()
	c.Machines[1].Cordoned = true
	assert.Regexp(t, `- +gpu-01 +cordoned `, strip(drive(t, c, 80, 24, monochrome()).keys("2").frame()))
}

func TestAnAlertThatOnlyInformsIsNotShownAsGood(t *testing.T) {
	c := small()
	require.NotEmpty(t, c.Alerts)
	c.Alerts = append(c.Alerts, status.Alert{Name: "GpuXidOther", Severity: "info", Summary: "GPU 3 of gpu-1 reports XID 31"})
	frame := strip(drive(t, c, 120, 40, monochrome()).keys("7").frame())
	assert.Regexp(t, `i +GpuXidOther +info `, frame)
	assert.NotRegexp(t, `✓ +GpuXidOther`, frame)
}

func TestTheMouseWorksAgainAfterAnotherProgramHadTheTerminal(t *testing.T) {
	d := drive(t, small(), 120, 40, monochrome())
	for name, msg := range map[string]tea.Msg{"suspended": tea.ResumeMsg{}, "a shell": done{away: true}} {
		d.m.pending++
		_, cmd := d.m.Update(msg)
		require.NotNil(t, cmd, name)
		assert.Equal(t, tea.EnableMouseCellMotion(), cmd(), name)
	}
}

// An empty list is shown as unknown until its source has responded.
func TestWhatIsNotKnownIsNotSaidToBeNothing(t *testing.T) {
	c := small()
	c.Alerts, c.Jobs, c.Services, c.Counts.Alerts = nil, nil, nil, 0
	for i := range c.Sources {
		s := &c.Sources[i]
		switch s.Name {
		case status.SourceAlerts:
			s.State, s.Message, s.Hint = status.StateFailed, "no endpoints available", "look at alert-manager"
		case status.SourceJobs:
			s.State = status.StateLoading
		case status.SourceServices:
			s.State, s.Message = status.StateAbsent, "no service was started"
		}
	}
	d := drive(t, c, 120, 40, monochrome())
	assert.Contains(t, d.line("machines ·"), "alerts not known")
	assert.Contains(t, d.line("alerts   "), "not known")
	assert.Contains(t, d.keys("7").frame(), "not known: no endpoints available -> look at alert-manager")
	assert.Contains(t, d.keys("6").frame(), "asking…")
	assert.Contains(t, d.keys("5").frame(), "no service was started")
}

// A machine may have more GPUs, or parts of GPUs, than the screen has columns. The screen must always show the cursor's column.
func TestAMapThatIsTooWideFollowsTheCursor(t *testing.T) {
	c := small()
	m := &c.Machines[slices.IndexFunc(c.Machines, func(m status.Machine) bool { return len(m.GPUs) > 0 })]
	for len(m.GPUs) < 128 {
		g := m.GPUs[0]
		g.Index = int32(len(m.GPUs))
		m.GPUs = append(slices.Clone(m.GPUs), g)
	}
	m.GPUs[100].Health = status.GPUSick
	d := drive(t, c, 80, 24, monochrome()).keys("3")
	for k := range 127 {
		row := d.line("> ✓  ")
		if row == "" {
			row = d.line(">" + m.Name)
		}
		require.Contains(t, row, "[", "GPU %d", k)
		require.Contains(t, row, "]", "GPU %d", k)
		require.LessOrEqual(t, tui.Width(strings.TrimRight(row, "\n")), 80)
		assert.Equal(t, k < 127, strings.Contains(row, "…"), "GPU %d of 128", k)
		if k == 100 {
			assert.Contains(t, row, "["+tui.SignBad+"]")
		}
		d.keys("right")
	}
	d.keys(slices.Repeat([]string{"left"}, 127)...)
	assert.Equal(t, 0, d.m.page().(*heatPage).left)
}
