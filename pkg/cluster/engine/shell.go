package engine

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// The paths of paictl's state folder and of the lock on a host. In scripts, all paths begin with $R. On real hosts, $R is empty. In tests, $R is a
// folder.
const (
	StateDir = paths.State
	HostLock = "/run/paictl-host.lock"
)

// PreludeScript defines the shell functions that all scripts use.
//
//go:embed scripts/prelude.sh
var PreludeScript string

// DetectScript defines the shell functions that read a machine's state.
//
//go:embed scripts/detect.sh
var DetectScript string

// ApplyScript defines the shell functions that change a machine's state.
//
//go:embed scripts/apply.sh
var ApplyScript string

// DetectProgram returns a read-only script with a section for each phase. Each section runs in a subshell, so that sections don't affect each other.
func DetectProgram(sections []Section) string {
	var b strings.Builder
	b.WriteString(PreludeScript)
	b.WriteString(DetectScript)
	b.WriteString(atATime(sections))
	return b.String()
}

// lanes is the number of sections that run in parallel on a machine. Sections spend most of their time on starting programs.
const lanes = 4

// atATime returns a script that runs sections in parallel lanes. Each lane's output waits in a pipe until the previous lanes have finished, so that
// the lines of sections don't mix.
func atATime(sections []Section) string {
	of := make([]strings.Builder, min(lanes, max(1, len(sections))))
	for i, s := range sections {
		fmt.Fprintf(&of[i%len(of)], "printf '@@ %%s\\n' %s\n(\n%s\n) || printf '@! %%s\\n' $?\n", shell.Quote(s.Name), s.Body)
	}
	script := of[0].String()
	for i := range of[1:] {
		script = "(\n" + script + ") | (\nexec 3<&0 </dev/null\n" + of[i+1].String() + "cat <&3\n)\n"
	}
	return script
}

// ApplyProgram returns a script that changes a machine in one phase. The script holds the host's lock and writes the journal.
func ApplyProgram(runID, phase, body string) string {
	return fmt.Sprintf("%s%sbegin %s %s\n%s\nfinish\n", PreludeScript, ApplyScript, shell.Quote(runID), shell.Quote(phase), body)
}

// Section is a part of a script whose output is parsed separately, under the section's name.
type Section struct{ Name, Body string }

// Heredoc returns shell code that passes data to a command as base64 in a here-document. The data may contain any bytes, because no line of base64
// can end the here-document.
func Heredoc(command string, data []byte) string {
	enc := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	b.WriteString(command + " <<'PAICTL_DATA'\n")
	for len(enc) > 76 {
		b.WriteString(enc[:76] + "\n")
		enc = enc[76:]
	}
	b.WriteString(enc + "\nPAICTL_DATA\n")
	return b.String()
}

// RepairScript defines the shell functions for the safe repairs of preflight.
//
//go:embed scripts/repair.sh
var RepairScript string
