package view

import (
	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/ui/plural"
)

func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyCtrlZ {
		return tea.Suspend
	}
	if k.Type == tea.KeyCtrlC {
		return m.quit()
	}
	if k.Paste && m.mode != filtering && m.mode != jumping {
		return nil // pasted text isn't a command
	}
	switch m.mode {
	case filtering:
		return m.keyFilter(k)
	case jumping:
		return m.keyJump(k)
	case asking:
		return m.keyAnswer(k.String())
	case helping:
		m.mode = browsing
		return nil
	}
	return m.keyBrowse(k.String())
}

func (m *Model) keyBrowse(k string) tea.Cmd {
	switch k {
	case "q":
		return m.quit()
	case "?":
		m.mode = helping
		return nil
	}
	p := m.page()
	if p == nil {
		return nil
	}
	switch k {
	case ":":
		m.input.SetValue("")
		m.input.Focus()
		m.mode, m.choice, m.places = jumping, 0, places(m.cluster, "")
		return nil
	case "/":
		if f, ok := p.(filtered); ok {
			m.mode, m.before = filtering, f.filter()
			m.input.SetValue(m.before)
			m.input.CursorEnd()
			m.input.Focus()
		}
		return nil
	case "u":
		if n := m.notice; n != nil && n.do != nil {
			m.notice = nil
			return m.apply(n.do(&m.env))
		}
		return nil
	case "esc", "backspace":
		return m.back()
	}
	if len(k) == 1 && k[0] >= '1' && k[0] <= '8' {
		return m.goTo(int(k[0] - '1'))
	}
	e, _ := p.key(&m.env, k)
	return m.apply(e)
}

// goTo opens a screen as show does. Unlike show, it keeps the running actions of the pages that it closes.
func (m *Model) goTo(i int) tea.Cmd {
	for len(m.stack) > 1 {
		m.remember()
		m.drop()
	}
	return m.show(i)
}

// remember keeps the running action of a page that is about to be closed.
func (m *Model) remember() {
	if t, ok := m.page().(*textPage); ok && t.work && !t.ended {
		m.background = append(m.background, t)
	}
}

// back removes the filter of the page. If the page has no filter, back closes the page.
func (m *Model) back() tea.Cmd {
	if f, ok := m.page().(filtered); ok && f.filter() != "" {
		f.setFilter(&m.env, "")
		return nil
	}
	if len(m.stack) > 1 {
		m.remember()
		return m.apply(effect{back: true})
	}
	return nil
}

// quit quits at once, or asks for confirmation if an action is running.
func (m *Model) quit() tea.Cmd {
	if m.works > 0 && !m.leaving {
		m.leaving, m.mode = true, asking
		m.ask = &question{text: "Quit? " + plural.Of(m.works, "work") + " in progress will be stopped.", yes: func(*env) effect { return effect{cmd: m.end()} }}
		return nil
	}
	return m.end()
}

// end quits the view. Running actions end with the program's context.
func (m *Model) end() tea.Cmd {
	m.over = true
	return tea.Quit
}

func (m *Model) keyAnswer(k string) tea.Cmd {
	q := m.ask
	m.ask, m.mode, m.leaving = nil, browsing, false
	if k == "y" || k == "Y" {
		return m.apply(q.yes(&m.env))
	}
	return m.apply(say(&m.env, "nothing was done"))
}

func (m *Model) keyFilter(k tea.KeyMsg) tea.Cmd {
	f, ok := m.page().(filtered)
	switch {
	case !ok || k.Type == tea.KeyEnter:
		m.mode = browsing
		return nil
	case k.Type == tea.KeyEsc:
		m.mode = browsing
		f.setFilter(&m.env, m.before)
		return nil
	case k.Type == tea.KeyUp || k.Type == tea.KeyDown:
		e, _ := m.page().key(&m.env, k.String())
		return m.apply(e)
	}
	m.input, _ = m.input.Update(k)
	if v := m.input.Value(); v != f.filter() {
		f.setFilter(&m.env, v)
	}
	return nil
}

func (m *Model) keyJump(k tea.KeyMsg) tea.Cmd {
	switch k.Type {
	case tea.KeyEsc:
		m.mode = browsing
		return nil
	case tea.KeyUp:
		m.choice = max(m.choice-1, 0)
		return nil
	case tea.KeyDown, tea.KeyTab:
		m.choice = min(m.choice+1, max(len(m.places)-1, 0))
		return nil
	case tea.KeyEnter:
		m.mode = browsing
		if m.choice >= len(m.places) {
			return nil
		}
		p := m.places[m.choice]
		if p.screen >= 0 {
			return m.goTo(p.screen)
		}
		return m.apply(p.open(&m.env))
	}
	m.input, _ = m.input.Update(k)
	m.places, m.choice = places(m.cluster, m.input.Value()), 0
	return nil
}
