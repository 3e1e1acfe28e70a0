package view

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// askFor is how long an answer may take.
const askFor = 30 * time.Second

// answer is what a page has asked for.
type answer struct {
	to    page
	value any
	err   error
}

// done is the end of something that was started, and what is told of it.
type done struct {
	err error
	say notice
	// away: another program had the terminal.
	away bool
}

// ask asks in the background. The answer comes back to the page, if it is still open.
func ask[T any](d *desk, to page, f func(ctx context.Context) (T, error)) tea.Cmd {
	ctx := d.ctx
	d.pending++
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, askFor)
		defer cancel()
		v, err := f(ctx)
		return answer{to, v, err}
	}
}

// start does something in the background, and tells what was done.
func start(d *desk, f func(ctx context.Context) error, then notice) effect {
	ctx := d.ctx
	d.pending++
	return effect{cmd: func() tea.Msg { return done{err: f(ctx), say: then} }}
}
