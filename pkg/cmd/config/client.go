package config

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
)

// client returns what reaches the machines. Its gate lets nothing pass that changes one.
func client(f *cmdutil.Factory, acceptNew bool, timeout time.Duration) *ssh.Client {
	o := ssh.Options{Gate: ssh.DryRunGate{}, Tracer: ssh.SlogTracer{Log: f.Log}, DialTimeout: timeout, ScriptTimeout: timeout}
	if acceptNew {
		o.HostKeys = ssh.HostKeyAcceptNew
	}
	if f.IO.CanPrompt() {
		p := &person{io: f.IO}
		o.Confirm, o.Prompt = p.confirmKey, p.askSecret
	}
	return ssh.NewClient(o)
}

// person asks whoever sits at the terminal. The client never asks two things at a time.
type person struct {
	io  *iostreams.IOStreams
	all bool // the rest of the unknown hosts is accepted too
}

// clearLine removes the progress line before a question.
const clearLine = "\r\033[K"

func (p *person) confirmKey(host, fingerprint string) (bool, error) {
	fmt.Fprintf(p.io.Err, "%s%s is not known yet. Its key is %s\n", clearLine, host, fingerprint)
	for !p.all {
		fmt.Fprint(p.io.Err, "Is that the right machine? [yes/no/all] ")
		answer, err := readLine(p.io.In)
		if err != nil {
			return false, fmt.Errorf("read the answer: %w", err)
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		case "a", "all":
			p.all = true
		}
	}
	return true, nil
}

func (p *person) askSecret(question string) (secret.String, error) {
	fmt.Fprint(p.io.Err, clearLine+strings.TrimSuffix(strings.TrimSpace(question), ":")+": ")
	answer, err := p.io.ReadPassword()
	fmt.Fprintln(p.io.Err)
	return secret.String(answer), err
}

// readLine reads one line and no byte more: the next question reads the same stream.
func readLine(r io.Reader) (string, error) {
	var b strings.Builder
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return strings.TrimSpace(b.String()), nil
		}
		b.WriteByte(one[0])
	}
}
