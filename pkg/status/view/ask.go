package view

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// askFor is the timeout of a request.
const askFor = 30 * time.Second

type answer struct {
	to    page
	value any
	err   error
}

// done is the message that a background action has finished.
type done struct {
	err error
	say notice
	// away means that another program used the terminal during the action.
	away bool
}

// ask sends a request in the background. The page gets the response if the page is still open.
func ask[T any](d *env, to page, f func(ctx context.Context) (T, error)) tea.Cmd {
	ctx := d.ctx
	d.pending++
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, askFor)
		defer cancel()
		v, err := f(ctx)
		return answer{to, v, err}
	}
}

// start runs an action in the background. When the action has finished, start shows the notice then.
func start(d *env, f func(ctx context.Context) error, then notice) effect {
	ctx := d.ctx
	d.pending++
	return effect{cmd: func() tea.Msg { return done{err: f(ctx), say: then} }}
}
