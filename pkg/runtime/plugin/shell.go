package plugin

import (
	"errors"
	"os/exec"
	"strings"

	rexit "github.com/openpai/paictl/pkg/runtime/exit"
)

// The traps precede the first of a user's commands on the same line, so that line numbers in the shell's messages match the job file.
//
// If a shell without a trap receives SIGTERM while one of its programs runs, it exits at once, although the program is still saving its state. With a
// trap, the shell waits for the program, and then runs no further command. bash exits with 143 before the next command, or with the program's code if
// the program was the last command. Other shells don't know whether it was the last command. They exit with 143 unless the program failed, because an
// interrupted script must not count as successful.
const (
	bashTrap = `trap 'set -T; trap "exit 143" DEBUG' TERM; `
	shTrap   = `trap 'c=$?; [ $c -eq 0 ] && c=143; exit $c' TERM; `
	pipefail = `(set -o pipefail) 2>/dev/null && set -o pipefail; `
)

// Shell returns the command line of a shell, to which the caller appends the path of the script's file, and the content of the script. If the job
// specifies a shell, Shell returns that shell and the commands without a trap. Otherwise, the shell is bash, or sh if the image doesn't have bash,
// with errexit, nounset and, if it supports that, pipefail.
//
// Shell converts the line ends of Windows, because shells would treat them as part of the commands.
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
