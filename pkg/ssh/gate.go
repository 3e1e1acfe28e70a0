package ssh

import (
	"fmt"

	"github.com/openpai/paictl/pkg/hint"
)

// Gate decides whether a script may be sent. The client calls the gate itself, so callers can't bypass the gate.
type Gate interface {
	// Check returns nil if the script may run on the host. For an upload, only the fields Name ("upload") and Mutates of s are set.
	Check(host string, s Script) error
}

// DryRunGate is a gate that rejects all scripts and uploads that would change a host.
type DryRunGate struct{}

// Check returns ErrDryRun for a script that changes the host.
func (DryRunGate) Check(host string, s Script) error {
	if !s.Mutates {
		return nil
	}
	return hint.Wrap(fmt.Errorf("%s on %s: %w", s.Name, host, ErrDryRun), "run it without --dry-run")
}

type openGate struct{}

func (openGate) Check(string, Script) error { return nil }
