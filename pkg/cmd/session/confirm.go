package session

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
)

// ConfirmName asks the user to type a name before data is destroyed. --yes replaces the question. Without a terminal, --yes is required.
func (s *Session) ConfirmName(what, name string) error {
	if err := s.CanConfirm(); err != nil || s.flags.Yes {
		return err
	}
	io := s.f.IO
	fmt.Fprintf(io.Err, "%s\nType %s to continue: ", what, name)
	answer, err := prompt.Line(io.In)
	if err != nil {
		return err
	}
	if answer != name {
		return hint.Errorf("nothing was changed", "%q is not %q: not confirmed", answer, name)
	}
	return nil
}

// CanConfirm returns an error if ConfirmName couldn't ask the user.
func (s *Session) CanConfirm() error {
	if s.flags.Yes || s.f.IO.CanPrompt() {
		return nil
	}
	return cmdutil.Usagef("%s must be confirmed, but there is no terminal to ask on: add --yes", s.flags.verb)
}
