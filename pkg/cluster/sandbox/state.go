package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/openpai/paictl/pkg/hint"
)

const (
	stateFile    = "sandbox.json"
	lockFile     = "lock"
	stateVersion = 1
)

// state is the stored state of a sandbox. It doesn't record whether a part exists or is running, because a crash could make such a record wrong.
type state struct {
	Version int          `json:"version"`
	Name    string       `json:"name"`
	Kind    Kind         `json:"kind,omitempty"`
	Subnet  netip.Prefix `json:"subnet,omitzero"`
	// Pods and Services are the networks in the quick-start file. These networks never change after the first choice, because a cluster may use them.
	Pods     netip.Prefix `json:"pods,omitzero"`
	Services netip.Prefix `json:"services,omitzero"`
	Bundle   string       `json:"bundle,omitempty"`
	Base     string       `json:"base,omitempty"`
	// Foreign is the release of the hosts if it differs from this machine's release.
	Foreign *foreignRelease `json:"foreign,omitempty"`
	Hosts   []Host          `json:"hosts,omitempty"`
	API     *apiState       `json:"api,omitempty"`
}

type foreignRelease struct {
	Release    string   `json:"release"`
	Mirror     string   `json:"mirror"`
	Components []string `json:"components"`
}

func (st state) gateway() netip.Addr { return st.Subnet.Addr().Next() }

func (st state) mirror() string {
	if st.Foreign == nil {
		return "of this machine"
	}
	return st.Foreign.Mirror
}

// agree returns an error if the options contradict the existing sandbox.
func (st state) agree(o Options) error {
	differs := func(what, have, want string) error {
		return hint.Errorf("remove it first (paictl sandbox down --dir "+hint.Quote(o.Dir)+"), or give another --dir and --name",
			"the sandbox in %s has the %s %s, not %s", o.Dir, what, have, want)
	}
	switch {
	case st.API != nil:
		return differs("kind", "api-only", "hosts")
	case o.Name != "" && o.Name != st.Name:
		return differs("name", st.Name, o.Name)
	case o.Kind != "" && o.Kind != st.Kind:
		return differs("kind", string(st.Kind), string(o.Kind))
	case o.Subnet != "" && o.Subnet != st.Subnet.String():
		return differs("subnet", st.Subnet.String(), o.Subnet)
	case o.Release != "" && st.Base != "" && !strings.HasPrefix(filepath.Base(st.Base), "base-"+o.Release+"-"):
		return differs("base image", filepath.Base(st.Base), o.Release)
	case o.Mirror != "" && st.Base != "" && (st.Foreign == nil || o.Mirror != st.Foreign.Mirror):
		return differs("mirror", st.mirror(), o.Mirror)
	}
	return nil
}

func readState(dir string) (state, error) {
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return state{}, fmt.Errorf("read the sandbox's state: %w", err)
	}
	var st state
	if err := json.Unmarshal(b, &st); err != nil {
		return state{}, hint.Errorf("only paictl may write this file; restore it, or remove the objects that it lists yourself",
			"read the sandbox's state %s: %w", path, err)
	}
	if st.Version != stateVersion {
		return state{}, hint.Errorf("remove the sandbox with the paictl that made it",
			"the sandbox in %s has state version %d, but this paictl supports %d", dir, st.Version, stateVersion)
	}
	return st, nil
}

func (s *Sandbox) save() error {
	b, err := json.MarshalIndent(s.state, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(s.dir, stateFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the sandbox's state: %w", err)
	}
	return nil
}

// writeFile atomically replaces a file. After an interruption, the old or the new file exists.
func writeFile(path string, b []byte, mode os.FileMode) error {
	return renameio.WriteFile(path, b, mode, renameio.IgnoreUmask())
}

// LockedError means that another paictl is changing the sandbox.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("another paictl is changing the sandbox in %s", e.Dir)
}

// ExitCode returns 5.
func (e *LockedError) ExitCode() int { return 5 }

// lock locks the directory against other runs. The lock is released when the process ends.
func lock(dir string) (unlock func(), err error) {
	l := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the sandbox: %w", err)
	}
	if !ok {
		return nil, hint.Wrap(&LockedError{Dir: dir}, "wait until it has ended, then run the command again")
	}
	return func() { _ = errors.Join(l.Unlock()) }, nil
}
