package cluster

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/preflight"
)

// PreflightError says that checks failed, and what had been changed before, mostly nothing.
type PreflightError struct {
	Findings []preflight.Finding
	// Repaired says that --fix has repaired something before.
	Repaired bool
	// Reset says that "cluster recreate" has taken machines out of their cluster before.
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

// ExitCode is 4: preflight.
func (e *PreflightError) ExitCode() int { return 4 }
