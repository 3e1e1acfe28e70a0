package cluster

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// The folder of paictl's state on a host, and the host's lock. All paths in scripts begin with $R,
// which is empty on real hosts and a folder in tests.
const (
	stateDir = paths.State
	hostLock = "/run/paictl-host.lock"
)

//go:embed scripts/prelude.sh
var preludeScript string

//go:embed scripts/detect.sh
var detectScript string

//go:embed scripts/apply.sh
var applyScript string

// detectProgram returns a read-only script: functions, then one section per phase. Each section
// runs in its own subshell, so that it can't disturb the others.
func detectProgram(sections []section) string {
	var b strings.Builder
	b.WriteString(preludeScript)
	b.WriteString(detectScript)
	b.WriteString(atATime(sections))
	return b.String()
}

// lanes is how many sections of a script a machine runs at a time: most of their time is spent on starting programs.
const lanes = 4

// atATime returns a script that runs sections in lanes. A pipe holds the output of a lane until the lanes beside it are done, so
// that the lines of sections don't mix.
func atATime(sections []section) string {
	of := make([]strings.Builder, min(lanes, max(1, len(sections))))
	for i, s := range sections {
		fmt.Fprintf(&of[i%len(of)], "printf '@@ %%s\\n' %s\n(\n%s\n) || printf '@! %%s\\n' $?\n", shell.Quote(s.name), s.body)
	}
	script := of[0].String()
	for i := range of[1:] {
		script = "(\n" + script + ") | (\nexec 3<&0 </dev/null\n" + of[i+1].String() + "cat <&3\n)\n"
	}
	return script
}

// applyProgram returns a mutating script of one phase: it holds the host's lock and writes the journal.
func applyProgram(runID, phase, body string) string {
	return fmt.Sprintf("%s%sbegin %s %s\n%s\nfinish\n", preludeScript, applyScript, shell.Quote(runID), shell.Quote(phase), body)
}

type section struct{ name, body string }

// heredoc feeds data to a command as base64, 76 columns a line, so that any bytes survive and no
// line of data can end the here-document.
func heredoc(command string, data []byte) string {
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
