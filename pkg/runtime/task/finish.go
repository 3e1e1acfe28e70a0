package task

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/journal"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// finish classifies a failure, writes the report, and returns the container's exit code.
func (t *task) finish(r result) int {
	if r.code == 0 {
		return 0
	}
	set := t.rules()
	e := rules.Exit{Code: r.code}
	m := rules.Match{Rule: set.ByCode(r.code), Code: r.code, UserLogAt: -1, PlatformLogAt: -1, Known: true}
	if !r.own {
		if !r.stopped {
			// If the program was stopped, only its exit code counts. A warning from hours ago in its log must not make the exit
			// a permanent failure, because the program must be restarted.
			e.UserLog = t.userTail.Bytes()
			if t.role != nil {
				t.facts(&e)
			}
		}
		e.PlatformLog = t.journal.Tail()
		m = set.ClassifyExit(e)
		if !m.Known && r.setup {
			m.Rule, m.Code = set.ByCode(exit.Setup), exit.Setup
		}
	}
	t.explain(r, m)
	e.UserLog, e.PlatformLog = t.userTail.Bytes(), t.journal.Tail()
	t.leave(report.Encode(report.New(e, m)))
	return m.Code
}

// explain writes the outcome at the end of the log, because some users read only the log.
func (t *task) explain(r result, m rules.Match) {
	switch {
	case r.stopped:
		t.journal.Printf("the task was stopped; exit code %d", m.Code)
	case m.Rule.Reason != "" && !r.own: // if r.own is set, the previous line is more specific
		t.journal.Printf("failed with exit code %d, %s: %s", m.Code, rules.Words(m.Rule.Phrase), strings.TrimSpace(m.Rule.Reason))
	default:
		t.journal.Printf("failed with exit code %d, %s", m.Code, rules.Words(m.Rule.Phrase))
	}
	if m.Code != r.code {
		t.journal.Printf("the program's own exit code is %d", r.code)
	}
}

// rules returns the administrator's current rules, or the built-in rules.
func (t *task) rules() *rules.Set {
	name := t.path(spec.Rules)
	data, err := os.ReadFile(name)
	if err != nil {
		return rules.Builtin()
	}
	set, findings := rules.Parse(name, data)
	if err := findings.Err(); err != nil {
		t.journal.Printf("the failure rules of the cluster can't be used; using the built-in ones: %v", err)
		return rules.Builtin()
	}
	return set
}

// leave writes the report to the kubelet's file, and to a file next to the runtime's log. The kubelet's file is mounted, so it
// must be written in place.
func (t *task) leave(text []byte) {
	if err := os.WriteFile(t.path(spec.TerminationLog), text, 0o644); err != nil {
		t.journal.Printf("the exit report can't be written: %v", err)
	}
	copied := filepath.Join(filepath.Dir(t.path(journal.File)), filepath.Base(spec.TerminationLog))
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		t.journal.Notef("%v", err)
	}
}
