package plugin

import (
	"errors"
	"os/exec"
	"strings"

	rexit "github.com/openpai/paictl/pkg/runtime/exit"
)

// These stand before a user's commands, on the line of the first, so that line numbers in messages of
// the shell are those of the job file.
//
// A shell that SIGTERM reaches while a program of its runs would end at once, with the program still
// saving its state. So it waits for the program. No further command begins then: bash ends with 143
// before the next one, and with the program's code where it was the last. Other shells can't tell
// whether it was; theirs is 143 unless the program failed, since a script that is cut off must not
// count as done.
const (
	bashTrap = `trap 'set -T; trap "exit 143" DEBUG' TERM; `
	shTrap   = `trap 'c=$?; [ $c -eq 0 ] && c=143; exit $c' TERM; `
	pipefail = `(set -o pipefail) 2>/dev/null && set -o pipefail; `
)

// Shell returns what runs a script, to be followed by the script's file, and the script itself. One
// that the job chose is used as it is. Else it is bash, or where the image has none sh, with
// errexit, nounset and pipefail where it can.
//
// Line ends of Windows become those of Linux: no shell reads them otherwise as they are meant.
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
