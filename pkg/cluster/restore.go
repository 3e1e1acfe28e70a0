package cluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
)

// keyFiles lists the only files that a backup of keys may contain. The check is strict because root unpacks the archive.
var keyFiles = backup.KeyFiles()

// CheckKeys returns an error if a backup of keys contains an unexpected file or doesn't contain a required file. It also returns an error if a key
// doesn't belong to its certificate.
func CheckKeys(r io.Reader) error {
	text, err := phases.ReadKeys(r)
	if err != nil {
		return err
	}
	in, seen := tar.NewReader(bytes.NewReader(text)), map[string]bool{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return fmt.Errorf("the keys in the backup: %w", err)
		case h.Typeflag != tar.TypeReg || !slices.Contains(keyFiles, h.Name) || seen[h.Name]:
			return fmt.Errorf("the keys in the backup: %q doesn't belong there", h.Name)
		}
		seen[h.Name] = true
	}
	for _, name := range keyFiles {
		if !seen[name] {
			return fmt.Errorf("the keys in the backup: %s is missing, without which its objects can't be used", name)
		}
	}
	if err := backup.CheckAuthorities(text); err != nil {
		return fmt.Errorf("the keys in the backup: %w", err)
	}
	return nil
}

// Restore creates a new cluster from a backup. It runs the phases of Up.
func Restore(ctx context.Context, s *engine.Spec, o engine.Options, from *engine.RestoreParts) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	r.Want = &engine.Desired{Spec: s, Restore: from}
	return converge(ctx, r, "cluster restore", "", func(_ context.Context, w *engine.World, _ []*engine.Node) (*engine.World, []engine.Change, error) {
		return w, nil, cmp.Or(refuseRestore(r, w), refuseRecovery(w))
	})
}

// refuseRestore returns an error if a restore must not begin or continue. For any other run, it returns an error if an earlier restore is incomplete.
// A restore may begin on members of a cluster only if an interrupted run of the same restore has created that cluster.
func refuseRestore(r *engine.Run, w *engine.World) error {
	masters, members := r.Spec.ControlPlane(), w.Members()
	unfinished := slices.DeleteFunc(slices.Clone(masters), func(n *engine.Node) bool { return !phases.IsRestoring(w.Of(n, engine.PhaseInit)) })
	of := slices.DeleteFunc(slices.Clone(members), func(n *engine.Node) bool { return !phases.IsRestoring(w.Of(n, engine.PhaseInit)) })
	whole := len(r.Opts.Limit)+len(r.Only) == 0
	switch {
	case r.Want.Restore == nil && len(unfinished) == 0:
		return nil
	case r.Want.Restore == nil && len(members) == 0:
		return hint.Errorf("run paictl cluster restore again; or undo the changes on the machines: paictl cluster down",
			"a restore was interrupted before there was a cluster; this would make an empty one")
	case !whole && (r.Want.Restore != nil || len(of) > 0):
		return hint.Errorf("remove --limit and --phases", "a restore makes a whole cluster, and hasn't come to its end")
	case r.Want.Restore == nil:
		return nil
	}
	for _, n := range of {
		if have := w.Of(n, engine.PhaseInit).Value("restoring"); have != r.Want.Restore.Etcd.SHA256 {
			return hint.Errorf("finish it with the same backup, or with paictl cluster up; to begin again: paictl cluster down",
				"%s belongs to a cluster that was restored from another backup", n.Hostname)
		}
	}
	var names []string
	for _, n := range r.Spec.Nodes {
		if w.Member(n) {
			names = append(names, n.Hostname)
		}
	}
	if len(names) == 0 || len(of) > 0 {
		return nil
	}
	return hint.Errorf("back it up, then take it down: paictl cluster down", "%s of a cluster that runs; a restore would end it",
		sentence(names, "is a machine", "are machines"))
}

// sentence returns text such as "a is a machine" or "a, b are machines".
func sentence(names []string, one, many string) string {
	verb := many
	if len(names) == 1 {
		verb = one
	}
	return strings.Join(names, ", ") + " " + verb
}
