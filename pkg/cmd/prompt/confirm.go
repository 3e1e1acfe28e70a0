package prompt

import (
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Confirm asks a yes-or-no question about the given subject, and returns an error if the answer is no. With yes, which is the flag --yes, it
// doesn't ask.
func Confirm(io *iostreams.IOStreams, yes bool, what, question string) error {
	if yes {
		return nil
	}
	if !io.CanPrompt() {
		return cmdutil.Usagef("%s must be confirmed, but there is no terminal to ask on: add --yes", what)
	}
	for {
		fmt.Fprintf(io.Err, "%s [yes/no] ", question)
		answer, err := Line(io.In)
		if err != nil {
			return err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return nil
		case "n", "no":
			return hint.Errorf("nothing was changed", "%s was not confirmed", what)
		}
	}
}

// Operator returns the user who runs the program as user@host. Commands record it in histories. With sudo, it is the user who called sudo, not
// root.
func Operator() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if person := os.Getenv("SUDO_USER"); name == "root" && person != "" {
		name = person
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
