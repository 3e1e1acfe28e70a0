package sshtest

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Step describes an expected script and the result of the script.
type Step struct {
	// Match is a regular expression that the script's body must match.
	Match string
	// Stdout, Stderr and Exit are the script's result.
	Stdout, Stderr string
	Exit           int
	// Func, if set, runs instead of the step's result, and returns the exit code. Func receives the script's body.
	Func func(e *Exec, body string) int
	// Times limits how often the step can be used. Zero means no limit.
	Times int
}

type scripted struct {
	t     testing.TB
	mu    sync.Mutex
	steps []*step
}

type step struct {
	Step
	match *regexp.Regexp
	used  int
}

// Scripted returns a handler that returns the result of the first step that matches a script. The test fails if no step matches.
func Scripted(t testing.TB, steps ...Step) Handler {
	t.Helper()
	h := &scripted{t: t}
	for _, s := range steps {
		match, err := regexp.Compile("(?s)" + s.Match)
		if err != nil {
			t.Fatalf("sshtest: step %q: %v", s.Match, err)
		}
		h.steps = append(h.steps, &step{Step: s, match: match})
	}
	return h
}

func (h *scripted) Exec(_ context.Context, e *Exec) int {
	if e.SFTP {
		return h.refuse(e, "an SFTP session")
	}
	body, held, err := e.Script()
	if err != nil {
		return 255 // cut on purpose
	}
	s := h.find(body)
	if s == nil {
		return h.refuse(e, fmt.Sprintf("this script:\n%s", body))
	}
	code := s.Exit
	if s.Func != nil {
		code = s.Func(e, body)
	} else {
		_, _ = io.WriteString(e.Stdout, s.Stdout)
		_, _ = io.WriteString(e.Stderr, s.Stderr)
	}
	if held && code == 0 && strings.Contains(s.Stdout, "\n") {
		_, _ = io.Copy(io.Discard, e.Stdin) // held until the input ends
	}
	return code
}

func (h *scripted) find(body string) *step {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.steps {
		if s.match.MatchString(body) && (s.Times == 0 || s.used < s.Times) {
			s.used++
			return s
		}
	}
	return nil
}

func (h *scripted) refuse(e *Exec, what string) int {
	h.t.Errorf("sshtest: %s did not expect %s", e.Server.Addr(), what)
	_, _ = fmt.Fprintln(e.Stderr, "sshtest: unexpected command")
	return 126
}
