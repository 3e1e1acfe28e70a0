package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Down stops the sandbox and removes all of its parts. It removes the state last, so it can be repeated after any interruption. It keeps files of
// other programs in the directory.
func (s *Sandbox) Down(ctx context.Context) error {
	unlock, err := lock(s.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if s.state.API == nil {
		err = s.hostsDown(ctx)
	} else {
		err = s.apiDown(ctx)
	}
	if err != nil {
		return err
	}
	if err := removeFiles(s.dir); err != nil {
		return err
	}
	if err := os.Remove(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.progress(s.dir + " is kept: it has files that aren't the sandbox's")
	}
	return nil
}

// Remove stops hosts and removes all of their parts. It deletes the hosts from the state last, so it can be repeated.
func (s *Sandbox) Remove(ctx context.Context, names ...string) error {
	unlock, err := s.lockFor(names)
	if err != nil {
		return err
	}
	defer unlock()
	left := slices.DeleteFunc(slices.Clone(s.state.Hosts), func(h Host) bool { return slices.Contains(names, h.Name) })
	if len(left) == 0 {
		return hint.Errorf("to remove the sandbox: paictl sandbox down", "%s: a sandbox has at least one host", strings.Join(names, ", "))
	}
	for _, name := range names {
		if err := s.stopOne(ctx, name, true); err != nil {
			return err
		}
		if err := removeTree(s.hostDir(name)); err != nil {
			return fmt.Errorf("remove the disk of %s: %w", name, err)
		}
	}
	s.state.Hosts = left
	if err := s.save(); err != nil {
		return err
	}
	return errors.Join(s.writeKnownHosts(), s.writeQuickStart())
}

// removeFiles removes the files that a sandbox has written into its directory, the state and the lock last. It also removes the partial files of a
// killed run (see writeFile), because they may contain a key.
func removeFiles(dir string) error {
	own := []string{"hosts", "full.sh", "light.sh", "id_ed25519", "id_ed25519.pub", "known_hosts", "pai-password",
		"quick-start.yaml", "api", "kubeconfig", stateFile, lockFile}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		begun := strings.TrimRight(e.Name(), "0123456789")
		if name, hidden := strings.CutPrefix(begun, "."); hidden && begun != e.Name() && slices.Contains(own, name) {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, f := range own {
		if err := removeTree(filepath.Join(dir, f)); err != nil {
			return err
		}
	}
	return nil
}

// Salvage returns a sandbox whose files were deleted, if its bridge still exists. The bridge records the directory. Otherwise the error is ErrNone.
func Salvage(ctx context.Context, dir string, progress func(string)) (*Sandbox, error) {
	dir, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("read this machine's interfaces: %w", err)
	}
	for _, l := range links {
		name, ours := strings.CutPrefix(l.Name, bridgePrefix)
		if !ours {
			continue
		}
		s := &Sandbox{dir: dir, progress: orDrop(progress), state: state{Version: stateVersion, Name: name}}
		owner, there, err := s.bridgeOwner(ctx)
		if err != nil {
			return nil, err
		}
		if there && owner == dir {
			return s, os.MkdirAll(dir, 0o700)
		}
	}
	return nil, fmt.Errorf("%w in %s", ErrNone, dir)
}

func (s *Sandbox) hostsDown(ctx context.Context) error {
	if err := requireRoot(); err != nil {
		return err
	}
	// A crash may leave hosts that the state doesn't contain. The marks of their processes identify them.
	names := map[string]bool{}
	for _, h := range s.state.Hosts {
		names[h.Name] = true
	}
	running, err := findProcesses(s.dir)
	if err != nil {
		return err
	}
	for name := range running {
		names[name] = true
	}
	s.progress("ending " + plural.Of(len(names), "host"))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for name := range names {
		g.Go(func() error { return s.stopOne(gctx, name, true) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.networkDown(ctx)
}

// Purge removes the base images, which Down keeps for later sandboxes. It returns an error if hosts are running on an image.
func Purge(cache string) error {
	if cache == "" {
		cache = DefaultCache
	}
	users, err := findUsers(cache)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return hint.Errorf("remove it first: paictl sandbox down --dir "+users[0], "the sandbox in %s uses the base image", users[0])
	}
	images, err := filepath.Glob(filepath.Join(cache, "base-*"))
	if err != nil {
		return err
	}
	for _, dir := range append(images, filepath.Join(cache, "lock")) {
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	_ = os.Remove(cache) // fails if other files are in the folder
	return nil
}
