package session

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/secret"
)

// person asks whoever sits at the terminal.
type person struct {
	io *iostreams.IOStreams

	mu  sync.Mutex
	all bool
}

// confirmKey shows an unknown host's key and asks whether it is right. "all" answers for
// the hosts that follow.
func (p *person) confirmKey(host, fingerprint string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.io.Err, "%s is not known yet. Its key is %s\n", host, fingerprint)
	if p.all {
		return true, nil
	}
	for {
		fmt.Fprint(p.io.Err, "Is that the right machine? [yes/no/all] ")
		answer, err := readLine(p.io.In)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		case "a", "all":
			p.all = true
			return true, nil
		}
	}
}

func (p *person) askSecret(question string) (secret.String, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.io.Err, strings.TrimSuffix(strings.TrimSpace(question), ":")+": ")
	answer, err := p.io.ReadPassword()
	fmt.Fprintln(p.io.Err)
	return secret.String(answer), err
}

// ConfirmName asks a person to type a name before something is destroyed. --yes answers
// it; without a terminal --yes is needed.
func (s *Session) ConfirmName(what, name string) error {
	if s.flags.Yes {
		return nil
	}
	io := s.f.IO
	if !io.CanPrompt() {
		return cmdutil.Usagef("%s must be confirmed and there is no terminal to ask at: add --yes", s.flags.verb)
	}
	fmt.Fprintf(io.Err, "%s\nType %s to go on: ", what, name)
	answer, err := readLine(io.In)
	if err != nil {
		return err
	}
	if answer != name {
		return hint.Errorf("nothing was changed", "%q is not %q: not confirmed", answer, name)
	}
	return nil
}

// readLine reads one line and no byte more, since others read the same stream later.
func readLine(r io.Reader) (string, error) {
	if b, ok := r.(io.ByteReader); ok {
		return line(b)
	}
	return line(oneByte{r})
}

func line(r io.ByteReader) (string, error) {
	var b strings.Builder
	for {
		c, err := r.ReadByte()
		if errors.Is(err, io.EOF) && b.Len() > 0 || err == nil && c == '\n' {
			return strings.TrimSpace(b.String()), nil
		}
		if err != nil {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		b.WriteByte(c)
	}
}

type oneByte struct{ io.Reader }

// ReadByte implements io.ByteReader.
func (o oneByte) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(o, b[:])
	return b[0], err
}
