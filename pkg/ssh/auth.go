package ssh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/openpai/paictl/pkg/hint"
)

// maxAuthRounds is the maximum number of connections for one authentication. Several connections may be necessary, because OpenSSH closes a
// connection after six rejected keys, and an agent may hold a dozen.
const maxAuthRounds = 3

// agentPatience is the time limit for listing the keys of an agent.
const agentPatience = 5 * time.Second

// errRefused means that the server allows none of the remaining authentication methods.
var errRefused = errors.New("no authentication method is left")

type authStep struct {
	method string // "publickey", "password", "keyboard-interactive"
	label  string // for errors
	// make returns the method. If make returns an error, the authenticator skips the step and adds the error to the final error.
	make func() (ssh.AuthMethod, error)
}

// authenticator tries the authentication methods at a host. authenticator may need several connections, because the server may disconnect in between.
type authenticator struct {
	e     *endpoint
	steps []authStep
	close func() // the agent's socket

	next    int
	tried   []string
	skipped []string
	allowed []string
	begun   bool   // the server has responded to the first request
	done    bool   // no method is left to try
	asked   string // a question of the server that only a person can answer
}

// authenticator returns an authenticator. The order of its methods is: the target's key, the target's password, the agent's keys, the configured
// keys, the default key files, and a typed password.
func (c *Client) authenticator(e *endpoint) *authenticator {
	a := &authenticator{e: e, close: func() {}}
	if e.keyFile != "" {
		a.key(e.keyFile, func() (ssh.Signer, error) { return c.keys.load(e.keyFile, e.passphrase) })
	}
	if e.password.IsSet() {
		a.passwords(func() (string, error) { return e.password.Reveal(), nil })
	}
	a.agent(c.o.AgentSocket)
	for _, path := range e.identities {
		a.file(c, path)
	}
	if !e.onlyThese {
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			a.file(c, filepath.Join(c.o.Home, ".ssh", name))
		}
	}
	if !e.password.IsSet() && c.o.Prompt != nil {
		question := fmt.Sprintf("password of %s@%s", e.user, e.host)
		a.passwords(func() (string, error) {
			answer, err := c.questions.get(question)
			return answer.Reveal(), err
		})
	}
	return a
}

func (a *authenticator) key(path string, load func() (ssh.Signer, error)) {
	a.steps = append(a.steps, authStep{method: "publickey", label: describe(path), make: func() (ssh.AuthMethod, error) {
		s, err := load()
		if err != nil {
			return nil, err
		}
		return ssh.PublicKeys(s), nil
	}})
}

// file adds a key file if the file exists and isn't already in the list.
func (a *authenticator) file(c *Client, path string) {
	if path == a.e.keyFile || slices.ContainsFunc(a.steps, func(s authStep) bool { return s.label == describe(path) }) {
		return
	}
	if _, err := os.Stat(path); err != nil {
		return
	}
	a.key(path, func() (ssh.Signer, error) { return c.keys.load(path, "") })
}

func (a *authenticator) passwords(get func() (string, error)) {
	a.steps = append(a.steps, authStep{method: "password", label: "password", make: func() (ssh.AuthMethod, error) {
		pw, err := get()
		return ssh.Password(pw), err
	}}, authStep{method: "keyboard-interactive", label: "password (keyboard-interactive)", make: func() (ssh.AuthMethod, error) {
		pw, err := get()
		if err != nil {
			return nil, err
		}
		return ssh.KeyboardInteractive(a.answers(pw)), nil
	}})
}

// answers returns a function that replies to the server's first question with the password. answers returns an error for a second question, because
// only a person can answer that. The server then requests a one-time code, or a new password if the password has expired.
func (a *authenticator) answers(password string) ssh.KeyboardInteractiveChallenge {
	answered, said := false, ""
	return func(_, instruction string, questions []string, echos []bool) ([]string, error) {
		if text := lastWords(instruction); text != "" {
			said = text + " "
		}
		if len(questions) == 0 {
			return nil, nil
		}
		if answered || len(questions) > 1 || echos[0] {
			a.done, a.asked = true, said+strings.TrimSpace(questions[len(questions)-1])
			return nil, errRefused
		}
		answered = true
		return []string{password}, nil
	}
}

func (a *authenticator) agent(socket string) {
	if socket == "" {
		return
	}
	nc, err := net.DialTimeout("unix", socket, agentPatience) //nolint:noctx // a socket of this machine, with a limit
	if err != nil {
		return
	}
	a.close = func() { _ = nc.Close() }
	_ = nc.SetDeadline(time.Now().Add(agentPatience))
	signers, err := agent.NewClient(nc).Signers()
	if err != nil {
		return
	}
	_ = nc.SetDeadline(time.Time{}) // a signature may wait for a person
	for _, s := range signers {
		if a.e.onlyThese && !a.configured(s.PublicKey()) {
			continue
		}
		a.steps = append(a.steps, authStep{method: "publickey", label: "agent key " + ssh.FingerprintSHA256(s.PublicKey()),
			make: func() (ssh.AuthMethod, error) { return ssh.PublicKeys(s), nil }})
	}
}

// configured reports whether a key of the agent belongs to one of the configured key files.
func (a *authenticator) configured(key ssh.PublicKey) bool {
	for _, path := range append([]string{a.e.keyFile}, a.e.identities...) {
		if public := publicHalf(path); public != nil && string(public.Marshal()) == string(key.Marshal()) {
			return true
		}
	}
	return false
}

// pick returns the next method that the server allows. The handshake calls pick.
func (a *authenticator) pick(ctx *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	a.begun = true
	a.allowed = ctx.AllowedMethods
	for a.next < len(a.steps) {
		step := a.steps[a.next]
		a.next++
		if !slices.Contains(ctx.AllowedMethods, step.method) {
			continue
		}
		method, err := step.make()
		if err != nil {
			a.skipped = append(a.skipped, err.Error())
			continue
		}
		a.tried = append(a.tried, step.label)
		return method, nil
	}
	a.done = true
	return nil, errRefused
}

// error returns an error with a remedy. error lists the attempted methods and the methods that the server allows.
func (a *authenticator) error() error {
	tried := "nothing"
	if len(a.tried) > 0 {
		tried = strings.Join(a.tried, ", ")
	}
	text := fmt.Sprintf("tried: %s; server allows: %s", tried, strings.Join(a.allowed, ", "))
	if len(a.skipped) > 0 {
		text += "; left out: " + strings.Join(a.skipped, ", ")
	}
	if a.asked != "" {
		text += fmt.Sprintf("; the server also asks %q", a.asked)
	}
	return hint.Errorf(a.remedy(), "log in to %s as %s%s: %w (%s)", a.e.name, a.e.user, a.e.origin("User"), ErrAuth, text)
}

func (a *authenticator) remedy() string {
	takesPassword := slices.Contains(a.allowed, "password") || slices.Contains(a.allowed, "keyboard-interactive")
	switch {
	case a.asked != "":
		return changePassword(a.e.user, a.e.name) + ", which a server that asks for more than a password needs too"
	case takesPassword && a.e.password.IsSet():
		return "check " + a.e.field("ssh-username", "User") + " and ssh-password"
	case takesPassword:
		return "give ssh-password or ssh-keyfile-path, or check that the host knows your key"
	case a.e.keyFile == "":
		return fmt.Sprintf("the host accepts only keys: install yours with ssh-copy-id %s@%s from a machine that may log in, and give ssh-keyfile-path", a.e.user, a.e.host)
	}
	return fmt.Sprintf("add the public key of %s to ~%s/.ssh/authorized_keys on the host, and check %s", a.e.keyFile, a.e.user, a.e.field("ssh-username", "User"))
}
