package view

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
	"github.com/openpai/paictl/pkg/ui/tui"
	"github.com/openpai/paictl/test/output"
	"github.com/openpai/paictl/test/tier"
)

func TestTheTerminalIsSaneAfterwardsHoweverItEnds(t *testing.T) {
	broken := small()
	broken.Jobs = []*status.Job{nil} // as no source makes it: drawing it panics
	for name, tc := range map[string]struct {
		cluster *status.Cluster
		end     func(keyboard io.Writer, cancel context.CancelFunc)
		err     string
	}{
		"quit":    {small(), func(k io.Writer, _ context.CancelFunc) { _, _ = io.WriteString(k, "q") }, ""},
		"SIGTERM": {small(), func(_ io.Writer, cancel context.CancelFunc) { cancel() }, "canceled"},
		"a panic": {broken, func(k io.Writer, _ context.CancelFunc) { _, _ = io.WriteString(k, "6") }, "the view broke"},
	} {
		t.Run(name, func(t *testing.T) {
			keyboard, tty, err := pty.Open()
			require.NoError(t, err)
			defer keyboard.Close()
			defer tty.Close()
			require.NoError(t, pty.Setsize(keyboard, &pty.Winsize{Rows: 24, Cols: 80}))
			before, err := term.GetState(int(tty.Fd()))
			require.NoError(t, err)
			seen := &output.Buffer{}
			go func() { _, _ = io.Copy(seen, keyboard) }()

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, tty, tty, Options{Source: &fixed{cluster: tc.cluster, changed: make(chan struct{})}, Actions: &actions{t: t}, Palette: monochrome()})
			}()
			require.Eventually(t, func() bool {
				return strings.Contains(seen.String(), "Overview") && strings.Contains(seen.String(), "pai")
			}, time.Minute, 10*time.Millisecond)
			tc.end(keyboard, cancel)
			select {
			case err = <-ended:
			case <-time.After(time.Minute):
				require.Fail(t, "it doesn't end")
			}
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			after, err := term.GetState(int(tty.Fd()))
			require.NoError(t, err)
			assert.Equal(t, before, after, "echo and lines are as they were")
			for _, want := range []string{"\x1b[?1049l", "\x1b[?1002l", "\x1b[?25h"} {
				assert.Eventually(t, func() bool { return strings.Contains(seen.String(), want) }, 10*time.Second, 10*time.Millisecond, "%q: the screen, the mouse and the cursor are given back", want)
			}
		})
	}
}

// The view reads the mouse input of a real terminal: a click on a screen's name, a click on a row, and the wheel.
func TestTheMouseOfATerminalIsRead(t *testing.T) {
	keyboard, tty, err := pty.Open()
	require.NoError(t, err)
	defer keyboard.Close()
	defer tty.Close()
	require.NoError(t, pty.Setsize(keyboard, &pty.Winsize{Rows: 40, Cols: 120}))
	seen := &output.Buffer{}
	go func() { _, _ = io.Copy(seen, keyboard) }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, tty, tty, Options{Source: &fixed{cluster: small(), changed: make(chan struct{})}, Actions: &actions{t: t}, Palette: monochrome()})
	}()
	defer func() {
		cancel()
		<-ended
	}()
	shows := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(strip(seen.String()), text) }, time.Minute, 10*time.Millisecond, "%s", text)
	}
	sends := func(text string) {
		t.Helper()
		_, err := io.WriteString(keyboard, text)
		require.NoError(t, err)
	}
	shows("Overview")
	assert.Contains(t, seen.String(), "\x1b[?1006h", "the terminal is asked for places beyond column 223")
	sends("\x1b[<0;17;2M\x1b[<0;17;2m")
	shows("[2 Machines]")
	sends("\x1b[<0;10;6M\x1b[<0;10;6m")
	shows("> ✓  gpu-01")
	sends("\x1b[<65;10;10M")
	shows("> ✗  gpu-02")
	sends("\x1b[<0;10;6M\x1b[<0;10;6m\x1b[<0;10;6M\x1b[<0;10;6m")
	shows("machines › gpu-01")
}

func TestPaletteFollowsTheTerminal(t *testing.T) {
	for _, tc := range []struct {
		term, colours string
		colour        bool
		want          tui.Depth
	}{
		{"xterm-256color", "truecolor", true, tui.TrueColour}, {"xterm-256color", "", true, tui.Colours256}, {"xterm", "", true, tui.Colours16},
		{"xterm-256color", "truecolor", false, tui.NoColour},
	} {
		t.Setenv("TERM", tc.term)
		t.Setenv("COLORTERM", tc.colours)
		assert.Equal(t, tc.want, PaletteFor(io.Discard, tc.colour).Depth, tc)
	}
}

// TestDemo shows the view of a made-up cluster that changes, so that a person can inspect it:
//
//	go test -c -o view.test ./pkg/status/view && PAICTL_DEMO=large ./view.test -test.run TestDemo
func TestDemo(t *testing.T) {
	tier.More(t, "a person looks at it")
	o := statustest.Small()
	switch os.Getenv("PAICTL_DEMO") {
	case "":
		t.Skip("PAICTL_DEMO: small, large or stale")
	case "large":
		o = statustest.Large()
	case "stale":
		o.Stale = []string{status.SourceAPI}
	}
	o.Now = time.Now()
	source := &fixed{cluster: statustest.Cluster(o), changed: make(chan struct{})}
	go func() {
		models := changesOf(source.cluster)
		for i := 0; ; i++ {
			time.Sleep(50 * time.Millisecond)
			next := *models[i%2]
			source.set(&next)
		}
	}()
	require.NoError(t, Run(t.Context(), os.Stdin, os.Stdout, Options{Source: source, Actions: &actions{t: t, hold: make(chan struct{})}, Palette: PaletteFor(os.Stdout, os.Getenv("NO_COLOR") == "")}))
}
