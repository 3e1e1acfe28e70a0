package cluster

import "fmt"

// Severities of findings.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// checkUnchecked is the check of a finding that says that a host could not be checked.
const checkUnchecked = "connect"

// Finding is what a preflight check says about a host, or about all of them.
type Finding struct {
	Host     string `json:"host,omitempty"`
	Check    string `json:"check"` // stable name: os, sudo, clock, port …
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`
	// Fix is shell that repairs it safely, for --fix; empty where a person must decide.
	Fix string `json:"-"`
	// Fixable reports whether --fix would repair it.
	Fixable bool `json:"fixable,omitempty"`
}

// PreflightError says that checks failed, and what had been changed before, mostly nothing.
type PreflightError struct {
	Findings []Finding
	// Repaired says that --fix has repaired something before.
	Repaired bool
	// Reset says that "cluster recreate" has taken machines out of their cluster before.
	Reset bool
}

func (e *PreflightError) Error() string {
	n, first := 0, Finding{}
	for _, f := range e.Findings {
		if f.Severity == SeverityError {
			if n == 0 {
				first = f
			}
			n++
		}
	}
	where := ""
	if first.Host != "" {
		where = first.Host + ": "
	}
	rest := "nothing was changed"
	switch {
	case e.Reset:
		rest = "the machines have left their cluster; nothing else was changed"
	case e.Repaired:
		rest = "nothing but the repairs was changed"
	}
	if n == 1 {
		return fmt.Sprintf("%s%s (%s)", where, first.Message, rest)
	}
	return fmt.Sprintf("%d checks failed, the first: %s%s (%s)", n, where, first.Message, rest)
}

// ExitCode is 4: preflight.
func (e *PreflightError) ExitCode() int { return 4 }
