package cluster

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
)

// state lists every file of all machines and of the cluster with its mode, its path and a summary of its content. Two clusters in the same state
// have the same list. Values that always differ (times, tokens, keys, a cluster's serial number) are omitted or masked. The lines of paictl's own
// records are sorted.
func (l *lab) state() []string {
	l.t.Helper()
	var out []string
	for _, h := range l.hosts {
		out = append(out, h.tree(h.name)...)
	}
	return append(out, l.tree(l.cluster, "cluster")...)
}

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
		switch {
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			line += " -> " + to
		case !d.IsDir():
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

// ignored reports whether a file depends only on the history of a state and isn't part of the state.
func ignored(path string) bool {
	if strings.HasSuffix(path, "/podcidr") {
		return true // each join takes the next one
	}
	for _, p := range []string{
		"/.fake/calls", "/hits", "/points", "/tokens", "/certificate-key", "/ca", "/subnets", engine.ClusterLock,
		// Stamps only avoid calculating a hash again, and an incomplete record doesn't count.
		engine.StateDir + "/stamps", engine.StateDir + "/images.new",
	} {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

func (l *lab) content(path string, b []byte) string {
	switch path {
	case engine.StateDir + "/journal", engine.StateDir + "/sums":
		return "…" // times
	case "/etc/kubernetes/pki/ca.crt":
		current, _ := os.ReadFile(filepath.Join(l.cluster, "ca", "current"))
		want, _ := os.ReadFile(filepath.Join(l.cluster, "ca", strings.TrimSpace(string(current))+".crt"))
		if bytes.Equal(b, want) {
			return "the cluster's"
		}
		return "of another cluster"
	case engine.StateDir + "/images", engine.StateDir + "/owned":
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
	return engine.Hash(b)[:16]
}

// bytes returns the mode, the modification time and the hash of every file of the machines and the cluster, except the lock file.
func (l *lab) bytes() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(l.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, engine.ClusterLock) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		out[p] = fmt.Sprintf("%v %v %s", info.Mode(), info.ModTime(), engine.Hash(b))
		return err
	})
	require.NoError(l.t, err)
	return out
}

// stopwatch returns a function that returns the seconds since the call of stopwatch.
func stopwatch() func() float64 {
	start := time.Now()
	return func() float64 { return time.Since(start).Seconds() }
}

// assertNoRunIsLeft waits until no goroutine of package cluster or package ssh is running.
func assertNoRunIsLeft(t *testing.T) {
	t.Helper()
	running := func() string {
		buf := make([]byte, 4<<20)
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			inside := strings.Contains(g, "paictl/pkg/ssh.") || strings.Contains(g, "paictl/pkg/cluster.(*run)")
			if inside && !strings.Contains(g, "testing.tRunner") {
				return g
			}
		}
		return ""
	}
	deadline := stopwatch()
	for running() != "" && deadline() < 60 {
		runtime.Gosched()
	}
	assert.Empty(t, running(), "a goroutine that nobody ends")
}

func sectionsOf(out []byte) map[string]answer.Answer {
	sections, err := answer.Sections(out)
	if err != nil {
		panic(err)
	}
	return sections
}
