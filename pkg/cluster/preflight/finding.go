package preflight

import (
	"cmp"
	"slices"
)

// Severities of findings.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// Finding is the result of a preflight check about a host, or about all of them.
type Finding struct {
	Host     string `json:"host,omitempty"`
	Check    string `json:"check"` // stable name: os, sudo, clock, port …
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Remedy   string `json:"remedy,omitempty"`
	// Fix is shell code that repairs it safely, for --fix; empty if a person must decide.
	Fix string `json:"-"`
	// Fixable reports whether --fix would repair it.
	Fixable bool `json:"fixable,omitempty"`
}

// fixable adds shell code that repairs the finding.
func (f Finding) fixable(shell string) Finding {
	f.Fix, f.Fixable = shell, true
	return f
}

// Sort orders by host as in the layout, errors first, then by check and message. Findings about all
// hosts come before the first host.
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
