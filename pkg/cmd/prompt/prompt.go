// Package prompt asks the user questions on the terminal.
// In: a question. Out: the answer. Callers must first check that the user can be asked (iostreams.CanPrompt).
package prompt

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ClearLine removes a line of progress before a question is printed.
const ClearLine = "\r\033[K"

// Person asks the user at the terminal. It asks one question at a time, also if several goroutines use it.
type Person struct {
	IO *iostreams.IOStreams
	// Before is printed before each question. An example is ClearLine.
	Before string

	mu  sync.Mutex
	all bool
}

// ConfirmKey shows the key of an unknown host, and asks whether the key is correct. The answer "all" also applies to all further hosts.
func (p *Person) ConfirmKey(host, fingerprint string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.IO.Err, "%s%s is not known yet. Its key is %s\n", p.Before, host, fingerprint)
	if p.all {
		return true, nil
	}
	for {
		fmt.Fprint(p.IO.Err, "Is this the right machine? [yes/no/all] ")
		answer, err := Line(p.IO.In)
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

// AskSecret asks for a password or passphrase, and doesn't echo the typed characters.
func (p *Person) AskSecret(question string) (secret.String, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.IO.Err, p.Before+strings.TrimSuffix(strings.TrimSpace(question), ":")+": ")
	answer, err := p.IO.ReadPassword()
	fmt.Fprintln(p.IO.Err)
	return secret.String(answer), err
}

// Line reads exactly one line. It doesn't read any byte after the line, because later readers use the same stream.
func Line(r io.Reader) (string, error) {
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
			return "", hint.Errorf("nothing was changed; run the command again to answer", "the question was not answered: %w", err)
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
