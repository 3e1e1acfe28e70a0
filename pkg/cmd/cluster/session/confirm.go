package session

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
)

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
	answer, err := prompt.Line(io.In)
	if err != nil {
		return err
	}
	if answer != name {
		return hint.Errorf("nothing was changed", "%q is not %q: not confirmed", answer, name)
	}
	return nil
}
