package engine

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/preflight"
)

// PreflightError reports failed checks, and the changes that the run made before the checks. Usually the run hasn't changed anything.
type PreflightError struct {
	Findings []preflight.Finding
	// Repaired means that --fix made repairs before the checks failed.
	Repaired bool
	// Reset means that "cluster recreate" removed machines from their cluster before the checks failed.
	Reset bool
}

func (e *PreflightError) Error() string {
	n, first := 0, preflight.Finding{}
	for _, f := range e.Findings {
		if f.Severity == preflight.SeverityError {
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
		rest = "only the repairs were made; nothing else was changed"
	}
	if n == 1 {
		return fmt.Sprintf("%s%s (%s)", where, first.Message, rest)
	}
	return fmt.Sprintf("%d checks failed, the first: %s%s (%s)", n, where, first.Message, rest)
}

// ExitCode returns 4, the exit code for failed checks.
func (e *PreflightError) ExitCode() int { return 4 }
