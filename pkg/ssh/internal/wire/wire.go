// Package wire defines the texts that paictl and a host's shell exchange in a session.
// In: a script's body. Out: a program for the standard input of the remote sh, and the fixed command line that starts it, which contains no secrets.
// The servers of sshtest parse both.
package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Shell is the command line that starts a shell, which reads a program from its standard input. All login shells can run it.
const Shell = "exec sh -s"

// SFTPServer is the command line that starts the host's SFTP server by its path, which differs between distributions. Its exit status is 127 if the
// host has no SFTP server.
const SFTPServer = `for p in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server ` +
	`/usr/lib/ssh/sftp-server /usr/libexec/sftp-server /usr/lib/sftp-server; do ` +
	`if [ -x $p ]; then exec $p; fi; done; exit 127`

// end is the last line of every program. Its brace closes the group that the first line opens. sh runs no command of the group before it has read
// this line, so an interrupted transfer has no effect.
const end = "} # paictl: end of program"

// environment sets the environment of the body: messages are in English, and PATH contains the sbin folders, which the PATH of a login user doesn't
// contain on some distributions.
const environment = "LC_ALL=C; export LC_ALL\nPATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH\n"

// Run returns a program that runs body with an empty standard input. The session's input stays open while the program runs. If it is closed, the
// operator has disconnected, and a watcher ends the whole process group with TERM, and with KILL five seconds later. The body is an argument of eval,
// so that a syntax error ends the program instead of making it wait for more input.
func Run(body string) string {
	return "{\n" + environment +
		"exec 3<&0 </dev/null\n" + watched("", 5, body)
}

// Hold returns a program that runs body with the session's input as its standard input, so that body can wait until the input is closed. The watcher
// sends TERM five seconds after that, and KILL twenty seconds later, because cleaning up takes time on a busy machine.
func Hold(body string) string {
	return "{\n" + environment +
		"exec 3<&0\n" + watched("sleep 5; ", 20, body)
}

// watched returns the rest of a program, in which file descriptor 3 is the session's input. grace is a command that runs before TERM, and tidies is
// the number of seconds between TERM and KILL.
func watched(grace string, tidies int, body string) string {
	return "( trap '' TERM HUP; read -r _paictl <&3; " + grace + "kill -TERM 0; sleep " + strconv.Itoa(tidies) + "; kill -KILL 0 ) >/dev/null 2>&1 &\n" +
		"_paictl_watcher=$!\n" +
		"exec 3<&-\n" +
		"( eval " + Quote(body) + " )\n" +
		"_paictl_status=$?\n" +
		"kill -KILL $_paictl_watcher 2>/dev/null\n" +
		"exit $_paictl_status\n" + end + "\n"
}

// Check returns the reason why a script can't be sent, or nil.
func Check(body string) error {
	if strings.ContainsRune(body, 0) {
		return errors.New("the script contains a NUL byte")
	}
	return nil
}

// Quote returns s quoted as a single word for sh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Ready returns the line that the command line prints to standard error when the command is about to start with the required rights. paictl doesn't
// send the program before it has read this line.
func Ready(nonce string) string { return "paictl-ready-" + nonce }

// Prompt returns the prompt that sudo prints when it needs the password.
func Prompt(nonce string) string { return "paictl-sudo-" + nonce + ":" }

// Sudo returns the command line that runs inner as root. inner must not contain a single quote. The option -k makes sudo ignore cached credentials,
// so that it asks for a password exactly if sudoers requires that. The option -S makes sudo read the password from standard input, one byte at a
// time.
func Sudo(nonce, inner string) string {
	return "exec env LC_ALL=C sudo -k -S -p " + Prompt(nonce) + " -- sh -c 'echo " + Ready(nonce) + " >&2; " + inner + "'"
}

// Direct returns the command line that runs inner as the login user.
func Direct(inner string) string {
	if inner == Shell {
		return inner
	}
	return "exec sh -c '" + inner + "'"
}

// Command is a parsed command line of Sudo or Direct.
type Command struct {
	Sudo  bool
	Nonce string // the nonce of Sudo
	Inner string
}

var sudoLine = regexp.MustCompile(`^exec env LC_ALL=C sudo -k -S -p paictl-sudo-([0-9a-f]+): -- sh -c 'echo paictl-ready-([0-9a-f]+) >&2; ([^']*)'$`)

// ParseCommand parses a command line of Sudo or Direct.
func ParseCommand(line string) (Command, error) {
	if m := sudoLine.FindStringSubmatch(line); m != nil && m[1] == m[2] {
		return Command{Sudo: true, Nonce: m[1], Inner: m[3]}, nil
	}
	if line == Shell {
		return Command{Inner: Shell}, nil
	}
	if inner, ok := strings.CutPrefix(line, "exec sh -c '"); ok && strings.Count(line, "'") == 2 && strings.HasSuffix(line, "'") {
		return Command{Inner: strings.TrimSuffix(inner, "'")}, nil
	}
	return Command{}, fmt.Errorf("not a command of paictl: %q", line)
}

// Read reads a program from r, up to and including its last line. The rest stays in r. The error is io.ErrUnexpectedEOF if the program is truncated.
func Read(r *bufio.Reader) (string, error) {
	var program strings.Builder
	for {
		line, err := r.ReadString('\n')
		program.WriteString(line)
		switch {
		case err != nil:
			return program.String(), fmt.Errorf("read program: %w", io.ErrUnexpectedEOF)
		case line == end+"\n" && program.Len() > len(line):
			return program.String(), nil
		}
	}
}

// Ends reports whether text contains the last line of a program.
func Ends(text []byte) bool { return bytes.Contains(text, []byte("\n"+end+"\n")) }

// Body returns the body in a program of Run or Hold, and whether the program is from Hold.
func Body(program string) (body string, held bool, err error) {
	_, quoted, ok := strings.Cut(program, "( eval '")
	if !ok {
		return "", false, errors.New("not a program of paictl")
	}
	i := strings.LastIndex(quoted, "' )\n")
	if i < 0 {
		return "", false, errors.New("not a program of paictl")
	}
	return strings.ReplaceAll(quoted[:i], `'\''`, "'"), !strings.HasPrefix(program, "{\n"+environment+"exec 3<&0 </dev/null\n"), nil
}
