package view

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"
)

// mouse handles clicks and the wheel. It returns false for events that change nothing.
func (m *Model) mouse(e tea.MouseMsg) (cmd tea.Cmd, moved bool) {
	click := e.Button == tea.MouseButtonLeft && e.Action == tea.MouseActionPress
	switch {
	case m.page() == nil || m.mode == asking:
		return nil, false
	case m.mode == helping && click:
		m.mode = browsing // as any key does
		return nil, true
	case m.mode == helping:
		return nil, false
	case e.Button == tea.MouseButtonWheelUp:
		return m.wheel("wheelup", tea.KeyUp), true
	case e.Button == tea.MouseButtonWheelDown:
		return m.wheel("wheeldown", tea.KeyDown), true
	case click:
		return m.click(e)
	}
	return nil, false
}

func (m *Model) wheel(k string, jump tea.KeyType) tea.Cmd {
	if m.mode == jumping {
		return m.keyJump(tea.KeyMsg{Type: jump})
	}
	e, _ := m.page().key(&m.env, k)
	return m.apply(e)
}

// click handles a click. A click also ends the input. Like the enter key, it keeps the filter and closes the list of
// jump targets.
func (m *Model) click(e tea.MouseMsg) (cmd tea.Cmd, moved bool) {
	_, h := m.size()
	if m.mode == jumping {
		if i := e.Y - (h - m.foot - m.listed) - 1; i >= 0 && i < len(m.places) && e.Y < h-m.foot {
			m.choice = i
			return m.keyJump(tea.KeyMsg{Type: tea.KeyEnter}), true
		}
	}
	was := m.mode
	m.mode = browsing
	switch {
	case e.Y == 1:
		return m.clickTab(e.X), true
	case e.Y == 2 && len(m.stack) > 1:
		return m.back(), true
	}
	c, ok := m.page().(clickable)
	if !ok || e.Y < headLines || e.Y >= h-m.foot || was == jumping && e.Y >= h-m.foot-m.listed {
		return nil, was != browsing
	}
	return m.apply(c.click(&m.env, e.X, e.Y-headLines)), true
}

func (m *Model) clickTab(x int) tea.Cmd {
	at := 0
	i := slices.IndexFunc(screenNames[:], func(s screenName) bool {
		at += len(s.short) + 4
		return x < at
	})
	if i < 0 {
		return nil
	}
	return m.goTo(i)
}
