package plugin

import (
	"errors"
	"os/exec"
	"strings"

	rexit "github.com/openpai/paictl/pkg/runtime/exit"
)

// The traps and the user's first command are on the same line, so that line numbers in the shell's messages match the job file.
//
// If a shell without a trap receives SIGTERM, it exits at once, although its program may still be saving its state. With a trap,
// the shell waits for the program and runs no further command. After the trap, bash exits with 143, or with the program's code if
// the program was the last command. Other shells can't detect the last command. They exit with 143 unless the program failed,
// because an interrupted script must not count as successful.
const (
	bashTrap = `trap 'set -T; trap "exit 143" DEBUG' TERM; `
	shTrap   = `trap 'c=$?; [ $c -eq 0 ] && c=143; exit $c' TERM; `
	pipefail = `(set -o pipefail) 2>/dev/null && set -o pipefail; `
)

// Shell returns the command line of a shell, and the content of the script. The caller stores the script in a file, and appends
// its path to the command line. If the job specifies a shell, Shell returns that shell and the commands without a trap.
// Otherwise, it returns bash, or sh if the image doesn't contain bash. It sets errexit, nounset and, if supported, pipefail.
//
// Shell converts Windows line endings, because shells would treat them as part of the commands.
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
