// Package checks evaluates facts about a cluster. Each file covers one subject. It contains the script that reads the facts on a machine (if any),
// the type of the facts, the limits, and a function from facts to findings.
// In: facts. Out: findings. preflight, the doctor, "cluster status" and "status" choose which findings they show.
package checks

import "fmt"

// Severities of findings.
const (
	Error   = "error"
	Warning = "warning"
)

// Finding is a problem of a machine or of all machines.
type Finding struct {
	Host     string `json:"host,omitempty"`
	Check    string `json:"check"` // stable name: os, sudo, clock, port …
	Severity string `json:"severity"`
	Message  string `json:"message"`
	// Evidence is the observation. A message of another program is quoted verbatim.
	Evidence string `json:"evidence,omitempty"`
	Remedy   string `json:"remedy,omitempty"`
	// By is the ID of the preflight check that reports the finding. Check is the same ID or a more specific ID.
	By string `json:"-"`
	// Advice means that a run can continue despite the finding.
	Advice bool `json:"-"`
	// Fix is shell code for --fix that repairs the problem safely. It is empty if the problem needs a decision by a person.
	Fix string `json:"-"`
	// Fixable reports whether --fix would repair the problem.
	Fixable bool `json:"fixable,omitempty"`
}

// Text returns the message with its evidence, on one line.
func (f *Finding) Text() string {
	if f.Evidence == "" {
		return f.Message
	}
	return f.Message + ": " + f.Evidence
}

// FixedBy returns the finding with shell code that repairs the problem.
func (f Finding) FixedBy(shell string) Finding {
	f.Fix, f.Fixable = shell, true
	return f
}

func advice(f Finding) Finding {
	f.Advice = true
	return f
}

func problem(check, remedy, format string, args ...any) Finding {
	return Finding{Check: check, Severity: Error, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}

func warning(check, remedy, format string, args ...any) Finding {
	return Finding{Check: check, Severity: Warning, Remedy: remedy, Message: fmt.Sprintf(format, args...)}
}
