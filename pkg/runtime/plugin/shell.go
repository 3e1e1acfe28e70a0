package plugin

import (
	"errors"
	"os/exec"
	"strings"

	rexit "github.com/openpai/paictl/pkg/runtime/exit"
)

// The traps precede a user's commands, on the line of the first, so that line numbers in the shell's messages match the
// job file.
//
// A shell that receives SIGTERM while one of its programs runs would exit at once, with the program still
// saving its state. So it waits for the program. No further command begins then: bash exits with 143
// before the next one, and with the program's code if it was the last. Other shells don't know
// whether it was; they exit with 143 unless the program failed, because an interrupted script must not
// count as done.
const (
	bashTrap = `trap 'set -T; trap "exit 143" DEBUG' TERM; `
	shTrap   = `trap 'c=$?; [ $c -eq 0 ] && c=143; exit $c' TERM; `
	pipefail = `(set -o pipefail) 2>/dev/null && set -o pipefail; `
)

// Shell returns the command line of a shell, to be followed by the script's file, and the script itself. If the job specifies a shell,
// it is used unchanged. Otherwise the shell is bash, or sh if the image doesn't have bash, with
// errexit, nounset and pipefail if it supports them.
//
// Line ends of Windows are converted, because no shell reads them as intended.
func Shell(chosen []string, text string) ([]string, string, error) {
	text = strings.ReplaceAll(text+"\n", "\r\n", "\n")
	text = text[:len(text)-1]
	if len(chosen) > 0 {
		return append([]string(nil), chosen...), text, nil
	}
	if path, err := exec.LookPath("bash"); err == nil {
		return []string{path, "-e", "-u", "-o", "pipefail"}, bashTrap + text + "\n", nil
	}
	if path, err := exec.LookPath("sh"); err == nil {
		return []string{path, "-eu"}, pipefail + shTrap + text + "\n", nil
	}
	return nil, "", rexit.OfProgram(rexit.NotFound, errors.New(
		"sh: command not found: the job has commands for a shell and its image has neither bash nor sh; use an image with one, or give the program itself (exec)"))
}
