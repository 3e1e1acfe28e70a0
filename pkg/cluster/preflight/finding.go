package preflight

import (
	"cmp"
	"slices"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

// The severities of findings.
const (
	SeverityError   = checks.Error
	SeverityWarning = checks.Warning
)

// Finding is the result of a check about one host or about all hosts.
type Finding = checks.Finding

// Sort orders findings by host as in the layout, by severity with errors first, by check, and by message. Findings about all hosts come first.
func (c *Cluster) Sort(fs []Finding) {
	place := map[string]int{}
	for i, n := range c.Nodes {
		place[n.Hostname] = i + 1
	}
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(place[a.Host], place[b.Host]),
			cmp.Compare(a.Severity, b.Severity), // "error" before "warning"
			cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Message, b.Message),
		)
	})
}
