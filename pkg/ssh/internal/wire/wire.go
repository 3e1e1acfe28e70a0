// Package wire defines the texts that paictl and a host's shell exchange in a session. In: a script's body. Out: a program for the standard input of
// the remote sh, and the fixed command line that starts sh. The command line contains no secrets. The servers of sshtest parse the program and the
// command line.
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

// Shell is the command line that starts a shell. The shell reads a program from its standard input. All login shells can run this command line.
const Shell = "exec sh -s"

// SFTPServer is the command line that starts the host's SFTP server. The path of the server differs between distributions. The exit status is 127 if
// no server is installed.
const SFTPServer = `for p in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server ` +
	`/usr/lib/ssh/sftp-server /usr/libexec/sftp-server /usr/lib/sftp-server; do ` +
	`if [ -x $p ]; then exec $p; fi; done; exit 127`

// end is the last line of every program. The brace closes the command group that begins in the first line. sh runs the group only after reading the
// last line, so an interrupted transfer has no effect.
const end = "} # paictl: end of program"

// environment sets the environment of the body. LC_ALL=C makes messages English. PATH includes the sbin folders, because the PATH of login users
// doesn't contain the sbin folders on some distributions.
const environment = "LC_ALL=C; export LC_ALL\nPATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH\n"

// Run returns a program that runs body with an empty standard input. The session's input stays open while the program runs. When the session's input
// is closed, the operator has disconnected. A watcher then sends TERM to the process group, and KILL five seconds later. The body is an argument of
// eval, so that a syntax error ends the program instead of making sh wait for more input.
func Run(body string) string {
	return "{\n" + environment +
		"exec 3<&0 </dev/null\n" + watched("", 5, body)
}

// Hold returns a program that runs body with the session's input as standard input, so that body can wait for the end of the input. Five seconds
// after the end of the input, the watcher sends TERM. The watcher sends KILL twenty seconds after TERM, because cleaning up takes time on a busy
// machine.
func Hold(body string) string {
	return "{\n" + environment +
		"exec 3<&0\n" + watched("sleep 5; ", 20, body)
}

// watched returns the rest of a program. File descriptor 3 is the session's input. The watcher runs the command grace before TERM, and waits tidies
// seconds between TERM and KILL.
func watched(grace string, tidies int, body string) string {
	return "( trap '' TERM HUP; read -r _paictl <&3; " + grace + "kill -TERM 0; sleep " + strconv.Itoa(tidies) + "; kill -KILL 0 ) >/dev/null 2>&1 &\n" +
		"_paictl_watcher=$!\n" +
		"exec 3<&-\n" +
		"( eval " + Quote(body) + " )\n" +
		"_paictl_status=$?\n" +
		"kill -KILL $_paictl_watcher 2>/dev/null\n" +
		"exit $_paictl_status\n" + end + "\n"
}

// Check returns an error if a script can't be sent.
func Check(body string) error {
	if strings.ContainsRune(body, 0) {
		return errors.New("the script contains a NUL byte")
	}
	return nil
}

// Quote returns s quoted as a single word for sh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Ready returns the line that the command line prints to standard error when the command starts with the required rights. paictl sends the program
// after reading this line.
func Ready(nonce string) string { return "paictl-ready-" + nonce }

// Prompt returns the prompt that sudo prints when it requires the password.
func Prompt(nonce string) string { return "paictl-sudo-" + nonce + ":" }

// Sudo returns the command line that runs inner as root. inner must not contain a single quote. With -k, sudo ignores cached credentials, and asks
// for a password only if sudoers requires a password. With -S, sudo reads the password from standard input, one byte at a time.
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

// Read reads a program from r, up to and including its last line. Read doesn't consume the bytes after the last line. The error is
// io.ErrUnexpectedEOF if the program is truncated.
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

// Body returns the body of a program that Run or Hold returned. held reports whether Hold returned the program.
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
