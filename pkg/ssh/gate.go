package ssh

import (
	"fmt"

	"github.com/openpai/paictl/pkg/hint"
)

// Gate decides whether a script may be sent. It is part of the transport, so that no
// caller can forget it.
type Gate interface {
	// Check returns nil if the script may run on the host. For an upload, s has
	// only the name "upload" and Mutates.
	Check(host string, s Script) error
}

// DryRunGate rejects everything that would change a host.
type DryRunGate struct{}

// Check rejects scripts that change the host, with ErrDryRun.
func (DryRunGate) Check(host string, s Script) error {
	if !s.Mutates {
		return nil
	}
	return hint.Wrap(fmt.Errorf("%s on %s: %w", s.Name, host, ErrDryRun), "run it without --dry-run")
}

type openGate struct{}

func (openGate) Check(string, Script) error { return nil }
