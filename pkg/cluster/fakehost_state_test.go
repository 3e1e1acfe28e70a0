package cluster

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// state lists every file of all machines and of the cluster: mode, path and what stands for
// its content. Two clusters that are in the same state have the same list, however they
// came to it: what differs by nature (times, tokens, keys, a cluster's serial number) is
// left out or masked, and the lines of paictl's own records are sorted.
func (l *lab) state() []string {
	l.t.Helper()
	var out []string
	for _, h := range l.hosts {
		out = append(out, h.tree(h.name)...)
	}
	return append(out, l.tree(l.cluster, "cluster")...)
}

// tree lists one machine.
func (h *fakeHost) tree(name string) []string { return h.lab.tree(h.root, name) }

var (
	authority = regexp.MustCompile(`(?m)^# ca [0-9]+$`)
	keys      = regexp.MustCompile(`secret: [A-Za-z0-9+/=]{40,}`)
)

func (l *lab) tree(root, name string) []string {
	l.t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := strings.TrimPrefix(p, root)
		if path == "" || ignored(path) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %v %s", name, info.Mode(), path)
		if !d.IsDir() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += " " + l.content(path, b)
		}
		out = append(out, line)
		return nil
	})
	require.NoError(l.t, err)
	slices.Sort(out)
	return out
}

// ignored are paths that say how a state was reached, not which it is.
func ignored(path string) bool {
	for _, p := range []string{
		"/.fake/calls", "/hits", "/tokens", "/certificate-key", "/ca",
		// Stamps spare a hash, no more; what is being written beside a record counts for nothing.
		stateDir + "/stamps", stateDir + "/stamps.new", stateDir + "/images.new",
	} {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// content stands for what a file holds.
func (l *lab) content(path string, b []byte) string {
	switch path {
	case stateDir + "/journal", stateDir + "/sums", clusterLock:
		return "…" // times
	case "/etc/kubernetes/pki/ca.crt":
		current, _ := os.ReadFile(filepath.Join(l.cluster, "ca", "current"))
		want, _ := os.ReadFile(filepath.Join(l.cluster, "ca", strings.TrimSpace(string(current))+".crt"))
		if bytes.Equal(b, want) {
			return "the cluster's"
		}
		return "of another cluster"
	case stateDir + "/images", stateDir + "/owned":
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		slices.Sort(lines)
		return "\n\t" + strings.Join(lines, "\n\t")
	}
	current, _ := os.ReadFile(filepath.Join(l.cluster, "ca", "current"))
	b = authority.ReplaceAllFunc(b, func(m []byte) []byte {
		if string(m) == "# ca "+strings.TrimSpace(string(current)) {
			return []byte("# ca of the cluster")
		}
		return m
	})
	b = keys.ReplaceAll(b, []byte("secret: masked"))
	if len(b) < 200 {
		return fmt.Sprintf("%q", b)
	}
	return hash(b)[:16]
}
