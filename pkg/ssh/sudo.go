package ssh

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

// sudoPatience limits the wait for the next output of sudo. The limit is longer than PAM's delay after a wrong password. Without a limit, a prompt
// for a one-time code would block forever.
const sudoPatience = 30 * time.Second

// sudoFront is the writer for standard error until the command runs as root. sudo writes the first part of the output, and the command writes the
// second part.
type sudoFront struct {
	ready  []byte
	prompt []byte
	next   io.Writer

	mu      sync.Mutex
	said    []byte
	printed []byte // on standard output, if a login shell rejects the command
	passed  bool
	prompts int
	changed chan struct{} // one token after each change
}

func newSudoFront(nonce string, next io.Writer) *sudoFront {
	return &sudoFront{ready: []byte(wire.Ready(nonce) + "\n"), prompt: []byte(wire.Prompt(nonce)), next: next, changed: make(chan struct{}, 1)}
}

// Write evaluates the output of sudo, and passes the output of the command to the next writer.
func (f *sudoFront) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passed {
		return f.next.Write(b)
	}
	f.said = append(f.said, b...)
	if i := bytes.Index(f.said, f.ready); i >= 0 {
		rest := f.said[i+len(f.ready):]
		f.said, f.passed = f.said[:i], true
		f.wake()
		if _, err := f.next.Write(rest); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	if n := bytes.Count(f.said, f.prompt); n > f.prompts {
		f.prompts = n
		f.wake()
	}
	if len(f.said) > 64<<10 {
		return 0, errTooMuch
	}
	return len(b), nil
}

// stdout returns the writer for standard output. The writer stores the first bytes that arrive before the command starts.
func (f *sudoFront) stdout(next io.Writer) io.Writer { return &earlyOutput{f, next} }

type earlyOutput struct {
	front *sudoFront
	next  io.Writer
}

func (o *earlyOutput) Write(b []byte) (int, error) {
	f := o.front
	f.mu.Lock()
	if !f.passed {
		f.printed = append(f.printed, b[:min(len(b), 1<<10-len(f.printed))]...)
	}
	f.mu.Unlock()
	return o.next.Write(b)
}

func (f *sudoFront) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *sudoFront) state() (passed bool, prompts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passed, f.prompts
}

// words returns sudo's messages on one line, without paictl's prompt.
func (f *sudoFront) words() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return lastWords(strings.ReplaceAll(string(f.said), string(f.prompt), ""))
}

// shellWords returns the message of a login shell that rejected the command. The second result is true if sudo printed nothing. sudo never exits
// without a message, so sudo didn't run.
func (f *sudoFront) shellWords() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.TrimSpace(lastWords(string(f.printed))), len(bytes.TrimSpace(f.said)) == 0
}

func lastWords(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, "; ")
}

// becomeRoot waits until the command runs as root, and replies to sudo's prompt once. becomeRoot writes the password only after sudo's prompt, so
// that a script can never read the password.
func (p *process) becomeRoot(ctx context.Context, as access) error {
	answered := 0
	for {
		passed, prompts := p.front.state()
		switch {
		case passed:
			return nil
		case prompts > 1:
			if as.forget != nil {
				as.forget()
			}
			return p.sudoError(as, "the password was refused", "check the password: "+sudoFields)
		case prompts > answered:
			answered = prompts
			if err := p.answer(as); err != nil {
				return err
			}
		}
		select {
		case <-p.front.changed:
		case <-p.exited:
			if passed, _ := p.front.state(); passed {
				return nil
			}
			return p.sudoEnded(ctx, as)
		case <-time.After(sudoPatience):
			return p.sudoError(as, "it asks for something other than a password", "let the user run sudo with a password or without, by sudoers")
		case <-ctx.Done():
			return p.c.explain(ctx, p.what, context.Cause(ctx))
		}
	}
}

// sudoFields lists the settings of the password for remedies.
const sudoFields = "ssh-password, or the sudo password if it differs"

func (p *process) answer(as access) error {
	password := as.password
	if !password.IsSet() && as.ask != nil {
		var err error
		if password, err = as.ask(); err != nil {
			return p.sudoError(as, err.Error(), "give the password: "+sudoFields)
		}
	}
	if !password.IsSet() {
		return p.sudoError(as, "it needs a password, but none was given",
			fmt.Sprintf("give the password (%s), or allow it without: %s", sudoFields, sudoersLine(as.user, "NOPASSWD:ALL")))
	}
	if strings.ContainsAny(password.Reveal(), "\n\r") {
		return p.sudoError(as, "the password contains a line break", "check the password: "+sudoFields)
	}
	if _, err := io.WriteString(p.stdin, password.Reveal()+"\n"); err != nil {
		return p.c.lost(p.what)
	}
	return nil
}

// sudoEnded returns an error that explains why sudo exited without starting the command.
func (p *process) sudoEnded(ctx context.Context, as access) error {
	code, err := p.exit(ctx)
	if err != nil {
		return err
	}
	said := p.front.words()
	lower := strings.ToLower(said)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	shell, silent := p.front.shellWords()
	switch {
	case silent && code != 127 && shell == "":
		return p.sudoError(as, fmt.Sprintf("the login shell ended with exit code %d and printed nothing", code), loginShell(as.user))
	case silent && code != 127:
		return p.sudoError(as, "the login shell refuses commands: "+shell, loginShell(as.user))
	case has("password change required", "password has expired"):
		return p.sudoError(as, "the user's password has expired", changePassword(as.user, p.c.name))
	case has("doas:"):
		return p.sudoError(as, "sudo on this machine is doas: "+said, "install sudo: doas can't read a password from a program")
	case code == 127: // env didn't find the program
		return p.sudoError(as, "sudo is not installed", "install sudo on the machine, or log in as root")
	case has("not in the sudoers", "not allowed", "may not run", "i'm sorry"):
		return p.sudoError(as, "the user may not become root", "add it: "+sudoersLine(as.user, "ALL"))
	case has("must have a tty", "no tty present"):
		return p.sudoError(as, "it requires a terminal", fmt.Sprintf("add this line to sudoers: Defaults:%s !requiretty", sudoersName(as.user)))
	case has("try again", "incorrect password", "incorrect authentication", "authentication failed"):
		return p.sudoError(as, "the password was refused", "check the password: "+sudoFields)
	}
	return p.sudoError(as, fmt.Sprintf("it ended with exit code %d: %s", code, said), "run 'sudo true' on the machine to see why; if the user has no rights: "+sudoersLine(as.user, "ALL"))
}

// sudoersLine returns a command that allows a user to become root. Root must run the command. The name of the created file contains no dot and
// doesn't end in ~, because sudo ignores such files in sudoers.d.
func sudoersLine(user, what string) string {
	file := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, user)
	return fmt.Sprintf("printf '%%s\\n' %s > /etc/sudoers.d/%s", wire.Quote(sudoersName(user)+" ALL=(ALL) "+what), file)
}

// sudoersName returns a user's name with a backslash before each character that is special in sudoers.
func sudoersName(user string) string {
	var name strings.Builder
	for i, r := range user {
		if strings.ContainsRune(`!=:,()\"# `, r) || i == 0 && strings.ContainsRune("%+@", r) {
			name.WriteByte('\\')
		}
		name.WriteRune(r)
	}
	return name.String()
}

func loginShell(user string) string {
	return fmt.Sprintf("give the user a shell on the machine: usermod -s /bin/sh %s; or log in as another user", wire.Quote(user))
}

func changePassword(user, host string) string {
	return fmt.Sprintf("log in to %s as %s by hand, change the password there, and write the new one; or use a key", host, user)
}

func (p *process) sudoError(as access, why, remedy string) error {
	return hint.Errorf(remedy, "%s on %s: become root from %s: %w: %s", p.what, p.c.name, as.user, ErrSudo, why)
}
