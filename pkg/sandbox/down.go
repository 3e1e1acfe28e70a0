package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Down ends the sandbox and removes everything of it. It may be run again after any
// interruption; the state goes last. Files that others put into the directory stay.
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
	for _, f := range []string{"hosts", "full.sh", "light.sh", "id_ed25519", "id_ed25519.pub", "known_hosts", "pai-password",
		"quick-start.yaml", "api", "kubeconfig", stateFile, "lock"} {
		if err := removeTree(filepath.Join(s.dir, f)); err != nil {
			return err
		}
	}
	if err := os.Remove(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.progress(s.dir + " stays: it has files that aren't the sandbox's")
	}
	return nil
}

func (s *Sandbox) hostsDown(ctx context.Context) error {
	if err := requireRoot(); err != nil {
		return err
	}
	// Also hosts whose record a crash prevented have processes with our mark.
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
	s.progress(fmt.Sprintf("ending %d host(s)", len(names)))
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

// Purge removes the base images, which Down keeps for the next sandbox.
func Purge(cache string) error {
	if cache == "" {
		cache = DefaultCache
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
	if err := os.Remove(cache); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // others keep things there too
	}
	return nil
}
