package user

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/people/password"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// passwordFlags are the flags that determine where a password comes from. The password is never a command-line argument, because other users can
// see arguments.
type passwordFlags struct {
	Stdin, Generate, None bool
}

func (o *passwordFlags) add(cmd *cobra.Command, none bool) {
	fl := cmd.Flags()
	fl.BoolVar(&o.Stdin, "password-stdin", false, "read the password from stdin, up to the end of the line")
	fl.BoolVar(&o.Generate, "generate-password", false, "make a password and print it once")
	if none {
		fl.BoolVar(&o.None, "no-password", false, "don't set a password")
	}
}

// check returns an error if more than one source of the password is chosen.
func (o *passwordFlags) check() error {
	n := 0
	for _, set := range []bool{o.Stdin, o.Generate, o.None} {
		if set {
			n++
		}
	}
	if n > 1 {
		return cmdutil.Usagef("a password comes from one place: give one of --password-stdin, --generate-password and --no-password")
	}
	return nil
}

// maxPassword limits the length of a password that is read, in bytes. Every valid password is shorter.
const maxPassword = 4096

// get returns the new password of the user name. It is empty with --no-password.
func (o *passwordFlags) get(streams *iostreams.IOStreams, name string) (secret.String, error) {
	switch {
	case o.None:
		return "", nil
	case o.Generate:
		return password.New(), nil
	case o.Stdin:
		p, err := readLine(streams.In)
		if err != nil {
			return "", err
		}
		return p, password.Check(p, name)
	case !streams.CanPrompt():
		return "", cmdutil.Usagef("there is no terminal to ask for a password on: add --password-stdin or --generate-password")
	}
	return o.ask(streams, name)
}

// readLine reads a password up to the end of the line. It doesn't read any byte after the line, because another password may follow.
func readLine(r io.Reader) (secret.String, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < maxPassword; {
		n, err := r.Read(one)
		if n > 0 && one[0] == '\n' || errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the password from stdin: %w", err)
		}
		line = append(line, one[:n]...)
	}
	return secret.String(strings.TrimSuffix(string(line), "\r")), nil
}

// old reads the current password of the user.
func (o *passwordFlags) old(streams *iostreams.IOStreams) (secret.String, error) {
	switch {
	case o.Stdin:
		return readLine(streams.In)
	case !streams.CanPrompt():
		return "", cmdutil.Usagef("there is no terminal to ask for your password on: add --password-stdin")
	}
	return (&prompt.Person{IO: streams}).AskSecret("Your current password")
}

// ask asks for a password twice, and repeats this until both are equal and strong enough.
func (o *passwordFlags) ask(streams *iostreams.IOStreams, name string) (secret.String, error) {
	person := &prompt.Person{IO: streams}
	for {
		p, err := person.AskSecret("Password for " + name)
		if err != nil {
			return "", err
		}
		if err := password.Check(p, name); err != nil {
			fmt.Fprintln(streams.Err, err)
			continue
		}
		again, err := person.AskSecret("The same password again")
		if err != nil {
			return "", err
		}
		if again.Reveal() == p.Reveal() {
			return p, nil
		}
		fmt.Fprintln(streams.Err, "The passwords differ.")
	}
}
